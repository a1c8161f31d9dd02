"""Neural-network ops: activations, softmax, cross-entropies from logits, bias, dropout, moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import float16, float32, int32, int64
from estimatorkit.core.errors import InvalidArgumentError, type_error, value_error
from estimatorkit.core.faults import Fault, in_range
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, constant_value, register, same_as_input
from estimatorkit.core.shapes import TensorShape, differ
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.vjp import VECTOR_JACOBIAN_PRODUCT, vjp
from estimatorkit.lazy import LazyFunctions
from estimatorkit.ops.array import array, rearrange
from estimatorkit.ops.math import elementwise, random, reduce
from estimatorkit.ops.math.axes import input_of, register_with_axis, with_axis
from estimatorkit.ops.math.derivatives import with_partials

scipy_special = LazyFunctions("scipy.special")

sigmoid = elementwise.sigmoid
tanh = elementwise.tanh

_SAMPLE = np.array([[-1.5, 0.25, 2.0], [0.5, -0.75, 7.25]], np.float32)
_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772


def _selu(x: Any) -> Any:
    # At 0 the gradient is the scale, as in TensorFlow; that of jax.nn.selu is scale times alpha.
    below = _SELU_ALPHA * jnp.expm1(jnp.where(x < 0, x, 0))
    return _SELU_SCALE * jnp.where(x < 0, below, x)


def _activation(
    op_type: str,
    kernel: Callable[..., Any],
    numpy_kernel: Callable[..., Any],
    doc: str,
    accepts: str = "f",
    gradient: Any = "auto",
) -> Callable[..., Tensor]:
    register(
        op_type,
        kernel,
        gradient=gradient,
        infer=same_as_input(),
        numpy_kernel=numpy_kernel,
        accepts=accepts,
        cases=lambda: [Case((_SAMPLE,))],
    )

    def function(features: Any, name: str | None = None) -> Tensor:
        return make(op_type, {"features": features}, name=name)

    function.__name__ = function.__qualname__ = op_type.lower()
    function.__doc__ = (
        f"{doc}\n\nArgs:\n    features: a floating tensor.\n    name: the operation's name."
    )
    return function


def _relu_gradient(op: Operation, dy: Tensor) -> list[Tensor]:
    """The gradient of ReLU; that of max_pool(relu(x)) is computed as of relu(max_pool(x)).

    The bits are the same, the maxima are fewer, and the other order is a kernel that writes to its
    input's buffer, which LLVM does not vectorize (`compiler_options.updates_apart`): a step of
    `queue_images` took 11.5 ms of all cores and takes 8.5.
    """
    pooling = _pooling_of(op, dy)
    if pooling is None:
        return vjp(op, [dy], (0,), "Relu")
    of_maxima = vjp(op, [dy.op.inputs[1]], (0,), "Relu", pooling.outputs)
    return vjp(pooling, of_maxima, (0,))


def _pooling_of(op: Operation, dy: Tensor) -> Operation | None:
    """The max pooling of ReLU's result, if `dy` is the gradient of nothing else."""
    attrs = dy.op.attrs
    is_of_maximum = (
        op.type == "Relu"
        and VECTOR_JACOBIAN_PRODUCT.made(dy.op)
        and attrs["forward_type"] == "MaxPool"
        and attrs["_forward"]
        and dy.op.inputs[0] is op.outputs[0]
    )
    return op.graph.get_operation_by_name(attrs["_forward"]) if is_of_maximum else None


