"""`group_by_window`, the basis of `bucket_by_sequence_length`; and `scan`.

Elements with equal keys are collected until a window is full; then a function maps the window to a
dataset, whose elements are yielded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimatorkit.core.errors import InvalidArgumentError, OutOfRangeError
from estimatorkit.data.execution.block_iterator import BlockIterator, end_of_sequence
from estimatorkit.data.execution.buffers import (
    Columns,
    concatenate,
    count_rows,
    gather,
    slice_rows,
    stack_rows,
)
from estimatorkit.data.execution.iterators import StartFunction
from estimatorkit.data.execution.randomness import RandomStream, Seeds
from estimatorkit.data.execution.replaying import ReplayWithFunction
from estimatorkit.data.plan import UNKNOWN, Plan, Slices, TracedFunction, Unary
from estimatorkit.data.spec import flatten
from estimatorkit.runtime.steps.columns import SparseColumn


@dataclass(frozen=True, eq=False)
class GroupByWindow(Unary):
    """Datasets made of windows of `window_size(key)` elements with the same int64 key.

    `key` maps an element to its key, `reduce` a key and a dataset of elements to a dataset.
    """

    key: TracedFunction
    reduce: TracedFunction
    window_size: TracedFunction

    @property
    def element_spec(self) -> Any:
        return self.reduce.output_spec.element_spec

    @property
    def cardinality(self) -> int:
        return 0 if self.source.cardinality == 0 else UNKNOWN

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        starts = [each.start(seeds) for each in (self.key, self.reduce, self.window_size)]
        spec = self.source.element_spec
        return GroupIterator(source, spec, starts, seeds)


_READ_ROWS = 256  # per block: keys are computed blockwise


class GroupIterator(ReplayWithFunction):
    """See `GroupByWindow`."""

    def __init__(
        self, source: BlockIterator, spec: Any, starts: list[StartFunction], seeds: Seeds
    ) -> None:
        self._spec = spec
        self._seeds = seeds
        self._current: BlockIterator | None = None
        super().__init__(source, starts, seeds.function_stream())

    def _forget(self) -> None:
        self._groups: dict[int, list[Columns]] = {}  # pending rows by key
        self._sizes: dict[int, int] = {}
        self._waiting: list[tuple[int, Columns]] = []  # full windows, in order
        self._read = 0
        self._windows = 0
        self._close_window()

    def _close_window(self) -> None:
        if self._current is not None:
            self._current.close()
        self._current = None

    def _make(self, n: int) -> Columns:
        while True:
            if self._current is not None:
                try:
                    return self._current.next_block(n)
                except OutOfRangeError:
                    self._close_window()
            while not self._waiting:
                self._gather()
            self._current = self._reduced(*self._waiting.pop(0))

    def _gather(self) -> None:
        """Reads rows into their groups; at the end of the input every group becomes a window."""
        try:
            rows = self._input.next_block(_READ_ROWS)
        except OutOfRangeError:
            if not self._groups:
                raise end_of_sequence() from None
            self._waiting = [
                (key, concatenate(parts)) for key, parts in sorted(self._groups.items())
            ]
            self._groups = {}
            return
        rows, keys = self._keys(rows)
        full: list[tuple[int, int, Columns]] = []  # by the row that filled it
        for key in np.unique(keys).tolist():
            full.extend(self._add(key, rows, np.flatnonzero(keys == key)))
        full.sort(key=lambda each: each[0])
        self._waiting = [(key, window) for _, key, window in full]

    def _keys(self, rows: Columns) -> tuple[Columns, Any]:
        """Rows and their keys, up to a row whose key fails; the next call meets that row first."""
        try:
            rows, (keys,) = self._work_on(
                rows, lambda part, count: self._functions[0](part, count, self._read, self._epoch)
            )
        except Exception:
            self._read += 1
            raise
        self._read += count_rows(rows)
        return rows, np.asarray(keys)

    def _add(self, key: int, rows: Columns, places: Any) -> list[tuple[int, int, Columns]]:
        size = self._size(key)
        held = self._groups.pop(key, [])
        before = sum(map(count_rows, held))
        joined = concatenate([*held, gather(rows, places)])
        total = count_rows(joined)
        windows = []
        for start in range(0, total - size + 1, size):
            filled_by = int(places[start + size - 1 - before])
            windows.append((filled_by, key, slice_rows(joined, start, start + size)))
        if total % size:
            self._groups[key] = [slice_rows(joined, total - total % size)]
        return windows

    def _size(self, key: int) -> int:
        if key not in self._sizes:
            (size,) = self._functions[2]([np.array([key], np.int64)], 1, 0, 0)
            self._sizes[key] = int(size[0])
            if self._sizes[key] < 1:
                raise InvalidArgumentError.explained(
                    "Window size must be greater than zero",
                    expected=">= 1",
                    received=f"{self._sizes[key]} for the key {key}",
                )
        return self._sizes[key]

    def _reduced(self, key: int, window: Columns) -> BlockIterator:
        held = np.empty(1, object)
        held[0] = Slices(self._spec, tuple(window))
        (column,) = self._functions[1](
            [np.array([key], np.int64), held], 1, self._windows, self._epoch
        )
        plan: Plan = column[0] if column.ndim else column.item()
        number, self._windows = self._windows, self._windows + 1
        return plan.iterator(self._seeds.within(self._functions.stream, number))

    def close(self) -> None:
        self._close_window()
        super().close()


def one_row(leaves: Sequence[Any]) -> Columns:
    """The columns of a single element.

    Args:
        leaves: its arrays; of a sparse one, indices, values and dense shape.
    """
    return [
        SparseColumn.of_parts(*(np.asarray(part)[np.newaxis] for part in leaf))
        if isinstance(leaf, tuple)
        else np.asarray(leaf)[np.newaxis]
        for leaf in leaves
    ]


@dataclass(frozen=True, eq=False)
class GroupByReducer(Unary):
    """One element for each int64 key: `finalize` of the state that `reduce` makes of its elements.

    `key` maps an element to its key, `initial` a key to its first state, `reduce` a state and an
    element to the next state. Keys are in ascending order.
    """

    key: TracedFunction
    initial: TracedFunction
    reduce: TracedFunction
    finalize: TracedFunction

    @property
    def element_spec(self) -> Any:
        return self.finalize.output_spec

    @property
    def cardinality(self) -> int:
        return self.source.cardinality if self.source.cardinality <= 0 else UNKNOWN

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        functions = (self.key, self.initial, self.reduce, self.finalize)
        starts = [each.start(seeds) for each in functions]
        return ReducerIterator(source, starts, seeds.function_stream())


class ReducerIterator(ReplayWithFunction):
    """See `GroupByReducer`."""

    def _forget(self) -> None:
        self._states: dict[int, Columns] = {}
        self._read = 0
        self._left: list[int] | None = None  # the keys still to be yielded, once all input is read

    def _make(self, n: int) -> Columns:
        while self._left is None:
            try:
                rows = self._input.next_block(_READ_ROWS)
            except OutOfRangeError:
                self._left = sorted(self._states, reverse=True)
                break
            for row in range(count_rows(rows)):
                try:
                    self._add(slice_rows(rows, row, row + 1))
                except Exception:
                    self._input.unread(rows, row + 1)
                    raise
        if not self._left:
            raise end_of_sequence()
        state = self._states[self._left.pop()]
        return self._functions[3](state, 1, self._position, self._epoch)

    def _add(self, element: Columns) -> None:
        number, self._read = self._read, self._read + 1
        (keys,) = self._functions[0](element, 1, number, self._epoch)
        key = int(keys[0])
        state = self._states.get(key)
        if state is None:
            given = [np.array([key], np.int64)]
            state = self._functions[1](given, 1, len(self._states), self._epoch)
        self._states[key] = self._functions[2]([*state, *element], 1, number, self._epoch)


@dataclass(frozen=True, eq=False)
class Scan(Unary):
    """Applies a function from state and element to the next state and an element.

    `initial` holds the leaves of the initial state; of sparse ones, three arrays.
    """

    function: TracedFunction
    initial: tuple[Any, ...]

    @property
    def element_spec(self) -> Any:
        return self.function.output_spec[1]

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        start = self.function.start(seeds)
        width = len(flatten(self.function.output_spec[0]))
        return ScanIterator(source, start, seeds.function_stream(), self.initial, width)


class ScanIterator(ReplayWithFunction):
    """See `Scan`."""

    at_end = InvalidArgumentError

    def __init__(
        self,
        source: BlockIterator,
        start: StartFunction,
        stream: RandomStream,
        initial: tuple[Any, ...],
        width: int,
    ) -> None:
        self._initial = initial
        self._width = width
        super().__init__(source, [start], stream)

    def _forget(self) -> None:
        self._state = one_row(self._initial)

    def _make(self, n: int) -> Columns:
        rows = self._input.next_block(n)
        made: list[list[Any]] = []
        for row in range(count_rows(rows)):
            given = [*self._state, *slice_rows(rows, row, row + 1)]
            try:
                results = self._functions[0](given, 1, self._position + row, self._epoch)
            except Exception:
                self._input.unread(rows, max(row, 1))
                if not row:
                    raise
                break  # earlier elements come first
            self._state = results[: self._width]
            made.append([column[0] for column in results[self._width :]])
        return stack_rows(made, [column.dtype for column in results[self._width :]])
