"""`ShardedDataset`: the elements that a function makes of one unit (shard) after another.

A `Dealer` says which unit comes next: `LocalShards` in a single process, a queue that all workers
share in a cluster (`distribute.dynamic_sharding`). There a unit counts as trained once the steps
that used its elements are done, which the training loop reports (`report_trained`). Blocks end with
their unit, so that no unit is taken before it is needed.
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
)
from estimatorkit.data.execution.buffers import Columns, count_rows
from estimatorkit.data.execution.cursor import Cursor
from estimatorkit.data.execution.iterators import DrawingFunctions, StartFunction
from estimatorkit.data.execution.randomness import RandomStream, Seeds, nested_epoch
from estimatorkit.data.plan import INFINITE, UNKNOWN, Plan, TracedFunction, Unary

Unit: TypeAlias = tuple[int, int]
"""An epoch, and the number of a unit in the dataset of units."""

_ALL = 1 << 60


@dataclass(frozen=True)
class Order:
    """Which units there are, and in which order they are given out.

    Attributes:
        name: tells several such datasets of one input apart.
        count: how many units an epoch has.
        epochs: how many epochs; None without end.
        seed: of the order, which is another one in each epoch; None for that of the dataset.
    """

    name: str
    count: int
    epochs: int | None
    seed: int | None

    @property
    def total(self) -> float:
        """How many are given out in all."""
        return float("inf") if self.epochs is None else self.count * self.epochs

    def unit(self, number: int) -> Unit:
        """The unit that is the next after `number` others."""
        epoch, place = divmod(number, self.count)
        if self.seed is None:
            return epoch, place
        return epoch, int(_stream(self.seed).permutation(epoch, self.count)[place])


@lru_cache(maxsize=8)
def _stream(seed: int) -> RandomStream:
    return RandomStream(f"{seed % 2**64:016x}{'dea1' * 4}")


class Dealer(Protocol):
    """Gives out units."""

    is_shared: bool
    """Whether others get units from the same."""

    def take(self) -> Unit | None:
        """The next unit; None if there is none, at least for now."""

    def trained(self, units: Sequence[Unit]) -> None:
        """Says that units that were taken here are trained."""

    def get_state(self) -> Any:
        """What there is to be given out still, as JSON can hold it."""

    def set_state(self, state: Any) -> None:
        """Goes to what `get_state` gave."""

    def has_more(self) -> bool | None:
        """Whether there is a unit to be taken; None if others hold some, which may come back."""

    def close(self) -> None:
        """Gives back what was taken and is not trained."""


class LocalShards:
    """Gives all units to one: see `Dealer`. Its state is how many it has given.

    Args:
        order: of the units.
    """

    is_shared = False

    def __init__(self, order: Order) -> None:
        self._order = order
        self._taken = 0

    def take(self) -> Unit | None:
        """See `Dealer`."""
        if self._taken >= self._order.total:
            return None
        self._taken += 1
        return self._order.unit(self._taken - 1)

    def trained(self, units: Sequence[Unit]) -> None:
        """See `Dealer`; nobody asks."""

    def get_state(self) -> int:
        """See `Dealer`."""
        return self._taken

    def set_state(self, state: int) -> None:
        """See `Dealer`."""
        self._taken = state

    def has_more(self) -> bool:
        """See `Dealer`."""
        return self._taken < self._order.total

    def close(self) -> None:
        """See `Dealer`; nobody waits."""


FindDealer: TypeAlias = Callable[[Order, Any], Dealer]
"""Gives who gives out units, by their order and the session's state."""


@dataclass(frozen=True, eq=False)
class ShardedDataset(Unary):
    """See the module. `source` are the units, `find_dealer` says who gives them out."""

    function: TracedFunction
    epochs: int | None
    seed: int | None
    name: str
    find_dealer: FindDealer

    @property
    def element_spec(self) -> Any:
        return self.function.output_spec.element_spec

    @property
    def cardinality(self) -> int:
        if self.source.cardinality == 0:
            return 0
        return INFINITE if self.epochs is None else UNKNOWN

    def iterator(self, seeds: Seeds) -> BlockIterator:
        # All processes see the same units in the same order, also where they shuffle without seed.
        return self._over(self.source.iterator(Seeds(0, seeds.state)), seeds)

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        count = self.source.cardinality
        if count < 0:
            count = source.skip(_ALL)
            source.restart(0)
        order = Order(self.name, count, self.epochs if count else 0, self.seed)
        dealer = self.find_dealer(order, seeds.state)
        return DealtIterator(source, self.function.start(seeds), dealer, seeds)


class _UnitHasEnded(Exception):
    """What is read ahead is all of the unit."""


