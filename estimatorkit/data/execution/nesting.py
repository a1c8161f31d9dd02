"""Datasets of datasets: `window`, `flat_map` and `interleave`.

The column of a dataset component holds plans as Python objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from estimatorkit.core.errors import OutOfRangeError
from estimatorkit.data.execution.block_iterator import (
    BlockIterator,
    State,
    UnaryIterator,
    end_of_sequence,
    pass_number,
    position,
    random_state,
)
from estimatorkit.data.execution.buffers import Columns, concatenate, count_rows, slice_rows
from estimatorkit.data.execution.iterators import DrawingFunctions, StartFunction
from estimatorkit.data.execution.randomness import Seeds, nested_epoch
from estimatorkit.data.parameters import Pending
from estimatorkit.data.plan import INFINITE, UNKNOWN, Plan, Slices, TracedFunction, Unary
from estimatorkit.data.spec import DatasetSpec, flatten, pack

if TYPE_CHECKING:
    from estimatorkit.core.tensor import Tensor


@dataclass(frozen=True, eq=False)
class Nested(Plan):
    """A dataset as an element of another: a pending plan."""

    handle: Any
    spec: Any

    @property
    def element_spec(self) -> Any:
        return self.spec

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def bind(self, values: Mapping[Tensor, Any]) -> Plan:
        plan: Plan = self.handle.finish(*(values[tensor] for tensor in self.handle.tensors))
        return plan

    def iterator(self, seeds: Seeds) -> BlockIterator:
        raise ValueError("the dataset is an argument of a function: it has no elements yet")


@dataclass(frozen=True, eq=False)
class Window(Unary):
    """Datasets of `size` elements, `stride` apart; windows start `shift` elements apart."""

    size: Any
    shift: Any
    stride: Any
    drop_remainder: Any

    @property
    def element_spec(self) -> Any:
        leaves = flatten(self.source.element_spec)
        return pack(self.source.element_spec, [DatasetSpec(leaf) for leaf in leaves])

    @property
    def cardinality(self) -> int:
        known = [getattr(self, field.name) for field in fields(self)]
        source = self.source.cardinality
        if source < 0 or any(isinstance(each, Pending) for each in known):
            return source if source == INFINITE else UNKNOWN
        if not self.drop_remainder:
            return -(-source // int(self.shift))
        last = source - (int(self.size) - 1) * int(self.stride) - 1
        return max(0, last // int(self.shift) + 1)

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        return WindowIterator(
            source,
            flatten(self.source.element_spec),
            self.size,
            self.shift,
            self.stride,
            self.drop_remainder,
        )


class WindowIterator(UnaryIterator):
    """See `Window`. Its position is the input's at the start of the next window."""

    def __init__(
        self,
        source: BlockIterator,
        specs: Sequence[Any],
        size: int,
        shift: int,
        stride: int,
        drop_remainder: bool,
    ) -> None:
        super().__init__(source)
        self._specs = specs
        self._shift, self._stride = shift, stride
        self._span = (size - 1) * stride + 1  # input rows from a window's first to its last
        self._drop_remainder = drop_remainder

    def _produce(self, n: int) -> Columns:
        rows = self._input.next_block((n - 1) * self._shift + self._span)
        available = count_rows(rows)
        if self._input.failing and available < self._span:  # smaller windows come at the end
            self._input.next_block(1)
        whole = self._drop_remainder or self._input.failing
        last = available - self._span if whole else available - 1
        count = min(n, last // self._shift + 1) if last >= 0 else 0
        used = count * self._shift
        if used < available:
            self._input.unread(rows, used)
        else:
            self._input.skip(used - available)
        if not count:
            self._input.skip(available)
            raise end_of_sequence()
        columns = [np.empty(count, object) for _ in rows]
        for window in range(count):
            first = window * self._shift
            part = concatenate([slice_rows(rows, first, first + self._span, self._stride)])
            for column, spec, values in zip(columns, self._specs, part, strict=True):
                column[window] = Slices(spec, (values,))
        return list(columns)


@dataclass(frozen=True, eq=False)
class Interleave(Unary):
    """The elements of the datasets that a function maps elements to, interleaved.

    `cycle_length` datasets are open at a time, each yielding `block_length` elements per turn.
    `flat_map` has one open at a time and reads it to its end.
    """

    function: TracedFunction
    cycle_length: Any
    block_length: Any

    @property
    def element_spec(self) -> Any:
        return self.function.output_spec.element_spec

    @property
    def cardinality(self) -> int:
        return 0 if self.source.cardinality == 0 else UNKNOWN

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        return InterleaveIterator(
            source, self.function.start(seeds), self.cycle_length, self.block_length, seeds
        )


class _Open:
    """An open dataset of the cycle and its origin."""

    def __init__(self, number: int, before: State, iterator: BlockIterator) -> None:
        self.number = number  # the index of its input row in the pass
        self.before = before  # the input's position before that row
        self.iterator = iterator


class InterleaveIterator(UnaryIterator):
    """See `Interleave`.

    For each open dataset its position holds that dataset's own position and the input's position
    before the row that it was made of.
    """

    _functions: DrawingFunctions = random_state()
    _epoch: int = pass_number()
    _read: int = position(0)  # input rows in this pass
    _turn: int = position(0)
    _taken: int = position(0)  # rows of the turn
    _ended: bool = position(False)  # whether the input has ended

    def __init__(
        self,
        source: BlockIterator,
        start: StartFunction,
        cycle_length: int,
        block_length: int,
        seeds: Seeds,
    ) -> None:
        super().__init__(source)
        self._cycle_length = cycle_length
        self._block_length = block_length
        self._seeds = seeds
        self._functions = DrawingFunctions([start], seeds.function_stream())
        self._slots: list[_Open | None] = [None] * cycle_length

    def _close_slots(self) -> None:
        for slot in self._slots:
            if slot is not None:
                slot.iterator.close()
        self._slots = [None] * self._cycle_length

    def _produce(self, n: int) -> Columns:
        while not self._ended or any(self._slots):
            slot = self._slots[self._turn]
            if slot is None:
                self._open_next()
                continue
            try:
                rows = slot.iterator.next_block(min(n, self._block_length - self._taken))
            except OutOfRangeError:
                slot.iterator.close()
                self._slots[self._turn] = None
                self._next_turn()
                continue
            self._taken += count_rows(rows)
            if self._taken == self._block_length:
                self._next_turn()
            return rows
        raise end_of_sequence()

    def _next_turn(self) -> None:
        self._turn = (self._turn + 1) % self._cycle_length
        self._taken = 0

    def _open_next(self) -> None:
        """Opens the next dataset in the current empty slot; advances to the next slot if there is
        none.
        """
        if not self._ended:
            before = self._input.get_state()
            number = self._read
            try:
                row = self._input.next_block(1)
            except OutOfRangeError:
                self._ended = True
            else:
                self._read += 1
                self._slots[self._turn] = _Open(number, before, self._iterator(row, number))
                return
        self._next_turn()

    def _iterator(self, row: Columns, number: int) -> BlockIterator:
        (column,) = self._functions[0](row, 1, number, self._epoch)
        plan: Plan = column[0] if column.ndim else column.item()
        iterator = plan.iterator(self._seeds.within(self._functions.stream, number))
        if self._epoch:
            iterator.restart(nested_epoch(self._epoch, 0))
        return iterator

    def _save(self) -> State:
        slots = [
            slot
            and {
                "number": slot.number,
                "before": slot.before,
                "position": slot.iterator.get_state(),
            }
            for slot in self._slots
        ]
        return {**super()._save(), "slots": slots}

    def _restore(self, state: State) -> None:
        self._close_slots()
        self._restore_own(state)
        for place, saved in enumerate(state["slots"]):
            if saved:
                self._input.set_state(saved["before"])
                iterator = self._iterator(self._input.next_block(1), saved["number"])
                iterator.set_state(saved["position"])
                self._slots[place] = _Open(saved["number"], saved["before"], iterator)
        super()._restore(state)

    def _restart(self, epoch: int) -> None:
        super()._restart(epoch)
        self._close_slots()

    def close(self) -> None:
        self._close_slots()
        super().close()