relu = _activation(
    "Relu", jax.nn.relu, lambda x: np.maximum(x, 0), "max(x, 0).", "fi", _relu_gradient
)
relu6 = _activation(
    "Relu6",
    # Without gradient at 0 and 6, and of the input's dtype, which jax.nn.relu6 does not keep.
    lambda x: jnp.where(x >= 6, jnp.asarray(6, x.dtype), jax.nn.relu(x)),
    lambda x: np.clip(x, 0, 6),
    "min(max(x, 0), 6).",
    "fi",
)
elu = _activation(
    "Elu",
    lambda x: jnp.where(x < 0, jnp.expm1(jnp.where(x < 0, x, 0)), x),  # curved at 0 as above it
    lambda x: np.where(x > 0, x, np.expm1(x)),
    "x if x > 0, else exp(x) - 1.",
)
selu = _activation(
    "Selu",
    _selu,
    lambda x: (_SELU_SCALE * np.where(x > 0, x, _SELU_ALPHA * np.expm1(x))).astype(x.dtype),
    "The scaled exponential linear unit (Klambauer et al. 2017).",
)
softplus = _activation(
    "Softplus",
    with_partials(jax.nn.softplus, lambda t, y, x: t * jax.nn.sigmoid(x)),
    lambda x: np.logaddexp(x, np.zeros((), x.dtype)),
    "log(1 + exp(x)).",
)
softsign = _activation(
    "Softsign",
    with_partials(jax.nn.soft_sign, lambda t, y, x: t / jnp.square(1 + jnp.abs(x))),
    lambda x: x / (1 + np.abs(x)),
    "x / (1 + |x|).",
)

register(
    "LeakyRelu",
    lambda x, alpha: jnp.where(x > 0, x, alpha * x),  # at 0 the gradient is alpha, not 1
    accepts="f",
    infer=same_as_input(),
    numpy_kernel=lambda x, alpha: np.where(x > 0, x, np.asarray(alpha, x.dtype) * x),
    cases=lambda: [Case((_SAMPLE,), {"alpha": 0.2})],
)


def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """x if x > 0, else alpha * x; integers are cast to float32."""
    with get_default_graph().name_scope(name or "LeakyRelu") as scope:
        x = convert_to_tensor(features, name="features")
        if x.dtype.is_integer:
            x = elementwise.cast(x, float32)
        return make("LeakyRelu", {"features": x}, {"alpha": float(alpha)}, scope)


def _numpy_log_softmax(x: Any, axis: int) -> Any:
    below = x - x.max(axis, keepdims=True, initial=-np.inf)
    return below - np.log(np.exp(below).sum(axis, keepdims=True))


for _type, _jax, _numpy in (
    ("Softmax", jax.nn.softmax, scipy_special.softmax),
    ("LogSoftmax", jax.nn.log_softmax, _numpy_log_softmax),
):
    register_with_axis(
        _type,
        lambda x, axis, function=_jax: function(x, axis=axis),
        accepts="f",
        infer=same_as_input(),
        unknown=same_as_input(),
        numpy_kernel=lambda x, axis, function=_numpy: function(x, axis=axis).astype(x.dtype),
        cases=lambda: [Case((_SAMPLE,), {"axis": -1}), Case((_SAMPLE,), {"axis": 0})],
    )


