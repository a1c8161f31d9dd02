"""Normalization: local response, fused batch normalization, weighted moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.core import builtin_ops, registry
from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array, filling
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.nn import nn

_IMAGE = np.sin(np.arange(2 * 3 * 2 * 5, dtype=np.float32)).reshape(2, 3, 2, 5)
_SCALE = np.array([0.5, 1.0, 1.5, 2.0, -1.0], np.float32)


def _lrn(x: Any, radius: int, bias: float, alpha: float, beta: float) -> Any:
    x = jnp.asarray(x)
    squares = jnp.pad(jnp.square(x), [(0, 0)] * (x.ndim - 1) + [(radius, radius)])
    count = x.shape[-1]
    total = sum(
        lax.slice_in_dim(squares, at, at + count, axis=x.ndim - 1) for at in range(2 * radius + 1)
    )
    return x / (bias + alpha * total) ** jnp.asarray(beta, x.dtype)


def _numpy_lrn(x: Any, radius: int, bias: float, alpha: float, beta: float) -> Any:
    total = np.zeros_like(x)
    for channel in range(x.shape[-1]):
        near = x[..., max(0, channel - radius) : channel + radius + 1]
        total[..., channel] = np.sum(near**2, -1)
    return (x / (bias + alpha * total) ** beta).astype(x.dtype)


register(
    "LRN",
    _lrn,
    infer=lambda inputs, attrs: [Spec(inputs[0].dtype, inputs[0].shape.with_rank(4))],
    accepts="f",
    numpy_kernel=_numpy_lrn,
    cases=lambda: [Case((_IMAGE,), {"radius": 1, "bias": 1.0, "alpha": 0.5, "beta": 0.75})],
)


def lrn(
    input: Any,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """Local response normalization over channels (Krizhevsky et al. 2012).

    Returns x / (bias + alpha * sum of squares of the channels at most `depth_radius` away) ** beta.

    Args:
        input: `(batch, height, width, channels)`.
        depth_radius, bias, alpha, beta: see above.
    """
    attrs = {
        "radius": int(depth_radius),
        "bias": float(bias),
        "alpha": float(alpha),
        "beta": float(beta),
    }
    return make("LRN", {"input": input}, attrs, name)


def _fused(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any,
    variance: Any,
    epsilon: float,
    training: bool,
    channels_first: bool,
) -> Any:
    x = jnp.asarray(x)
    axes = tuple(at for at in range(x.ndim) if at != (1 if channels_first else x.ndim - 1))
    shape = [1] * x.ndim
    shape[1 if channels_first else -1] = -1
    wide = x.astype(jnp.promote_types(x.dtype, np.float32))
    corrected = variance
    if training:
        mean = jnp.mean(wide, axes)
        variance = jnp.mean(jnp.square(wide - mean.reshape(shape)), axes)
        count = x.size // variance.size
        corrected = variance * (count / max(count - 1, 1))
    factor = (lax.rsqrt(variance + np.asarray(epsilon, variance.dtype)) * scale).reshape(shape)
    result = (wide - jnp.reshape(mean, shape)) * factor + jnp.reshape(offset, shape)
    return result.astype(x.dtype), mean.astype(scale.dtype), corrected.astype(scale.dtype)


def _infer_fused(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    x, scale = inputs[:2]
    channels = None
    if x.shape.dims is not None:
        channels = x.shape.dims[1 if attrs["channels_first"] else -1]
    if channels is None and scale.shape.rank == 1:
        channels = scale.shape[0]
    vector = Spec(scale.dtype, TensorShape([channels]))
    for each in inputs[1:]:
        if not each.shape.is_compatible_with(vector.shape):
            raise value_error(
                "Dimensions must be equal: a vector of batch normalization does not fit",
                expected=f"shape {vector.shape}, one value a channel of {x.shape}",
                received=each,
                made_at=each.op.source,
            )
    return [Spec(x.dtype, x.shape), vector, vector]


def _fused_case() -> list[Case]:
    mean = _IMAGE.mean((0, 1, 2))
    variance = _IMAGE.var((0, 1, 2))
    offset = np.arange(5, dtype=np.float32)
    normal = (_IMAGE - mean) / np.sqrt(variance + 1e-3) * _SCALE + offset
    given = np.full(5, 0.25, np.float32)
    frozen = (_IMAGE - given) / np.sqrt(given + 1e-3) * _SCALE + offset
    return [
        Case(
            (_IMAGE, _SCALE, offset, np.zeros(5, np.float32), np.ones(5, np.float32)),
            {"epsilon": 1e-3, "training": True, "channels_first": False},
            (normal.astype("f"), mean, (variance * 12 / 11).astype("f")),
        ),
        Case(
            (_IMAGE, _SCALE, offset, given, given),
            {"epsilon": 1e-3, "training": False, "channels_first": False},
            (frozen.astype("f"), given, given),
        ),
    ]


register("FusedBatchNormV3", _fused, infer=_infer_fused, accepts="f", cases=_fused_case)


def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
    exponential_avg_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch normalization of an image's channels (Ioffe & Szegedy 2015).

    Args:
        x: `(batch, height, width, channels)`, or with 'NCHW' the channels second.
        scale, offset: `(channels,)`, float32.
        mean, variance: `(channels,)`; required if `is_training` is false.
        epsilon: added to the variance.
        data_format: 'NHWC' or 'NCHW'.
        is_training: normalize by the batch's own moments.
        exponential_avg_factor: in training, the fraction by which the given `mean` and `variance`
            move towards those of the batch; by default 1.0, which replaces them.

    Returns:
        The result, and the mean and variance: in training those of the batch (the variance with
        Bessel's correction) or moved towards them, otherwise those given.

    Raises:
        ValueError: mean or variance is required but missing, or a shape is incompatible.
    """
    moves = is_training and exponential_avg_factor != 1.0
    if (moves or not is_training) and (mean is None or variance is None):
        raise ValueError(
            "Both `mean` and `variance` must be a 1D tensor when `is_training` is False or "
            f"`exponential_avg_factor` != 1.0. Received: `mean` {mean!r} and `variance` "
            f"{variance!r}"
        )
    with get_default_graph().name_scope(name or "FusedBatchNorm") as scope:
        tensor = convert_to_tensor(x, name="input")
        if tensor.shape.rank not in (None, 4, 5):
            problem = f"fused_batch_norm: Shape must be rank 4 but is rank {tensor.shape.rank}"
            raise value_error(problem, received=tensor, made_at=tensor.op.source)
        factor = convert_to_tensor(scale, name="scale")
        given = [
            filling.zeros_like(factor) if each is None else convert_to_tensor(each, factor.dtype)
            for each in (mean, variance)
        ]
        attrs = {
            "epsilon": float(epsilon),
            "training": bool(is_training),
            "channels_first": data_format.startswith("NC") and not data_format.endswith("C"),
        }
        inputs = [tensor, factor, convert_to_tensor(offset, factor.dtype), *given]
        op = registry.apply("FusedBatchNormV3", inputs, attrs, scope)
        if not moves:
            return op.outputs[0], op.outputs[1], op.outputs[2]
        share = float(exponential_avg_factor)
        moved = [
            old * (1 - share) + new * share for old, new in zip(given, op.outputs[1:], strict=True)
        ]
        return op.outputs[0], moved[0], moved[1]


