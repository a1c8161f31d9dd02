"""Dataset plans: what is to be done, as frozen values, and how each part becomes an iterator.

A plan knows what its elements are (`element_spec`), how many there are (`cardinality`), and makes
the iterators that execute it. Plans that only reorder or select rows (`Reordering`), over arrays in
memory, are rewritten: `T(slices(x))` runs as `gather(x, T(range(n)))`. So a shuffle moves 8-byte
indices, and the rows are copied once, a batch or many at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from numpy.typing import NDArray

from estimatorkit.core import dtypes, nest
from estimatorkit.core.shapes import TensorShape
from estimatorkit.data import iterators
from estimatorkit.data.block_iterator import BlockIterator
from estimatorkit.data.buffers import Columns
from estimatorkit.data.generators import GeneratorIterator
from estimatorkit.data.prefetching import PrefetchIterator
from estimatorkit.data.randomness import Seeds
from estimatorkit.data.shuffling import ShuffleIterator
from estimatorkit.data.spec import TensorSpec, pack

INFINITE = -1  # the cardinality of a dataset that never ends
UNKNOWN = -2  # the cardinality where only a run can tell


class TracedFunction(Protocol):
    """A function of elements, made ready to run on blocks."""

    @property
    def output_spec(self) -> Any:
        """The nested `TensorSpec` of what the function returns for one element."""

    def __call__(self, columns: Columns, count: int) -> Columns:
        """Applies the function to `count` elements.

        Args:
            columns: the leaves of the elements, each `(count, ...)`.
            count: the number of elements.

        Returns:
            The leaves of the results, each `(count, ...)`.
        """


class Plan(ABC):
    """One node of a dataset's plan. Immutable, without state: iterators hold that."""

    @property
    @abstractmethod
    def element_spec(self) -> Any:
        """The nested `TensorSpec` of an element."""

    @property
    @abstractmethod
    def cardinality(self) -> int:
        """The number of elements; INFINITE or UNKNOWN."""

    @abstractmethod
    def iterator(self, seeds: Seeds) -> BlockIterator:
        """Makes an iterator that stands before the first element."""

    def as_gather(self) -> tuple[Columns, Plan] | None:
        """Arrays and a plan of row indices that together give the same rows; or None."""
        return None


@dataclass(frozen=True, eq=False)
class Slices(Plan):
    """The rows of arrays: `columns` `(rows, ...)` each, C-contiguous, packed as `structure` is."""

    structure: Any
    columns: tuple[NDArray[Any], ...]

    @cached_property
    def element_spec(self) -> Any:
        return pack(
            self.structure, [TensorSpec(each.shape[1:], each.dtype) for each in self.columns]
        )

    @property
    def cardinality(self) -> int:
        return len(self.columns[0])

    def iterator(self, seeds: Seeds) -> BlockIterator:
        return iterators.GatherIterator(
            list(self.columns), iterators.RangeIterator(range(self.cardinality))
        )

    def as_gather(self) -> tuple[Columns, Plan]:
        return list(self.columns), Range(range(self.cardinality))


@dataclass(frozen=True, eq=False)
class Range(Plan):
    """int64 numbers."""

    numbers: range

    @property
    def element_spec(self) -> TensorSpec:
        return TensorSpec((), dtypes.int64)

    @property
    def cardinality(self) -> int:
        return len(self.numbers)

    def iterator(self, seeds: Seeds) -> BlockIterator:
        return iterators.RangeIterator(self.numbers)


@dataclass(frozen=True, eq=False)
class Generated(Plan):
    """The elements of a Python generator."""

    generator: Callable[[], Iterable[Any]]
    spec: Any

    @property
    def element_spec(self) -> Any:
        return self.spec

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def iterator(self, seeds: Seeds) -> BlockIterator:
        return GeneratorIterator(self.generator, self.spec)


@dataclass(frozen=True, eq=False)
class Unary(Plan):
    """A plan over one other, whose elements and number it keeps unless it says otherwise."""

    source: Plan

    @property
    def element_spec(self) -> Any:
        return self.source.element_spec

    @property
    def cardinality(self) -> int:
        return self.source.cardinality

    def iterator(self, seeds: Seeds) -> BlockIterator:
        return self._over(self.source.iterator(seeds), seeds)

    @abstractmethod
    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        """Makes this plan's iterator over that of its source."""


@dataclass(frozen=True, eq=False)
class Reordering(Unary):
    """Selects and orders rows without looking at them: it may act on their indices instead."""

    def iterator(self, seeds: Seeds) -> BlockIterator:
        form = self.as_gather()
        if form is None:
            return super().iterator(seeds)
        columns, indices = form
        return iterators.GatherIterator(columns, indices.iterator(seeds))

    def as_gather(self) -> tuple[Columns, Plan] | None:
        form = self.source.as_gather()
        if form is None:
            return None
        columns, indices = form
        return columns, replace(self, source=indices)


@dataclass(frozen=True, eq=False)
class Shuffle(Reordering):
    """See `ShuffleIterator`."""

    buffer_size: int
    seed: int | None
    reshuffle: bool

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        return ShuffleIterator(source, self.buffer_size, seeds.stream(self.seed), self.reshuffle)