def softmax(
    logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis (the last by default; `dim` is an older spelling)."""
    return _along("Softmax", logits, _either(axis, dim), name)


def log_softmax(
    logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """x - log(sum(exp(x))) along an axis (the last by default; `dim` is an older spelling)."""
    return _along("LogSoftmax", logits, _either(axis, dim), name)


def _either(axis: Any, dim: Any) -> Any:
    if axis is not None and dim is not None:
        raise ValueError("Cannot specify both 'dim' and 'axis'.")
    return dim if axis is None else axis


def _along(op_type: str, logits: Any, axis: Any, name: str | None) -> Tensor:
    scores = convert_to_tensor(logits, name="logits")
    inputs, attrs = with_axis({"logits": scores}, -1 if axis is None else axis, op_type)
    _check_axis(op_type, scores, attrs["axis"])
    return make(op_type, inputs, attrs, name)


def _check_axis(op_type: str, scores: Tensor, chosen: Any) -> None:
    rank = scores.shape.rank
    if rank == 0:
        problem = f"{op_type}: Shape must be at least rank 1 but is rank 0"
        raise value_error(problem, received=scores, made_at=scores.op.source)
    if rank is not None and input_of(chosen) is None and not -rank <= chosen < rank:
        raise InvalidArgumentError.explained(
            f"`dim` must be in the range [{-rank}, {rank}) where {rank} is the number of "
            f"dimensions in the input. Received: dim={chosen}",
            received=scores,
            made_at=scores.op.source,
            op=scores.op,
        )


# -- cross-entropies


def _infer_dense(inputs: Any, attrs: Any) -> list[Spec]:
    logits, labels = inputs
    return [Spec(logits.dtype, logits.shape.merge_with(labels.shape)[:-1])]


def _infer_sparse(inputs: Any, attrs: Any) -> list[Spec]:
    logits, labels = inputs
    return [Spec(logits.dtype, logits.shape[:-1].merge_with(labels.shape))]


def _check_classes(logits: Any, labels: Any) -> None:
    if labels.shape != logits.shape[:-1]:
        raise ValueError(
            "`labels.shape` must equal `logits.shape` except for the last dimension. "
            f"Received: labels.shape={labels.shape} and logits.shape={logits.shape}"
        )


def _numpy_sparse_softmax_cross_entropy(logits: Any, labels: Any) -> Any:
    _check_classes(logits, labels)
    inside = (labels >= 0) & (labels < logits.shape[-1])
    chosen = np.take_along_axis(logits, np.where(inside, labels, 0)[..., None], -1)[..., 0]
    loss = scipy_special.logsumexp(logits, -1) - chosen
    return np.where(inside, loss, np.nan).astype(logits.dtype)


def _sparse_softmax_cross_entropy(logits: Any, labels: Any) -> Any:
    _check_classes(logits, labels)
    # A comparison with every class instead of a gather: its gradient is element-wise too, where
    # that of a gather is a scatter, which takes a third of an Iris step on CPU.
    classes = jnp.arange(logits.shape[-1], dtype=labels.dtype)
    chosen = jnp.sum(
        jnp.where(labels[..., None] == classes, logits, jnp.zeros((), logits.dtype)), -1
    )
    inside = (labels >= 0) & (labels < logits.shape[-1])
    loss = jax.nn.logsumexp(logits, -1) - chosen
    return jnp.where(inside, loss, jnp.full((), jnp.nan, logits.dtype))


def _label_fault(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[Fault]:
    logits, labels = inputs
    words = "Received a label value of {value} which is outside the valid range of [0, {bound})"
    return in_range(1, labels, logits.shape[-1], words + ": labels{at}")


def _softmax_cross_entropy(logits: Any, labels: Any) -> Any:
    if logits.shape[-1] == 0:
        return jnp.zeros(logits.shape[:-1], logits.dtype)
    return -jnp.sum(labels * jax.nn.log_softmax(logits), -1)


register(
    "SoftmaxCrossEntropyWithLogits",
    _softmax_cross_entropy,
    accepts="f",
    infer=_infer_dense,
    numpy_kernel=lambda logits, labels: (
        -np.sum(labels * scipy_special.log_softmax(logits, -1), -1).astype(logits.dtype)
        if logits.shape[-1]
        else np.zeros(logits.shape[:-1], logits.dtype)
    ),
    cases=lambda: [Case((_SAMPLE, np.array([[0.2, 0.3, 0.5], [1, 0, 0]], np.float32)))],
)
register(
    "SparseSoftmaxCrossEntropyWithLogits",
    _sparse_softmax_cross_entropy,
    fault=_label_fault,
    accepts="f",
    infer=_infer_sparse,
    numpy_kernel=_numpy_sparse_softmax_cross_entropy,
    cases=lambda: [Case((_SAMPLE, np.array([2, 0], np.int64)))],
)


def _sigmoid_cross_entropy(logits: Any, labels: Any) -> Any:
    return jnp.maximum(logits, 0) - logits * labels + jnp.log1p(jnp.exp(-jnp.abs(logits)))


def _sigmoid_cross_entropy_gradient(op: Any, dy: Tensor) -> list[Any]:
    # The derivative of the stable form above is wrong at exactly 0 by the two kinks; this one is
    # exact everywhere.
    logits, labels = op.inputs
    return [dy * (elementwise.sigmoid(logits) - labels), dy * (-logits)]


register(
    "SigmoidCrossEntropyWithLogits",
    _sigmoid_cross_entropy,
    accepts="f",
    infer=same_as_input(),
    gradient=_sigmoid_cross_entropy_gradient,
    numpy_kernel=lambda logits, labels: (
        np.maximum(logits, 0) - logits * labels + np.log1p(np.exp(-np.abs(logits)))
    ),
    cases=lambda: [Case((_SAMPLE, np.array([[0, 1, 0.5], [1, 0, 1]], np.float32)))],
)


def _keywords_only(function: str, sentinel: Any, labels: Any, logits: Any) -> None:
    if sentinel is not None:
        raise ValueError(f"Only call `{function}` with named arguments (labels=..., logits=...).")
    if labels is None or logits is None:
        raise ValueError(
            f"Both `labels` and `logits` must be provided for {function}. "
            f"Received: labels={labels} and logits={logits}"
        )


def softmax_cross_entropy_with_logits(
    _sentinel: Any = None,
    labels: Any = None,
    logits: Any = None,
    dim: int = -1,
    name: str | None = None,
    axis: int | None = None,
) -> Tensor:
    """Softmax cross-entropy between logits and class probabilities.

    Args:
        labels: probabilities, `(..., classes)`; each row sums to 1. No gradient flows to them,
            unlike in `softmax_cross_entropy_with_logits_v2`.
        logits: `(..., classes)`, unscaled.
        dim: the axis of the classes.
        axis: the same as `dim`.

    Returns:
        `(...)`, one loss per example.
    """
    _keywords_only("softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    chosen = dim if axis is None else axis
    return softmax_cross_entropy_with_logits_v2(array.stop_gradient(labels), logits, chosen, name)


def softmax_cross_entropy_with_logits_v2(
    labels: Any,
    logits: Any,
    axis: int | None = None,
    name: str | None = None,
    dim: int | None = None,
) -> Tensor:
    """`softmax_cross_entropy_with_logits` whose gradients also flow to the labels.

    `dim` is the old name of `axis`. Label dimensions of 1 are broadcast to those of the logits.
    """
    axis = _either(axis, dim)
    scores = convert_to_tensor(logits, name="logits")
    _check_axis("SoftmaxCrossEntropyWithLogits", scores, -1 if axis is None else axis)
    probabilities = convert_to_tensor(
        labels, scores.dtype if not isinstance(labels, Tensor) else None
    )
    probabilities = elementwise.cast(probabilities, scores.dtype)
    if axis not in (None, -1) and axis != (scores.shape.rank or 0) - 1:
        order = [each for each in range(len(scores.shape)) if each != axis % len(scores.shape)]
        order.append(axis % len(scores.shape))
        scores = array.transpose(scores, order)
        probabilities = array.transpose(probabilities, order)
    probabilities = _repeated(probabilities, scores)
    _check_compatible(probabilities, scores)
    return make(
        "SoftmaxCrossEntropyWithLogits", {"features": scores, "labels": probabilities}, name=name
    )


def _repeated(labels: Tensor, logits: Tensor) -> Tensor:
    """Broadcasts label dimensions of 1 to the logits' shape if both are static."""
    given, wanted = labels.shape, logits.shape
    known = given.is_fully_defined() and wanted.is_fully_defined()
    if not known or given == wanted or given.rank != wanted.rank:
        return labels
    if any(size not in (1, whole) for size, whole in zip(given, wanted, strict=True)):
        return labels
    return rearrange.broadcast_to(labels, wanted.as_list())


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """Softmax cross-entropy between logits and class indices.

    Args:
        labels: int32 or int64 `(...)`, in [0, classes); the loss of any other label is NaN.
        logits: `(..., classes)`, unscaled.

    Returns:
        `(...)`, one loss per example.
    """
    _keywords_only("sparse_softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    scores = convert_to_tensor(logits, name="logits")
    indices = convert_to_tensor(labels, name="labels")
    if scores.shape.rank == 0:
        raise ValueError(f"`logits` cannot be a scalar. Received logits={scores}")
    if not indices.shape.is_compatible_with(scores.shape[:-1]):
        ranks = (indices.shape.rank, scores.shape.rank)
        given = [f"labels.shape={indices.shape}", f"logits.shape={scores.shape}"]
        if ranks[0] == (ranks[1] or 0) - 1:
            words = "`labels.shape` must equal `logits.shape` except for the last dimension"
        else:
            words = "`labels.shape.rank` must equal `logits.shape.rank - 1`"
            given = [f"{each} of rank {rank}" for each, rank in zip(given, ranks, strict=True)]
        raise value_error(
            f"{words}. Received: {' and '.join(given)}",
            expected=f"labels of shape {scores.shape[:-1]}",
            received=f"{indices.shape}",
            made_at=indices.op.source,
            hint="squeeze labels of shape (batch, 1); use softmax_cross_entropy_with_logits "
            "for one-hot labels",
        )
    if indices.dtype not in (int32, int64):
        raise type_error(
            f"Value passed to parameter 'labels' has DataType {indices.dtype.name} not in list "
            "of allowed values: int32, int64",
            received=indices,
            made_at=indices.op.source,
            hint="use softmax_cross_entropy_with_logits for probabilities",
        )
    inputs = {"features": scores, "labels": indices}
    return make("SparseSoftmaxCrossEntropyWithLogits", inputs, name=name)


def sigmoid_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """Element-wise cross-entropy between labels in [0, 1] and the sigmoid of logits.

    Both are floats of the same shape.
    """
    _keywords_only("sigmoid_cross_entropy_with_logits", _sentinel, labels, logits)
    with get_default_graph().name_scope(name or "logistic_loss") as scope:
        scores = convert_to_tensor(logits, name="logits")
        targets = convert_to_tensor(labels, name="labels", dtype_hint=scores.dtype)
        _check_compatible(targets, scores)
        registry.check_same_dtype("SigmoidCrossEntropyWithLogits", [scores, targets])
        return registry.output("SigmoidCrossEntropyWithLogits", [scores, targets], name=scope)


def _check_compatible(labels: Tensor, logits: Tensor) -> None:
    if not labels.shape.is_compatible_with(logits.shape):
        raise value_error(
            "logits and labels must have the same shape",
            expected=f"labels of shape {logits.shape}",
            received=str(labels.shape),
            made_at=labels.op.source,
        )


# -- the rest


def _bias_add(value: Any, bias: Any, channels_first: bool, module: Any = jnp) -> Any:
    if value.ndim < 2:
        problem = f"Input tensor must be at least 2D: {tuple(value.shape)}"
        raise InvalidArgumentError(None, None, problem)
    if differ(bias.shape, (value.shape[1 if channels_first else -1],)):  # one would be broadcast
        raise ValueError(
            "Must provide as many biases as the last dimension of the input tensor: "
            f"{list(bias.shape)} vs. {list(value.shape)}"
        )
    if channels_first:
        bias = module.reshape(bias, (-1,) + (1,) * (value.ndim - 2))
    return value + bias


def _infer_bias_add(inputs: Any, attrs: Any) -> list[Spec]:
    value, bias = inputs
    least = 3 if attrs["channels_first"] else 2
    if value.shape.rank is not None and value.shape.rank < least:
        raise value_error(
            f"Shape must be at least rank {least} but is rank {value.shape.rank}: the value of "
            "a BiasAdd",
            received=value,
            made_at=value.op.source,
        )
    channel = 1 if attrs["channels_first"] else -1
    if value.shape.rank is not None and not bias.shape.is_compatible_with([value.shape[channel]]):
        raise value_error(
            "BiasAdd: the bias does not fit the channels",
            expected=f"a bias of shape ({value.shape[channel]},)",
            received=f"{bias.shape}, value {value.shape}",
            made_at=bias.op.source,
        )
    shape = value.shape
    if shape.rank is not None and bias.shape.rank == 1 and shape[channel] is None:
        at = channel % shape.rank
        shape = shape[:at].concatenate(bias.shape).concatenate(shape[at + 1 :])
    return [Spec(value.dtype, shape)]


register(
    "BiasAdd",
    _bias_add,
    accepts="fic",
    infer=_infer_bias_add,
    numpy_kernel=lambda value, bias, channels_first: _bias_add(value, bias, channels_first, np),
    cases=lambda: [
        Case((_SAMPLE, _SAMPLE[0]), {"channels_first": False}),
        Case((_SAMPLE[:, :, None], _SAMPLE[0]), {"channels_first": True}),
    ],
)


def bias_add(
    value: Any, bias: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Adds a bias per channel.

    Args:
        value: `(..., channels)`, or `(batch, channels, ...)` with data_format "NCHW".
        bias: `(channels,)`, of the same dtype.
        data_format: "NHWC" (default) or "NCHW".
    """
    layout = data_format or "NHWC"
    first = layout.startswith("NC")
    if not first and not (layout.startswith("N") and layout.endswith("C")):
        raise ValueError(
            f"`data_format` must be of the form `N...C` or `NC...`. Received: {data_format=!s}"
        )
    tensor = convert_to_tensor(value, name="input")
    inputs = {"value": tensor, "bias": convert_to_tensor(bias, tensor.dtype, "bias")}
    return make("BiasAdd", inputs, {"channels_first": first}, name)


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Half the sum of squares of t: sum(t ** 2) / 2."""
    with get_default_graph().name_scope(name or "L2Loss") as scope:
        tensor = convert_to_tensor(t)
        half = convert_to_tensor(0.5, tensor.dtype)
        return elementwise.multiply(reduce.reduce_sum(elementwise.square(tensor)), half, name=scope)


def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """Divides x by its L2 norm along `axis`: x / sqrt(max(sum(|x| ** 2), epsilon))."""
    with get_default_graph().name_scope(name or "l2_normalize") as scope:
        tensor = convert_to_tensor(x, name="x")
        size = elementwise.abs(tensor) if tensor.dtype.is_complex else tensor
        total = reduce.reduce_sum(elementwise.square(size), dim if axis is None else axis, True)
        factor = elementwise.rsqrt(elementwise.maximum(total, epsilon))
        return elementwise.multiply(tensor, elementwise.cast(factor, tensor.dtype), name=scope)


def moments(
    x: Any,
    axes: Any,
    shift: Any = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """The mean and population variance of x along axes.

    Args:
        x: a floating tensor.
        axes: the axes to reduce.
        shift: accepted for compatibility only.
        keep_dims, keepdims: whether to keep the reduced axes with length 1.
    """
    with get_default_graph().name_scope(name or "moments"):
        given = convert_to_tensor(x, name="x")
        tensor = widened(given)
        kept = bool(keep_dims or keepdims)
        mean = reduce.reduce_mean(tensor, axes, True, name="mean")
        squares = elementwise.squared_difference(tensor, array.stop_gradient(mean))
        variance = reduce.reduce_mean(squares, axes, kept, name="variance")
        if not kept:
            mean = array.squeeze(mean, np.atleast_1d(axes), name="Squeeze")
        return elementwise.cast(mean, given.dtype), elementwise.cast(variance, given.dtype)


def widened(x: Tensor) -> Tensor:
    """x, or float16 as float32: sums of squares of float16 overflow."""
    return elementwise.cast(x, float32) if x.dtype is float16 else x


def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: Any,
    name: str | None = None,
) -> Tensor:
    """Batch normalization by given moments (Ioffe & Szegedy 2015).

    Returns scale * (x - mean) / sqrt(variance + variance_epsilon) + offset.

    Args:
        x: a floating tensor.
        mean, variance, offset, scale: tensors that broadcast with x; offset and scale may be None.
        variance_epsilon: a small number that avoids a division by 0.
    """
    with get_default_graph().name_scope(name or "batchnorm"):
        x = convert_to_tensor(x, name="x")
        inverse = elementwise.rsqrt(variance + variance_epsilon)
        if scale is not None:
            inverse = inverse * scale
        shift = (offset - mean * inverse) if offset is not None else -mean * inverse
        # Moments may have a wider dtype than x, whose dtype the result has.
        result: Tensor = x * elementwise.cast(inverse, x.dtype) + elementwise.cast(shift, x.dtype)
        return result


def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """Sets random elements of x to 0 and scales up the rest, so that the expected sum is unchanged.

    Args:
        x: a floating tensor.
        keep_prob: the probability that an element is kept (1 - rate); a number or a scalar tensor.
        noise_shape: the shape of the random mask, which is broadcast to that of x, so that elements
            can be dropped together; a dimension of None is that of x.
        seed: see `set_random_seed`.
        rate: the probability that an element is dropped.

    Raises:
        ValueError: the probability is not in [0, 1), not a scalar or not of x's dtype; both
            probabilities or neither are given; or x is not floating.
    """
    if keep_prob is not None and rate is not None:
        raise ValueError("Cannot specify both 'keep_prob' and 'rate'.")
    if rate is None:
        if keep_prob is None:
            raise ValueError("`rate` must be provided: one of rate and keep_prob.")
        if isinstance(keep_prob, (list, tuple)):
            raise value_error(
                "`keep_prob` must be a floating point number or Tensor", received=keep_prob
            )
        rate = 1.0 - keep_prob
    with get_default_graph().name_scope(name or "dropout"):
        tensor = convert_to_tensor(x, name="x")
        if not tensor.dtype.is_floating:
            raise value_error(
                "`x.dtype` must be a floating point tensor as `x` will be scaled",
                received=tensor,
                made_at=tensor.op.source,
            )
        known = constant_value(rate) if isinstance(rate, Tensor) else rate
        if known is not None and np.ndim(known) > 0:
            raise value_error("`rate` must be a scalar: its shape must have rank 0", received=rate)
        if known is not None:
            if not 0 <= float(known) < 1:
                raise value_error(
                    "`rate` must be a scalar tensor or a float in the range [0, 1)",
                    received=f"rate={known}",
                )
            if float(known) == 0 and not isinstance(rate, Tensor):  # which may be fed another
                return tensor
        draw = random.random_uniform(
            _draw_shape(tensor, noise_shape), dtype=tensor.dtype, seed=seed
        )
        if noise_shape is None:
            draw.set_shape(tensor.shape)
        rate_tensor = convert_to_tensor(rate, tensor.dtype if known is not None else None)
        if rate_tensor.dtype is not tensor.dtype:
            raise value_error(
                "`x.dtype` must be compatible with `rate.dtype`",
                expected=tensor.dtype.name,
                received=rate_tensor.dtype.name,
            )
        rate_tensor.shape.assert_is_compatible_with([])
        kept = elementwise.cast(elementwise.greater_equal(draw, rate_tensor), tensor.dtype)
        result: Tensor = tensor * (1.0 / (1.0 - rate_tensor)) * kept
        result.set_shape(tensor.shape)  # a placeholder's rate may have any shape
        return result


def _draw_shape(tensor: Tensor, noise_shape: Any) -> Any:
    """The shape of `dropout`'s mask; None means the tensor's dimension."""
    if noise_shape is None:
        return array.shape(tensor)
    if isinstance(noise_shape, TensorShape):
        noise_shape = noise_shape.as_list()
    if isinstance(noise_shape, (list, tuple)):
        known = tensor.shape if tensor.shape.rank == len(noise_shape) else [None] * len(noise_shape)
        pairs = zip(noise_shape, known, strict=True)
        given = [there if here is None else here for here, there in pairs]
        return [array.shape(tensor)[at] if n is None else n for at, n in enumerate(given)]
    return noise_shape
