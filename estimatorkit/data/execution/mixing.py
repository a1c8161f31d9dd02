"""Several datasets in one: `sample_from_datasets` and `choose_from_datasets`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.data.execution.block_iterator import (
    BlockIterator,
    end_of_sequence,
    pass_number,
    position,
    random_state,
)
from estimatorkit.data.execution.buffers import Columns, concatenate, count_rows, gather
from estimatorkit.data.execution.randomness import RandomStream, Seeds
from estimatorkit.data.plan import INFINITE, UNKNOWN, Plan
from estimatorkit.data.spec import TensorSpec, either, map_leaves


@dataclass(frozen=True, eq=False)
class Choices(Plan):
    """Infinitely many random int64 indices with given probabilities."""

    weights: Any
    seed: Any

    @property
    def element_spec(self) -> TensorSpec:
        return TensorSpec((), np.int64)

    @property
    def cardinality(self) -> int:
        return INFINITE

    def iterator(self, seeds: Seeds) -> BlockIterator:
        return ChoicesIterator(np.asarray(self.weights, np.float64), seeds.stream(self.seed))


_UNIT = 2**53


class ChoicesIterator(BlockIterator):
    """See `Choices`."""

    _stream: RandomStream = random_state()
    _epoch: int = pass_number()
    _drawn: int = position(0)

    def __init__(self, weights: NDArray[np.float64], stream: RandomStream) -> None:
        super().__init__()
        self._limits = np.cumsum(weights / weights.sum())
        self._stream = stream

    def _produce(self, n: int) -> Columns:
        drawn = self._stream.slots(self._epoch, self._drawn, n, _UNIT) / _UNIT
        self._drawn += n
        chosen = np.searchsorted(self._limits, drawn, side="right")
        return [np.minimum(chosen, len(self._limits) - 1)]

    def _skip(self, n: int) -> int:
        self._drawn += n
        return n


@dataclass(frozen=True, eq=False)
class RandomNumbers(Choices):
    """Infinitely many random int64 numbers, uniform in [0, 2**32)."""

    weights: Any = None
    seed: Any = None

    def iterator(self, seeds: Seeds) -> BlockIterator:
        return RandomNumbersIterator(seeds.stream(self.seed))


class RandomNumbersIterator(ChoicesIterator):
    """See `RandomNumbers`."""

    def __init__(self, stream: RandomStream) -> None:
        super().__init__(np.ones(1), stream)

    def _produce(self, n: int) -> Columns:
        drawn = self._stream.slots(self._epoch, self._drawn, n, 2**32)
        self._drawn += n
        return [drawn]


@dataclass(frozen=True, eq=False)
class Choose(Plan):
    """Takes each element from the dataset whose index `choices` yields.

    An ended dataset is skipped, or ends the result (`stop_on_empty`).
    """

    choices: Plan
    sources: tuple[Plan, ...]
    stop_on_empty: bool

    @cached_property
    def element_spec(self) -> Any:
        specs = [source.element_spec for source in self.sources]
        return reduce(lambda one, two: map_leaves(either, one, two), specs)

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def iterator(self, seeds: Seeds) -> BlockIterator:
        choices = self.choices.iterator(seeds)
        sources = [source.iterator(seeds) for source in self.sources]
        return ChooseIterator(choices, sources, self.stop_on_empty)


class ChooseIterator(BlockIterator):
    """See `Choose`."""

    _ended: tuple[int, ...] = position(())
    _stopped: bool = position(False)

    def __init__(
        self, choices: BlockIterator, sources: Sequence[BlockIterator], stop_on_empty: bool
    ) -> None:
        super().__init__(choices, *sources)
        self._choices = choices
        self._sources = sources
        self._stop_on_empty = stop_on_empty

    def _produce(self, n: int) -> Columns:
        while not self._stopped and len(self._ended) < len(self._sources):
            block = self._choices.next_block(n)
            chosen = np.asarray(block[0])
            _check(chosen, len(self._sources))
            rows, used = self._rows_of(chosen)
            if not used:  # the dataset of the first choice fails
                self._choices.unread(block, 1)
                self._sources[int(chosen[0])].next_block(1)
            self._choices.unread(block, used)
            if rows is not None:
                return rows
        raise end_of_sequence()

    def _rows_of(self, chosen: NDArray[np.int64]) -> tuple[Columns | None, int]:
        """The rows for these choices, and the number of choices that were consumed.

        If a dataset fails, the rows of earlier choices are returned; the next call meets the error.
        """
        found: dict[int, tuple[NDArray[np.int64], Columns | None]] = {}
        missing: dict[int, int] = {}  # index of the first choice without a row
        stop = len(chosen)
        for number in np.unique(chosen).tolist():
            wanted = np.flatnonzero(chosen == number)
            block = self._sources[number].next_rows(len(wanted))
            given = 0 if block is None else count_rows(block)
            found[number] = wanted[:given], block
            if given < len(wanted):
                missing[number] = int(wanted[given])
                if self._stop_on_empty or self._sources[number].failing:
                    stop = min(stop, missing[number])
        for number, place in missing.items():
            if not self._sources[number].failing and place <= stop:
                self._ended = (*{*self._ended, number},)
                self._stopped |= self._stop_on_empty
        parts, every = [], []
        for number, (places, block) in found.items():
            if block is not None:
                parts.append(block)
                every.append(places)
                self._sources[number].unread(block, int(np.searchsorted(places, stop)))
        if not parts or not stop:
            return None, stop
        joined = np.concatenate(every)
        order = np.argsort(joined, kind="stable")
        order = order[joined[order] < stop]
        return (gather(concatenate(parts), order) if len(order) else None), stop


def _check(chosen: NDArray[np.int64], count: int) -> None:
    bad = chosen[(chosen < 0) | (chosen >= count)]
    if len(bad):
        raise InvalidArgumentError.explained(
            "Selector index out of range",
            expected=f"0 <= number < {count}, the number of datasets",
            received=int(bad[0]),
        )
