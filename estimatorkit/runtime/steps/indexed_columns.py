"""`IndexedColumn`: rows of an array by index, gathered lazily.

Training reads rows of in-memory arrays repeatedly, in different orders and batches; columns that a
step does not use are never copied. Host preprocessing that maps rows independently (vocabulary
lookups, crosses) is memoized per row of the array by `MemoizedRowTransform`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.runtime.steps.batched_executor import BatchedExecutor
from estimatorkit.runtime.steps.columns import Column, Ints, RaggedColumn, take_rows

MOST_BYTES = 256 << 20
"""What is kept of the work on all rows of arrays; where it would be more, nothing is."""

Numbers = NDArray[np.int64] | RaggedColumn
"""For each element the numbers of its rows: one, or a batch of them."""


class IndexedColumn:
    """A column whose elements are rows of an array, or batches of rows.

    Args:
        values: the array, C-contiguous.
        numbers: the row indices.
    """

    def __init__(self, values: NDArray[Any], numbers: Numbers) -> None:
        self.values = values
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, elements: Any) -> Any:
        """One element, or a column of those of a slice."""
        numbers = self.numbers[elements]
        if isinstance(elements, slice):
            return IndexedColumn(self.values, numbers)
        return picked(self.values, np.asarray(numbers))

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return _flat(self.numbers).size * math.prod(self.values.shape[1:]) * self.values.itemsize

    def picked(self) -> Column:
        """The gathered column."""
        return picked(self.values, self.numbers)


def picked(values: NDArray[Any], numbers: Numbers) -> NDArray[Any] | RaggedColumn:
    """Gathers rows of an array, in the shape of the indices."""
    rows: Any = take_rows(values, _flat(numbers))
    trailing = values.shape[1:]
    if not isinstance(numbers, RaggedColumn):
        plain: NDArray[Any] = rows.reshape((*numbers.shape, *trailing))
        return plain
    rest = np.broadcast_to(np.array(trailing, np.int64), (len(numbers), len(trailing)))
    shapes = np.concatenate([numbers.shapes, rest], axis=1)
    return RaggedColumn(rows.reshape(-1), shapes)


def materialize(column: Column | IndexedColumn) -> Column:
    """Gathers an indexed column; returns others unchanged."""
    return column.picked() if isinstance(column, IndexedColumn) else column


def _flat(numbers: Numbers) -> Ints:
    return numbers.flat if isinstance(numbers, RaggedColumn) else numbers.reshape(-1)


def _batch_axes(numbers: Numbers) -> int:
    """The number of batch axes of an element."""
    return numbers.shapes.shape[1] if isinstance(numbers, RaggedColumn) else numbers.ndim - 1


class MemoizedRowTransform:
    """A plan on rows of arrays that runs only once per row.

    Args:
        plan: a plan that gives separate results for each row of a batch (see
        `BatchedExecutor.is_by_row`).
    """

    def __init__(self, plan: BatchedExecutor) -> None:
        self._plan = plan
        self._lock = threading.Lock()  # a block may be prepared while a thread reads the next one
        self._arrays: list[NDArray[Any]] = []
        self._is_done = np.zeros(0, np.bool_)
        self._results: list[NDArray[Any]] = []
        self._too_large = False

    def __call__(self, columns: Sequence[IndexedColumn]) -> list[Column] | None:
        """The plan's results for the elements, or None if they are too large to cache.

        Args:
            columns: those of the plan's feeds, all with the same indices.
        """
        numbers = columns[0].numbers
        with self._lock:
            self._turn_to([column.values for column in columns])
            rows = _flat(numbers)
            new = np.unique(rows[~self._is_done[rows]])
            if len(new) and not self._too_large:
                self._work_on(new, _batch_axes(numbers))
            results = self._results
        return None if self._too_large else [picked(values, numbers) for values in results]

    def _turn_to(self, arrays: list[NDArray[Any]]) -> None:
        same = len(arrays) == len(self._arrays) and all(
            new is old for new, old in zip(arrays, self._arrays, strict=True)
        )
        if not same:
            self._arrays, self._results = arrays, []
            self._is_done = np.zeros(len(arrays[0]), np.bool_)
            self._too_large = False

    def _work_on(self, rows: Ints, batch_axes: int) -> None:
        """Runs the plan on some rows, and stores their results."""
        count, ones = len(rows), (1,) * batch_axes
        given = [np.asarray(take_rows(array, rows)) for array in self._arrays]
        made = self._plan([each.reshape((count, *ones, *each.shape[1:])) for each in given], count)
        parts = [np.asarray(each).reshape((count, *each.shape[1 + batch_axes :])) for each in made]
        if not self._results:
            of_all = len(self._is_done)
            if sum(part.nbytes for part in parts) // count * of_all > MOST_BYTES:
                self._too_large = True
                return
            self._results = [np.empty((of_all, *part.shape[1:]), part.dtype) for part in parts]
        for values, part in zip(self._results, parts, strict=True):
            values[rows] = part
        self._is_done[rows] = True


__all__ = ["IndexedColumn", "MemoizedRowTransform", "materialize"]
