"""Reductions: sums, means, extremes, products, any/all, log-sum-exp; arg-extremes; cumsum."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import as_dtype, int32, int64
from estimatorkit.core.errors import InvalidArgumentError, type_error, value_error
from estimatorkit.core.registry import Case, Spec, same_as_input
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.x64 import x64
from estimatorkit.lazy import LazyFunctions
from estimatorkit.ops.math.axes import (
    as_tuple,
    input_attr,
    ints_of,
    register_with_axis,
    unknown_numbers,
    with_axis,
)
from estimatorkit.ops.math.derivatives import with_partials
from estimatorkit.ops.math.elementwise import truncated_quotient

scipy_special = LazyFunctions("scipy.special")

_SAMPLE = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]], np.float32)
_BOOLS = np.array([[True, False], [True, True]])


def _infer(inputs: Any, attrs: Any) -> list[Spec]:
    tensor = inputs[0]
    axis, keepdims = attrs["axis"], attrs["keepdims"]
    dims = tensor.shape.dims
    if dims is None:
        return [Spec(tensor.dtype, TensorShape(()) if axis is None and not keepdims else UNKNOWN)]
    axes = set(range(len(dims))) if axis is None else {each % len(dims) for each in axis}
    kept = [
        1 if position in axes else dim
        for position, dim in enumerate(dims)
        if keepdims or position not in axes
    ]
    return [Spec(tensor.dtype, TensorShape(kept))]


def _infer_unknown_axes(inputs: Any, attrs: Any) -> list[Spec]:
    rank = inputs[0].shape.rank if attrs["keepdims"] else None
    return [Spec(inputs[0].dtype, UNKNOWN if rank is None else TensorShape([None] * rank))]


class Reduction(Protocol):
    """The type of a public reduction."""

    def __call__(
        self,
        input_tensor: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: bool | None = None,
    ) -> Tensor: ...


def _reduction(
    op_type: str,
    kernel: Callable[..., Any],
    numpy_kernel: Callable[..., Any],
    doc: str,
    sample: Any = _SAMPLE,
    gradient: Any = "auto",
    default_name: str | None = None,
    accepts: str = "fic",
) -> Reduction:
    register_with_axis(
        op_type,
        kernel,
        infer=_infer,
        read=as_tuple("axis"),
        unknown=_infer_unknown_axes,
        numpy_kernel=numpy_kernel,
        gradient=gradient,
        accepts=(accepts, "x"),
        cases=lambda: [
            Case((sample,), {"axis": None, "keepdims": False}),
            Case((sample,), {"axis": (1,), "keepdims": True}),
            Case((sample,), {"axis": (-2,), "keepdims": False}),
        ],
    )

    def function(
        input_tensor: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: bool | None = None,
    ) -> Tensor:
        tensor = convert_to_tensor(input_tensor, name="input_tensor")
        if axis is not None and reduction_indices is not None:
            raise ValueError("Cannot specify both 'reduction_indices' and 'axis'.")
        chosen = reduction_indices if axis is None else axis
        inputs = {"input": tensor}
        places = unknown_numbers(chosen, op_type)
        if places is not None:
            inputs["reduction_indices"] = places
        found = input_attr(1) if places is not None else _axes(chosen, tensor, op_type)
        return make(
            op_type,
            inputs,
            {"axis": found, "keepdims": bool(keepdims or keep_dims)},
            name or default_name or op_type,
        )

    function.__name__ = function.__qualname__ = "reduce_" + op_type.lower()
    function.__doc__ = (
        f"{doc}\n\nArgs:\n    input_tensor: a tensor.\n"
        "    axis: the axis or axes to reduce; all by default. Axes that are computed at run time "
        "cause a\n        compilation for each new value.\n    keepdims: whether to keep the "
        "reduced axes with length 1.\n    name: the operation's name.\n"
        "    reduction_indices, keep_dims: older names of axis and keepdims."
    )
    return function


def _axes(axis: Any, tensor: Tensor, what: str) -> tuple[int, ...] | None:
    if axis is None:
        return None
    found = ints_of(axis, what)
    if found.ndim > 1:
        raise value_error(
            f"{what}: Shape must be at most rank 1 but is rank {found.ndim}: the axes"
        )
    axes = tuple(found.reshape(-1).tolist())
    rank = tensor.shape.rank
    if rank is not None and any(not -rank <= each < rank for each in axes):
        raise value_error(
            f"Invalid reduction dimension for {what}",
            expected=f"axes in [-{rank}, {rank}) for input of shape {tensor.shape}",
            received=list(axes),
            made_at=tensor.op.source,
        )
    return axes


def _logsumexp(x: Any, axis: Any, keepdims: bool) -> Any:
    return jax.nn.logsumexp(x, axis=axis, keepdims=keepdims)


def _numpy_logsumexp(x: Any, axis: Any, keepdims: bool) -> Any:
    if x.ndim and axis != ():
        return scipy_special.logsumexp(x, axis=axis, keepdims=keepdims).astype(x.dtype)
    return x  # of single elements; SciPy gives scalars a dimension


def _mean(x: Any, axis: Any, keepdims: bool, module: Any = jnp) -> Any:
    if x.dtype.kind not in "iu" and not x.size:
        return module.sum(x, axis=axis, keepdims=keepdims) * np.asarray(np.nan, x.dtype)
    if x.dtype.kind not in "iu":
        return module.mean(x, axis=axis, keepdims=keepdims).astype(x.dtype)
    # Integers stay integers: summed in 64 bits, divided and rounded towards zero.
    wide = np.int64 if x.dtype.kind == "i" else np.uint64
    with x64():
        total = module.asarray(module.sum(x, axis=axis, keepdims=keepdims, dtype=wide))
        count = np.asarray(max(x.size // max(total.size, 1), 1), wide)
        return truncated_quotient(total, count).astype(x.dtype)


def _sum(x: Any, axis: Any, keepdims: bool) -> Any:
    return jnp.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def _prod(x: Any, axis: Any, keepdims: bool) -> Any:
    return jnp.prod(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def _extreme(name: str, module: Any = jnp) -> Callable[..., Any]:
    """Maximum or minimum; if empty, the opposite end of the dtype, as in TensorFlow."""

    def extreme(x: Any, axis: Any, keepdims: bool) -> Any:
        dtype = as_dtype(x.dtype)
        ends = (-np.inf, np.inf) if dtype.is_floating else (dtype.min, dtype.max)
        start = np.asarray(ends[name == "min"], x.dtype)
        return getattr(module, name)(x, axis=axis, keepdims=keepdims, initial=start)

    return extreme


def _differentiable_extreme(name: str) -> Callable[..., Any]:
    """`_extreme` whose gradient is divided among equal elements; beside NaN it is NaN."""

    def extreme(x: Any, axis: Any, keepdims: bool) -> Any:
        def partial(t: Any, y: Any, x: Any) -> Any:
            whole = y if keepdims or axis is None else jnp.expand_dims(y, axis)
            equal = (x == whole).astype(x.dtype)
            share = equal / jnp.sum(equal, axis=axis, keepdims=True)
            return jnp.sum(t * jnp.where(whole != whole, whole, share), axis, keepdims=keepdims)

        found = functools.partial(_extreme(name), axis=axis, keepdims=keepdims)
        return with_partials(found, partial)(x)

    return extreme


def _arg_extreme(x: Any, axis: int, dtype: Any, largest: bool, module: Any = jnp) -> Any:
    """The index of the extreme; NaN is never one, and a row without a number has the index 0."""
    if x.dtype.kind in "fV":
        finfo: Any = jnp.finfo
        limits = finfo(x.dtype)
        worst = np.asarray(limits.min if largest else limits.max, x.dtype)
        better = x > worst if largest else x < worst
        x = module.where(better, x, worst)
    found = module.argmax(x, axis=axis) if largest else module.argmin(x, axis=axis)
    return found.astype(dtype.numpy_dtype)


reduce_sum = _reduction(
    "Sum",
    _sum,
    lambda x, axis, keepdims: np.sum(x, axis, keepdims=keepdims, dtype=x.dtype),
    "The sum of the elements.",
)
reduce_mean = _reduction(
    "Mean",
    _mean,
    functools.partial(_mean, module=np),
    "The mean of the elements; that of integers is rounded towards zero.",
)
reduce_prod = _reduction(
    "Prod",
    _prod,
    lambda x, axis, keepdims: np.prod(x, axis, keepdims=keepdims, dtype=x.dtype),
    "The product of the elements.",
)
reduce_max = _reduction(
    "Max",
    _differentiable_extreme("max"),
    _extreme("max", np),
    "The greatest of the elements.",
    accepts="fi",
)
reduce_min = _reduction(
    "Min",
    _differentiable_extreme("min"),
    _extreme("min", np),
    "The least of the elements.",
    accepts="fi",
)
reduce_logsumexp = _reduction(
    "LogSumExp",
    _logsumexp,
    _numpy_logsumexp,
    "log(sum(exp(x))) of the elements, computed without overflow.",
    default_name="ReduceLogSumExp",
    accepts="f",
)
reduce_any = _reduction(
    "Any",
    jnp.any,
    lambda x, axis, keepdims: np.any(x, axis, keepdims=keepdims),
    "Whether any element is true.",
    _BOOLS,
    None,
    accepts="b",
)
reduce_all = _reduction(
    "All",
    jnp.all,
    lambda x, axis, keepdims: np.all(x, axis, keepdims=keepdims),
    "Whether all elements are true.",
    _BOOLS,
    None,
    accepts="b",
)


def _infer_arg(inputs: Any, attrs: Any) -> list[Spec]:
    reduced = _infer(inputs, {"axis": (attrs["axis"],), "keepdims": False})
    return [Spec(attrs["dtype"], reduced[0].shape)]


for _type, _largest in (("ArgMax", True), ("ArgMin", False)):
    register_with_axis(
        _type,
        functools.partial(_arg_extreme, largest=_largest),
        infer=_infer_arg,
        gradient=None,
        accepts="fib",
        numpy_kernel=functools.partial(_arg_extreme, largest=_largest, module=np),
        cases=lambda: [Case((_SAMPLE,), {"axis": 1, "dtype": int64})],
    )


def argmax(
    input: Any,
    axis: Any = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: Any = int64,
) -> Tensor:
    """The index of the largest element along an axis; the first of equal ones.

    Args:
        input: a numeric tensor.
        axis: the axis; 0 by default.
        dimension: an older name of axis.
        output_type: int64 or int32.
    """
    return _arg("ArgMax", input, axis, dimension, output_type, name)


def argmin(
    input: Any,
    axis: Any = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: Any = int64,
) -> Tensor:
    """The index of the smallest element along an axis; see `argmax` for the arguments."""
    return _arg("ArgMin", input, axis, dimension, output_type, name)


def _arg(
    op_type: str, value: Any, axis: Any, dimension: Any, output_type: Any, name: str | None
) -> Tensor:
    tensor = convert_to_tensor(value, name="input")
    if axis is not None and dimension is not None:
        raise ValueError("Cannot specify both 'dimension' and 'axis'.")
    chosen = dimension if axis is None else axis
    chosen = 0 if chosen is None else chosen
    place = unknown_numbers(chosen, op_type)
    rank = ints_of(chosen, op_type).ndim if place is None else place.shape.rank
    if rank:
        raise value_error(
            f"{op_type}: Shape must be rank 0 but is rank {rank}: the axis is a number"
        )
    inputs, attrs = with_axis({"input": tensor}, chosen, op_type)
    known, rank = attrs["axis"], tensor.shape.rank
    if place is None and rank is not None and not -rank <= known < rank:
        raise InvalidArgumentError.explained(
            f"{op_type}: Expected dimension in the range [{-rank}, {rank}), but got {known}",
            received=tensor,
            made_at=tensor.op.source,
        )
    dtype = as_dtype(output_type)
    if dtype not in (int32, int64):
        raise type_error(
            f"{op_type}: output_type has DataType {dtype.name} not in list of allowed values: "
            "int32, int64"
        )
    return make(op_type, inputs, {**attrs, "dtype": dtype}, name)


def moved_by_one(x: Any, axis: int, first: int, module: Any = jnp) -> Any:
    """The elements moved by one place along an axis: `first`, then all but the last."""
    along = (slice(None),) * (axis % x.ndim)
    start = module.full_like(x[(*along, slice(0, 1))], first)
    return module.concatenate([start, x[(*along, slice(0, -1))]], axis)


def _cumsum(x: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
    x = jnp.asarray(x)
    if reverse:
        x = jnp.flip(x, axis)
    if exclusive:  # subtracting the element would leave its rounding error, or NaN
        x = moved_by_one(x, axis, 0)
    total = jnp.cumsum(x, axis=axis, dtype=x.dtype)
    return jnp.flip(total, axis) if reverse else total


def infer_along_axis(inputs: Any, attrs: Any) -> list[Spec]:
    """Shape inference of one output like the input, checking the `axis` attribute.

    Raises:
        InvalidArgumentError: it has no such axis (TensorFlow says so when the graph runs).
    """
    rank, axis = inputs[0].shape.rank, attrs["axis"]
    if rank is not None and not -rank <= axis < rank:
        raise InvalidArgumentError.explained(
            f"ScanOp: Expected scan axis in the range [{-rank}, {rank}), but got {axis}",
            received=inputs[0],
            made_at=inputs[0].op.source,
        )
    return [Spec(inputs[0].dtype, inputs[0].shape)]


register_with_axis(
    "Cumsum",
    _cumsum,
    infer=infer_along_axis,
    unknown=same_as_input(),
    accepts="fic",
    cases=lambda: [
        Case(
            (_SAMPLE,),
            {"axis": 1, "exclusive": False, "reverse": False},
            np.cumsum(_SAMPLE, axis=1),
        ),
        Case(
            (np.array([1.0, 2.0, 3.0], np.float32),),
            {"axis": 0, "exclusive": True, "reverse": True},
            np.array([5.0, 3.0, 0.0], np.float32),
        ),
    ],
)


def cumsum(
    x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """The cumulative sum along an axis.

    Args:
        x: a numeric tensor.
        axis: the axis.
        exclusive: whether to leave out the element itself.
        reverse: whether to sum from the end.
    """
    inputs, attrs = with_axis({"x": x}, axis, "cumsum")
    return make("Cumsum", inputs, {**attrs, "exclusive": exclusive, "reverse": reverse}, name)
