"""Columns: one leaf of many elements, contiguous in memory; plain, ragged or sparse.

The leading axis of a column is rows; a row is one element's value. Rows of one shape are a plain
array `(rows, ...)`, rows of different shapes a `RaggedColumn`, sparse rows a `SparseColumn`: flat
arrays with row offsets, so that slicing, gathering and joining rows are array operations. Arrays
are allocated with 64-byte alignment, so that XLA on CPU can use their memory without a copy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.runtime.xla.aligned_arrays import aligned_empty

NO_DIM = -1  # in a table of shapes, if a row has fewer dimensions than others

Ints: TypeAlias = NDArray[np.int64]


class _FlatColumn(ABC):
    """Rows with concatenated values: row i from `starts[i]` to `starts[i + 1]`.

    Attributes:
        shapes: the shape of each row: int64 `(rows, ...)`.
        starts: the row offsets, and the end: int64 `(rows + 1,)`. The first need not be 0, as
            slices share the values.
    """

    shapes: Ints
    starts: Ints

    def __len__(self) -> int:
        return len(self.shapes)

    def __getitem__(self, rows: Any) -> Any:
        """One row, or a column of the rows of a slice."""
        if not isinstance(rows, slice):
            return self._row(int(rows))
        start, stop, step = rows.indices(len(self))
        if step != 1:
            return self.take(np.arange(start, stop, step))
        stop = max(start, stop)
        return self._part(self.shapes[start:stop], self.starts[start : stop + 1])

    @abstractmethod
    def _row(self, row: int) -> Any:
        """The value of one row."""

    @abstractmethod
    def _part(self, shapes: Ints, starts: Ints) -> Any:
        """A slice of rows, which shares the values."""

    @abstractmethod
    def take(self, rows: Ints) -> Any:
        """The rows at these indices."""


class RaggedColumn(_FlatColumn):
    """Rows of one dtype whose shapes differ.

    Args:
        values: the concatenated values of all rows, one axis.
        shapes: the shape of each row, int64 `(rows, largest rank)`; shapes of smaller rank are
            padded with NO_DIM.
        starts: the row offsets in `values`, and the end: int64 `(rows + 1,)`. The first need not be
            0, as slices share the values.
    """

    def __init__(self, values: NDArray[Any], shapes: Ints, starts: Ints | None = None) -> None:
        self.values = values
        self.shapes = shapes
        self.starts = _starts(_sizes(shapes)) if starts is None else starts

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the rows' values."""
        return int(self.starts[-1] - self.starts[0]) * self.values.dtype.itemsize

    @property
    def flat(self) -> NDArray[Any]:
        """The values of these rows, one axis."""
        return self.values[self.starts[0] : self.starts[-1]]

    def row_shape(self, row: int) -> tuple[int, ...]:
        """The shape of one row."""
        return tuple(dim for dim in self.shapes[row].tolist() if dim != NO_DIM)

    def _row(self, row: int) -> NDArray[Any]:
        part = self.values[self.starts[row] : self.starts[row + 1]]
        return part.reshape(self.row_shape(row))

    def _part(self, shapes: Ints, starts: Ints) -> RaggedColumn:
        return RaggedColumn(self.values, shapes, starts)

    def take(self, rows: Ints) -> RaggedColumn:
        """The rows at these indices."""
        places, starts = _places(self.starts, rows)
        return RaggedColumn(self.values[places], self.shapes[rows], starts)

    def with_values(self, values: NDArray[Any]) -> RaggedColumn:
        """A column of the same row shapes, with other values in place of `flat`."""
        return RaggedColumn(values, self.shapes, self.starts - self.starts[0])

    def first_axis(self) -> Ints:
        """The first dimension of each row: int64 `(rows,)`; every row must have one."""
        return self.shapes[:, 0]


