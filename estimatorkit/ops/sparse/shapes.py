"""Sparse ops that move values: reorder, reshape, slice, split.

Each is one host op. `_selecting` registers those that select values, given a function of the
indices that returns which values to keep, in which order, and their new indices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor
from estimatorkit.core.dtypes import bool_, int64
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import (
    Case,
    Spec,
    apply,
    constant_value,
    constant_value_as_shape,
    fixed_value,
    output,
    register,
)
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.math.axes import axis_of
from estimatorkit.ops.math.elementwise import cast
from estimatorkit.ops.sparse.sparse import (
    Array,
    as_sparse,
    back_through_destinations,
    keys,
    length_of,
    longs,
    sparse_from,
    sparse_specs,
)

_INDICES = np.array([[0, 1], [0, 2], [2, 0]], np.int64)
_VALUES = np.array([1.5, -2.0, 3.0], np.float32)
_SHAPE = np.array([3, 4], np.int64)


def _selecting(
    op_type: str,
    select: Callable[..., tuple[Array, Array, Array]],
    cases: Callable[[], Sequence[Case]],
    keeps_count: bool = False,
) -> None:
    """Registers an op of (indices, values, shape, more) that keeps some values.

    Args:
        op_type: the type.
        select: `select(indices, shape, *more, **attrs)` returns the output's indices, the input
            position of each of its values, and its shape.
        cases: the test cases.
        keeps_count: whether all values are kept.
    """

    def kernel(indices: Array, values: Array, shape: Array, *more: Array, **attrs: Any) -> Any:
        new_indices, sources, new_shape = select(indices, shape, *more, **attrs)
        destinations = np.full(len(values), -1, np.int64)
        destinations[sources] = np.arange(len(sources))
        return new_indices.astype(np.int64), values[sources], longs(new_shape), destinations

    def infer(inputs: Any, attrs: Any) -> list[Spec]:
        count = length_of(inputs[0])
        rank = length_of(inputs[2])
        return sparse_specs(inputs[1].dtype, rank, count if keeps_count else None, [count])

    register(
        op_type,
        kernel,
        where="host",
        infer=infer,
        gradient=back_through_destinations({1: 3}, 1),
        cases=cases,
    )


def _apply(
    op_type: str,
    sparse: SparseTensor,
    more: Sequence[Tensor] = (),
    attrs: dict[str, Any] | None = None,
    name: str | None = None,
    shape: TensorShape = UNKNOWN,
) -> SparseTensor:
    return sparse_from(apply(op_type, [*sparse._components(), *more], attrs, name), shape)


# -- order


def _reorder(indices: Array, shape: Array) -> tuple[Array, Array, Array]:
    order = np.argsort(keys(indices, shape), kind="stable")
    return indices.take(order, 0), order, shape


def _transpose(
    indices: Array, shape: Array, perm: tuple[int, ...] | None
) -> tuple[Array, Array, Array]:
    axes = list(range(len(shape)))[::-1] if perm is None else list(perm)
    return _reorder(indices[:, axes], shape[axes])


_selecting(
    "SparseReorder",
    _reorder,
    lambda: [
        Case(
            (_INDICES[[2, 0, 1]], _VALUES[[2, 0, 1]], _SHAPE),
            {},
            (_INDICES, _VALUES, _SHAPE, longs(2, 0, 1)),
        )
    ],
    keeps_count=True,
)
_selecting(
    "SparseTranspose",
    _transpose,
    lambda: [
        Case(
            (_INDICES, _VALUES, _SHAPE),
            {"perm": None},
            (
                longs([[0, 2], [1, 0], [2, 0]]),
                _VALUES[[2, 0, 1]],
                longs(4, 3),
                longs(1, 2, 0),
            ),
        )
    ],
    keeps_count=True,
)


def sparse_reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Sorts the indices of a sparse tensor into row-major order."""
    sparse = as_sparse(sp_input)
    return _apply("SparseReorder", sparse, name=name, shape=sparse.shape)


