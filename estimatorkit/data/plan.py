"""Dataset plans: immutable descriptions of a pipeline, which create its iterators.

A plan has an `element_spec` and a `cardinality`. Parameters that depend on graph tensors are
`Pending` until `bind` substitutes their values. `Reordering` plans over arrays in memory are
rewritten from `T(slices(x))` to `gather(x, T(range(n)))`: a shuffle moves 8-byte indices, and rows
are copied once, many at a time.

Other plans: `nesting` (datasets of datasets), `grouping`, `mixing`, `caching`, and the readers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from estimatorkit.core import dtypes
from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.data.execution import iterators
from estimatorkit.data.execution.block_iterator import BlockIterator
from estimatorkit.data.execution.buffers import Columns
from estimatorkit.data.execution.generators import GeneratorIterator
from estimatorkit.data.execution.prefetching import PrefetchIterator
from estimatorkit.data.execution.randomness import Seeds
from estimatorkit.data.execution.shuffling import PermutationIterator, ShuffleIterator
from estimatorkit.data.parameters import Pending
from estimatorkit.data.spec import (
    TensorSpec,
    either,
    flatten,
    leaf_names,
    map_leaves,
    pack,
    with_leading,
)

if TYPE_CHECKING:
    from estimatorkit.core.tensor import Tensor

INFINITE = -1  # the cardinality of a dataset that never ends
UNKNOWN = -2  # the cardinality if known only at run time


class TracedFunction(Protocol):
    """A traced function of elements that runs on blocks once its captures are bound."""

    @property
    def output_spec(self) -> Any:
        """The nested spec of the result for one element."""

    def tensors(self) -> list[Tensor]:
        """The captured tensors of the outer graph."""

    def bind(self, values: Mapping[Tensor, Any]) -> TracedFunction:
        """Returns the function with the values of captured tensors."""

    def start(self, seeds: Seeds) -> iterators.StartFunction:
        """Returns the function that starts it."""


class Plan(ABC):
    """A node of a dataset's plan: immutable and stateless; state lives in iterators.

    Attributes:
        not_identifying: its fields that say nothing about its elements, or nothing that lasts.
    """

    not_identifying: ClassVar[frozenset[str]] = frozenset()

    @property
    @abstractmethod
    def element_spec(self) -> Any:
        """The nested spec of an element."""

    @property
    @abstractmethod
    def cardinality(self) -> int:
        """The number of elements, INFINITE or UNKNOWN."""

    @abstractmethod
    def iterator(self, seeds: Seeds) -> BlockIterator:
        """Creates an iterator at the first element; all parameters must be bound."""

    def as_gather(self) -> tuple[Columns, Plan] | None:
        """Columns and a plan of row indices that yield the same rows, or None."""
        return None

    def as_batches(self) -> tuple[Columns, Plan, int, bool] | None:
        """Columns, a plan of row indices, the batch size and `drop_remainder` that yield the same
        elements, or None.
        """
        return None

    def as_numbers(self) -> tuple[Columns, Plan] | None:
        """Plain columns and a plan of row indices, scalar or batched, for the same elements; or
        None.
        """
        return None

    @property
    def batch_rows(self) -> int:
        """The largest number of rows per batch of `as_numbers`; 1 if elements are single rows."""
        return 1

    def tensors(self) -> list[Tensor]:
        """The tensors that pending parameters depend on."""
        return list(dict.fromkeys(tensor for part in self._parts() for tensor in _tensors(part)))

    def bind(self, values: Mapping[Tensor, Any]) -> Plan:
        """Returns the plan with the values of pending parameters.

        Raises:
            InvalidArgumentError: a value is out of range.
        """
        if not self.tensors():
            return self
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        bound = {name: _bind(getattr(self, name), values) for name in names}
        return replace(self, **bound)  # type: ignore[type-var]

    def _parts(self) -> list[Any]:
        return [getattr(self, field.name) for field in fields(self)]  # type: ignore[arg-type]


def _tensors(part: Any) -> Iterable[Tensor]:
    if isinstance(part, Pending):
        return part.tensors
    if isinstance(part, tuple):
        return [tensor for each in part for tensor in _tensors(each)]
    if isinstance(part, Plan) or hasattr(part, "output_spec"):
        return part.tensors()  # type: ignore[no-any-return]
    return ()


def _bind(part: Any, values: Mapping[Tensor, Any]) -> Any:
    if isinstance(part, Pending):
        return part.finish(*(values[tensor] for tensor in part.tensors))
    if type(part) is tuple:
        return tuple(_bind(each, values) for each in part)
    if isinstance(part, Plan) or hasattr(part, "output_spec"):
        return part.bind(values)
    return part


@dataclass(frozen=True, eq=False)
class Slices(Plan):
    """Rows of columns; `spec` describes one row."""

    spec: Any
    columns: tuple[Any, ...]

    def __post_init__(self) -> None:
        known = [each for each in self.columns if not isinstance(each, Pending)]
        names = leaf_names(self.spec)
        for name, column in zip(names, self.columns, strict=True):
            if not isinstance(column, Pending) and len(column) != len(known[0]):
                raise value_error(
                    "from_tensor_slices(): the first dimensions differ",
                    expected=f"{len(known[0])} rows, as {names[0]} has",
                    received=f"{len(column)} rows in {name}",
                )

    @property
    def element_spec(self) -> Any:
        return self.spec

    @property
    def cardinality(self) -> int:
        known = [len(each) for each in self.columns if not isinstance(each, Pending)]
        return known[0] if known else UNKNOWN

    def iterator(self, seeds: Seeds) -> BlockIterator:
        return iterators.GatherIterator(
            list(self.columns), iterators.RangeIterator(range(self.cardinality))
        )

    def as_gather(self) -> tuple[Columns, Plan] | None:
        if any(isinstance(each, Pending) for each in self.columns):
            return None
        return list(self.columns), Range(range(self.cardinality))

    def as_numbers(self) -> tuple[Columns, Plan] | None:
        if not all(isinstance(column, np.ndarray) for column in self.columns):
            return None
        numbers = np.arange(self.cardinality)
        return list(self.columns), Slices(TensorSpec((), dtypes.int64), (numbers,))


@dataclass(frozen=True, eq=False)
class Range(Plan):
    """The int64 values of a range."""

    numbers: Any  # a range, or pending

    @property
    def element_spec(self) -> TensorSpec:
        return TensorSpec((), dtypes.int64)

    @property
    def cardinality(self) -> int:
        return UNKNOWN if isinstance(self.numbers, Pending) else len(self.numbers)

    def iterator(self, seeds: Seeds) -> BlockIterator:
        return iterators.RangeIterator(self.numbers)


@dataclass(frozen=True, eq=False)
class Generated(Plan):
    """The elements of a Python generator."""

    generator: Callable[..., Iterable[Any]]
    spec: Any
    args: tuple[Any, ...] = ()
    not_identifying = frozenset({"generator"})

    @property
    def element_spec(self) -> Any:
        return self.spec

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def iterator(self, seeds: Seeds) -> BlockIterator:
        generator = partial(self.generator, *self.args)
        return GeneratorIterator(generator, self.spec, seeds.generator_checksums())


@dataclass(frozen=True, eq=False)
class Unary(Plan):
    """A plan with one source; keeps its spec and cardinality by default.

    Attributes:
        only_moves: whether it moves elements or batches without inspecting them.
    """

    source: Plan
    only_moves: ClassVar[bool] = False

    @property
    def element_spec(self) -> Any:
        return self.source.element_spec

    @property
    def cardinality(self) -> int:
        return self.source.cardinality

    def iterator(self, seeds: Seeds) -> BlockIterator:
        return self._over(self.source.iterator(seeds), seeds)

    def as_numbers(self) -> tuple[Columns, Plan] | None:
        form = self.source.as_numbers() if self.only_moves else None
        if form is None:
            return None
        columns, numbers = form
        return columns, replace(self, source=numbers)

    @property
    def batch_rows(self) -> int:
        return self.source.batch_rows

    @abstractmethod
    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        """Creates this plan's iterator on top of its source's."""


@dataclass(frozen=True, eq=False)
class Reordering(Unary):
    """Selects and orders rows without inspecting them, so it can operate on row indices instead."""

    only_moves = True

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

    buffer_size: Any
    seed: Any
    reshuffle: Any

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        stream = seeds.stream(self.seed)
        if isinstance(self.source, Range) and self.buffer_size >= self.source.cardinality:
            return PermutationIterator(self.source.numbers, stream, self.reshuffle)
        return ShuffleIterator(source, self.buffer_size, stream, self.reshuffle)


@dataclass(frozen=True, eq=False)
class Repeat(Reordering):
    """The source repeated `count` times; indefinitely if None."""

    count: Any

    @property
    def cardinality(self) -> int:
        if isinstance(self.count, Pending):
            return UNKNOWN
        source = self.source.cardinality
        if source == 0 or self.count == 0:
            return 0
        if self.count is None or source == INFINITE:
            return INFINITE
        return UNKNOWN if source == UNKNOWN else source * self.count

    def iterator(self, seeds: Seeds) -> BlockIterator:
        form = self.source.as_batches()
        if form is None:
            return super().iterator(seeds)
        columns, indices, size, drop_remainder = form
        numbers = replace(self, source=indices).iterator(seeds)
        length = indices.cardinality
        return iterators.BatchedEpochsIterator(columns, numbers, length, size, drop_remainder)

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        if isinstance(source, PermutationIterator) and not source.is_repeated:
            return source.repeated(self.count)
        return iterators.RepeatIterator(source, self.count)


@dataclass(frozen=True, eq=False)
class Take(Reordering):
    """The first `count` elements; all if negative."""

    count: Any

    @property
    def cardinality(self) -> int:
        if isinstance(self.count, Pending):
            return UNKNOWN
        source = self.source.cardinality
        if self.count < 0:
            return source
        if source == UNKNOWN:
            return UNKNOWN if self.count else 0
        return int(self.count) if source == INFINITE else min(source, int(self.count))

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        return source if self.count < 0 else iterators.TakeIterator(source, self.count)


@dataclass(frozen=True, eq=False)
class Skip(Reordering):
    """All but the first `count` elements; none if negative."""

    count: Any

    @property
    def cardinality(self) -> int:
        if isinstance(self.count, Pending):
            return UNKNOWN
        source = self.source.cardinality
        if self.count < 0:
            return 0
        return source if source < 0 else max(0, source - self.count)

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        if self.count < 0:
            return iterators.TakeIterator(source, 0)
        return iterators.SkipIterator(source, self.count)


@dataclass(frozen=True, eq=False)
class Shard(Reordering):
    """The elements whose index modulo `num_shards` equals `index`."""

    num_shards: Any
    index: Any

    def __post_init__(self) -> None:
        known = not isinstance(self.num_shards, Pending) and not isinstance(self.index, Pending)
        if known and self.index >= self.num_shards:
            raise InvalidArgumentError.explained(
                f"Index must be between 0 and {int(self.num_shards) - 1}: shard(): index is "
                "out of range",
                expected=f"0 <= index < {self.num_shards}",
                received=self.index,
            )

    @property
    def cardinality(self) -> int:
        if isinstance(self.num_shards, Pending) or isinstance(self.index, Pending):
            return UNKNOWN
        source = self.source.cardinality
        return source if source < 0 else len(range(self.index, source, self.num_shards))

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        return iterators.ShardIterator(source, self.num_shards, self.index)


def _components(element_spec: Any) -> list[str]:
    """Component names for messages: by index, as in TensorFlow, and by key."""
    names = leaf_names(element_spec)
    if len(names) == 1:
        return ["component 0"]
    return [f"component {number} ({name})" for number, name in enumerate(names)]


@dataclass(frozen=True, eq=False)
class Batch(Unary):
    """Batches of `batch_size` consecutive elements."""

    batch_size: Any
    drop_remainder: Any
    only_moves = True

    @cached_property
    def element_spec(self) -> Any:
        full = self.drop_remainder is True and not isinstance(self.batch_size, Pending)
        size = self.batch_size if full else None
        return map_leaves(lambda spec: with_leading(spec, size), self.source.element_spec)

    @property
    def cardinality(self) -> int:
        source = self.source.cardinality
        if isinstance(self.batch_size, Pending) or isinstance(self.drop_remainder, Pending):
            return UNKNOWN
        if source < 0:
            return source
        full, rest = divmod(source, int(self.batch_size))
        return full if self.drop_remainder or not rest else full + 1

    def as_batches(self) -> tuple[Columns, Plan, int, bool] | None:
        form = self.source.as_gather()
        if form is None or type(self) is not Batch or self.cardinality <= 0:
            return None
        columns, indices = form
        if not all(isinstance(column, np.ndarray) for column in columns):
            return None
        return columns, indices, int(self.batch_size), bool(self.drop_remainder)

    def as_numbers(self) -> tuple[Columns, Plan] | None:
        form = super().as_numbers()
        # Batches of batches may differ in shape; the error message then names the component.
        return None if form is None or form[1].element_spec.shape.rank != 1 else form

    @property
    def batch_rows(self) -> int:
        return int(self.batch_size)

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        names = _components(self.source.element_spec)
        return iterators.BatchIterator(source, self.batch_size, self.drop_remainder, names)


@dataclass(frozen=True, eq=False)
class PaddedBatch(Batch):
    """Batches padded to `shapes` (one per component; None: to the longest) with `paddings`."""

    shapes: Any
    paddings: Any
    only_moves = False

    @cached_property
    def element_spec(self) -> Any:
        full = self.drop_remainder is True and not isinstance(self.batch_size, Pending)
        size = self.batch_size if full else None
        specs = flatten(self.source.element_spec)
        known = [
            [None] * (spec.shape.rank or 0) if isinstance(shape, Pending) else shape
            for spec, shape in zip(specs, self.shapes, strict=True)
        ]
        return pack(
            self.source.element_spec,
            [
                with_leading(TensorSpec(shape, spec.dtype), size)
                for spec, shape in zip(specs, known, strict=True)
            ],
        )

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        return iterators.PaddedBatchIterator(
            source,
            self.batch_size,
            self.drop_remainder,
            _components(self.source.element_spec),
            self.shapes,
            self.paddings,
        )


@dataclass(frozen=True, eq=False)
class Unbatch(Unary):
    """Slices of each element along its first dimension; `spec` describes one slice."""

    spec: Any

    @property
    def element_spec(self) -> Any:
        return self.spec

    @property
    def cardinality(self) -> int:
        source = self.source.cardinality
        if source == 0:
            return 0
        counts = {spec.shape[0] for spec in flatten(self.source.element_spec) if spec.shape.rank}
        counts.discard(None)
        if len(counts) != 1:
            return INFINITE if source == INFINITE else UNKNOWN
        return source if source < 0 else source * counts.pop()

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        return iterators.UnbatchIterator(source, _components(self.source.element_spec))


@dataclass(frozen=True, eq=False)
class Map(Unary):
    """Applies a function to each element."""

    function: TracedFunction

    @property
    def element_spec(self) -> Any:
        return self.function.output_spec

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        return iterators.MapIterator(source, self.function.start(seeds), seeds.function_stream())


@dataclass(frozen=True, eq=False)
class Filter(Unary):
    """The elements for which a predicate is true."""

    predicate: TracedFunction

    @property
    def cardinality(self) -> int:
        return UNKNOWN if self.source.cardinality else 0

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        start = self.predicate.start(seeds)
        return iterators.FilterIterator(source, start, seeds.function_stream())


@dataclass(frozen=True, eq=False)
class TakeWhile(Filter):
    """The elements before the first for which a predicate is false."""

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        start = self.predicate.start(seeds)
        return iterators.TakeWhileIterator(source, start, seeds.function_stream())


@dataclass(frozen=True, eq=False)
class Prefetch(Unary):
    """Prefetches `buffer_size` elements on a thread."""

    buffer_size: Any
    only_moves = True

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        if not self.buffer_size:
            return source
        return PrefetchIterator(source, self.buffer_size)


@dataclass(frozen=True, eq=False)
class Concatenate(Plan):
    """The elements of one plan followed by those of another."""

    first: Plan
    second: Plan

    @cached_property
    def element_spec(self) -> Any:
        return map_leaves(either, self.first.element_spec, self.second.element_spec)

    @property
    def cardinality(self) -> int:
        counts = self.first.cardinality, self.second.cardinality
        return INFINITE if INFINITE in counts else UNKNOWN if UNKNOWN in counts else sum(counts)

    def iterator(self, seeds: Seeds) -> BlockIterator:
        return iterators.ConcatenateIterator(
            [self.first.iterator(seeds), self.second.iterator(seeds)]
        )


@dataclass(frozen=True, eq=False)
class Zip(Plan):
    """Elements of several plans side by side, packed as `structure`, whose leaves are ignored."""

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
