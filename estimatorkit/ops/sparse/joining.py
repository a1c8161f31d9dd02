"""Sparse ops that concatenate tensors, fill empty rows and drop rows; each is one host op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import bool_, int64
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.registry import Case, Spec, apply, constant_value_as_shape, register
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.array.array import expand_dims
from estimatorkit.ops.array.indexing import gather
from estimatorkit.ops.array.joining import concat, stack
from estimatorkit.ops.math.axes import axis_of
from estimatorkit.ops.math.elementwise import cast
from estimatorkit.ops.math.reduce import reduce_sum
from estimatorkit.ops.sparse.shapes import sparse_reorder
from estimatorkit.ops.sparse.sparse import (
    Array,
    as_sparse,
    back_through_destinations,
    check_in_bounds,
    floats,
    keys,
    length_of,
    longs,
    sparse_from,
    sparse_specs,
)

_INDICES = np.array([[0, 1], [0, 2], [2, 0]], np.int64)
_VALUES = np.array([1.5, -2.0, 3.0], np.float32)
_SHAPE = np.array([3, 4], np.int64)


# -- concatenation


def _concat(*inputs: Array, axis: int, expand: bool) -> Any:
    count = len(inputs) // 3
    indices, values, shapes = (list(inputs[at * count : (at + 1) * count]) for at in range(3))
    rank = len(shapes[0])
    if any(len(shape) != rank for shape in shapes):
        raise ValueError(f"Ranks of all inputs must match, got {[len(each) for each in shapes]}")
    if not -rank <= axis < rank:
        raise ValueError(f"Concat dimension must be in range [{-rank}, {rank}), got {axis}")
    whole = np.max(shapes, axis=0)
    at = axis % rank
    others = np.arange(rank) != at
    if not expand and any((shape[others] != whole[others]).any() for shape in shapes):
        raise ValueError(
            f"All dimensions but the concatenating one must match along axis {axis}, got shapes "
            f"{[shape.tolist() for shape in shapes]}"
        )
    starts = np.cumsum([0, *[int(shape[at]) for shape in shapes]])
    whole[at] = starts[-1]
    offsets = [np.where(others, 0, start) for start in starts[:-1]]
    joined = np.concatenate([each + by for each, by in zip(indices, offsets, strict=True)])
    order = np.argsort(keys(joined, whole), kind="stable")
    destinations = np.empty(len(order), np.int64)
    destinations[order] = np.arange(len(order))
    ends = np.cumsum([len(each) for each in values])[:-1]
    return (
        joined[order],
        np.concatenate(values)[order],
        whole,
        *np.split(destinations, ends),
    )


def _infer_concat(inputs: Any, attrs: Any) -> list[Spec]:
    count = len(inputs) // 3
    values = inputs[count : 2 * count]
    rank = next((dim for each in inputs[2 * count :] if (dim := length_of(each))), None)
    return sparse_specs(values[0].dtype, rank, None, [length_of(each) for each in values])


def _concat_gradient(op: Operation, *incoming: Any) -> list[Any]:
    count = len(op.inputs) // 3
    places = {count + at: 3 + at for at in range(count)}
    return back_through_destinations(places, 1)(op, *incoming)


register(
    "SparseConcat",
    _concat,
    where="host",
    infer=_infer_concat,
    gradient=_concat_gradient,
    cases=lambda: [
        Case(
            (_INDICES, longs([[1, 0]]), _VALUES, floats([7]), _SHAPE, longs(3, 2)),
            {"axis": 1, "expand": False},
            (
                longs([[0, 1], [0, 2], [1, 4], [2, 0]]),
                floats([1.5, -2, 7, 3]),
                longs(3, 6),
                longs(0, 1, 3),
                longs([2]),
            ),
        )
    ],
)


def sparse_concat(
    axis: Any = None,
    sp_inputs: Any = None,
    name: str | None = None,
    expand_nonconcat_dim: bool = False,
    concat_dim: Any = None,
    expand_nonconcat_dims: bool | None = None,
) -> SparseTensor:
    """Concatenates sparse tensors along an axis.

    Args:
        axis: the axis (`concat_dim` is its deprecated alias).
        sp_inputs: a list of sparse tensors in row-major order.
        expand_nonconcat_dim: whether other dimensions may differ; the result has their maximum.

    Raises:
        ValueError: ranks or other dimensions are known to differ.
        IndexError: the axis is known to be out of range.
        InvalidArgumentError: at run time, the same.
    """
    at = axis_of(concat_dim if axis is None else axis, "sparse_concat")
    sparse = [as_sparse(each) for each in sp_inputs]
    if not sparse:
        raise value_error("sparse_concat: sp_inputs must not be empty")
    if len(sparse) == 1:
        return sparse[0]
    expand = expand_nonconcat_dim if expand_nonconcat_dims is None else expand_nonconcat_dims
    parts = [*zip(*(each._components() for each in sparse), strict=True)]
    op = apply(
        "SparseConcat",
        [tensor for part in parts for tensor in part],
        {"axis": at, "expand": bool(expand)},
        name,
    )
    return sparse_from(op, _concatenated([each.shape for each in sparse], at, bool(expand)))


def _concatenated(shapes: Sequence[TensorShape], axis: int, expand: bool) -> TensorShape:
    ranks = {shape.rank for shape in shapes} - {None}
    if not ranks:
        return UNKNOWN
    if len(ranks) > 1:
        raise value_error(
            "Dimensions must be equal: sparse_concat takes tensors of one rank",
            received=", ".join(map(str, shapes)),
        )
    rank = next(iter(ranks)) or 0
    if not -rank <= axis < rank:
        raise IndexError(f"sparse_concat: axis {axis} is out of range for tensors of rank {rank}.")
    known = [shape.merge_with([None] * rank).as_list() for shape in shapes]
    dims: list[int | None] = []
    for position in range(rank):
        each = [shape[position] for shape in known]
        numbers = [dim for dim in each if dim is not None]
        if position == axis % rank:
            dims.append(sum(numbers) if len(numbers) == len(each) else None)
        elif expand:
            dims.append(max(numbers) if len(numbers) == len(each) else None)
        else:
            if len(set(numbers)) > 1:
                raise value_error(
                    f"sparse_concat: dimension {position} differs",
                    expected="equal dimensions except along the axis, or expand_nonconcat_dim=True",
                    received=", ".join(map(str, shapes)),
                )
            dims.append(numbers[0] if numbers else None)
    return TensorShape(dims)


def sparse_merge(
    sp_ids: Any,
    sp_values: Any,
    vocab_size: Any,
    name: str | None = None,
    already_sorted: bool = False,
) -> SparseTensor:
    """Combines ids and values into a sparse tensor whose last index is the id.

    Args:
        sp_ids: int32 or int64 sparse `(..., n)`, or a list of them.
        sp_values: values at the same positions.
        vocab_size: the number of ids, or a list of them.
        already_sorted: whether the ids in each row are sorted.

    Returns:
        Sparse `(..., vocab_size)`.
    """
    listed = isinstance(sp_ids, (list, tuple)) and not hasattr(sp_ids, "dense_shape")
    ids = [as_sparse(each) for each in (sp_ids if listed else [sp_ids])]
    sizes = list(vocab_size) if listed else [vocab_size]
    if len(ids) != len(sizes):
        raise value_error(
            "sparse_merge: each sp_ids needs its vocab_size",
            expected=f"{len(ids)} sizes",
            received=len(sizes),
        )
    values = as_sparse(sp_values)
    with get_default_graph().name_scope(name or "SparseMerge"):
        columns = [expand_dims(cast(each.values, int64), 1) for each in ids]
        indices = concat([ids[0].indices[:, :-1], *columns], 1)
        lengths = stack([cast(convert_to_tensor(size), int64) for size in sizes])
        shape = concat([ids[0].dense_shape[:-1], lengths], 0)
        merged = SparseTensor(indices, values.values, shape)
        return merged if already_sorted else sparse_reorder(merged)


# -- filling and dropping rows


def _fill_empty_rows(indices: Array, values: Array, shape: Array, default: Array) -> Any:
    rows = int(shape[0])
    check_in_bounds(indices[:, :1], shape[:1])
    empty = np.ones(rows, np.bool_)
    empty[indices[:, 0]] = False
    added = np.zeros([int(empty.sum()), indices.shape[1]], np.int64)
    added[:, 0] = np.flatnonzero(empty)
    every = np.concatenate([indices, added])
    filled = np.concatenate(
        [values, np.full(len(added), np.asarray(default, values.dtype), values.dtype)]
    )
    order = np.argsort(every[:, 0], kind="stable")
    destinations = np.empty(len(order), np.int64)
    destinations[order] = np.arange(len(order))
    return every[order], filled[order], empty, destinations[: len(indices)]


def _fill_gradient(op: Operation, _: Any, dy: Tensor, *rest: Any) -> list[Any]:
    from_values = back_through_destinations({1: 3}, 1)(op, None, dy, None, None)[1]
    return [None, from_values, None, reduce_sum(dy) - reduce_sum(from_values)]


register(
    "SparseFillEmptyRows",
    _fill_empty_rows,
    where="host",
    infer=lambda inputs, attrs: [
        Spec(int64, TensorShape([None, length_of(inputs[2])])),
        Spec(inputs[1].dtype, TensorShape([None])),
        Spec(bool_, TensorShape([_first(inputs[2])])),
        Spec(int64, TensorShape([length_of(inputs[0])])),
    ],
    gradient=_fill_gradient,
    cases=lambda: [
        Case(
            (_INDICES, _VALUES, _SHAPE, np.float32(9)),
            {},
            (
                longs([[0, 1], [0, 2], [1, 0], [2, 0]]),
                floats([1.5, -2, 9, 3]),
                np.array([False, True, False]),
                longs(0, 1, 3),
            ),
        )
    ],
)


def _first(shape: Tensor) -> int | None:
    known = constant_value_as_shape(shape)
    return known[0] if known.rank else None


def sparse_fill_empty_rows(
    sp_input: Any, default_value: Any, name: str | None = None
) -> tuple[SparseTensor, Tensor]:
    """Inserts one value into each empty row, in the first column.

    Args:
        sp_input: sparse `(rows, ...)`.
        default_value: that value.

    Returns:
        The sparse tensor, and bool `(rows,)`: which rows were empty.
    """
    sparse = as_sparse(sp_input)
    with get_default_graph().name_scope(name or "SparseFillEmptyRows") as scope:
        default = convert_to_tensor(default_value, sparse.dtype, name="default_value")
        op = apply("SparseFillEmptyRows", [*sparse._components(), default], name=scope)
        filled = SparseTensor(op.outputs[0], op.outputs[1], sparse.dense_shape)
        filled.set_shape(sparse.shape)
        return filled, op.outputs[2]


def _mask(indices: Array, dropped: Array) -> tuple[Array, Array]:
    kept = np.flatnonzero(~np.isin(indices, dropped))
    return indices[kept], kept


register(
    "SparseMask",
    _mask,
    where="host",
    infer=lambda inputs, attrs: [
        Spec(inputs[0].dtype, TensorShape([None])),
        Spec(int64, TensorShape([None])),
    ],
    gradient=None,
    cases=lambda: [Case((longs(4, 1, 7), longs([1])), {}, (longs(4, 7), longs(0, 2)))],
)


def sparse_mask(a: IndexedSlices, mask_indices: Any, name: str | None = None) -> IndexedSlices:
    """Drops the rows of `IndexedSlices` whose indices are in `mask_indices`."""
    with get_default_graph().name_scope(name or "sparse_mask"):
        dropped = convert_to_tensor(mask_indices, a.indices.dtype, name="mask_indices")
        indices, kept = apply("SparseMask", [a.indices, dropped]).outputs
        return IndexedSlices(gather(a.values, kept), indices, a.dense_shape)
