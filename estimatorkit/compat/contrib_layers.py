"""The initializers, regularizers and simplest layers of `contrib.layers`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.compat.arg_scope import add_arg_scope
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
from estimatorkit.layers import functional as core

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


@add_arg_scope
def fully_connected(
    inputs: Any,
    num_outputs: int,
    activation_fn: Any = nn.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = None,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: str | None = None,
) -> Tensor:
    """`layers.dense` with ReLU, under the variable scope 'fully_connected'.

    Args:
        inputs, num_outputs, reuse, trainable: see `layers.dense`.
        activation_fn: ReLU by default; None for none.
        normalizer_fn, normalizer_params: applied before the activation, instead of a bias.
        weights_initializer, weights_regularizer: of the kernel.
        biases_initializer, biases_regularizer: of the bias.
        variables_collections, outputs_collections: accepted for TensorFlow's signature.
        scope: the variable scope.
    """
    outputs = core.dense(
        inputs,
        num_outputs,
        use_bias=normalizer_fn is None,
        kernel_initializer=weights_initializer,
        kernel_regularizer=weights_regularizer,
        bias_initializer=biases_initializer,
        bias_regularizer=biases_regularizer,
        trainable=trainable,
        name=scope or "fully_connected",
        reuse=reuse,
    )
    if normalizer_fn is not None:
        outputs = normalizer_fn(outputs, **(normalizer_params or {}))
    return outputs if activation_fn is None else activation_fn(outputs)


@add_arg_scope
def flatten(inputs: Any, outputs_collections: Any = None, scope: str | None = None) -> Tensor:
    """`layers.flatten`."""
    return core.flatten(inputs, name=scope)


@add_arg_scope
def dropout(
    inputs: Any,
    keep_prob: Any = 0.5,
    noise_shape: Any = None,
    is_training: Any = True,
    outputs_collections: Any = None,
    scope: str | None = None,
    seed: int | None = None,
) -> Tensor:
    """`layers.dropout` by the part that is kept."""
    return core.dropout(
        inputs, 1 - keep_prob, noise_shape, seed=seed, training=is_training, name=scope
    )
