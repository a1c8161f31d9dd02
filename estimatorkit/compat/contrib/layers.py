"""The initializers and regularizers of `contrib.layers`."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.core.conversion import constant, convert_to_tensor
from estimatorkit.core.dtypes import as_dtype, float32
from estimatorkit.core.graph import add_to_collection, get_collection, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.nn import nn
from estimatorkit.ops.variables.initializers import (
    GlorotNormal,
    GlorotUniform,
    Initializer,
    VarianceScaling,
)

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
    """Variance `factor` divided by the fan given by `mode` (He et al. 2015 by default).

    Raises:
        TypeError: the dtype is not floating-point, or the mode is unknown.
    """
    if not as_dtype(dtype).is_floating:
        raise TypeError("Cannot create initializer for non-floating point type.")
    if mode not in ("FAN_IN", "FAN_OUT", "FAN_AVG"):
        raise TypeError(f"Unknown mode {mode} [FAN_IN, FAN_OUT, FAN_AVG]")
    return VarianceScaling(
        scale=factor,
        mode=mode.lower(),
        distribution="uniform" if uniform else "truncated_normal",
        seed=seed,
        dtype=dtype,
    )


def l2_regularizer(scale: Any, scope: str | None = None) -> Regularizer:
    """scale x half the sum of squares of the weights.

    Args:
        scale: a float or a scalar tensor; 0.0 for no regularization.
        scope: the operations' name; 'l2_regularizer' by default.

    Raises:
        ValueError: the scale is negative or an integer.
    """
    return _scaled(scale, nn.l2_loss, scope or "l2_regularizer")


def l1_regularizer(scale: Any, scope: str | None = None) -> Regularizer:
    """scale x the sum of the weights' absolute values.

    Args:
        scale: a float or a scalar tensor; 0.0 for no regularization.
        scope: the operations' name; 'l1_regularizer' by default.

    Raises:
        ValueError: the scale is negative or an integer.
    """
    return _scaled(
        scale, lambda x: reduce.reduce_sum(elementwise.abs(x)), scope or "l1_regularizer"
    )


def l1_l2_regularizer(
    scale_l1: Any = 1.0, scale_l2: Any = 1.0, scope: str | None = None
) -> Regularizer:
    """The sum of `l1_regularizer` and `l2_regularizer`.

    Raises:
        ValueError: a scale is negative or an integer.
    """
    parts = [l1_regularizer(scale_l1), l2_regularizer(scale_l2)]
    return _total(parts, scope or "l1_l2_regularizer")


def sum_regularizer(
    regularizer_list: Sequence[Any], scope: str | None = None
) -> Regularizer | None:
    """The sum of several regularizers, ignoring None; None if all are."""
    chosen = [each for each in regularizer_list if each is not None]
    return _total(chosen, scope or "sum_regularizer") if chosen else None


def _total(regularizers: Sequence[Regularizer], name: str) -> Regularizer:
    """The sum of regularizers."""

    def total(weights: Any) -> Any:
        found = [part for part in (each(weights) for each in regularizers) if part is not None]
        return elementwise.add_n(found, name=name) if found else None

    return total


def _scaled(scale: Any, measure: Callable[[Any], Any], scope: str) -> Regularizer:
    """A multiple of a measure of the weights."""
    if isinstance(scale, numbers.Integral):
        raise ValueError(f"scale cannot be an integer: {scale}")
    if isinstance(scale, numbers.Real):
        if scale < 0.0:
            raise ValueError(f"Setting a scale less than 0 on a regularizer: {scale:g}.")
        if scale == 0.0:
            return lambda _: None

    def penalty(weights: Any) -> Tensor:
        with get_default_graph().name_scope(scope) as name:
            values = convert_to_tensor(weights)
            factor = convert_to_tensor(scale, values.dtype.base_dtype, name="scale")
            return elementwise.multiply(factor, measure(values), name=name)

    return penalty


def apply_regularization(regularizer: Regularizer, weights_list: Any = None) -> Tensor:
    """The sum of a regularizer over weights (those of the collection WEIGHTS by default).

    Raises:
        ValueError: there are no weights, or the regularizer does not return a scalar.
    """
    weights = weights_list or get_collection(GraphKeys.WEIGHTS)
    if not weights:
        raise ValueError("No weights to regularize.")
    losses = [each for each in map(regularizer, weights) if each is not None]
    for each in losses:
        if each.shape.rank not in (0, None):
            raise ValueError(
                f"regularizer must return a scalar Tensor instead of a Tensor with rank "
                f"{each.shape.rank}."
            )
    total = elementwise.add_n(losses) if losses else constant(0.0)
    add_to_collection(GraphKeys.REGULARIZATION_LOSSES, total)
    return total
