"""Columns whose rows have two shapes: batches of one size, and the last one of every epoch.

A loop that runs many steps in one call takes them as plain arrays, the shorter rows filled up, with
the runs of rows of either shape: one executable holds a step for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.columns import (
    NO_DIM,
    Column,
    RaggedColumn,
    SparseColumn,
    aligned_empty,
    as_plain,
)


@dataclass(frozen=True)
class TwoShapes:
    """Which rows of columns have which of two shapes: batches of a size, and last ones of epochs.

    Attributes:
        shapes: for each of the two the shape of a row of every column.
        runs: rows in a row of the first shape, then of the second, and so on: int32
            `(pairs, 2 shapes, 2)`, where each run begins and ends.
    """

    shapes: tuple[tuple[tuple[int, ...], ...], ...]
    runs: NDArray[np.int32]

    def of(self, row: int) -> tuple[tuple[int, ...], ...]:
        """The shapes of a row of every column."""
        begins, ends = self.runs[..., 0], self.runs[..., 1]
        ((_, kind),) = np.argwhere((begins <= row) & (row < ends))
        return self.shapes[kind]


def in_two_shapes(columns: Sequence[Column]) -> tuple[list[NDArray[Any]], TwoShapes] | None:
    """Columns whose rows have two shapes that differ in their first dimension, as plain arrays.

    Returns:
        Arrays of the larger first dimension, rows filled up with zeros, and which rows are how
        large; None where the rows have other shapes.
    """
    ragged = [column for column in columns if isinstance(column, RaggedColumn)]
    if not ragged or any(
        column.dtype == object or isinstance(column, SparseColumn) for column in columns
    ):
        return None
    table = np.concatenate([column.shapes for column in ragged], axis=1)
    kinds, firsts, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
    if len(kinds) != 2:
        return None
    if any(
        column.shapes.shape[1] == 0
        or (column.shapes[:, 1:] != column.shapes[0, 1:]).any()
        or (column.shapes == NO_DIM).any()
        for column in ragged
    ):
        return None
    first = int(which.reshape(-1)[0])
    is_second = which.reshape(-1) != first
    examples = [int(firsts[first]), int(firsts[1 - first])]
    shapes = tuple(
        tuple(
            column.row_shape(row) if isinstance(column, RaggedColumn) else _rest_of(column)
            for column in columns
        )
        for row in examples
    )
    ends = np.flatnonzero(np.diff(is_second.astype(np.int8))) + 1
    edges = np.concatenate([[0], ends, [len(is_second)]])
    if len(edges) % 2 == 0:
        edges = np.concatenate([edges, edges[-1:]])  # an empty last run
    pairs = np.stack([edges[:-1], edges[1:]], axis=1).reshape(-1, 2, 2).astype(np.int32)
    arrays = [
        _filled(column) if isinstance(column, RaggedColumn) else np.asarray(column)
        for column in columns
    ]
    return arrays, TwoShapes(shapes, pairs)


def _rest_of(column: Column) -> tuple[int, ...]:
    """The shape of a row of a plain column."""
    return column.shape[1:] if isinstance(column, np.ndarray) else ()


def _filled(column: RaggedColumn) -> NDArray[Any]:
    """The rows in one array, those with a shorter first dimension filled up with zeros."""
    longest = int(column.first_axis().max())
    out = aligned_empty((len(column), longest, *column.row_shape(0)[1:]), column.dtype)
    for length in np.unique(column.first_axis()).tolist():
        rows = np.flatnonzero(column.first_axis() == length)
        part = as_plain(column.take(rows))
        out[rows, :length] = part
        out[rows, length:] = 0
    return out


__all__ = ["TwoShapes", "in_two_shapes"]
