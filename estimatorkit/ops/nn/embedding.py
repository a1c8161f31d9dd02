"""Embedding lookups, dense and sparse, in partitioned or unpartitioned tables.

The gradient with respect to a table is an `IndexedSlices` of the rows looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import int32
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.array.own_rows import Lookup, length_of, own_rows, wide
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.math.checked import checked


def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: float | None = None,
) -> Tensor:
    """Looks up rows of an embedding table, which may be partitioned.

    Args:
        params: a tensor or variable `(rows, ...)`, or its partitions: a list of them, or a
            partitioned variable.
        ids: int32 or int64, of any shape.
        partition_strategy: how ids map to partitions: 'mod' (id modulo their number) or 'div'
            (contiguous ranges).
        validate_indices: accepted for compatibility only.
        max_norm: the L2 norm to which rows are clipped; None for no clipping.

    Returns:
        `(*ids.shape, ...)`.

    Raises:
        ValueError: params is empty, or partition_strategy is invalid.
    """
    if params is None:
        raise ValueError("params must be specified")
    parts = _parts(params)
    if not parts:
        raise ValueError("Length of params is currently 0. Need at least one param.")
    if partition_strategy not in ("mod", "div"):
        raise value_error(
            f"Unrecognized partition strategy: {partition_strategy}",
            expected="'mod' or 'div'",
        )
    with get_default_graph().name_scope(name or "embedding_lookup"):
        wanted = convert_to_tensor(ids, name="ids")
        if not wanted.dtype.is_integer:
            raise type_error(
                f"embedding_lookup: ids have DataType {wanted.dtype.name} not in list of "
                "allowed values: int16, int32, int64",
                received=wanted,
                made_at=wanted.op.source,
            )
        if len(parts) == 1:
            rows = indexing.gather(parts[0], wanted)
        else:
            rows = _from_parts(parts, wanted, partition_strategy)
        return builtin_ops.identity(rows if max_norm is None else _clipped(rows, wanted, max_norm))


def _parts(params: Any) -> list[Any]:
    from estimatorkit.ops.variables.partitioned_variables import parts_of_rows

    return list(params) if isinstance(params, (list, tuple)) else parts_of_rows(params)


def _from_parts(parts: Sequence[Any], ids: Tensor, strategy: str) -> Tensor:
    """Looks each id up in the partition that has it."""
    count = len(parts)
    parts, ids = [convert_to_tensor(each) for each in parts], wide(ids)
    lengths = [length_of(each, ids) for each in parts]
    if all(isinstance(each, int) for each in lengths):
        ids = checked(ids, "index", sum(lengths))
    if strategy == "mod":
        part, inside = elementwise.floormod(ids, count), elementwise.floordiv(ids, count)
        return own_rows(
            [
                Lookup(table, inside, elementwise.equal(part, number))
                for number, table in enumerate(parts)
            ]
        )
    starts: list[Any] = [0]
    for length in lengths[:-1]:
        starts.append(starts[-1] + length)
    reached = [elementwise.greater_equal(ids, start) for start in starts]
    own = [
        elementwise.logical_and(since, elementwise.logical_not(then))
        for since, then in pairwise(reached)
    ]
    return own_rows(
        [
            Lookup(table, elementwise.subtract(ids, start), mask)
            for table, start, mask in zip(parts, starts, [*own, reached[-1]], strict=True)
        ]
    )


def _clipped(rows: Tensor, ids: Tensor, max_norm: float) -> Tensor:
    ranks = (ids.shape.rank, rows.shape.rank)
    if ranks[0] is not None and ranks[1] is not None:
        axes: Any = list(range(ranks[0], ranks[1]))
    else:
        axes = filling.range_(array.rank(ids), array.rank(rows))
    squares = reduce.reduce_sum(elementwise.square(rows), axes, keepdims=True)
    length = elementwise.sqrt(squares)
    return rows * (max_norm / elementwise.maximum(length, max_norm))


def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: float | None = None,
) -> Tensor:
    """Looks up and combines the embeddings of each row of sparse ids.

    Args:
        params, partition_strategy, max_norm: see `embedding_lookup`.
        sp_ids: a `SparseTensor` of ids, `(batch, n)`; each row must have at least one.
        sp_weights: a `SparseTensor` of weights with the same indices, or None.
        combiner: 'mean' (the default), 'sqrtn' (the weighted sum divided by the square root of the
            sum of squared weights) or 'sum'.

    Returns:
        `(batch, ...)`.

    Raises:
        TypeError: ids or weights are not a `SparseTensor`.
        ValueError: combiner is invalid.
    """
    combiner = combiner or "mean"
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError(f"combiner must be one of 'mean', 'sqrtn' or 'sum', got {combiner}")
    if not isinstance(sp_ids, SparseTensor):
        raise TypeError(f"sp_ids must be SparseTensor, got {type(sp_ids)}")
    if sp_weights is not None and not isinstance(sp_weights, SparseTensor):
        raise TypeError(f"sp_weights must be either None or SparseTensor, got {type(sp_weights)}")
    from estimatorkit.ops.array.segment import unsorted_segment_sum

    with get_default_graph().name_scope(name or "embedding_lookup_sparse"):
        rows = embedding_lookup(params, sp_ids.values, partition_strategy, max_norm=max_norm)
        segments = elementwise.cast(sp_ids.indices[:, 0], int32)
        count = elementwise.cast(sp_ids.dense_shape[0], int32)
        weights = filling.ones_like(sp_ids.values, dtype=rows.dtype)
        if sp_weights is not None:
            weights = elementwise.cast(sp_weights.values, rows.dtype)
        flat = array.reshape(weights, [-1, *[1] * ((rows.shape.rank or 2) - 1)])
        total = unsorted_segment_sum(rows * flat, segments, count)
        if combiner == "sum":
            return total
        parts = flat if combiner == "mean" else elementwise.square(flat)
        weight = unsorted_segment_sum(parts, segments, count)
        return elementwise.div_no_nan(
            total, weight if combiner == "mean" else elementwise.sqrt(weight)
        )


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: float | None = None,
) -> Tensor:
    """`embedding_lookup_sparse` that allows empty rows, which yield 0 or a default embedding.

    Negative ids are ignored; so are ids with a weight of at most 0, unless the combiner is 'sum'.

    Args:
        embedding_weights: see `params` of `embedding_lookup`.
        sparse_ids: a `SparseTensor` of ids, `(d0, ..., dm, n)`.
        sparse_weights: a `SparseTensor` of weights with the same indices, or None.
        combiner: 'mean', 'sqrtn' or 'sum'.
        default_id: the id for rows without ids; None for zeros.
        partition_strategy, max_norm: see `embedding_lookup`.

    Returns:
        `(d0, ..., dm, ...)`.

    Raises:
        ValueError: there are no embedding weights.
    """
    from estimatorkit.ops.sparse.joining import sparse_fill_empty_rows
    from estimatorkit.ops.sparse.shapes import sparse_reshape, sparse_retain

    if embedding_weights is None or not _parts(embedding_weights):
        raise ValueError(f"Missing embedding_weights {embedding_weights}.")
    with get_default_graph().name_scope(name or "embedding_lookup"):
        outer = sparse_ids.get_shape()[:-1]
        deep = outer.rank != 1
        if deep:
            lengths = sparse_ids.dense_shape
            sparse_ids = sparse_reshape(
                sparse_ids, joining.stack([reduce.reduce_prod(lengths[:-1]), lengths[-1]])
            )
            if sparse_weights is not None:
                sparse_weights = SparseTensor(
                    sparse_ids.indices, sparse_weights.values, sparse_ids.dense_shape
                )
        keep = elementwise.greater_equal(sparse_ids.values, 0)
        if sparse_weights is not None:
            if combiner != "sum":
                positive = elementwise.greater(sparse_weights.values, 0.0)
                keep = elementwise.logical_and(keep, positive)
            sparse_weights = sparse_retain(sparse_weights, keep)
        ids = sparse_retain(sparse_ids, keep)
        ids, empty = sparse_fill_empty_rows(ids, 0 if default_id is None else default_id)
        if sparse_weights is not None:
            sparse_weights, _ = sparse_fill_empty_rows(sparse_weights, 1.0)
        result = embedding_lookup_sparse(
            embedding_weights, ids, sparse_weights, partition_strategy, None, combiner, max_norm
        )
        if default_id is None:
            mask = elementwise.logical_not(empty)
            for _ in range((result.shape.rank or 2) - 1):
                mask = array.expand_dims(mask, -1)
            result = result * elementwise.cast(mask, result.dtype)
        inner = result.shape[1:]
        if deep:
            wide = [elementwise.cast(lengths[:-1], int32), array.shape(result)[1:]]
            result = array.reshape(result, joining.concat(wide, 0))
        result.set_shape(outer.concatenate(inner))
        return result
