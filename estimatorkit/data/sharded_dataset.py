"""`ShardedDataset`: concatenates the datasets that a function makes of successive units (shards).

A `ShardSource` assigns units: `LocalShards` in a single process, a queue shared by all workers in a
cluster (`distribute.dynamic_sharding`). With a shared queue, a unit counts as trained once the
steps that used its elements are done, as the training loop reports (`report_trained`). Blocks end
with their unit, so that no unit is taken before it is needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

from estimatorkit.core.errors import InvalidArgumentError, OutOfRangeError
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.execution.block_iterator import (
    BlockIterator,
    State,
    UnaryIterator,
    end_of_sequence,
    pass_number,
    position,
    random_state,
)
from estimatorkit.data.execution.buffers import Columns, count_rows
from estimatorkit.data.execution.cursor import Cursor
from estimatorkit.data.execution.iterators import DrawingFunctions, StartFunction
from estimatorkit.data.execution.randomness import RandomStream, Seeds, nested_epoch
from estimatorkit.data.plan import INFINITE, UNKNOWN, Plan, TracedFunction, Unary

Unit: TypeAlias = tuple[int, int]
"""(epoch, index of the unit in the dataset of units)."""

_ALL = 1 << 60


@dataclass(frozen=True)
class Order:
    """The units of a dataset, and the order in which they are assigned.

    Attributes:
        name: distinguishes several such datasets of one input.
        count: units per epoch.
        epochs: the number of epochs; None for infinite.
        seed: of the order, which differs between epochs; None for the seed of the dataset.
    """

    name: str
    count: int
    epochs: int | None
    seed: int | None

    @property
    def total(self) -> float:
        """The number of units over all epochs."""
        return float("inf") if self.epochs is None else self.count * self.epochs

    def unit(self, number: int) -> Unit:
        """The unit at position `number`."""
        epoch, place = divmod(number, self.count)
        if self.seed is None:
            return epoch, place
        return epoch, int(_stream(self.seed).permutation(epoch, self.count)[place])


@lru_cache(maxsize=8)
def _stream(seed: int) -> RandomStream:
    return RandomStream(f"{seed % 2**64:016x}{'dea1' * 4}")


class ShardSource(Protocol):
    """Assigns units."""

    is_shared: bool
    """Whether other processes share the units."""

    def take(self) -> Unit | None:
        """Returns the next unit; None if there is none, at least for now."""

    def trained(self, units: Sequence[Unit]) -> None:
        """Reports units taken here as trained."""

    def get_state(self) -> Any:
        """The units still to be assigned, as JSON."""

    def set_state(self, state: Any) -> None:
        """Restores a state that `get_state` returned."""

    def has_more(self) -> bool | None:
        """Whether there is a unit to take; None if others hold units that may be returned."""

    def close(self) -> None:
        """Returns the units that were taken but not trained."""


class LocalShards:
    """Assigns all units to a single consumer. Its state is the number of units assigned.

    Args:
        order: the units.
    """

    is_shared = False

    def __init__(self, order: Order) -> None:
        self._order = order
        self._taken = 0

    def take(self) -> Unit | None:
        """See `ShardSource`."""
        if self._taken >= self._order.total:
            return None
        self._taken += 1
        return self._order.unit(self._taken - 1)

    def trained(self, units: Sequence[Unit]) -> None:
        """See `ShardSource`; does nothing."""

    def get_state(self) -> int:
        """See `ShardSource`."""
        return self._taken

    def set_state(self, state: int) -> None:
        """See `ShardSource`."""
        self._taken = state

    def has_more(self) -> bool:
        """See `ShardSource`."""
        return self._taken < self._order.total

    def close(self) -> None:
        """See `ShardSource`; does nothing."""


OpenShards: TypeAlias = Callable[[Order, Any], ShardSource]
"""Returns the source of an order of units, given a session's state."""