def sparse_transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """Permutes the dimensions of a sparse tensor; reverses them by default.

    Args:
        sp_input: a sparse tensor.
        perm: the permutation, ints or a constant tensor.
    """
    sparse = as_sparse(sp_input)
    given = fixed_value(perm) if isinstance(perm, Tensor) else perm
    order = None if given is None else tuple(int(axis) for axis in given)
    dims = sparse.shape.dims
    shape = UNKNOWN
    if dims is not None:
        shape = TensorShape([dims[axis] for axis in (order or range(len(dims))[::-1])])
    return _apply("SparseTranspose", sparse, (), {"perm": order}, name or "SparseTranspose", shape)


# -- shape


def _reshape(indices: Array, shape: Array, new_shape: Array) -> tuple[Array, Array]:
    count = int(np.prod(shape))
    wanted = [int(dim) for dim in new_shape]
    if wanted.count(-1) > 1:
        raise ValueError("only one output dimension may be -1")
    rest = int(np.prod([dim for dim in wanted if dim != -1]))
    if -1 in wanted and rest and count % rest == 0:
        wanted[wanted.index(-1)] = count // rest
    if int(np.prod(wanted)) != count or -1 in wanted:
        raise ValueError(
            f"Input to reshape is a SparseTensor with {count} dense values, but the requested "
            f"shape {[int(dim) for dim in new_shape]} does not have as many"
        )
    flat = np.ravel_multi_index(tuple(indices.T), tuple(shape)) if len(indices) else longs([])
    return np.stack(np.unravel_index(flat, wanted), 1).astype(np.int64), longs(wanted)


register(
    "SparseReshape",
    _reshape,
    where="host",
    infer=lambda inputs, attrs: [
        Spec(int64, TensorShape([length_of(inputs[0]), length_of(inputs[2])])),
        Spec(int64, TensorShape([length_of(inputs[2])])),
    ],
    gradient=None,
    cases=lambda: [
        Case(
            (_INDICES, _SHAPE, longs(2, -1)),
            {},
            (longs([[0, 1], [0, 2], [1, 2]]), longs(2, 6)),
        )
    ],
    accepts=("int64", "int64", "int64"),
)


def sparse_reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """Reshapes a sparse tensor.

    Args:
        sp_input: a sparse tensor.
        shape: ints or a tensor; one dimension may be -1, to be inferred.

    Raises:
        ValueError: the number of elements is known to differ.
        InvalidArgumentError: at run time, it differs.
    """
    sparse = as_sparse(sp_input)
    with get_default_graph().name_scope(name or "SparseReshape") as scope:
        target = cast(as_index_tensor(shape, "shape"), int64)
        known = constant_value(target)
        static = constant_value_as_shape(target)
        count = sparse.shape.num_elements()
        if known is not None and count is not None:
            try:
                _, dims = _reshape(
                    np.zeros([0, len(sparse.shape)], np.int64), longs(sparse.shape.as_list()), known
                )
            except ValueError as error:
                raise value_error(
                    f"Cannot reshape a tensor with {count} elements to shape "
                    f"{[int(dim) for dim in known]}",
                    received=sparse,
                    made_at=sparse.op.source,
                ) from error
            static = TensorShape(dims.tolist())
        op = apply("SparseReshape", [sparse.indices, sparse.dense_shape, target], name=scope)
        made = SparseTensor(op.outputs[0], sparse.values, op.outputs[1])
        made.set_shape(static)
        return made


def _expand(indices: Array, shape: Array, axis: int) -> tuple[Array, Array]:
    at = axis if axis >= 0 else axis + len(shape) + 1
    return np.insert(indices, at, 0, axis=1), np.insert(shape, at, 1)


register(
    "SparseExpandDims",
    _expand,
    where="host",
    infer=lambda inputs, attrs: [
        Spec(int64, TensorShape([length_of(inputs[0]), _one_more(length_of(inputs[1]))])),
        Spec(int64, TensorShape([_one_more(length_of(inputs[1]))])),
    ],
    gradient=None,
    cases=lambda: [
        Case((longs([[0, 1]]), _SHAPE), {"axis": -1}, (longs([[0, 1, 0]]), longs(3, 4, 1)))
    ],
)


def _one_more(length: int | None) -> int | None:
    return None if length is None else length + 1


