"""Blocks of columns: gathering, concatenating, slicing and batching rows.

A block is a list of columns (see `runtime.steps.columns`) with a common leading axis, the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import DataLossError, InvalidArgumentError
from estimatorkit.runtime.steps.columns import (
    NO_DIM,
    Column,
    Columns,
    RaggedColumn,
    SparseColumn,
    as_plain,
    as_ragged,
    join,
    stack,
    take_rows,
)
from estimatorkit.runtime.xla.aligned_arrays import aligned_empty


def gather(columns: Columns, rows: NDArray[np.int64]) -> Columns:
    """Gathers rows by int64 indices `(rows,)`: one copy per column (see `take_rows`)."""
    return [take_rows(column, rows) for column in columns]


def concatenate(blocks: Sequence[Columns]) -> Columns:
    """Concatenates blocks into a new one (a copy, even of a single block)."""
    return [join(parts) for parts in zip(*blocks, strict=True)]


def count_rows(block: Columns) -> int:
    """The length of the leading axis."""
    return len(block[0])


def slice_rows(block: Columns, start: int, stop: int | None = None, step: int = 1) -> Columns:
    """A slice of the rows, without a copy."""
    return [column[start:stop:step] for column in block]


def stack_rows(rows: Sequence[Sequence[Any]], dtypes: Sequence[np.dtype[Any]]) -> Columns:
    """Makes a block of single rows: `rows[i][c]` is column `c` of row `i`."""
    return [
        stack(values, dtype) for values, dtype in zip(zip(*rows, strict=True), dtypes, strict=True)
    ]


def batch(column: Column, size: int, what: str) -> Column:
    """Batches of `size` rows each; the number of rows must be a multiple of `size`.

    `what` names the component in messages.

    Raises:
        InvalidArgumentError: rows of one batch have different shapes.
    """
    if isinstance(column, np.ndarray):
        return column.reshape(len(column) // size, size, *column.shape[1:])
    if isinstance(column, SparseColumn):
        return _batch_sparse(column, size)
    first = np.repeat(column.shapes[::size], size, axis=0)
    differing = np.flatnonzero((column.shapes != first).any(axis=1))
    if len(differing):
        row = int(differing[0])
        raise InvalidArgumentError.explained(
            f"Cannot batch tensors with different shapes in {what}. First element had "
            f"shape {list(column.row_shape(row - row % size))} and element {row % size} had "
            f"shape {list(column.row_shape(row))}",
            hint="pad the elements to one shape with padded_batch()",
        )
    shapes = column.shapes[::size]
    whole = np.insert(shapes, 0, size, axis=1)
    return as_plain(RaggedColumn(column.values, whole, column.starts[::size]))


def cut(column: NDArray[Any], sizes: NDArray[np.int64]) -> Column:
    """Splits all rows into batches of the given sizes, without a copy."""
    if (sizes == sizes[0]).all():
        return column.reshape(len(sizes), sizes[0], *column.shape[1:])
    rest = np.broadcast_to(np.array(column.shape[1:], np.int64), (len(sizes), column.ndim - 1))
    return RaggedColumn(column.reshape(-1), np.concatenate([sizes[:, None], rest], axis=1))


def _batch_sparse(column: SparseColumn, size: int) -> SparseColumn:
    numbers = np.repeat(np.arange(len(column)) % size, np.diff(column.starts))
    cut = slice(column.starts[0], column.starts[-1])
    indices = np.insert(column.indices[cut], 0, numbers, axis=1)
    widest = column.shapes.reshape(-1, size, column.rank).max(axis=1)
    shapes = np.insert(widest, 0, size, axis=1)
    return SparseColumn(
        indices, column.values[cut], shapes, column.starts[::size] - column.starts[0]
    )


def padded_batch(
    column: Column, size: int, shape: Sequence[int | None], padding: Any, what: str
) -> Column:
    """Padded batches of `size` rows each; the number of rows must be a multiple of `size`.

    Args:
        shape: of a padded row; a None dimension is padded to the longest of the batch.
        padding: the padding value, a scalar.
        what: the component, for messages.

    Raises:
        DataLossError: a row is larger than `shape`.
        InvalidArgumentError: a row has another rank.
    """
    if isinstance(column, SparseColumn):
        raise InvalidArgumentError.explained(
            f"Batching of padded sparse tensors is not currently supported ({what})",
            hint="use batch(), or sparse.to_dense() before padded_batch()",
        )
    if isinstance(column, np.ndarray) and column.shape[1:] == tuple(shape):
        return batch(column, size, what)
    rows = as_ragged(column) if isinstance(column, np.ndarray) else column
    _check_padded(rows, shape, what)
    rank, count = len(shape), len(rows) // size
    shapes = rows.shapes[:, :rank].reshape(count, size, rank)
    widest = shapes.max(axis=1, initial=0)
    targets = np.where([dim is None for dim in shape], widest, [dim or 0 for dim in shape])
    targets = targets.astype(np.int64).reshape(count, rank)
    if (targets == targets[0]).all():
        return _pad(rows, targets[0], padding).reshape(count, size, *targets[0])
    parts = [
        _pad(rows[number * size : (number + 1) * size], target, padding)[np.newaxis]
        for number, target in enumerate(targets)
    ]
    return join(parts)


def _check_padded(rows: RaggedColumn, shape: Sequence[int | None], what: str) -> None:
    ranks = (rows.shapes != NO_DIM).sum(axis=1)
    bad = np.flatnonzero(ranks != len(shape))
    if len(bad):
        row = rows.row_shape(int(bad[0]))
        raise InvalidArgumentError.explained(
            f"All elements in a batch must have the same rank as the padded shape for {what}",
            expected=f"rank {len(shape)}, for padded_shapes {list(shape)}",
            received=f"an element of shape {list(row)}",
        )
    for axis, dim in enumerate(shape):
        if dim is None:
            continue
        too_long = np.flatnonzero(rows.shapes[:, axis] > dim)
        if len(too_long):
            row = rows.row_shape(int(too_long[0]))
            raise DataLossError.explained(
                "Attempted to pad to a smaller size than the input element",
                expected=f"{what} of at most shape {list(shape)}",
                received=f"an element of shape {list(row)}",
                hint="use None for dimensions to pad to the longest",
            )


def _pad(rows: RaggedColumn, target: NDArray[np.int64], padding: Any) -> NDArray[Any]:
    """All rows in one array `(rows, *target)`."""
    out = aligned_empty((len(rows), *target), rows.dtype)
    out[...] = padding
    if len(target) == 1 and rows.shapes.shape[1] == 1:
        lengths = rows.shapes[:, 0]
        out[np.arange(target[0]) < lengths[:, None]] = rows.flat
        return out
    for number in range(len(rows)):
        row = rows[number]
        out[number, ...][tuple(map(slice, row.shape))] = row
    return out


def unbatch(column: Column, what: str) -> tuple[Column, NDArray[np.int64]]:
    """The slices of rows along their first dimension, and the number of slices of each row.

    Raises:
        InvalidArgumentError: a row is a scalar.
    """
    if isinstance(column, SparseColumn):
        counts = column.shapes[:, 0]
        return unbatch_sparse(column), counts
    if isinstance(column, np.ndarray):
        if column.ndim < 2:
            raise _scalar(what)
        counts = np.full(len(column), column.shape[1], np.int64)
        return column.reshape(len(column) * column.shape[1], *column.shape[2:]), counts
    if (column.shapes[:, 0] == NO_DIM).any():
        raise _scalar(what)
    counts = column.first_axis()
    shapes = np.repeat(column.shapes[:, 1:], counts, axis=0)
    return as_plain(RaggedColumn(column.flat, shapes)), counts


def _scalar(what: str) -> InvalidArgumentError:
    return InvalidArgumentError.explained(
        f"Input shapes are inconsistent on the 0th dimension: {what} is a scalar"
    )


def unbatch_sparse(column: SparseColumn) -> SparseColumn:
    """The slices of sparse rows along their first dimension."""
    cut = slice(column.starts[0], column.starts[-1])
    indices = column.indices[cut]
    counts = column.shapes[:, 0]
    first = np.concatenate([[0], np.cumsum(counts)])
    owner = np.repeat(first[:-1], np.diff(column.starts)) + indices[:, 0]
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(first[-1] + 1))
    return SparseColumn(
        indices[order, 1:],
        column.values[cut][order],
        np.repeat(column.shapes[:, 1:], counts, axis=0),
        starts.astype(np.int64),
    )


__all__ = [
    "Column",
    "Columns",
    "aligned_empty",
    "batch",
    "concatenate",
    "count_rows",
    "gather",
    "padded_batch",
    "slice_rows",
    "stack_rows",
    "unbatch",
    "unbatch_sparse",
]
