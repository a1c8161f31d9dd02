"""Columns whose rows have two shapes: full batches, and the partial batch at the end of each epoch.

A compiled loop takes them as padded arrays and runs of rows of either shape. Long runs are calls of
their own (`pieces`); for short ones, one executable contains a step of each shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from estimatorkit.runtime.steps.columns import (
    NO_DIM,
    Column,
    RaggedColumn,
    SparseColumn,
)
from estimatorkit.runtime.xla.aligned_arrays import aligned_empty

RowShapes: TypeAlias = tuple[tuple[int, ...], ...]
"""The row shape of every column."""

LONG = 64
"""The mean rows of two successive runs from which on a call for each run costs less than compiling
an executable for both shapes, which takes census longer than one for each (2.6 and 2.5 s)."""


@dataclass(frozen=True)
class PartialBatches:
    """Which rows of columns have which of two shapes: full batches, and last batches of epochs.

    Attributes:
        shapes: for each of the two, the row shape of every column.
        runs: the begin and end of alternating runs of rows of the first and second shape: int32
            `(pairs, 2 shapes, 2)`.
    """

    shapes: tuple[RowShapes, RowShapes]
    runs: NDArray[np.int32]

    def of(self, row: int) -> RowShapes:
        """The shapes of a row of every column."""
        begins, ends = self.runs[..., 0], self.runs[..., 1]
        (kind,) = ((begins <= row) & (row < ends)).nonzero()[1]
        return self.shapes[kind]

    def pieces(self, start: int, end: int) -> Iterator[tuple[int, int, RowShapes]]:
        """The runs within a range of rows: the first row, the end, and the shapes of its rows."""
        for pair in self.runs:
            for (first, last), shapes in zip(pair.clip(start, end), self.shapes, strict=True):
                if first < last:
                    yield int(first), int(last), shapes

    @property
    def full(self) -> RowShapes:
        """The shapes of a row of a full batch, which are those of the padded columns."""
        return tuple(map(max, *self.shapes))

    @property
    def is_in_long_runs(self) -> bool:
        """Whether each run of equal shapes is a call of its own; decided by all rows of the block,
        so that results do not depend on how its steps are divided into calls."""
        return len(self.runs) <= 2 or self.runs.max() >= LONG * len(self.runs)


def in_partial_batches(
    columns: Sequence[Column], capacity: Callable[[RowShapes], int]
) -> tuple[list[NDArray[Any]], PartialBatches] | None:
    """Converts columns of rows of two shapes, which differ in the first dimension, to plain arrays.

    Args:
        columns: of equal length, at least one row.
        capacity: the number of rows to allocate, by the larger row shape of every column.

    Returns:
        Arrays zero-padded to the larger first dimension, and the rows' shapes; None if there are
        not two such shapes.
    """
    ragged = [column for column in columns if isinstance(column, RaggedColumn)]
    if not ragged or any(
        column.dtype == object or isinstance(column, SparseColumn) for column in columns
    ):
        return None
    table = np.concatenate([column.shapes for column in ragged], axis=1)
    is_second = (table != table[:1]).any(axis=1)
    second = int(is_second.argmax())
    if not is_second.any() or (table[is_second] != table[second]).any():
        return None
    if any(
        column.shapes.shape[1] == 0
        or (column.shapes[second, 1:] != column.shapes[0, 1:]).any()
        or (column.shapes[[0, second]] == NO_DIM).any()
        for column in ragged
    ):
        return None
    of_first, of_second = (
        tuple(
            column.row_shape(row) if isinstance(column, RaggedColumn) else _rest_of(column)
            for column in columns
        )
        for row in (0, second)
    )
    ends = np.flatnonzero(is_second[1:] != is_second[:-1]) + 1
    edges = np.concatenate([[0], ends, [len(is_second)]])
    if len(edges) % 2 == 0:
        edges = np.concatenate([edges, edges[-1:]])  # an empty last run
    pairs = np.stack([edges[:-1], edges[1:]], axis=1).reshape(-1, 2, 2).astype(np.int32)
    found = PartialBatches((of_first, of_second), pairs)
    length = capacity(found.full)
    filled = [_filled(each, row, length) for each, row in zip(columns, found.full, strict=True)]
    return filled, found


def _rest_of(column: Column) -> tuple[int, ...]:
    """The row shape of a plain column."""
    return column.shape[1:] if isinstance(column, np.ndarray) else ()


def _filled(column: Column, row: tuple[int, ...], capacity: int) -> NDArray[Any]:
    """The rows in one zero-padded array; rows beyond the column's are uninitialized."""
    count = len(column)
    out = aligned_empty((capacity, *row), column.dtype)
    if isinstance(column, RaggedColumn):
        out[:count].fill(0)
        is_there = np.arange(row[0]) < column.first_axis()[:, None]
        out[:count][is_there] = column.flat.reshape(-1, *row[1:])
    else:
        out[:count] = np.asarray(column)
    return out


__all__ = ["PartialBatches", "in_partial_batches"]