def sparse_expand_dims(sp_input: Any, axis: Any = None, name: str | None = None) -> SparseTensor:
    """Inserts a dimension of length 1 at `axis` (the last by default)."""
    sparse = as_sparse(sp_input)
    chosen = -1 if axis is None else axis_of(axis, "sparse.expand_dims")
    dims = sparse.shape.dims
    if dims is not None and not -len(dims) - 1 <= chosen <= len(dims):
        raise value_error(
            "sparse.expand_dims: axis out of range",
            expected=f"in [{-len(dims) - 1}, {len(dims)}]",
            received=chosen,
        )
    op = apply("SparseExpandDims", [sparse.indices, sparse.dense_shape], {"axis": chosen}, name)
    made = SparseTensor(op.outputs[0], sparse.values, op.outputs[1])
    if dims is not None:
        at = chosen if chosen >= 0 else chosen + len(dims) + 1
        made.set_shape([*dims[:at], 1, *dims[at:]])
    return made


def _reset_shape(indices: Array, shape: Array, *new_shape: Array) -> Array:
    if not new_shape:
        return indices.max(axis=0) + 1 if len(indices) else np.zeros_like(shape)
    if new_shape[0].shape != shape.shape or (new_shape[0] < shape).any():
        raise ValueError(
            f"sparse_reset_shape: the new shape {new_shape[0].tolist()} must have the rank of "
            f"{shape.tolist()} and be at least as large in each dimension"
        )
    return new_shape[0]


register(
    "SparseResetShape",
    _reset_shape,
    where="host",
    infer=lambda inputs, attrs: [Spec(int64, inputs[1].shape)],
    gradient=None,
    cases=lambda: [
        Case((_INDICES, _SHAPE), {}, longs(3, 3)),
        Case((_INDICES, _SHAPE, longs(5, 4)), {}, longs(5, 4)),
    ],
)


def sparse_reset_shape(sp_input: Any, new_shape: Any = None) -> SparseTensor:
    """Changes the dense shape, without changing indices or values.

    Args:
        sp_input: a sparse tensor.
        new_shape: at least as large in each dimension; by default the tight bounding box.

    Raises:
        ValueError: it has another rank, or is known to be smaller.
        InvalidArgumentError: at run time, it is smaller.
    """
    sparse = as_sparse(sp_input)
    inputs = [sparse.indices, sparse.dense_shape]
    static = UNKNOWN
    if new_shape is not None:
        inputs.append(cast(as_index_tensor(new_shape, "new_shape"), int64))
        static = constant_value_as_shape(inputs[2])
        _check_not_smaller(sparse.shape, static)
    made = SparseTensor(sparse.indices, sparse.values, output("SparseResetShape", inputs))
    made.set_shape(static)
    return made


def _check_not_smaller(shape: TensorShape, new: TensorShape) -> None:
    if shape.dims is None or new.dims is None:
        return
    known = zip(shape.dims, new.dims, strict=False)
    smaller = any(a is not None and b is not None and b < a for a, b in known)
    if smaller or len(shape) != len(new):
        raise value_error(
            "sparse_reset_shape: the new shape does not contain the old one",
            expected=f"rank {len(shape)}, at least {shape} in each dimension",
            received=new,
        )


# -- parts


def _slice(indices: Array, shape: Array, start: Array, size: Array) -> tuple[Array, Array, Array]:
    end = np.minimum(start + size, shape)
    sources = np.flatnonzero(((indices >= start) & (indices < end)).all(axis=1))
    return indices.take(sources, 0) - start, sources, np.maximum(end - start, 0)


def _split(
    indices: Array, shape: Array, axis: int, pieces: int, piece: int
) -> tuple[Array, Array, Array]:
    at = axis if axis >= 0 else axis + len(shape)
    if not 0 <= at < len(shape) or not 1 <= pieces <= shape[at]:
        raise ValueError(
            f"sparse_split: num_split must be in [1, {shape[at] if at < len(shape) else 0}] along "
            f"axis {axis} of shape {shape.tolist()}, got {pieces}"
        )
    share, longer = divmod(int(shape[at]), pieces)
    start, size = np.zeros_like(shape), shape.copy()
    start[at] = piece * share + min(piece, longer)
    size[at] = share + (piece < longer)
    return _slice(indices, shape, start, size)