@dataclass(frozen=True, eq=False)
class ShardedDataset(Unary):
    """See the module; `source` yields the units, `open_shards` returns their `ShardSource`."""

    function: TracedFunction
    epochs: int | None
    seed: int | None
    name: str
    open_shards: OpenShards
    not_identifying = frozenset({"open_shards"})

    @property
    def element_spec(self) -> Any:
        return self.function.output_spec.element_spec

    @property
    def cardinality(self) -> int:
        if self.source.cardinality == 0:
            return 0
        return INFINITE if self.epochs is None else UNKNOWN

    def iterator(self, seeds: Seeds) -> BlockIterator:
        # All processes see the same units in the same order, even if they shuffle without a seed.
        return self._over(self.source.iterator(Seeds(0, seeds.state)), seeds)

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        count = self.source.cardinality
        if count < 0:
            count = source.skip(_ALL)
            source.restart(0)
        order = Order(self.name, count, self.epochs if count else 0, self.seed)
        shards = self.open_shards(order, seeds.state)
        return ShardedIterator(source, self.function.start(seeds), shards, seeds)


class _UnitHasEnded(Exception):
    """The rest of the unit has been prefetched."""


class ShardedIterator(UnaryIterator):
    """See `ShardedDataset`. With shared units its position is a count of elements only: the
    source knows which units remain.

    Args:
        start: makes the dataset of a unit.
        seeds: of the pipeline.
    """

    _functions: DrawingFunctions = random_state()
    _given: int = position(0)
    _pass: int = pass_number()

    def __init__(
        self, units: BlockIterator, start: StartFunction, shards: ShardSource, seeds: Seeds
    ) -> None:
        super().__init__(units)
        self.shards = shards
        self._functions = DrawingFunctions([start], seeds.function_stream())
        self._seeds = seeds
        self._at = 0  # the index of the next unit of the units' iterator
        self._is_count_only = False  # at a restored position, which does not say which unit is next
        self._is_ahead = False  # prefetching

    def _begin_pass(self, epoch: int) -> None:
        super()._begin_pass(epoch)
        self._unit: Unit | None = None
        self._elements: BlockIterator | None = None  # of that unit
        self._ended: deque[tuple[int, Unit]] = deque()  # (element count at its end, unit)

    def next_block(self, n: int) -> Columns:
        """See `BlockIterator.next_block`.

        Raises:
            InvalidArgumentError: units are shared, and the caller is not the training loop.
        """
        if self.shards.is_shared:
            raise InvalidArgumentError.explained(
                "a dynamically sharded dataset must reach the training unchanged",
                expected="dynamically_sharded(...) as the last step of the input",
                received="another transformation after it",
                hint="transform in dataset_of, which makes batches of a unit",
            )
        return super().next_block(n)

    def next_stretch(self, n: int) -> Columns:
        """See `BlockIterator.next_stretch`; ends with the unit if units are shared."""
        if not self.shards.is_shared:
            return super().next_block(n)
        if not self._held:
            self._hold(n, defer=False)
        return super().next_block(min(n, count_rows(self._held[0])))

    def next_ahead(self, n: int) -> Columns | None:
        """See `BlockIterator.next_ahead`; the next unit must wait if units are shared."""
        self._is_ahead = self.shards.is_shared
        try:
            return self.next_stretch(n)
        except _UnitHasEnded:
            return None
        finally:
            self._is_ahead = False

    def _produce(self, n: int) -> Columns:
        self._is_count_only = False
        while True:
            if self._elements is not None:
                try:
                    rows = self._elements.next_block(n)
                except OutOfRangeError:
                    self._end_unit()
                else:
                    self._given += count_rows(rows)
                    return rows
            if self._is_ahead:
                raise _UnitHasEnded
            unit = self.shards.take()
            if unit is None:
                raise end_of_sequence()
            self._begin(unit)

    def _begin(self, unit: Unit) -> None:
        epoch, index = unit
        if index < self._at:
            self._input.restart(0)
            self._at = 0
        self._input.skip(index - self._at)
        row = self._input.next_block(1)
        self._at = index + 1
        (column,) = self._functions[0](row, 1, index, self._pass)
        plan: Plan = column[0] if column.ndim else column.item()
        elements = plan.iterator(self._seeds.within(self._functions.stream, index))
        number = nested_epoch(self._pass, epoch)
        if number:
            elements.restart(number)
        self._unit, self._elements = unit, elements

    def _end_unit(self) -> None:
        if self._unit is not None:
            self._ended.append((self._given, self._unit))
        self._close_unit()

    def _close_unit(self) -> None:
        if self._elements is not None:
            self._elements.close()
        self._unit = self._elements = None

    def trained_up_to(self, count: int) -> None:
        """Reports that the first `count` elements were used by completed steps."""
        units = []
        while self._ended and self._ended[0][0] <= count:
            units.append(self._ended.popleft()[1])
        if units:
            self.shards.trained(units)

    def _save(self) -> State:
        place = self._own_position()
        if self.shards.is_shared:
            return place
        elements = None if self._elements is None else self._elements.get_state()
        return {
            **place,
            "taken": self.shards.get_state(),
            "unit": None if self._unit is None else list(self._unit),
            "elements": elements,
        }

    def _restore(self, state: State) -> None:
        self._close_unit()
        self._restore_own(state)
        self._is_count_only = self.shards.is_shared or "taken" not in state
        if self._is_count_only:
            return
        self.shards.set_state(state["taken"])
        if state["unit"] is not None:
            epoch, index = state["unit"]
            self._begin((epoch, index))
            if self._elements is not None:
                self._elements.set_state(state["elements"])

    def _restart(self, epoch: int) -> None:
        self._close_unit()
        self._begin_pass(epoch)
        self.shards.set_state(0)

    def _skip(self, n: int) -> int:
        if self._is_count_only:
            self._given += n
            return n
        return super()._skip(n)

    def close(self) -> None:
        self._close_unit()
        self.shards.close()
        super().close()


