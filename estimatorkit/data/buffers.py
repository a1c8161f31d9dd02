"""Blocks of columns: allocating, gathering and joining them.

A block is a list of arrays (the columns) with one common leading axis, the rows; every row of a
column has the same shape. What these functions return is freshly allocated and begins on a 64-byte
boundary, so that XLA on CPU takes the memory as it is instead of copying it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

Columns: TypeAlias = list[NDArray[Any]]

ALIGNMENT = 64  # bytes: what XLA asks of a buffer that it is to use in place


def aligned_empty(shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
    """Returns an uninitialised C-ordered array whose data begin on a 64-byte boundary.

    Args:
        shape: the dimensions.
        dtype: any NumPy dtype; arrays of Python objects (strings) are plain ones, XLA never sees
            them.
    """
    dtype = np.dtype(dtype)
    if dtype.hasobject:
        return np.empty(tuple(shape), dtype)
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + ALIGNMENT, np.uint8)
    offset = -memory.__array_interface__["data"][0] % ALIGNMENT
    return np.ndarray(tuple(shape), dtype, buffer=memory, offset=offset)


def gather(columns: Columns, indices: NDArray[np.int64]) -> Columns:
    """Picks rows: one copy a column, whatever the number of rows.

    Args:
        columns: the source, C-contiguous (otherwise NumPy would copy all of it each time).
        indices: int64 `(rows,)`, each within range: not checked, as NumPy's check would buffer the
            result twice.
    """
    picked = []
    for column in columns:
        out = aligned_empty((len(indices), *column.shape[1:]), column.dtype)
        picked.append(np.take(column, indices, axis=0, out=out, mode="clip"))
    return picked


def concatenate(blocks: Sequence[Columns]) -> Columns:
    """Joins blocks of the same row shapes into a new one (a copy, even of a single block)."""
    joined = []
    for parts in zip(*blocks, strict=True):
        rows = sum(len(part) for part in parts)
        out = aligned_empty((rows, *parts[0].shape[1:]), parts[0].dtype)
        joined.append(np.concatenate(parts, axis=0, out=out))
    return joined


def same_row_shapes(one: Columns, two: Columns) -> bool:
    """Whether the rows of two blocks have the same shapes, so that the blocks can be joined."""
    return all(a.shape[1:] == b.shape[1:] for a, b in zip(one, two, strict=True))


def count_rows(block: Columns) -> int:
    """The length of the leading axis."""
    return len(block[0])


def slice_rows(block: Columns, start: int, stop: int | None = None, step: int = 1) -> Columns:
    """A part of the rows, without a copy."""
    return [column[start:stop:step] for column in block]


def stack_rows(rows: Sequence[Sequence[Any]], dtypes: Sequence[np.dtype[Any]]) -> Columns:
    """Makes a block of single rows of one shape: `rows[i][c]` is column `c` of row `i`."""
    block = []
    for values, dtype in zip(zip(*rows, strict=True), dtypes, strict=True):
        shape = values[0].shape if isinstance(values[0], np.ndarray) else ()
        column = aligned_empty((len(values), *shape), dtype)
        for index, value in enumerate(values):
            column[index] = value
        block.append(column)
    return block
