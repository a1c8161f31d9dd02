"""Indexing and selection: `x[...]`, slice, gather, one_hot and where.

`getitem` makes one `StridedSlice`, whose `index` attribute holds what is known when the graph is
built and where a computed scalar goes in (`windows` makes it `tensor[key]`). What would have a
shape that depends on values (`where` without x and y) runs on the host.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.conversion import (
    as_index_tensor,
    convert_to_tensor,
    make,
    whole_numbers,
)
from estimatorkit.core.dtypes import as_dtype, bool_, float32, int64, members
from estimatorkit.core.errors import InvalidArgumentError, type_error, value_error
from estimatorkit.core.faults import Fault, in_range
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.registry import (
    Case,
    Role,
    Spec,
    constant_value,
    constant_value_as_shape,
    fixed_value,
    folding,
    register,
)
from estimatorkit.core.shapes import UNKNOWN, TensorShape, differ
from estimatorkit.core.sizes import dims_of, is_comparable, is_size, is_symbolic
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.vjp import vjp
from estimatorkit.ops.array import filling
from estimatorkit.ops.array.array import expand_dims, reshape, shape, size
from estimatorkit.ops.math import broadcasting, elementwise
from estimatorkit.ops.math.axes import axis_of, register_with_axis, with_axis
from estimatorkit.runtime.xla import host_tuning
from estimatorkit.runtime.xla.sharded_rows import ShardedRows

_SAMPLE = np.arange(6, dtype=np.float32).reshape(2, 3) - np.float32(2.5)


def index_of(parts: Sequence[Any], dynamic: Sequence[Any]) -> tuple[Any, ...]:
    """The Python index encoded by an `index` attribute (see `getitem`)."""
    rest = iter(dynamic)
    index: list[Any] = []
    for part in parts:
        if isinstance(part, tuple):
            bounds = (_slice_bound(next(rest)) if bound == "input" else bound for bound in part[1:])
            index.append(slice(*bounds))
        elif part == "input":
            index.append(next(rest))
        elif part == "newaxis":
            index.append(None)
        else:
            index.append(Ellipsis if part == "ellipsis" else part)
    return tuple(index)


def _slice_bound(value: Any) -> Any:
    """A slice's bound: a number, or a size (`core.sizes`)."""
    return value.item() if is_symbolic(value) else int(value)


def bounds_of_slices(attrs: Any, first: int = 1) -> tuple[int, ...]:
    """Positions of the inputs (from `first`) that are slice bounds, which determine the shape."""
    found, position = [], first
    for part in attrs["index"]:
        if isinstance(part, tuple):
            for bound in part[1:]:
                if bound == "input":
                    found.append(position)
                    position += 1
        elif part == "input":
            position += 1
    return tuple(found)


def _strided_slice(x: Any, *dynamic: Any, index: Sequence[Any]) -> Any:
    # A constant is a NumPy array, which a traced index cannot index.
    parts = index_of(index, dynamic)
    if not dynamic:
        return x[parts]
    x, parts = _cut_at_sizes(jnp.asarray(x), parts)
    return _with_rows(x, parts)[parts]


