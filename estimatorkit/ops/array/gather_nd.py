"""Gather and scatter by n-dimensional indices."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor, make
from estimatorkit.core.errors import value_error
from estimatorkit.core.faults import MOST_VALUES, Fault, at, in_range, outside, xp
from estimatorkit.core.registry import (
    Case,
    Spec,
    constant_value_as_shape,
    register,
)
from estimatorkit.core.shapes import UNKNOWN, TensorShape, differ
from estimatorkit.core.sizes import Size, dims_of, traced_size
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.vjp import vjp
from estimatorkit.ops.array import indexing
from estimatorkit.ops.math.axes import axis_of


def _rows_in_range(
    position: int, rows: Any, dims: Sequence[int], text: str, first: int = 0
) -> list[Fault]:
    """The test that rows of indices, `(..., n)`, are within n dimensions.

    Args:
        position: the number of the input.
        rows: its value.
        dims: the dimensions of the whole array.
        text: the error, with `{at}`, `{value}` and `{bound}`.
        first: the dimension that the first index counts.

    Raises:
        ValueError: the rows are longer than there are dimensions.
    """
    if not rows.ndim:
        raise ValueError("Indices must be at least a vector")
    parts = [rows[..., number] for number in range(rows.shape[-1])]
    if not parts:
        return []
    if first + len(parts) > len(dims):
        raise ValueError(
            "index innermost dimension length must be <= params rank; saw: "
            f"{len(parts)} vs. {len(dims) - first}"
        )
    dims = [dim if isinstance(dim, Size) else int(dim) for dim in dims]
    sizes = map(traced_size, dims[first : first + len(parts)])
    wrong = [outside(part, size) for part, size in zip(parts, sizes, strict=True)]
    count = len(parts)  # the text keeps no part alive: sites outlive the tracing

    def text_of(index: tuple[int, ...], values: tuple[int, ...]) -> str:
        row = f"[{', '.join(map(str, values[:count]))}]"
        whole = f"[{','.join(map(str, dims))}]"
        return text.format(at=at(index), value=row, bound=whole)

    bad = functools.reduce(operator.or_, wrong)
    return [Fault(position, bad, tuple(parts[:MOST_VALUES]), text_of)]


_SAMPLE = np.arange(12, dtype=np.float32).reshape(3, 4) - np.float32(4.5)
_INDEX = "x int16"


# -- indices into several dimensions


def _gather_nd(params: Any, indices: Any, batch_dims: int, module: Any = jnp) -> Any:
    if batch_dims:
        inner = (
            [_gather_nd(p, i, batch_dims - 1, module) for p, i in zip(params, indices, strict=True)]
            if module is np
            else None
        )
        if inner is not None:
            return np.stack(inner)
        return jax.vmap(lambda p, i: _gather_nd(p, i, batch_dims - 1))(
            jnp.asarray(params), jnp.asarray(indices)
        )
    params, indices = module.asarray(params), module.asarray(indices)
    depth = indices.shape[-1]
    places = tuple(
        module.clip(indices[..., at], 0, traced_size(max(params.shape[at] - 1, 0)))
        for at in range(depth)
    )
    return (
        params[places]
        if depth
        else module.broadcast_to(params, (*indices.shape[:-1], *params.shape))
    )


def _infer_gather_nd(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    params, indices = inputs
    if params.shape.dims is None or indices.shape.dims is None:
        return [Spec(params.dtype, UNKNOWN)]
    if not indices.shape.dims:
        raise value_error(
            "gather_nd: Shape must be at least rank 1 but is rank 0", received=indices
        )
    depth = indices.shape.dims[-1]
    if depth is None:
        return [Spec(params.dtype, UNKNOWN)]
    batch = attrs["batch_dims"]
    if depth + batch > len(params.shape.dims):
        raise value_error(
            f"gather_nd: indices.shape[-1] must be <= params.rank, but saw indices shape "
            f"{indices.shape} and params shape {params.shape}",
            made_at=indices.op.source,
        )
    rest = params.shape.dims[batch + depth :]
    return [Spec(params.dtype, TensorShape([*indices.shape.dims[:-1], *rest]))]


def _gather_nd_gradient(op: Any, dy: Tensor) -> list[Any]:
    params, indices = op.inputs
    if op.attrs["batch_dims"] or indices.shape.rank != 2 or indices.shape[-1] != 1:
        return [*vjp(op, [dy], (0,)), None]
    return [indexing.slices_of_rows(params, indices, dy), None]


def _gather_nd_fault(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[Fault]:
    params, indices = inputs
    words = "indices{at} = {value} does not index into param shape {bound}"
    return _rows_in_range(1, indices, params.shape, words, attrs["batch_dims"])


def point_fault(position: int, shape: Sequence[int], indices: Any) -> list[Fault]:
    """The test of the n-dimensional indices of a scatter."""
    words = "indices{at} = {value} does not index into shape {bound}"
    return _rows_in_range(position, indices, shape, words)


register(
    "GatherNd",
    _gather_nd,
    gradient=_gather_nd_gradient,
    fault=_gather_nd_fault,
    colocate_with_input=True,
    infer=_infer_gather_nd,
    numpy_kernel=lambda params, indices, batch_dims: _gather_nd(params, indices, batch_dims, np),
    cases=lambda: [
        Case((_SAMPLE, np.array([[0, 1], [2, 3]], np.int32)), {"batch_dims": 0}),
        Case((_SAMPLE, np.array([[[2]], [[0]]], np.int64)), {"batch_dims": 0}),
        Case((_SAMPLE, np.array([[1], [0], [3]], np.int32)), {"batch_dims": 1}),
    ],
    accepts=("", _INDEX),
)


def gather_nd(params: Any, indices: Any, name: str | None = None, batch_dims: Any = 0) -> Tensor:
    """The elements or slices at n-dimensional indices.

    Args:
        params: a tensor.
        indices: int `(..., n)`: each row indexes the first n dimensions.
        batch_dims: how many first dimensions `params` and `indices` share.

    Returns:
        `(..., rest of params)`.
    """
    inputs = {"params": params, "indices": indices}
    return make("GatherNd", inputs, {"batch_dims": axis_of(batch_dims, "gather_nd")}, name)


def check_updates(indices: Any, updates: Any, shape: Sequence[int]) -> None:
    """Raises ValueError if the shape of the updates does not match the indices."""
    wanted = (*indices.shape[:-1], *shape[indices.shape[-1] :])
    if differ(updates.shape, wanted):
        raise ValueError(
            "Must have updates.shape = indices.shape[:batch_dim] + params_shape[slice_dim:], got "
            f"updates.shape: {list(updates.shape)}, indices.shape: {list(indices.shape)}, "
            f"params_shape: {list(shape)}"
        )


def _scatter_nd(indices: Any, updates: Any, shape: Any) -> Any:
    check_updates(indices, updates, dims_of(shape))
    result = jnp.zeros(dims_of(shape), updates.dtype)
    places = tuple(jnp.moveaxis(jnp.asarray(indices), -1, 0))
    at = result.at[places]
    return (at.max if result.dtype == bool else at.add)(updates, mode="drop")


def _numpy_scatter_nd(indices: Any, updates: Any, shape: Any) -> Any:
    check_updates(indices, updates, dims_of(shape))
    result = np.full(tuple(shape), b"" if updates.dtype == object else 0, updates.dtype)
    np.add.at(result, tuple(np.moveaxis(indices, -1, 0)), updates)
    return result


def _check_updates(indices: Tensor, updates: Tensor, whole: TensorShape) -> None:
    """Raises ValueError unless updates have shape `indices[:-1] + whole[indices[-1]:]`."""
    if not indices.shape.dims or updates.shape.dims is None or whole.dims is None:
        return
    outer, depth = len(indices.shape) - 1, indices.shape.dims[-1]
    pairs = [(f"[0,{outer}) of indices", indices.shape, indices.shape[:-1], updates.shape[:outer])]
    if depth is not None and depth <= len(whole):
        rest = whole[depth:], updates.shape[outer:]
        pairs.append((f"[{depth},{len(whole)}) of input", whole, *rest))
    for what, shape, expected, given in pairs:
        if not expected.is_compatible_with(given):
            raise value_error(
                f"Dimensions {what}[shape={shape}] = {expected} must match dimensions of "
                f"updates[shape={updates.shape}] = {given}",
                made_at=updates.op.source,
            )
    if whole.num_elements() == 0 and indices.shape.num_elements() and updates.shape.num_elements():
        raise value_error(
            f"Indices and updates specified for empty output. indices shape: {indices.shape}",
            received=f"{updates.name} {updates.shape}",
            made_at=updates.op.source,
        )


def _infer_scatter_nd(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    whole = constant_value_as_shape(inputs[2])
    _check_updates(inputs[0], inputs[1], whole)
    return [Spec(inputs[1].dtype, whole)]


def _infer_tensor_scatter(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    tensor, indices, updates = inputs
    _check_updates(indices, updates, tensor.shape)
    return [Spec(tensor.dtype, tensor.shape)]


register(
    "ScatterNd",
    _scatter_nd,
    fault=lambda inputs, attrs: point_fault(0, inputs[2], inputs[0]),
    infer=_infer_scatter_nd,
    numpy_kernel=_numpy_scatter_nd,
    static=(2,),
    accepts=(_INDEX, "", _INDEX),
    cases=lambda: [
        Case((np.array([[1], [3], [1]], np.int32), _SAMPLE, np.array([5, 4], np.int32))),
    ],
)


def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Scatter-adds values into zeros at n-dimensional indices.

    Args:
        indices: int `(..., n)`.
        updates: `(..., rest of shape)`.
        shape: the shape of the result.
    """
    inputs = {
        "indices": indices,
        "updates": updates,
        "shape": as_index_tensor(shape, "shape"),
    }
    return make("ScatterNd", inputs, name=name)