def _retain(indices: Array, shape: Array, kept: Array) -> tuple[Array, Array, Array]:
    if kept.shape != indices.shape[:1]:
        raise ValueError(f"to_retain has shape {kept.shape} for {len(indices)} values")
    sources = np.flatnonzero(kept)
    return indices.take(sources, 0), sources, shape


_selecting(
    "SparseSlice",
    _slice,
    lambda: [
        Case(
            (_INDICES, _VALUES, _SHAPE, longs(0, 1), longs(2, 9)),
            {},
            (longs([[0, 0], [0, 1]]), _VALUES[:2], longs(2, 3), longs(0, 1, -1)),
        )
    ],
)
_selecting(
    "SparseSplit",
    _split,
    lambda: [
        Case(
            (_INDICES, _VALUES, _SHAPE),
            {"axis": 0, "pieces": 2, "piece": 1},
            (longs([[0, 0]]), _VALUES[2:], longs(1, 4), longs(-1, -1, 0)),
        )
    ],
)
_selecting(
    "SparseRetain",
    _retain,
    lambda: [
        Case(
            (_INDICES, _VALUES, _SHAPE, np.array([True, False, True])),
            {},
            (_INDICES[[0, 2]], _VALUES[[0, 2]], _SHAPE, longs(0, -1, 1)),
        )
    ],
)


def sparse_slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """The slice of `size` elements from `start`, clipped to the tensor.

    Args:
        sp_input: a sparse tensor.
        start, size: `(rank,)`, ints or tensors.
    """
    sparse = as_sparse(sp_input)
    with get_default_graph().name_scope(name or "SparseSlice") as scope:
        first = cast(as_index_tensor(start, "start"), int64)
        extent = cast(as_index_tensor(size, "size"), int64)
        begin, length = constant_value(first), constant_value(extent)
        static = UNKNOWN
        if begin is not None and length is not None and sparse.shape.dims is not None:
            static = TensorShape(
                [
                    None if dim is None else max(min(int(at + count), dim) - int(at), 0)
                    for at, count, dim in zip(begin, length, sparse.shape.dims, strict=True)
                ]
            )
        return _apply("SparseSlice", sparse, [first, extent], {}, scope, static)


def sparse_split(
    sp_input: Any = None,
    num_split: Any = None,
    axis: Any = None,
    name: str | None = None,
    split_dim: Any = None,
) -> list[SparseTensor]:
    """Splits a sparse tensor along an axis; if unevenly, the first pieces are longer.

    Args:
        sp_input: a sparse tensor.
        num_split: the number of pieces.
        axis: the axis (`split_dim` is its deprecated alias).

    Raises:
        ValueError: an argument is missing.
    """
    chosen = split_dim if axis is None else axis
    if sp_input is None or num_split is None or chosen is None:
        raise ValueError("sparse_split: sp_input, num_split and axis are required.")
    sparse = as_sparse(sp_input)
    at, pieces = axis_of(chosen, "sparse_split"), int(num_split)
    if pieces < 1:
        raise value_error("sparse_split: num_split must be at least 1", received=pieces)
    with get_default_graph().name_scope(name or "SparseSplit"):
        made = []
        for piece in range(pieces):
            dims = None if sparse.shape.dims is None else list(sparse.shape.dims)
            if dims is not None and dims[at] is not None:
                share, longer = divmod(dims[at], pieces)  # type: ignore[operator]
                dims[at] = share + (piece < longer)
            attrs = {"axis": at, "pieces": pieces, "piece": piece}
            made.append(_apply("SparseSplit", sparse, (), attrs, shape=TensorShape(dims)))
        return made


def sparse_retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """Keeps the values for which `to_retain`, bool `(n,)`, is true."""
    sparse = as_sparse(sp_input)
    kept = convert_to_tensor(to_retain, bool_, name="to_retain")
    kept.shape.assert_is_compatible_with([length_of(sparse.values)])
    return _apply("SparseRetain", sparse, [kept], shape=sparse.shape)