class DealtIterator(UnaryIterator):
    """See `ShardedDataset`. Where units are shared, its position is just its count of elements:
    what is still to come is the dealer's to say.

    Args:
        units: the units.
        start: makes datasets of units.
        dealer: says which unit comes next.
        seeds: of the pipeline.
    """

    def __init__(
        self, units: BlockIterator, start: StartFunction, dealer: Dealer, seeds: Seeds
    ) -> None:
        super().__init__(units)
        self.dealer = dealer
        self._functions = DrawingFunctions([start], seeds.function_stream())
        self._seeds = seeds
        self._at = 0  # the number of the unit that the units' iterator gives next
        self._pass = 0
        self._began_anew = False  # at a position of which only others knew what comes after it
        self._is_ahead = False  # what is read now is not needed yet
        self._begin_pass()

    def _begin_pass(self) -> None:
        self._unit: Unit | None = None
        self._elements: BlockIterator | None = None  # of that unit
        self._given = 0
        self._ended: deque[tuple[int, Unit]] = deque()  # units, after how many given elements

    def next_block(self, n: int) -> Columns:
        """See `BlockIterator.next_block`.

        Raises:
            InvalidArgumentError: units are shared, and it is not the training that asks.
        """
        if self.dealer.is_shared:
            raise InvalidArgumentError.explained(
                "data that is dealt out among several processes goes to the training as it is",
                expected="dynamically_sharded(...) as the last step of the input",
                received="another transformation of what it gives",
                hint="let dataset_of do that: it makes batches of a unit",
            )
        return super().next_block(n)

    def next_stretch(self, n: int) -> Columns:
        """See `BlockIterator.next_stretch`: it ends with the unit, where units are shared."""
        if not self.dealer.is_shared:
            return super().next_block(n)
        if not self._held:
            self._hold(n, defer=False)
        return super().next_block(min(n, count_rows(self._held[0])))

    def next_ahead(self, n: int) -> Columns | None:
        """See `BlockIterator.next_ahead`: the next unit must wait, where units are shared."""
        self._is_ahead = self.dealer.is_shared
        try:
            return self.next_stretch(n)
        except _UnitHasEnded:
            return None
        finally:
            self._is_ahead = False

    def _produce(self, n: int) -> Columns:
        self._began_anew = False
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
            unit = self.dealer.take()
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
        """Says that so many elements, from the first on, were used by steps that are done."""
        units = []
        while self._ended and self._ended[0][0] <= count:
            units.append(self._ended.popleft()[1])
        if units:
            self.dealer.trained(units)

    def _save(self) -> State:
        place = {"given": self._given, "pass": self._pass, "key": self._functions.stream.key}
        if self.dealer.is_shared:
            return place
        elements = None if self._elements is None else self._elements.get_state()
        return {
            **place,
            "taken": self.dealer.get_state(),
            "unit": None if self._unit is None else list(self._unit),
            "elements": elements,
        }

    def _restore(self, state: State) -> None:
        self._close_unit()
        self._given, self._pass = state["given"], state["pass"]
        self._functions.draw_from(state["key"])
        self._began_anew = self.dealer.is_shared or "taken" not in state
        if self._began_anew:
            return
        self.dealer.set_state(state["taken"])
        if state["unit"] is not None:
            epoch, index = state["unit"]
            self._begin((epoch, index))
            if self._elements is not None:
                self._elements.set_state(state["elements"])

    def _restart(self, epoch: int) -> None:
        self._close_unit()
        self._begin_pass()
        self._pass = epoch
        self.dealer.set_state(0)

    def _skip(self, n: int) -> int:
        if self._began_anew:
            self._given += n
            return n
        return super()._skip(n)

    def close(self) -> None:
        self._close_unit()
        self.dealer.close()
        super().close()


# -- what a training says and asks


def shared_iterators(state: Any) -> Iterator[tuple[str, Cursor, DealtIterator]]:
    """The iterators of a session that get units from what others get units from, too; with their
    names and cursors.
    """
    for name, held in list(state.resources.items()):
        if isinstance(held, Cursor):
            iterator = held._iterator
            if isinstance(iterator, DealtIterator) and iterator.dealer.is_shared:
                yield name, held, iterator


def report_trained(state: Any) -> None:
    """Says that all elements that a session's iterators have handed out were used by steps that are
    done.
    """
    for _, cursor, iterator in shared_iterators(state):
        iterator.trained_up_to(cursor.taken)


def has_more(state: Any) -> bool | None:
    """Whether inputs that have ended go on, as others have given back what they had taken; None if
    others hold units, which they may give back yet.
    """
    found = [iterator.dealer.has_more() for _, _, iterator in shared_iterators(state)]
    return True if any(found) else (None if None in found else False)


def begin_anew(state: Any) -> None:
    """Gives back what a session's iterators have taken and read ahead."""
    for name, cursor, _ in shared_iterators(state):
        cursor.close()
        state.resources[name] = Cursor(Dataset(cursor._plan), state.graph.seed, state)


def dealt_states(state: Any) -> dict[str, Any]:
    """What there is to be given out still, by the iterators' names, for a checkpoint."""
    return {name: iterator.dealer.get_state() for name, _, iterator in shared_iterators(state)}


def restore_dealt(state: Any, saved: Mapping[str, Any]) -> None:
    """Goes back to what `dealt_states` gave."""
    for name, _, iterator in shared_iterators(state):
        if name in saved:
            iterator.dealer.set_state(saved[name])
