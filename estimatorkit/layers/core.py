"""Functional layers, as `tf.layers`: `dense`, `dropout`, `batch_normalization`, `flatten`.

Each opens a variable scope (its `name`, or a default made unique) and gets its variables there, so
`reuse` shares them. Moving averages are updated by operations in the collection UPDATE_OPS, which a
training operation must depend on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.initializers import Ones, Zeros
from estimatorkit.core.ops import array, elementwise, indexing, joining, linalg, nn
from estimatorkit.core.registry import constant_value
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variable_scope import get_variable, variable_scope
from estimatorkit.core.variables import Variable

Activation = Callable[[Tensor], Tensor]


def _known_dimension(inputs: Tensor, axis: int, layer: str) -> int:
    """The length of an axis, which a variable's shape needs."""
    rank = inputs.shape.rank
    length = None if rank is None or not -rank <= axis < rank else inputs.shape[axis]
    if length is None:
        raise ValueError(
            explain(
                f"The dimension {axis} of the inputs to `{layer}` should be defined",
                received=f"{inputs.name} {inputs.shape}",
                made_at=inputs.op.source,
                hint="give the placeholder a shape, or call set_shape",
            )
        )
    return length


def _floating(inputs: Any, layer: str) -> Tensor:
    tensor = convert_to_tensor(inputs, name="inputs")
    if not tensor.dtype.is_floating:
        raise TypeError(
            explain(
                f"Unable to build `{layer}` layer with non-floating point dtype",
                expected="float32, float64, float16 or bfloat16",
                received=tensor,
                made_at=tensor.op.source,
                hint="cast(inputs, float32)",
            )
        )
    return tensor


def dense(
    inputs: Any,
    units: int,
    activation: Activation | None = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """activation(inputs x kernel + bias).

    Args:
        inputs: floats `(..., n)`, n known.
        units: the number of outputs.
        activation: a function of a tensor; none by default.
        use_bias: whether there is a bias.
        kernel_initializer: of `<name>/kernel`, `(n, units)`; by default the scope's, then Glorot
            uniform.
        bias_initializer: of `<name>/bias`, `(units,)`; zeros by default.
        kernel_regularizer, bias_regularizer, activity_regularizer: functions of the kernel, bias or
            output giving a loss for the collection REGULARIZATION_LOSSES.
        kernel_constraint, bias_constraint: functions that optimizers apply to the new value.
        trainable: whether the variables are listed as trainable.
        name: the variable scope; 'dense', 'dense_1', ... by default.
        reuse: whether to share the variables of a layer of this name.

    Returns:
        `(..., units)`, of the dtype of `inputs`.

    Raises:
        TypeError: the inputs are not floating.
        ValueError: their last dimension is unknown, or they have none; or units is not positive.
    """
    with variable_scope(name, default_name="dense", reuse=reuse):
        tensor = _floating(inputs, "dense")
        if int(units) < 1:
            raise ValueError(explain("dense: units is not positive", received=units))
        if tensor.shape.rank is not None and tensor.shape.rank < 2:
            raise ValueError(
                explain(
                    "dense expects inputs of at least 2 dimensions",
                    expected="(batch, ..., n)",
                    received=f"{tensor.name} {tensor.shape}",
                    made_at=tensor.op.source,
                )
            )
        kernel = get_variable(
            "kernel",
            [_known_dimension(tensor, -1, "dense"), int(units)],
            tensor.dtype,
            kernel_initializer,
            regularizer=kernel_regularizer,
            constraint=kernel_constraint,
            trainable=trainable,
        )
        outputs = linalg.matmul(tensor, kernel)
        if use_bias:
            bias = get_variable(
                "bias",
                [int(units)],
                tensor.dtype,
                Zeros() if bias_initializer is None else bias_initializer,
                regularizer=bias_regularizer,
                constraint=bias_constraint,
                trainable=trainable,
            )
            outputs = nn.bias_add(outputs, bias)
        if activation is not None:
            outputs = activation(outputs)
        if activity_regularizer is not None:
            loss = activity_regularizer(outputs)
            get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
        return outputs


def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: int | None = None,
    training: Any = False,
    name: str | None = None,
) -> Tensor:
    """In training, sets elements to 0 at random and scales the others so that the expected sum
    stays.

    Args:
        inputs: floats of any shape.
        rate: the probability that an element is dropped.
        noise_shape: a shape that broadcasts with that of `inputs`; elements that share a draw are
            dropped together.
        seed: see `set_random_seed`.
        training: a bool, or a scalar bool tensor; where it is false, the inputs come out unchanged.
        name: the name scope.
    """
    with get_default_graph().name_scope(name or "dropout"):
        tensor = _floating(inputs, "dropout")
        known = constant_value(training) if isinstance(training, Tensor) else training
        if known is not None and not known:
            return array.identity(tensor)
        dropped = nn.dropout(tensor, noise_shape=noise_shape, seed=seed, rate=rate)
        return dropped if known is not None else indexing.where(training, dropped, tensor)