# -- for the training loop


def shared_iterators(state: Any) -> Iterator[tuple[str, Cursor, ShardedIterator]]:
    """Yields name, cursor and iterator of a session's iterators that share units with other
    processes.
    """
    for name, held in list(state.resources.items()):
        if isinstance(held, Cursor):
            iterator = held._iterator
            if isinstance(iterator, ShardedIterator) and iterator.shards.is_shared:
                yield name, held, iterator


def report_trained(state: Any) -> None:
    """Reports that completed steps used all elements consumed from a session's iterators so far."""
    for _, cursor, iterator in shared_iterators(state):
        iterator.trained_up_to(cursor.taken)


def has_more(state: Any) -> bool | None:
    """Whether inputs that ended continue because others returned units; None if others still hold
    units that they may return.
    """
    found = [iterator.shards.has_more() for _, _, iterator in shared_iterators(state)]
    return True if any(found) else (None if None in found else False)


def return_shards(state: Any) -> None:
    """Returns the units that a session's iterators have taken and prefetched to the queue."""
    for name, cursor, _ in shared_iterators(state):
        cursor.close()
        state.resources[name] = Cursor(Dataset(cursor._plan), state.graph.seed, state)


def shard_states(state: Any) -> dict[str, Any]:
    """The units still to be assigned, by iterator name, for a checkpoint."""
    return {name: iterator.shards.get_state() for name, _, iterator in shared_iterators(state)}


def restore_shards(state: Any, saved: Mapping[str, Any], positions: Mapping[str, Any]) -> None:
    """Restores the result of `shard_states`, for iterators of the same data.

    Args:
        positions: the iterators' positions that were saved with it.
    """
    for name, cursor, iterator in shared_iterators(state):
        if name in saved and cursor.has_data_of(positions.get(name, {})):
            iterator.shards.set_state(saved[name])