_UFUNCS = {"add": np.add, "subtract": np.subtract, "max": np.maximum, "min": np.minimum}


def _tensor_scatter(op_type: str, method: str, doc: str) -> Callable[..., Tensor]:
    """Registers a tensor update at n-dimensional indices and returns its function.

    Args:
        op_type: the row's type.
        method: of JAX's `.at[...]`.
        doc: the function's first line.
    """

    def kernel(tensor: Any, indices: Any, updates: Any) -> Any:
        check_updates(indices, updates, tensor.shape)
        places = tuple(jnp.moveaxis(jnp.asarray(indices), -1, 0))
        change = getattr(jnp.asarray(tensor).at[places], method)
        return change(updates, mode="drop")

    def on_host(tensor: Any, indices: Any, updates: Any) -> Any:
        check_updates(indices, updates, tensor.shape)
        result, places = tensor.copy(), tuple(np.moveaxis(indices, -1, 0))
        if method == "set":
            result[places] = updates
        else:
            _UFUNCS[method].at(result, places, updates)
        return result

    register(
        op_type,
        kernel,
        fault=lambda inputs, attrs: point_fault(1, inputs[0].shape, inputs[1]),
        infer=_infer_tensor_scatter,
        accepts=("" if method == "set" else "fi" if method in ("max", "min") else "fic", _INDEX),
        numpy_kernel=on_host,
        cases=lambda: [
            Case((_SAMPLE, np.array([[1], [0]], np.int32), _SAMPLE[1:] * np.float32(0.75))),
            Case((_SAMPLE, np.array([[2, 1], [0, 3]], np.int64), _SAMPLE[0, :2])),
        ],
    )

    def function(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        places = as_index_tensor(indices, "indices")
        given = convert_to_tensor(tensor, name="tensor")
        inputs = {"tensor": given, "indices": places, "updates": updates}
        return make(op_type, inputs, name=name, dtypes={"updates": given.dtype})

    function.__doc__ = (
        f"{doc}\n\nArgs:\n    tensor: a tensor.\n"
        "    indices: int `(..., n)`: each row indexes the first n dimensions.\n"
        "    updates: `(..., rest of tensor)`.\n    name: the operation's name.\n\n"
        "Returns:\n    A tensor like `tensor`, which itself does not change."
    )
    return function


tensor_scatter_nd_add = _tensor_scatter(
    "TensorScatterAdd", "add", "Add values to a tensor at n-dimensional indices."
)
tensor_scatter_nd_sub = _tensor_scatter(
    "TensorScatterSub", "subtract", "Subtract values from a tensor at n-dimensional indices."
)
tensor_scatter_nd_update = _tensor_scatter(
    "TensorScatterUpdate", "set", "Update a tensor with values at n-dimensional indices."
)
tensor_scatter_nd_max = _tensor_scatter(
    "TensorScatterMax", "max", "The greater of a tensor's and other values, at indices."
)
tensor_scatter_nd_min = _tensor_scatter(
    "TensorScatterMin", "min", "The lesser of a tensor's and other values, at indices."
)


def batch_gather(params: Any, indices: Any, name: str | None = None) -> Tensor:
    """`gather` whose indices share all but their last dimension with `params`."""
    places = convert_to_tensor(indices, name="indices")
    rank = places.shape.rank
    if not rank:
        raise ValueError("batch_gather: the indices must have at least one dimension.")
    return indexing.gather(params, places, name=name, batch_dims=rank - 1)


def _unravel(indices: Any, dims: Any, module: Any = jnp) -> Any:
    indices, dims = module.asarray(indices), module.asarray(dims)
    strides = module.cumprod(module.append(dims[1:], module.ones_like(dims[:1]))[::-1])[::-1]
    whole = (-1, *[1] * indices.ndim)
    return indices // strides.reshape(whole) % dims.reshape(whole)


def _infer_unravel(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    indices, dims = inputs
    if dims.shape.rank not in (1, None):
        raise value_error("Shape must be rank 1: dims is a vector", received=dims)
    count = [None] if dims.shape.dims is None else list(dims.shape.dims)
    return [Spec(indices.dtype, TensorShape(count).concatenate(indices.shape))]


def _unravel_fault(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[Fault]:
    indices, dims = inputs
    words = "index is out of bound as with dims: indices{at} = {value}, of {bound} elements"
    return in_range(0, indices, xp(dims).prod(dims), words, None)


register(
    "UnravelIndex",
    _unravel,
    fault=_unravel_fault,
    infer=_infer_unravel,
    gradient=None,
    numpy_kernel=lambda indices, dims: _unravel(indices, dims, np),
    accepts=("x", "x"),
    cases=lambda: [
        Case(
            (np.array([5, 0], np.int32), np.array([2, 3], np.int32)), {}, np.array([[1, 0], [2, 0]])
        )
    ],
)


def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Tensor:
    """Converts flat indices to one index per dimension.

    Args:
        indices: int32 or int64, a scalar or `(n,)`.
        dims: the sizes of the dimensions, of the same dtype.

    Returns:
        `(len(dims), ...)`, the shape of `indices` being `...`.

    Raises:
        InvalidArgumentError: when run, an index is not below the product of `dims`.
    """
    inputs = {"indices": convert_to_tensor(indices), "dims": convert_to_tensor(dims)}
    return make("UnravelIndex", inputs, name=name, same_dtype=True)