class SparseColumn(_FlatColumn):
    """Rows that are sparse tensors of one rank and dtype.

    Args:
        indices: the concatenated indices of all rows: int64 `(values, rank)`.
        values: `(values,)`.
        shapes: the dense shape of each row: int64 `(rows, rank)`.
        starts: as for `RaggedColumn`.
    """

    def __init__(self, indices: Ints, values: NDArray[Any], shapes: Ints, starts: Ints) -> None:
        self.indices = indices
        self.values = values
        self.shapes = shapes
        self.starts = starts

    @staticmethod
    def of_parts(indices: Column, values: Column, shapes: Column) -> SparseColumn:
        """Builds a sparse column from those of the three components."""
        places, given = (
            each if isinstance(each, RaggedColumn) else as_ragged(np.asarray(each))
            for each in (indices, values)
        )
        rank = int(places.shapes[0, 1]) if len(places) else 0
        dense = np.asarray(shapes, np.int64).reshape(len(given), -1)
        return SparseColumn(
            places.flat.reshape(-1, rank), given.flat, dense, given.starts - given.starts[0]
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def rank(self) -> int:
        """The rank of the rows."""
        return int(self.shapes.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes of the rows' values and indices."""
        return int(self.starts[-1] - self.starts[0]) * (self.dtype.itemsize + 8 * self.rank)

    def _row(self, row: int) -> Any:
        from estimatorkit.core.sparse_tensor import SparseTensorValue

        part = slice(self.starts[row], self.starts[row + 1])
        return SparseTensorValue(self.indices[part], self.values[part], self.shapes[row])

    def _part(self, shapes: Ints, starts: Ints) -> SparseColumn:
        return SparseColumn(self.indices, self.values, shapes, starts)

    def take(self, rows: Ints) -> SparseColumn:
        """The rows at these indices."""
        places, starts = _places(self.starts, rows)
        indices = self.indices.take(places, 0)  # several times as fast as indexing
        return SparseColumn(indices, self.values[places], self.shapes[rows], starts)

    def parts(self) -> tuple[RaggedColumn, RaggedColumn, Ints]:
        """The columns of the indices, of the values and of the dense shapes."""
        counts = np.diff(self.starts)
        part = slice(self.starts[0], self.starts[-1])
        wide = np.stack([counts, np.full(len(counts), self.rank)], axis=1)
        indices = RaggedColumn(self.indices[part].reshape(-1), wide)
        return indices, RaggedColumn(self.values[part], counts[:, None]), self.shapes


Column: TypeAlias = NDArray[Any] | RaggedColumn | SparseColumn
"""The values of one leaf for many elements: the leading axis, or `len`, counts the elements."""

Columns: TypeAlias = list[Any]
"""The columns of a block, of one length; each a `Column`."""


def parts_of(columns: Sequence[Column]) -> Columns:
    """A column for each tensor, with sparse columns split by `SparseColumn.parts`."""
    parts: Columns = []
    for column in columns:
        parts.extend(column.parts() if isinstance(column, SparseColumn) else [column])
    return parts


def _sizes(shapes: Ints) -> Ints:
    """The numbers of elements of these shapes."""
    sizes: Ints = np.where(shapes == NO_DIM, 1, shapes).prod(axis=1, dtype=np.int64)
    return sizes


def _starts(sizes: Ints) -> Ints:
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def _places(starts: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """The positions of the values of some rows, and the rows' offsets among them."""
    counts = starts[rows + 1] - starts[rows]
    fresh = _starts(counts)
    places: Ints = np.repeat(starts[rows] - fresh[:-1], counts) + np.arange(fresh[-1])
    return places, fresh


def as_ragged(column: NDArray[Any]) -> RaggedColumn:
    """Converts a plain column to a ragged one, which shares the values."""
    shape = column.shape[1:]
    shapes = np.broadcast_to(np.array(shape, np.int64), (len(column), len(shape)))
    return RaggedColumn(column.reshape(-1), shapes)


def as_plain(column: Column) -> Column:
    """Converts a ragged column of rows of one shape to a plain array; returns others unchanged."""
    if not isinstance(column, RaggedColumn) or not len(column):
        return column
    if not (column.shapes == column.shapes[0]).all():
        return column
    return column.flat.reshape(len(column), *column.row_shape(0))


def count_equal_shapes(column: Column) -> int:
    """The number of leading rows that have the shape of the first."""
    if not isinstance(column, RaggedColumn):
        return len(column)
    differing = np.flatnonzero((column.shapes != column.shapes[0]).any(axis=1))
    return int(differing[0]) if len(differing) else len(column)


def take_rows(column: Column, rows: Ints) -> Column:
    """Gathers rows, with a single copy.

    Args:
        column: the source; a plain array must be C-contiguous (otherwise NumPy would copy all of
            it each time).
        rows: int64 `(rows,)`, in range; not checked, as NumPy's check would buffer the result
            twice.
    """
    if not isinstance(column, np.ndarray):
        return column.take(rows)
    out = aligned_empty((len(rows), *column.shape[1:]), column.dtype)
    return np.take(column, rows, axis=0, out=out, mode="clip")


def join(parts: Sequence[Column]) -> Column:
    """Concatenates columns of one leaf; always a copy."""
    if any(isinstance(part, SparseColumn) for part in parts):
        return _join_sparse(parts)  # type: ignore[arg-type]
    shapes = {part.shape[1:] if isinstance(part, np.ndarray) else None for part in parts}
    if None in shapes or len(shapes) > 1:
        return as_plain(_join_ragged(parts))  # type: ignore[arg-type]
    plain: Sequence[NDArray[Any]] = parts  # type: ignore[assignment]
    out = aligned_empty((sum(map(len, plain)), *plain[0].shape[1:]), plain[0].dtype)
    return np.concatenate(plain, axis=0, out=out)


def _join_ragged(parts: Sequence[NDArray[Any] | RaggedColumn]) -> RaggedColumn:
    ragged = [as_ragged(part) if isinstance(part, np.ndarray) else part for part in parts]
    rank = max(part.shapes.shape[1] for part in ragged)
    shapes = np.full((sum(map(len, ragged)), rank), NO_DIM, np.int64)
    row = 0
    for part in ragged:
        shapes[row : row + len(part), : part.shapes.shape[1]] = part.shapes
        row += len(part)
    return RaggedColumn(np.concatenate([part.flat for part in ragged]), shapes)


def _join_sparse(parts: Sequence[SparseColumn]) -> SparseColumn:
    ranks = sorted({part.rank for part in parts})
    if len(ranks) > 1:
        raise InvalidArgumentError.explained(
            "sparse elements of different ranks cannot be stacked",
            expected=f"rank {ranks[0]}",
            received=f"ranks {ranks}",
        )
    counts = np.concatenate([np.diff(part.starts) for part in parts])
    cuts = [slice(part.starts[0], part.starts[-1]) for part in parts]
    return SparseColumn(
        np.concatenate([part.indices[cut] for part, cut in zip(parts, cuts, strict=True)]),
        np.concatenate([part.values[cut] for part, cut in zip(parts, cuts, strict=True)]),
        np.concatenate([part.shapes for part in parts]),
        _starts(counts),
    )


def stack(rows: Sequence[Any], dtype: np.dtype[Any]) -> Column:
    """Stacks rows (arrays, scalars or `SparseTensorValue`s) into a column.

    Args:
        rows: at least one.
        dtype: of the values.
    """
    first = rows[0]
    if hasattr(first, "dense_shape"):
        return SparseColumn(
            np.concatenate([np.asarray(row.indices, np.int64) for row in rows]),
            np.concatenate([np.asarray(row.values, dtype) for row in rows]),
            np.stack([np.asarray(row.dense_shape, np.int64) for row in rows]),
            _starts(np.array([len(row.values) for row in rows], np.int64)),
        )
    shapes = [row.shape if isinstance(row, np.ndarray) else () for row in rows]
    if shapes.count(shapes[0]) == len(shapes):
        column = aligned_empty((len(rows), *shapes[0]), dtype)
        for index, row in enumerate(rows):
            column[index] = row[()] if isinstance(row, np.ndarray) and not row.ndim else row
        return column
    table = np.full((len(rows), max(map(len, shapes))), NO_DIM, np.int64)
    for index, shape in enumerate(shapes):
        table[index, : len(shape)] = shape
    flat = [np.asarray(row, dtype).reshape(-1) for row in rows]
    return RaggedColumn(np.concatenate(flat), table)