@dataclass(frozen=True, eq=False)
class Repeat(Reordering):
    """The source `count` times; None: for ever."""

    count: int | None

    @property
    def cardinality(self) -> int:
        source = self.source.cardinality
        if source == 0 or self.count == 0:
            return 0
        if self.count is None or source == INFINITE:
            return INFINITE
        return UNKNOWN if source == UNKNOWN else source * self.count

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        return iterators.RepeatIterator(source, self.count)


@dataclass(frozen=True, eq=False)
class Take(Reordering):
    """The first `count` elements."""

    count: int

    @property
    def cardinality(self) -> int:
        source = self.source.cardinality
        if source == UNKNOWN:
            return UNKNOWN if self.count else 0
        return self.count if source == INFINITE else min(source, self.count)

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        return iterators.TakeIterator(source, self.count)


@dataclass(frozen=True, eq=False)
class Skip(Reordering):
    """All but the first `count` elements."""

    count: int

    @property
    def cardinality(self) -> int:
        source = self.source.cardinality
        return source if source < 0 else max(0, source - self.count)

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        return iterators.SkipIterator(source, self.count)


@dataclass(frozen=True, eq=False)
class Shard(Reordering):
    """The elements whose number, modulo `num_shards`, is `index`."""

    num_shards: int
    index: int

    @property
    def cardinality(self) -> int:
        source = self.source.cardinality
        return source if source < 0 else len(range(self.index, source, self.num_shards))

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        return iterators.ShardIterator(source, self.num_shards, self.index)


@dataclass(frozen=True, eq=False)
class Cache(Reordering):
    """The elements of the first pass, kept in memory (of arrays in memory: their indices)."""

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        return iterators.CacheIterator(source)


@dataclass(frozen=True, eq=False)
class Batch(Unary):
    """Batches of `batch_size` consecutive elements."""

    batch_size: int
    drop_remainder: bool

    @cached_property
    def element_spec(self) -> Any:
        outer = TensorShape([self.batch_size if self.drop_remainder else None])
        return nest.map_structure(
            lambda spec: TensorSpec(outer + spec.shape, spec.dtype, spec.name),
            self.source.element_spec,
        )

    @property
    def cardinality(self) -> int:
        source = self.source.cardinality
        if source < 0:
            return source
        return source // self.batch_size if self.drop_remainder else -(-source // self.batch_size)

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        return iterators.BatchIterator(source, self.batch_size, self.drop_remainder)


@dataclass(frozen=True, eq=False)
class Map(Unary):
    """A function of each element."""

    function: TracedFunction

    @property
    def element_spec(self) -> Any:
        return self.function.output_spec

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        return iterators.MapIterator(source, self.function)


@dataclass(frozen=True, eq=False)
class Filter(Unary):
    """The elements for which a predicate is true."""

    predicate: TracedFunction

    @property
    def cardinality(self) -> int:
        return UNKNOWN if self.source.cardinality else 0

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        return iterators.FilterIterator(source, self.predicate)


@dataclass(frozen=True, eq=False)
class Prefetch(Unary):
    """The elements, read ahead by a thread: `buffer_size` of them."""

    buffer_size: int

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        return PrefetchIterator(source, self.buffer_size)


@dataclass(frozen=True, eq=False)
class Concatenate(Plan):
    """The elements of one plan after those of another."""

    first: Plan
    second: Plan

    @cached_property
    def element_spec(self) -> Any:
        return nest.map_structure(_either, self.first.element_spec, self.second.element_spec)

    @property
    def cardinality(self) -> int:
        counts = self.first.cardinality, self.second.cardinality
        return INFINITE if INFINITE in counts else UNKNOWN if UNKNOWN in counts else sum(counts)

    def iterator(self, seeds: Seeds) -> BlockIterator:
        return iterators.ConcatenateIterator(
            [self.first.iterator(seeds), self.second.iterator(seeds)]
        )


def _either(one: TensorSpec, two: TensorSpec) -> TensorSpec:
    """The narrowest spec that values of both fit."""
    if one.shape.rank is None or one.shape.rank != two.shape.rank:
        return TensorSpec(None, one.dtype)
    dims = [a if a == b else None for a, b in zip(one.shape, two.shape, strict=True)]
    return TensorSpec(dims, one.dtype)


@dataclass(frozen=True, eq=False)
class Zip(Plan):
    """Elements of several plans side by side, packed as `structure`, whose leaves are anything."""

    structure: Any
    sources: tuple[Plan, ...]

    @cached_property
    def element_spec(self) -> Any:
        return pack(self.structure, [each.element_spec for each in self.sources])

    @property
    def cardinality(self) -> int:
        counts = [each.cardinality for each in self.sources]
        finite = [count for count in counts if count >= 0]
        if 0 in finite:
            return 0
        return UNKNOWN if UNKNOWN in counts else min(finite, default=INFINITE)

    def iterator(self, seeds: Seeds) -> BlockIterator:
        return iterators.ZipIterator([each.iterator(seeds) for each in self.sources])