def batch_norm_with_global_normalization(
    t: Any = None,
    m: Any = None,
    v: Any = None,
    beta: Any = None,
    gamma: Any = None,
    variance_epsilon: Any = None,
    scale_after_normalization: Any = None,
    name: str | None = None,
    input: Any = None,
    mean: Any = None,
    variance: Any = None,
) -> Tensor:
    """`batch_normalization` with TensorFlow's oldest argument names.

    `gamma` is ignored unless `scale_after_normalization` is true. `input`, `mean` and `variance`
    are newer names of `t`, `m` and `v`.
    """
    return nn.batch_normalization(
        input if t is None else t,
        mean if m is None else m,
        variance if v is None else v,
        beta,
        gamma if scale_after_normalization else None,
        variance_epsilon,
        name,
    )


def sufficient_statistics(
    x: Any,
    axes: Any,
    shift: Any = None,
    keep_dims: bool | None = None,
    name: str | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor, Any]:
    """The count, sum and sum of squares along axes, for `normalize_moments`.

    Args:
        x: a tensor.
        axes: the axes to reduce.
        shift: a value to subtract first, for numerical precision.
        keep_dims, keepdims: whether to keep the reduced axes with length 1.

    Returns:
        The number of elements, the sum of x - shift, the sum of its squares, and the shift, as
        tensors; the shift is None if none is given.
    """
    with get_default_graph().name_scope(name or "sufficient_statistics"):
        tensor = convert_to_tensor(x, name="x")
        chosen = [int(axis) for axis in np.atleast_1d(axes)]
        shape = array.shape(tensor)
        count = reduce.reduce_prod(
            elementwise.cast(convert_to_tensor([shape[axis] for axis in chosen]), tensor.dtype)
        )
        if shift is not None:
            shift = convert_to_tensor(shift, name="shift", dtype_hint=tensor.dtype)
        moved = tensor if shift is None else elementwise.subtract(tensor, shift)
        keep = bool(keepdims if keep_dims is None else keep_dims)
        total = reduce.reduce_sum(moved, chosen, keepdims=keep)
        squares = reduce.reduce_sum(elementwise.square(moved), chosen, keepdims=keep)
        return count, total, squares, shift