def _cut_at_sizes(x: Any, parts: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Cuts an array at bounds that are sizes, which indices of JAX's arrays cannot be; returns the
    rest of the index, too.
    """
    left, axis = list(parts), 0
    for at, part in enumerate(parts):
        if part is Ellipsis:
            axis = x.ndim - sum(each is not None for each in parts[at + 1 :])
        elif _has_size(part) and (part.step is None or part.step > 0):
            size = x.shape[axis]
            start = _within(0 if part.start is None else part.start, size)
            stop = _within(size if part.stop is None else part.stop, size)
            x = jax.lax.slice_in_dim(x, start, start if start > stop else stop, axis=axis)
            left[at] = slice(None, None, part.step)
        axis += part is not None and part is not Ellipsis
    return x, tuple(left)


def _has_size(part: Any) -> bool:
    return isinstance(part, slice) and (is_size(part.start) or is_size(part.stop))


def _within(bound: Any, size: Any) -> Any:
    """Normalizes a bound of a slice to a position in [0, size], as Python does."""
    bound = bound + size if bound < 0 else bound
    return 0 if bound < 0 else size if bound > size else bound


def _with_rows(x: Any, parts: Sequence[Any]) -> Any:
    """An array with a row along each empty axis that a number indexes: a loop without steps, or a
    branch that is not taken, may index nothing, and is traced nevertheless.
    """
    if x.size:
        return x
    axes = sum(part is not None and part is not Ellipsis for part in parts)
    shape, axis = list(x.shape), 0
    for part in parts:
        if part is Ellipsis:
            axis += x.ndim - axes
        elif part is not None:
            if not isinstance(part, slice):
                shape[axis] = max(1, shape[axis])
            axis += 1
    return jnp.zeros(shape, x.dtype)


def _known_bound(bound: Any, dynamic: Iterator[Tensor]) -> Any:
    if bound != "input":
        return bound
    value = constant_value(next(dynamic))
    return "input" if value is None else int(value)


def infer_strided_slice(inputs: Any, attrs: Any) -> list[Spec]:
    tensor, index = inputs[0], list(attrs["index"])
    dims = tensor.shape.dims
    if dims is None:
        return [Spec(tensor.dtype, UNKNOWN)]
    rest = len(dims) - sum(part not in ("newaxis", "ellipsis") for part in index)
    if rest < 0 or index.count("ellipsis") > 1:
        too_many = (
            f"Index out of range using input dim {len(dims)}; input has only {len(dims)} dims"
        )
        raise value_error(
            too_many if rest < 0 else "Multiple ellipses in slice spec not allowed",
            expected=f"at most {len(dims)} parts, and one ellipsis",
            received=tensor,
            made_at=tensor.op.source,
        )
    at = index.index("ellipsis") if "ellipsis" in index else len(index)
    index[at : at + 1] = [("slice", None, None, None)] * rest
    remaining, dynamic = iter(enumerate(dims)), iter(inputs[1:])
    result: list[int | None] = []
    for part in index:
        if part == "newaxis":
            result.append(1)
            continue
        axis, dim = next(remaining)
        if isinstance(part, tuple):
            bounds = [_known_bound(bound, dynamic) for bound in part[1:]]
            unknown = dim is None or "input" in bounds
            result.append(None if unknown else len(range(*slice(*bounds).indices(dim))))
        elif part == "input":
            next(dynamic)
        elif dim is not None and not -dim <= part < dim:
            place = part + dim if part < 0 else part  # as TensorFlow says it
            raise value_error(
                f"slice index {place} of dimension {axis} out of bounds",
                expected=f"in [{-dim}, {dim})",
                received=tensor,
                made_at=tensor.op.source,
            )
    return [Spec(tensor.dtype, TensorShape(result))]


def _outside(position: int, index: Any, axis: int, size: int) -> Fault:
    def text(_: tuple[int, ...], values: tuple[int, ...]) -> str:
        value = values[0] + size if values[0] < 0 else values[0]  # as TensorFlow says it
        return f"slice index {value} of dimension {axis} out of bounds"

    return Fault(position, (index < -size) | (index >= size), (index,), text)


def index_fault(inputs: Sequence[Any], attrs: Mapping[str, Any], position: int = 1) -> list[Fault]:
    """The tests of the indices of `getitem`; computed ones are the inputs from `position` on."""
    shape, index = inputs[0].shape, list(attrs["index"])
    rest = len(shape) - sum(part not in ("newaxis", "ellipsis") for part in index)
    place = index.index("ellipsis") if "ellipsis" in index else len(index)
    index[place : place + 1] = [("slice", None, None, None)] * rest
    faults: list[Fault] = []
    for axis, part in enumerate(part for part in index if part != "newaxis"):
        if part == "input":
            faults.append(_outside(position, inputs[position], axis, shape[axis]))
        elif isinstance(part, int) and is_comparable(shape[axis]):
            outside = _outside(0, np.asarray(part), axis, shape[axis])
            faults.extend([outside] if outside.bad else [])
        parts = part[1:] if isinstance(part, tuple) else (part,)
        position += sum(each == "input" for each in parts)
    return faults


register(
    "StridedSlice",
    _strided_slice,
    fault=index_fault,
    moves=True,
    infer=infer_strided_slice,
    numpy_kernel=lambda x, *dynamic, index: x[index_of(index, dynamic)],
    cases=lambda: [
        Case((_SAMPLE,), {"index": (1,)}),
        Case((_SAMPLE,), {"index": (("slice", None, None, -1), ("slice", 0, 2, None))}),
        Case((_SAMPLE,), {"index": ("ellipsis", "newaxis", 0)}),
        Case((_SAMPLE, np.int32(1)), {"index": (("slice", None, None, None), "input")}),
        Case(
            (_SAMPLE, np.int32(0), np.int32(1), np.int32(2)),
            {"index": ("input", ("slice", "input", "input", None))},
        ),
    ],
    static=bounds_of_slices,
)


def getitem(tensor: Tensor, key: Any, name: str = "strided_slice") -> Tensor:
    """`tensor[key]`: ints, slices, ..., newaxis, scalar integer tensors in place of ints.

    Raises:
        TypeError: the key is none of these.
        ValueError: it is out of range.
    """
    parts, inputs = parts_of(tensor, key)
    return make("StridedSlice", {"input": tensor, **inputs}, {"index": parts}, name)


def parts_of(tensor: Tensor, key: Any) -> tuple[tuple[Any, ...], dict[str, Tensor]]:
    """A key as an `index` attribute, and its computed parts as inputs.

    Raises:
        TypeError: part of `key` is not an index.
    """
    parts: list[Any] = []
    dynamic: list[Tensor] = []
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, slice):
            bounds = [
                _bound(tensor, bound, dynamic) for bound in (part.start, part.stop, part.step)
            ]
            parts.append(("slice", *bounds))
        elif part is None:
            parts.append("newaxis")
        elif part is Ellipsis:
            parts.append("ellipsis")
        elif hasattr(part, "_as_tensor") or isinstance(part, Tensor):
            index = convert_to_tensor(part)
            value = fixed_value(index)
            if index.shape.rank not in (0, None) or index.dtype not in members("x int16"):
                raise _no_index(tensor, part)
            if value is not None:
                parts.append(int(value))
            else:
                parts.append("input")
                dynamic.append(index)
        elif np.ndim(part) == 0 and np.asarray(part).dtype.kind in "iu":
            parts.append(int(part))
        else:
            raise _no_index(tensor, part)
    return tuple(parts), {f"index_{i}": each for i, each in enumerate(dynamic)}


def _no_index(tensor: Tensor, part: Any) -> TypeError:
    return type_error(
        "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
        "tf.int32/tf.int64 tensors are valid indices",
        received=repr(part),
        made_at=tensor.op.source,
        hint="use gather() or boolean_mask() for lists and masks",
    )


def _bound(tensor: Tensor, bound: Any, dynamic: list[Tensor]) -> Any:
    """A slice's bound: an int, None, or 'input' if computed (and appended to `dynamic`)."""
    if bound is None:
        return None
    if not isinstance(bound, Tensor) and not hasattr(bound, "_as_tensor"):
        return int(bound)
    value = convert_to_tensor(bound)
    if value.shape.rank not in (0, None) or value.dtype not in members("x int16"):
        raise _no_index(tensor, bound)
    known = fixed_value(value)
    if known is not None:
        return int(known)
    dynamic.append(value)
    return "input"


newaxis = None
"""In `x[...]`: a new axis of length 1."""


def _infer_slice(inputs: Any, attrs: Any) -> list[Spec]:
    tensor, begin, size = inputs
    rank = tensor.shape.rank
    count = size.shape[0] if size.shape.rank == 1 else rank
    differ = rank is not None and count is not None and count != rank
    if differ or not begin.shape.is_compatible_with(size.shape):
        raise value_error(
            f"Shape must be rank {count} but is rank {rank}: slice",
            expected="a begin and a length for each dimension",
            received=f"{tensor.name} {tensor.shape}, begin {begin.shape}, size {size.shape}",
            made_at=tensor.op.source,
        )
    lengths = constant_value(size)
    starts = constant_value(begin)
    if lengths is None:
        known = constant_value_as_shape(size)
        rows = UNKNOWN if rank is None else TensorShape([None] * rank)
        return [Spec(tensor.dtype, rows if known.rank is None else known)]
    dims: list[int | None] = []
    for position, length in enumerate(lengths.tolist()):
        if length != -1:
            _check_end(tensor, starts, position, length)
            dims.append(length)
        elif tensor.shape.rank is None or starts is None or tensor.shape[position] is None:
            dims.append(None)
        else:
            rest = tensor.shape[position] - int(starts[position])
            if rest < 0:
                raise value_error(
                    f"slice begins at {starts[position]}, behind dimension {position} of size "
                    f"{tensor.shape[position]}",
                    received=tensor,
                    made_at=tensor.op.source,
                )
            dims.append(rest)
    return [Spec(tensor.dtype, TensorShape(dims))]


def _check_end(tensor: Tensor, starts: Any, position: int, length: int) -> None:
    """Raises InvalidArgumentError if a slice is statically known to exceed a dimension."""
    size = None if tensor.shape.rank is None else tensor.shape.as_list()[position]
    if size is None or starts is None:
        return
    rest = size - int(starts[position])
    if not 0 <= length <= rest:
        words = f"Expected size[{position}] in [0, {rest}], but got {length}"
        raise InvalidArgumentError.explained(words, received=tensor, op=tensor.op)


def _slice(x: Any, begin: Any, size: Any, to_end: bool) -> Any:
    if isinstance(begin, np.ndarray):
        return x[
            tuple(
                slice(at, x.shape[i] if n == -1 else at + n)
                for i, (at, n) in enumerate(zip(dims_of(begin), dims_of(size), strict=True))
            )
        ]
    return jax.lax.dynamic_slice(x, list(begin), dims_of(size))


def _slice_fault(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[Fault]:
    shape, begin, size = inputs[0].shape, inputs[1], inputs[2]
    faults: list[Fault] = []
    for axis, (dim, length) in enumerate(zip(shape, dims_of(size), strict=True)):
        faults.append(_not_within(begin[axis], axis, dim))
        if length > 0:
            faults.append(_too_long(begin[axis], axis, length, dim))
    return faults


def _not_within(begin: Any, axis: int, dim: Any) -> Fault:
    def text(_: tuple[int, ...], values: tuple[int, ...]) -> str:
        return f"Expected begin[{axis}] in [0, {dim}], but got {values[0]}"

    return Fault(1, (begin < 0) | (begin >= dim + 1), (begin,), text)


def _too_long(begin: Any, axis: int, length: Any, dim: Any) -> Fault:
    def text(_: tuple[int, ...], values: tuple[int, ...]) -> str:
        return f"Expected size[{axis}] in [0, {dim - values[0]}], but got {length}"

    return Fault(1, begin > dim - length, (begin,), text)


register(
    "Slice",
    _slice,
    fault=_slice_fault,
    moves=True,
    infer=_infer_slice,
    numpy_kernel=_slice,
    # A length up to the end depends on where the slice begins.
    static=lambda attrs: (1, 2) if attrs["to_end"] else (2,),
    cases=lambda: [
        Case(
            (_SAMPLE, np.array([0, 1], np.int32), np.array([-1, 2], np.int32)),
            {"to_end": True},
            _SAMPLE[:, 1:3],
        ),
        Case(
            (_SAMPLE, np.array([1, 0], np.int32), np.array([1, 2], np.int32)),
            {"to_end": False},
            _SAMPLE[1:2, 0:2],
        ),
    ],
    accepts=("", "x", "x"),
)


def slice_(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """Slices `input_` from `begin` with shape `size` (-1: to the end).

    Args:
        input_: a tensor.
        begin: the first index in each dimension, ints or a tensor.
        size: the length in each dimension, ints or a tensor whose value follows from shapes or
            feeds.
    """
    inputs = {
        "input": convert_to_tensor(input_, name="input"),
        "begin": as_index_tensor(begin, "begin"),
        "size": as_index_tensor(size, "size"),
    }
    return make("Slice", inputs, {"to_end": _may_count_to_end(inputs["size"])}, name)


def _may_count_to_end(size: Tensor) -> bool:
    """Whether a length may be -1."""
    known = constant_value(size)
    if known is not None:
        return bool((known == -1).any())
    if (parts := folding.packed(size)) is not None:
        return any(map(_may_count_to_end, parts))
    return not follows_from_shapes(size)


def follows_from_shapes(tensor: Tensor) -> bool:
    """Whether a value depends only on the shapes of the run's inputs."""
    op = tensor.op
    row = registry.lookup(op.type)
    if row.semantics.role is Role.CONSTANT or row.semantics.known_from_shape:
        return True
    return row.foldable and bool(op.inputs) and all(map(follows_from_shapes, op.inputs))


def _infer_gather(inputs: Any, attrs: Any) -> list[Spec]:
    params, indices = inputs
    axis, batch = attrs["axis"], attrs["batch_dims"]
    if params.shape.dims is None or indices.shape.dims is None:
        return [Spec(params.dtype, UNKNOWN)]
    if not -len(params.shape) <= axis < len(params.shape):
        raise value_error("gather: axis out of range", received=axis)
    axis %= len(params.shape)
    batch += len(indices.shape) if batch < 0 else 0
    if not batch <= min(axis, len(indices.shape)):
        raise value_error(
            "gather: batch_dims must not be above axis", expected=axis, received=batch
        )
    dims, taken = params.shape.dims, indices.shape.dims
    return [Spec(params.dtype, TensorShape((*dims[:axis], *taken[batch:], *dims[axis + 1 :])))]


def _take(params: Any, indices: Any, axis: int, batch_dims: int, module: Any = jnp) -> Any:
    if batch_dims < 0:
        batch_dims += np.ndim(indices)
    if isinstance(params, ShardedRows):
        if axis == 0 and batch_dims == 0:
            return params.lookup(indices)
        params = params.whole()
    if batch_dims == 0:
        if module is jnp and axis == 0:
            indices = host_tuning.prefetch_rows(indices, params)
        return module.take(params, indices, axis=axis, mode="clip")
    if module is np:
        pairs = zip(params, indices, strict=True)
        inner = axis % params.ndim - 1
        return np.stack([_take(p, i, inner, batch_dims - 1, np) for p, i in pairs])
    inner = axis % np.ndim(params) - 1
    return jax.vmap(lambda p, i: _take(p, i, inner, batch_dims - 1))(
        jnp.asarray(params), jnp.asarray(indices)
    )


def _gather_gradient(op: Any, dy: Tensor) -> Sequence[Any]:
    params, indices, *axis = op.inputs
    if op.attrs["axis"] != 0 or op.attrs["batch_dims"]:
        return [*vjp(op, [dy], (0,)), None, *[None for _ in axis]]
    return [slices_of_rows(params, indices, dy), None]


def slices_of_rows(params: Tensor, indices: Tensor, dy: Tensor) -> IndexedSlices:
    """The gradient by `params` of its rows at `indices`, given the gradient by these rows."""
    row_shape = params.shape[1:]
    if row_shape.num_elements():
        values = reshape(dy, [-1, *row_shape.as_list()])
    else:  # possibly empty rows: -1 cannot be inferred from their number
        count = reshape(size(indices), [1])
        values = reshape(dy, registry.output("ConcatV2", [count, shape(params)[1:]], {"axis": 0}))
    return IndexedSlices(values, reshape(indices, [-1]), shape(params))


def _gather_fault(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[Fault]:
    params, indices = inputs
    text = attrs.get("_refusal", "indices{at} = {value} is not in [0, {bound})")
    return in_range(1, indices, params.shape[attrs["axis"]], text)


register_with_axis(
    "GatherV2",
    _take,
    fault=_gather_fault,
    moves=True,
    infer=_infer_gather,
    gradient=_gather_gradient,
    numpy_kernel=functools.partial(_take, module=np),
    colocate_with_input=True,
    takes_shards=True,
    cases=lambda: [
        Case((_SAMPLE, np.array([1, 0, 1], np.int32)), {"axis": 0, "batch_dims": 0}),
        Case((_SAMPLE, np.array([[2], [0]], np.int64)), {"axis": 1, "batch_dims": 0}),
        Case((_SAMPLE, np.array([[2, 0], [0, 1]], np.int64)), {"axis": 1, "batch_dims": 1}),
    ],
    accepts=("", "x int16"),
)


def gather(
    params: Any,
    indices: Any,
    validate_indices: bool | None = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Tensor:
    """Gathers slices of `params` at `indices` along an axis.

    Args:
        params: a tensor.
        indices: int32 or int64 of any shape, in [0, params.shape[axis]).
        validate_indices: accepted for compatibility only.
        axis: the axis; `batch_dims` by default.
        batch_dims: the number of leading batch dimensions that `params` and `indices` share.

    Returns:
        A tensor of shape
        `params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:]`.
    """
    if batch_dims < 0:
        indices = convert_to_tensor(indices, name="indices")
        if indices.shape.rank is not None:
            batch_dims += indices.shape.rank
        elif axis is None:
            raise value_error("gather: negative batch_dims need indices of known rank, or an axis")
    inputs, attrs = with_axis(
        {"params": params, "indices": indices}, batch_dims if axis is None else axis, "gather"
    )
    return make("GatherV2", inputs, {**attrs, "batch_dims": int(batch_dims)}, name)


def _one_hot(
    indices: Any, on_value: Any, off_value: Any, depth: int, axis: int, module: Any = jnp
) -> Any:
    # Not 8-bit indices: there may be more classes than these can count.
    indices = module.asarray(indices).astype(np.promote_types(indices.dtype, np.int32))
    hot = module.expand_dims(indices, axis) == module.arange(depth, dtype=indices.dtype).reshape(
        [-1 if position == axis % (indices.ndim + 1) else 1 for position in range(indices.ndim + 1)]
    )
    return module.where(hot, on_value, off_value)


def _infer_one_hot(inputs: Any, attrs: Any) -> list[Spec]:
    dims = inputs[0].shape.dims
    if dims is None:
        return [Spec(inputs[1].dtype, UNKNOWN)]
    at = len(dims) if attrs["axis"] == -1 else attrs["axis"]
    if not 0 <= at <= len(dims) or attrs["depth"] < 0:
        raise value_error(
            f"one_hot: Expected axis to be -1 or between [0, {len(dims) + 1}), and a "
            "non-negative depth",
            received=f"axis {attrs['axis']}, depth {attrs['depth']}",
            made_at=inputs[0].op.source,
        )
    return [Spec(inputs[1].dtype, TensorShape((*dims[:at], attrs["depth"], *dims[at:])))]


register(
    "OneHot",
    _one_hot,
    infer=_infer_one_hot,
    numpy_kernel=functools.partial(_one_hot, module=np),
    gradient=None,
    cases=lambda: [
        Case(
            (np.array([1, -1, 2], np.int32), np.float32(1), np.float32(0)),
            {"depth": 3, "axis": -1},
            np.array([[0, 1, 0], [0, 0, 0], [0, 0, 1]], np.float32),
        )
    ],
    accepts=("x int8 uint8",),
)


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """`on_value` at each index along a new axis of length `depth`, `off_value` elsewhere.

    Args:
        indices: integers; for those outside [0, depth) all elements are `off_value`.
        depth: the length of the new axis, an int or an int scalar tensor.
        on_value, off_value: 1 and 0 by default.
        axis: where the new axis goes; last by default.
        dtype: of the result; that of on_value or off_value by default, float32 without these.
    """
    given = {
        name: convert_to_tensor(each, None if isinstance(each, Tensor) else dtype).dtype
        for name, each in (("on_value", on_value), ("off_value", off_value))
        if each is not None
    }
    if len(set(given.values())) == 2:
        raise TypeError(
            f"dtype {given['on_value']} of on_value does not match dtype {given['off_value']} of "
            "off_value"
        )
    if dtype is None and given:
        dtype = next(iter(given.values()))
    result = float32 if dtype is None else as_dtype(dtype)
    inputs = {
        "indices": whole_numbers(indices),
        "on_value": convert_to_tensor(1 if on_value is None else on_value, result),
        "off_value": convert_to_tensor(0 if off_value is None else off_value, result),
    }
    at = -1 if axis is None else axis
    if isinstance(depth, Tensor) and registry.constant_value(depth) is None:
        return _one_hot_of_computed_depth(inputs, depth, at, name)
    if not isinstance(depth, Tensor) and np.ndim(depth):
        raise value_error(f"one_hot: Input must be scalar but has rank {np.ndim(depth)}: the depth")
    attrs = {"depth": axis_of(depth, "one_hot (depth)"), "axis": at}
    return make("OneHot", inputs, attrs, name or "one_hot")


def _one_hot_of_computed_depth(
    inputs: dict[str, Any], depth: Tensor, axis: int, name: str | None
) -> Tensor:
    with get_default_graph().name_scope(name or "one_hot") as scope:
        indices = convert_to_tensor(inputs["indices"], name="indices")
        if axis != -1 and indices.shape.rank is None:
            raise value_error(
                "one_hot: of indices of unknown rank, a computed depth is the last axis",
                expected="axis=-1",
                received=axis,
                made_at=indices.op.source,
            )
        registry.check_allowed(depth, "x", "one_hot", "depth")
        classes = filling.range_(elementwise.cast(depth, indices.dtype))
        if axis != -1:
            after = len(indices.shape) - axis  # dimensions after the new one
            classes = reshape(classes, [-1, *[1] * after])
        hit = elementwise.equal(expand_dims(indices, axis), classes)
        return where(hit, inputs["on_value"], inputs["off_value"], name=scope)


def _check_alike(condition: Any, x: Any, y: Any) -> None:
    """Raises ValueError unless x and y have one shape, and the condition, too, or that of rows."""
    shapes = [
        each.shape if isinstance(each, Tensor) else TensorShape(each.shape)
        for each in (condition, x, y)
    ]
    both = shapes[1].is_compatible_with(shapes[2])
    rows = shapes[0].rank == 0 or (
        shapes[0].rank == 1 and bool(shapes[1].rank) and shapes[0].is_compatible_with(shapes[1][:1])
    )
    if not both or not (rows or shapes[0].is_compatible_with(shapes[1])):
        lengths = [shape[0] if shape.rank else shape for shape in shapes[:2]]
        raise value_error(
            f"where: Dimensions must be equal, but are {lengths[0]} and {lengths[1]}"
            if both and lengths[0] != lengths[1]
            else "where: Shapes must be equal",
            expected="x and y of one shape, a condition of this shape, or one for each row",
            received=f"condition {shapes[0]}, x {shapes[1]}, y {shapes[2]}",
            hint="use where_v2, which broadcasts",
        )


def _are_alike(condition: Sequence[Any], x: Sequence[Any], y: Sequence[Any]) -> bool:
    rows = not condition or (len(condition) == 1 and bool(x) and not differ(condition, x[:1]))
    return not differ(x, y) and (rows or not differ(condition, x))


def _infer_where(inputs: Any, attrs: Any) -> list[Spec]:
    condition, x, y = inputs
    if attrs.get("strict"):
        _check_alike(condition, x, y)
        shape = x.shape.merge_with(y.shape)
        if condition.shape.rank and (condition.shape.rank > 1 or shape.rank == 1):
            shape = shape.merge_with(condition.shape)
        return [Spec(x.dtype, shape)]
    both = broadcasting.broadcast()([x, y], attrs)[0]
    if condition.shape.rank is None or both.shape.rank is None:
        return [both]
    rows = condition.shape.rank == 1 and (x.shape.rank or 0) > 1
    if rows and condition.shape.is_compatible_with(x.shape[:1]):
        return [both]
    return broadcasting.broadcast(x.dtype)(inputs, attrs)  # type: ignore[return-value]


def _select(condition: Any, x: Any, y: Any, strict: bool = False, module: Any = jnp) -> Any:
    if strict and not _are_alike(condition.shape, x.shape, y.shape):
        _check_alike(condition, x, y)
    if condition.ndim == 1 and x.ndim > 1 and x.shape == y.shape:
        condition = condition.reshape(condition.shape + (1,) * (x.ndim - 1))
    return module.where(condition, x, y)


register(
    "Select",
    _select,
    infer=_infer_where,
    numpy_kernel=functools.partial(_select, module=np),
    cases=lambda: [
        Case((_SAMPLE > 0, _SAMPLE, _SAMPLE * 2)),
        Case((np.array([True, False]), _SAMPLE, _SAMPLE * 2), {"strict": True}),
    ],
)
register(
    "SelectV2",
    jnp.where,
    infer=lambda inputs, attrs: broadcasting.broadcast(inputs[1].dtype)(inputs, attrs),
    numpy_kernel=np.where,
    cases=lambda: [Case((np.array([[True], [False]]), _SAMPLE[0], _SAMPLE * 2))],
)


register(
    "Where",
    lambda condition: np.argwhere(condition).astype(np.int64),
    where="host",  # the number of rows depends on the values
    infer=lambda inputs, attrs: [Spec(int64, TensorShape([None, inputs[0].shape.rank]))],
    gradient=None,
    cases=lambda: [Case((_SAMPLE > 0,), {}, np.argwhere(_SAMPLE > 0))],
    accepts="ficb",
)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """x where `condition` is true, y elsewhere; without x and y, the indices where it is true.

    Args:
        condition: bool; of the shape of x and y (or one that broadcasts with them), or a vector
            that chooses rows.
        x, y: tensors of one dtype, or both None.

    Returns:
        A tensor like x; or int64 `(true elements, rank of condition)`.

    Raises:
        ValueError: only one of x and y is given, or the shapes are incompatible.
        TypeError: x and y have different dtypes, or the condition is not bool.
    """
    return _where("Select", condition, x, y, name, {})


def where_v1(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """`where` without broadcasting: x and y have one shape, which is the condition's, unless it is
    a vector that chooses rows, or a scalar.

    Raises:
        ValueError: see `where`; the shapes differ.
    """
    return _where("Select", condition, x, y, name, {"strict": True})


def where_v2(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """`where` with NumPy's broadcasting: a condition that is a vector chooses columns.

    Raises:
        ValueError, TypeError: see `where`.
    """
    return _where("SelectV2", condition, x, y, name, {})


def _where(
    op_type: str, condition: Any, x: Any, y: Any, name: str | None, attrs: dict[str, Any]
) -> Tensor:
    picked = convert_to_tensor(condition, name="condition")
    if x is None and y is None:
        return make("Where", {"condition": picked}, name=name)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    with get_default_graph().name_scope(name or op_type) as scope:
        first = convert_to_tensor(
            x, dtype_hint=y.dtype if isinstance(y, Tensor) else None, name="x"
        )
        second = convert_to_tensor(y, dtype_hint=first.dtype, name="y")
        registry.check_same_dtype(op_type, [first, second], name)
        if picked.dtype is not bool_:
            raise type_error(
                f"Input 'condition' of 'Select' Op has type {picked.dtype.name} that does not "
                "match expected type of bool",
                received=picked,
                made_at=picked.op.source,
                hint="compare, for example x > 0",
            )
        return registry.output(op_type, [picked, first, second], attrs, scope)
