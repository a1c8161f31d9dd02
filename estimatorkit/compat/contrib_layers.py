"""The initializers and regularizers of `contrib.layers`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.core.dtypes import float32
from estimatorkit.core.graph import add_to_collection, get_collection
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.initializers import (
    GlorotNormal,
    GlorotUniform,
    Initializer,
    VarianceScaling,
)
from estimatorkit.core.ops import elementwise, nn, reduce
from estimatorkit.core.tensor import Tensor

Regularizer = Callable[[Any], Any]


def xavier_initializer(
    uniform: bool = True, seed: int | None = None, dtype: Any = float32
) -> Initializer:
    """Glorot's initializer, uniform or (truncated) normal."""
    kind = GlorotUniform if uniform else GlorotNormal
    return kind(seed=seed, dtype=dtype)


xavier_initializer_conv2d = xavier_initializer


def variance_scaling_initializer(
    factor: float = 2.0,
    mode: str = "FAN_IN",
    uniform: bool = False,
    seed: int | None = None,
    dtype: Any = float32,
) -> Initializer:
    """Variance `factor` over the fan that `mode` names (He et al. 2015 by default)."""
    return VarianceScaling(
        scale=factor,
        mode=mode.lower(),
        distribution="uniform" if uniform else "truncated_normal",
        seed=seed,
        dtype=dtype,
    )


def l2_regularizer(scale: float, scope: str | None = None) -> Regularizer:
    """scale x half the sum of squares of the weights.

    Raises:
        ValueError: the scale is negative.
    """
    _check(scale)
    return lambda weights: None if scale == 0.0 else scale * nn.l2_loss(weights)


def l1_regularizer(scale: float, scope: str | None = None) -> Regularizer:
    """scale x the sum of the weights' absolute values.

    Raises:
        ValueError: the scale is negative.
    """
    _check(scale)
    return lambda weights: (
        None if scale == 0.0 else scale * reduce.reduce_sum(elementwise.abs(weights))
    )


def l1_l2_regularizer(
    scale_l1: float = 1.0, scale_l2: float = 1.0, scope: str | None = None
) -> Regularizer:
    """The sum of both."""
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)])


def sum_regularizer(regularizer_list: Sequence[Any], scope: str | None = None) -> Regularizer:
    """The sum of several; None stands for none."""

    def total(weights: Any) -> Any:
        parts = [each(weights) for each in regularizer_list if each is not None]
        found = [part for part in parts if part is not None]
        return elementwise.add_n(found) if found else None

    return total


def _check(scale: float) -> None:
    if isinstance(scale, bool) or scale < 0.0:
        raise ValueError(
            f"Setting a scale less than 0 on a regularizer: {scale}; it must be a number >= 0"
        )


def apply_regularization(regularizer: Regularizer, weights_list: Any = None) -> Tensor:
    """The sum of a regularizer over weights (those of the collection WEIGHTS by default)."""
    weights = get_collection(GraphKeys.WEIGHTS) if weights_list is None else weights_list
    penalties = [regularizer(each) for each in weights]
    total = elementwise.add_n([each for each in penalties if each is not None])
    add_to_collection(GraphKeys.REGULARIZATION_LOSSES, total)
    return total
