"""Shared by the tests of datasets: a stand-in for tracing, and pipelines in plain Python."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from estimatorkit.core.errors import OutOfRangeError
from estimatorkit.core.registry import constant_value
from estimatorkit.core.tensor import Tensor
from estimatorkit.data import BlockIterator, Dataset, TensorSpec
from estimatorkit.data.execution.buffers import Columns
from estimatorkit.data.execution.iterators import nested_epoch
from estimatorkit.data.execution.mixing import ChoicesIterator
from estimatorkit.data.execution.randomness import RandomStream
from estimatorkit.data.plan import Slices
from estimatorkit.data.spec import DatasetSpec, flatten, pack
from estimatorkit.runtime.steps.columns import stack


class _Place(threading.local):
    """Which elements a function runs for, where it asks: what random operations draw by."""

    first = 0
    epoch = 0


PLACE = _Place()


@dataclass(frozen=True)
class BlockFunction:
    """Runs a NumPy function, written for whole blocks, as if it had been traced.

    Datasets that it takes or returns come one by one.
    """

    function: Callable[[Any], Any]
    element_spec: Any

    @property
    def output_spec(self) -> Any:
        specs = flatten(self.element_spec)
        result = self.function(pack(self.element_spec, [_blank(spec) for spec in specs]))
        known = all(spec.shape.is_fully_defined() for spec in specs)
        return pack(result, [_spec_of(leaf, known) for leaf in flatten(result)])

    def tensors(self) -> list[Any]:
        return []

    def bind(self, values: Any) -> BlockFunction:
        return self

    def start(self, seeds: Any) -> Callable[[str], Callable[..., Columns]]:
        return lambda key: self

    def __call__(self, columns: Columns, count: int, first: int, epoch: int) -> Columns:
        assert all(len(column) == count for column in columns)
        specs = flatten(self.element_spec)
        nested = any(isinstance(spec, DatasetSpec) for spec in specs)
        plain = all(isinstance(column, np.ndarray) for column in columns)
        if not plain or (nested and count > 1):  # row by row
            rows = [
                self([column[i : i + 1][0][None] for column in columns], 1, first + i, epoch)
                for i in range(count)
            ]
            return [
                stack([row[c][0] for row in rows], rows[0][c].dtype) for c in range(len(rows[0]))
            ]
        PLACE.first, PLACE.epoch = first, epoch
        given = [
            Dataset(column[0]) if isinstance(spec, DatasetSpec) else column
            for column, spec in zip(columns, specs, strict=True)
        ]
        leaves = flatten(self.function(pack(self.element_spec, given)))
        result = [_as_column(leaf, count) for leaf in leaves]
        assert all(len(column) == count for column in result)
        return result


def _blank(spec: Any) -> Any:
    if isinstance(spec, DatasetSpec):
        inner = flatten(spec.element_spec)
        columns = [np.zeros([0, *_blank(leaf).shape[1:]], leaf.dtype.numpy_dtype) for leaf in inner]
        return Dataset(Slices(spec.element_spec, tuple(columns)))
    return np.zeros([1, *(dim or 0 for dim in spec.shape)], spec.dtype.numpy_dtype)


def _spec_of(leaf: Any, known: bool) -> Any:
    if isinstance(leaf, Dataset):
        return DatasetSpec(leaf.element_spec)
    if isinstance(leaf, Tensor):
        return TensorSpec(leaf.shape, leaf.dtype)
    return TensorSpec(leaf.shape[1:] if known else [None] * (leaf.ndim - 1), leaf.dtype)


def _as_column(leaf: Any, count: int) -> Any:
    if isinstance(leaf, Dataset):
        held = np.empty(1, object)
        held[0] = leaf._plan
        return held
    if isinstance(leaf, Tensor):  # a constant that the library has made
        return np.repeat(np.asarray(constant_value(leaf))[None], count, 0)
    return leaf


def drain(session: Any, element: Any) -> list[Any]:
    """The values of `element` until its iterator has ended."""
    found = []
    while True:
        try:
            found.append(session.run(element))
        except OutOfRangeError:
            return found


def read(iterator: BlockIterator, sizes: list[int], limit: int = 10**9) -> list[list[np.ndarray]]:
    """Reads rows in blocks of the given sizes in turn, checking the contract."""
    rows: list[list[np.ndarray]] = []
    short = False  # the last block had fewer rows than asked for
    turn = 0
    while len(rows) < limit:
        size = min(sizes[turn % len(sizes)], limit - len(rows))
        turn += 1
        try:
            block = iterator.next_block(size)
        except OutOfRangeError:
            break
        assert 1 <= len(block[0]) <= size
        assert not short, "a block was short, though there are more rows"
        short = len(block[0]) < size
        rows.extend([column[i] for column in block] for i in range(len(block[0])))
    return rows


def same(one: list[list[np.ndarray]], two: list[list[np.ndarray]]) -> bool:
    """Whether two sequences of rows are equal."""
    return len(one) == len(two) and all(
        len(a) == len(b)
        and all(
            np.shape(x) == np.shape(y) and np.array_equal(x, y) for x, y in zip(a, b, strict=True)
        )
        for a, b in zip(one, two, strict=True)
    )


class Model:
    """A sequence that can be begun again; `start` returns the rows of the next pass."""

    def __init__(self, *inputs: Model) -> None:
        self.inputs = inputs

    def start(self, epoch: int = 0) -> Iterator[np.ndarray]:
        raise AssertionError("a subclass says how")


class Source(Model):
    def __init__(self, rows: list[np.ndarray]) -> None:
        super().__init__()
        self.rows = rows

    def start(self, epoch: int = 0) -> Iterator[np.ndarray]:
        return iter(self.rows)


class Transformed(Model):
    """Rows of the input, sent through a generator function."""

    def __init__(self, source: Model, function: Callable[[Iterator[Any]], Iterator[Any]]) -> None:
        super().__init__(source)
        self.function = function

    def start(self, epoch: int = 0) -> Iterator[np.ndarray]:
        return self.function(self.inputs[0].start(epoch))


class Repeated(Model):
    def __init__(self, source: Model, count: int | None) -> None:
        super().__init__(source)
        self.count = count

    def start(self, epoch: int = 0) -> Iterator[np.ndarray]:
        for inner in itertools.count() if self.count is None else range(self.count):
            empty = True
            for row in self.inputs[0].start(nested_epoch(epoch, inner)):
                empty = False
                yield row
            if empty:
                return


class Concatenated(Model):
    def start(self, epoch: int = 0) -> Iterator[np.ndarray]:
        passes = [each.start(epoch) for each in self.inputs]
        return (row for rows in passes for row in rows)


class Cached(Model):
    def __init__(self, source: Model) -> None:
        super().__init__(source)
        self.kept: list[np.ndarray] = []
        self.rest: Iterator[np.ndarray] | None = None

    def start(self, epoch: int = 0) -> Iterator[np.ndarray]:
        if self.rest is None:
            self.rest = self.inputs[0].start()  # always pass 0
        position = 0
        while True:
            if position == len(self.kept):
                self.kept.extend([row for row in [next(self.rest, None)] if row is not None])
            if position == len(self.kept):
                return
            yield self.kept[position]
            position += 1


class Shuffled(Model):
    """The window shuffle, row by row, from the same random stream."""

    def __init__(self, source: Model, buffer_size: int, key: str, reshuffle: bool) -> None:
        super().__init__(source)
        self.buffer_size = buffer_size
        self.key = key
        self.reshuffle = reshuffle

    def start(self, epoch: int = 0) -> Iterator[np.ndarray]:
        return self._rows(self.inputs[0].start(epoch), epoch if self.reshuffle else 0)

    def _rows(self, rows: Iterator[np.ndarray], epoch: int) -> Iterator[np.ndarray]:
        stream = RandomStream(self.key)
        buffer: list[np.ndarray] = []
        position = 0
        for row in rows:
            if len(buffer) < self.buffer_size:
                buffer.append(row)
                continue
            slot = int(stream.slots(epoch, position, 1, self.buffer_size)[0])
            yield buffer[slot]
            buffer[slot] = row
            position += 1
        for slot in stream.permutation(epoch, len(buffer)):
            yield buffer[slot]


def batched(size: int, drop_remainder: bool) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def function(rows: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
        group: list[np.ndarray] = []
        for row in rows:
            group.append(row)
            if len(group) == size:
                yield np.stack(group)
                group = []
        if group and not drop_remainder:
            yield np.stack(group)

    return function


class Numbered(Model):
    """Rows with what a random operation would add: it depends on the row's number and the pass."""

    def start(self, epoch: int = 0) -> Iterator[np.ndarray]:
        rows = self.inputs[0].start(epoch)
        return (row + noise(number, epoch) for number, row in enumerate(rows))