def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The mean and variance, computed from the results of `sufficient_statistics`."""
    with get_default_graph().name_scope(name or "normalize"):
        divisor = elementwise.reciprocal(convert_to_tensor(counts))
        shifted = elementwise.multiply(mean_ss, divisor)
        mean = shifted if shift is None else elementwise.add(shifted, shift)
        variance = elementwise.multiply(variance_ss, divisor) - elementwise.square(shifted)
        return mean, variance


def weighted_moments(
    x: Any,
    axes: Any,
    frequency_weights: Any,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """The weighted mean and variance of x.

    Args:
        x: a tensor.
        axes: the axes to reduce.
        frequency_weights: weights of at least 0, which are broadcast to the shape of x.
        keep_dims, keepdims: whether to keep the reduced axes with length 1.
    """
    with get_default_graph().name_scope(name or "weighted_moments"):
        given = convert_to_tensor(x, name="x")
        tensor = nn.widened(given)
        weights = convert_to_tensor(frequency_weights, name="frequency_weights")
        weights = elementwise.cast(weights, tensor.dtype) + filling.zeros_like(tensor)
        chosen = [int(axis) for axis in np.atleast_1d(axes)]
        total = reduce.reduce_sum(weights, chosen, keepdims=True)
        sums = reduce.reduce_sum(weights * tensor, chosen, keepdims=True)
        mean = elementwise.div_no_nan(sums, total)
        spread = reduce.reduce_sum(
            weights * elementwise.squared_difference(tensor, mean), chosen, keepdims=True
        )
        variance = elementwise.div_no_nan(spread, total)
        if not bool(keepdims if keep_dims is None else keep_dims):
            mean, variance = array.squeeze(mean, chosen), array.squeeze(variance, chosen)
        return elementwise.cast(mean, given.dtype), elementwise.cast(variance, given.dtype)


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The fraction of elements that are 0, a float32 scalar."""
    with get_default_graph().name_scope(name or "zero_fraction") as scope:
        tensor = convert_to_tensor(value, name="value")
        zero = elementwise.equal(tensor, elementwise.cast(convert_to_tensor(0), tensor.dtype))
        return builtin_ops.identity(reduce.reduce_mean(elementwise.cast(zero, float32)), scope)
