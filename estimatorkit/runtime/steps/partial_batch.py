"""Columns whose rows have two shapes: full batches, and the partial batch at the end of each epoch.

A compiled loop takes them as padded arrays and runs of rows of either shape, so that one executable
contains a step for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.runtime.steps.columns import (
    NO_DIM,
    Column,
    RaggedColumn,
    SparseColumn,
    aligned_empty,
)


@dataclass(frozen=True)
class PartialBatches:
    """Which rows of columns have which of two shapes: full batches, and last batches of epochs.

    Attributes:
        shapes: for each of the two, the row shape of every column.
        runs: the begin and end of alternating runs of rows of the first and second shape: int32
            `(pairs, 2 shapes, 2)`.
    """

    shapes: tuple[tuple[tuple[int, ...], ...], ...]
    runs: NDArray[np.int32]

    def of(self, row: int) -> tuple[tuple[int, ...], ...]:
        """The shapes of a row of every column."""
        begins, ends = self.runs[..., 0], self.runs[..., 1]
        ((_, kind),) = np.argwhere((begins <= row) & (row < ends))
        return self.shapes[kind]


def in_partial_batches(
    columns: Sequence[Column], capacity: int
) -> tuple[list[NDArray[Any]], PartialBatches] | None:
    """Converts columns of rows of two shapes, which differ in the first dimension, to plain arrays.

    Args:
        columns: of equal length, at least one row.
        capacity: the number of rows to allocate.

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
    shapes = tuple(
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
    return [_filled(column, capacity) for column in columns], PartialBatches(shapes, pairs)


def _rest_of(column: Column) -> tuple[int, ...]:
    """The row shape of a plain column."""
    return column.shape[1:] if isinstance(column, np.ndarray) else ()


def _filled(column: Column, capacity: int) -> NDArray[Any]:
    """The rows in one zero-padded array; rows beyond the column's are uninitialized."""
    count = len(column)
    if isinstance(column, RaggedColumn):
        lengths = column.first_axis()
        longest, *rest = column.row_shape(int(lengths.argmax()))
        out = aligned_empty((capacity, longest, *rest), column.dtype)
        out[:count].fill(0)
        is_there = np.arange(longest) < lengths[:, None]
        out[:count][is_there] = column.flat.reshape(-1, *rest)
    else:
        plain = np.asarray(column)
        out = aligned_empty((capacity, *plain.shape[1:]), plain.dtype)
        out[:count] = plain
    return out


__all__ = ["PartialBatches", "in_partial_batches"]