def noise(numbers: Any, epoch: int) -> Any:
    """Whole numbers for elements of a pass."""
    return (numbers * 37 + epoch % 1009 * 11) % 13


class Unshuffled(Model):
    """A cache of rows that are the same in each pass."""

    def start(self, epoch: int = 0) -> Iterator[np.ndarray]:
        return self.inputs[0].start(0)


class Zipped(Model):
    """Twice a row of the first input plus that of the second, until one ends."""

    def start(self, epoch: int = 0) -> Iterator[np.ndarray]:
        one, two = (each.start(epoch) for each in self.inputs)
        return (x * 2 + y for x, y in zip(one, two, strict=False))


class Chosen(Model):
    """Rows of the inputs after the first, whose numbers the first one gives."""

    def __init__(self, *inputs: Model, stop_on_empty: bool) -> None:
        super().__init__(*inputs)
        self.stop_on_empty = stop_on_empty

    def start(self, epoch: int = 0) -> Iterator[np.ndarray]:
        choices, *sources = (each.start(epoch) for each in self.inputs)
        ended: set[int] = set()
        for choice in choices:
            row = None if int(choice) in ended else next(sources[int(choice)], None)
            if row is not None:
                yield row
                continue
            ended.add(int(choice))
            if self.stop_on_empty or len(ended) == len(sources):
                return