def batch_normalization(
    inputs: Any,
    axis: int = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = None,
    gamma_initializer: Any = None,
    moving_mean_initializer: Any = None,
    moving_variance_initializer: Any = None,
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_momentum: float = 0.99,
    fused: bool | None = None,
    virtual_batch_size: int | None = None,
    adjustment: Any = None,
) -> Tensor:
    """Normalizes each channel to mean 0 and variance 1, then scales and shifts it (Ioffe & Szegedy
    2015).

    In training with the batch's mean and variance, and operations in UPDATE_OPS move `moving_mean`
    and `moving_variance` towards them; otherwise with the moving averages. As TensorFlow's fused
    kernel, images (rank 4) move `moving_variance` by the unbiased variance (n / (n - 1)), unless
    `fused` is False.

    Args:
        inputs: floats with a known number of channels.
        axis: the channels' axis.
        momentum: moving averages keep this part of their old value in each step.
        epsilon: added to the variance.
        center, scale: whether there is a `beta` (shift), a `gamma` (scale).
        beta_initializer, gamma_initializer, moving_mean_initializer, moving_variance_initializer:
            of the variables `<name>/beta` (zeros), `gamma` (ones), `moving_mean` (zeros),
            `moving_variance` (ones), all `(channels,)`.
        beta_regularizer, gamma_regularizer, beta_constraint, gamma_constraint: see `dense`.
        training: a bool, or a scalar bool tensor.
        trainable: whether beta and gamma are listed as trainable.
        name: the variable scope; 'batch_normalization' by default.
        reuse: whether to share the variables of a layer of this name.
        renorm, virtual_batch_size, adjustment: refused: they are not supported.
        renorm_clipping, renorm_momentum: accepted for TensorFlow's signature; they belong to
            renorm.
        fused: see above; the computation is the same.

    Raises:
        ValueError: the number of channels is unknown, or an argument is not supported.
    """
    for refused, value in (
        ("renorm", renorm),
        ("virtual_batch_size", virtual_batch_size),
        ("adjustment", adjustment),
    ):
        if value:
            raise ValueError(explain(f"batch_normalization: {refused} is not supported"))
    with variable_scope(name, default_name="batch_normalization", reuse=reuse):
        tensor = _floating(inputs, "batch_normalization")
        channels = _known_dimension(tensor, axis, "batch_normalization")

        def variable(key: str, initializer: Any, default: Any, **rest: Any) -> Variable:
            chosen = default if initializer is None else initializer
            return get_variable(key, [channels], tensor.dtype, chosen, **rest)

        gamma = beta = None
        if scale:
            gamma = variable(
                *("gamma", gamma_initializer, Ones()),
                regularizer=gamma_regularizer,
                constraint=gamma_constraint,
                trainable=trainable,
            )
        if center:
            beta = variable(
                *("beta", beta_initializer, Zeros()),
                regularizer=beta_regularizer,
                constraint=beta_constraint,
                trainable=trainable,
            )
        moving_mean = variable("moving_mean", moving_mean_initializer, Zeros(), trainable=False)
        moving_variance = variable(
            "moving_variance", moving_variance_initializer, Ones(), trainable=False
        )
        known = constant_value(training) if isinstance(training, Tensor) else training
        mean, variance = moving_mean.value(), moving_variance.value()
        if known is None or known:
            batch_mean, batch_variance = _move(
                *(tensor, axis, momentum, moving_mean, moving_variance),
                training=training if known is None else None,
                unbiased=fused is not False and tensor.shape.rank == 4,
            )
            if known is None:
                mean = indexing.where(training, batch_mean, mean)
                variance = indexing.where(training, batch_variance, variance)
            else:
                mean, variance = batch_mean, batch_variance
        rank = len(tensor.shape)
        spread = [channels if each == axis % rank else 1 for each in range(rank)]

        def shaped(statistic: Any) -> Any:
            if statistic is None or axis % rank == rank - 1:
                return statistic
            return array.reshape(statistic, spread)

        return nn.batch_normalization(
            tensor, shaped(mean), shaped(variance), shaped(beta), shaped(gamma), epsilon
        )


def _move(
    inputs: Tensor,
    axis: int,
    momentum: float,
    moving_mean: Variable,
    moving_variance: Variable,
    training: Tensor | None,
    unbiased: bool,
) -> tuple[Tensor, Tensor]:
    """The batch's moments; adds the operations that move the averages to UPDATE_OPS."""
    rank = len(inputs.shape)
    axes = [each for each in range(rank) if each != axis % rank]
    mean, variance = nn.moments(inputs, axes)
    rate: Any = 1.0 - momentum
    if training is not None:
        rate = elementwise.cast(training, inputs.dtype) * rate
    target = variance
    if unbiased:
        count = elementwise.cast(array.size(inputs), inputs.dtype) / float(mean.shape[0] or 1)
        target = variance * (count / elementwise.maximum(count - 1.0, 1.0))
    for average, new in ((moving_mean, mean), (moving_variance, target)):
        update = average.assign_sub((average.value() - new) * rate, name="AssignMovingAvg")
        get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, update)
    return mean, variance


def flatten(inputs: Any, name: str | None = None) -> Tensor:
    """`inputs` as `(batch, n)`, n the product of all other dimensions; `(batch,)` becomes
    `(batch, 1)`.
    """
    with get_default_graph().name_scope(name or "flatten"):
        tensor = convert_to_tensor(inputs, name="inputs")
        dims = tensor.shape.dims
        if dims is None or None in dims[1:]:
            return array.reshape(tensor, joining.stack([array.shape(tensor)[0], -1]))
        count = math.prod(dim for dim in dims[1:] if dim is not None)
        if dims[0] is None and count:
            return array.reshape(tensor, [-1, count])
        return array.reshape(tensor, joining.stack([array.shape(tensor)[0], count]))


__all__ = ["batch_normalization", "dense", "dropout", "flatten"]
