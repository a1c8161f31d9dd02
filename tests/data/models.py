"""What the tests of datasets share: a stand-in for tracing, and pipelines as plain Python."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimatorkit.core.columns import stack
from estimatorkit.core.errors import OutOfRangeError
from estimatorkit.data import BlockIterator, Dataset, TensorSpec
from estimatorkit.data.buffers import Columns
from estimatorkit.data.iterators import nested_epoch
from estimatorkit.data.randomness import RandomStream
from estimatorkit.data.spec import flatten, pack


@dataclass(frozen=True)
class BlockFunction:
    """Runs a NumPy function, written for whole blocks, as if it had been traced."""

    function: Callable[[Any], Any]
    element_spec: Any

    @property
    def output_spec(self) -> Any:
        blocks = [
            np.zeros([1, *(dim or 0 for dim in spec.shape)], spec.dtype.numpy_dtype)
            for spec in flatten(self.element_spec)
        ]
        result = self.function(pack(self.element_spec, blocks))
        inputs_known = all(spec.shape.is_fully_defined() for spec in flatten(self.element_spec))
        specs = [
            TensorSpec(leaf.shape[1:] if inputs_known else [None] * (leaf.ndim - 1), leaf.dtype)
            for leaf in flatten(result)
        ]
        return pack(result, specs)

    def tensors(self) -> list[Any]:
        return []

    def bind(self, values: Any) -> BlockFunction:
        return self

    def start(self, seeds: Any) -> Callable[[str], Callable[..., Columns]]:
        return lambda key: self

    def __call__(self, columns: Columns, count: int, first: int, epoch: int) -> Columns:
        assert all(len(column) == count for column in columns)
        if not all(isinstance(column, np.ndarray) for column in columns):  # row by row
            rows = [
                self([column[i : i + 1][0][None] for column in columns], 1, first + i, epoch)
                for i in range(count)
            ]
            return [
                stack([row[c][0] for row in rows], rows[0][c].dtype) for c in range(len(rows[0]))
            ]
        result = flatten(self.function(pack(self.element_spec, columns)))
        assert all(len(column) == count for column in result)
        return result


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


def as_columns(dataset: Dataset) -> list[np.ndarray]:
    """All rows of a dataset of vectors or scalars, stacked by leaf."""
    rows = deque(read(dataset.make_block_iterator(), [64]))
    return [np.stack(column) for column in zip(*rows, strict=True)]