class Drawn(Model):
    """The numbers that `sample_from_datasets` draws."""

    def __init__(self, weights: Any, key: str) -> None:
        super().__init__()
        self.weights = np.asarray(weights, np.float64)
        self.key = key

    def start(self, epoch: int = 0) -> Iterator[np.ndarray]:
        drawn = ChoicesIterator(self.weights, RandomStream(self.key))
        drawn.restart(epoch)
        while True:
            yield drawn.next_block(1)[0][0]


Rows: TypeAlias = Iterator[Any]


def losing(size: int, drop_remainder: bool, bad: Callable[[Any], bool]) -> Callable[[Rows], Rows]:
    """Batches; a bad row takes with it those read for its batch before it."""

    def function(rows: Rows) -> Rows:
        group: list[np.ndarray] = []
        for row in rows:
            group = [] if bad(row) else [*group, row]
            if len(group) == size:
                yield np.stack(group)
                group = []
        if group and not drop_remainder:
            yield np.stack(group)

    return function


def padded(size: int, drop_remainder: bool, padding: int) -> Callable[[Rows], Rows]:
    """Batches of rows of one rank, padded to the longest."""

    def function(rows: Rows) -> Rows:
        while group := list(itertools.islice(rows, size)):
            if len(group) < size and drop_remainder:
                return
            shape = np.max([np.shape(row) for row in group], axis=0, initial=0).astype(int)
            batch = np.full([len(group), *shape], padding, np.int64)
            for number, row in enumerate(group):
                batch[(number, *map(slice, np.shape(row)))] = row
            yield batch

    return function


def windows(size: int, shift: int, stride: int, drop_remainder: bool) -> Callable[[Rows], Rows]:
    """Lists of rows."""

    def function(rows: Rows) -> Rows:
        held: list[Any] = []
        span = (size - 1) * stride + 1
        while True:
            held.extend(itertools.islice(rows, span - len(held)))
            if not held or (drop_remainder and len(held) < span):
                return
            yield held[:span:stride]
            for _ in range(shift - len(held)):
                next(rows, None)
            held = held[shift:]

    return function


def in_turns(inner: Callable[[Any], list[Any]], cycle: int, block: int) -> Callable[[Rows], Rows]:
    """Rows of the lists made of rows, `cycle` lists at a time, `block` rows of each in its turn."""

    def function(rows: Rows) -> Rows:
        slots: list[list[Any] | None] = [None] * cycle
        turn, ended = 0, False
        while not ended or any(slot is not None for slot in slots):
            if slots[turn] is None and not ended:
                row = next(rows, None)
                ended = row is None
                slots[turn] = None if ended else list(inner(row))
            slot = slots[turn]
            if slot is not None:
                yield from slot[:block]
                slots[turn] = slot[block:] if len(slot) >= block else None
            turn = (turn + 1) % cycle

    return function


def grouped(key: Callable[[Any], int], size: int) -> Callable[[Rows], Rows]:
    """Lists of rows with one key, in the order in which they are full; then the others by key."""

    def function(rows: Rows) -> Rows:
        groups: dict[int, list[Any]] = {}
        for row in rows:
            group = groups.setdefault(key(row), [])
            group.append(row)
            if len(group) == size:
                yield groups.pop(key(row))
        for number in sorted(groups):
            yield groups[number]

    return function


def as_columns(dataset: Dataset) -> list[np.ndarray]:
    """All rows of a dataset of vectors or scalars, stacked by leaf."""
    rows = deque(read(dataset.make_block_iterator(), [64]))
    return [np.stack(column) for column in zip(*rows, strict=True)]
