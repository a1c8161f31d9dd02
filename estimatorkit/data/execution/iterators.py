"""Iterators of the basic transformations; others are in `shuffling`, `prefetching`, `generators`.

See `BlockIterator` for their contract.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from estimatorkit.core.errors import (
    InternalError,
    InvalidArgumentError,
    OpError,
    OutOfRangeError,
)
from estimatorkit.data.execution.block_iterator import (
    BlockIterator,
    State,
    UnaryIterator,
    end_of_sequence,
    pass_number,
    position,
    random_state,
)
from estimatorkit.data.execution.buffers import (
    Columns,
    batch,
    count_rows,
    cut,
    gather,
    padded_batch,
    slice_rows,
    unbatch,
)
from estimatorkit.data.execution.randomness import RandomStream, nested_epoch

BlockCall: TypeAlias = Callable[[Columns, int, int, int], Columns]
"""A function on a block: (columns, rows, number of the first row in the pass, number of the pass).
"""

StartFunction: TypeAlias = Callable[[str], BlockCall]
"""Makes a function ready; random operations without a seed draw from the key it is given."""


class RangeIterator(BlockIterator):
    """The int64 values of a `range`."""

    _position: int = position(0)

    def __init__(self, numbers: range) -> None:
        super().__init__()
        self._numbers = numbers

    def _produce(self, n: int) -> Columns:
        part = self._numbers[self._position : self._position + n]
        if not part:
            raise end_of_sequence()
        self._position += len(part)
        return [np.arange(part.start, part.stop, part.step, dtype=np.int64)]

    def _skip(self, n: int) -> int:
        count = len(self._numbers[self._position : self._position + n])
        self._position += count
        return count


class GatherIterator(UnaryIterator):
    """Rows of arrays in memory, selected by a stream of row indices."""

    def __init__(self, columns: Columns, indices: BlockIterator) -> None:
        super().__init__(indices)
        self._columns = columns

    def _produce(self, n: int) -> Columns:
        return gather(self._columns, self._input.next_block(n)[0])

    def _skip(self, n: int) -> int:
        return self._input.skip(n)


class RepeatIterator(UnaryIterator):
    """The input repeated `count` times; indefinitely if None. Blocks may span epochs."""

    _outer: int = pass_number()  # of this iterator itself
    _epoch: int = position(0)
    _empty: bool = position(True)  # no rows in this epoch yet

    def __init__(self, source: BlockIterator, count: int | None) -> None:
        super().__init__(source)
        self._count = count

    def _produce(self, n: int) -> Columns:
        while self._epoch != self._count:
            try:
                rows = self._input.next_block(n)
            except OutOfRangeError:
                self._next_epoch()
            else:
                self._empty = False
                return rows
        raise end_of_sequence()

    def _skip(self, n: int) -> int:
        skipped = 0
        while skipped < n and self._epoch != self._count:
            count = self._input.skip(n - skipped)
            skipped += count
            self._empty &= not count
            if skipped < n:
                try:
                    self._next_epoch()
                except OutOfRangeError:
                    break
        return skipped

    def _next_epoch(self) -> None:
        if self._empty:  # repeating an empty input would never return
            raise end_of_sequence()
        self._epoch += 1
        if self._epoch != self._count:
            self._input.restart(nested_epoch(self._outer, self._epoch))
            self._empty = True

    def _restart(self, epoch: int) -> None:
        self._begin_pass(epoch)
        self._input.restart(nested_epoch(epoch, 0))


class TakeIterator(UnaryIterator):
    """The first `count` rows."""

    _taken: int = position(0)

    def __init__(self, source: BlockIterator, count: int) -> None:
        super().__init__(source)
        self._count = count

    def _produce(self, n: int) -> Columns:
        if self._taken == self._count:
            raise end_of_sequence()
        rows = self._input.next_block(min(n, self._count - self._taken))
        self._taken += count_rows(rows)
        return rows

    def _skip(self, n: int) -> int:
        count = self._input.skip(min(n, self._count - self._taken))
        self._taken += count
        return count


class SkipIterator(UnaryIterator):
    """All but the first `count` rows."""

    _begun: bool = position(False)

    def __init__(self, source: BlockIterator, count: int) -> None:
        super().__init__(source)
        self._count = count

    def _produce(self, n: int) -> Columns:
        self._begin()
        return self._input.next_block(n)

    def _skip(self, n: int) -> int:
        self._begin()
        return self._input.skip(n)

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._input.skip(self._count)


class ShardIterator(UnaryIterator):
    """The rows whose index modulo `num_shards` equals `index`."""

    _passed: int = position(0)  # rows read, modulo num_shards

    def __init__(self, source: BlockIterator, num_shards: int, index: int) -> None:
        super().__init__(source)
        self._num_shards = num_shards
        self._index = index

    def _produce(self, n: int) -> Columns:
        while True:
            rows = self._input.next_block(n * self._num_shards)
            first = (self._index - self._passed) % self._num_shards
            count = count_rows(rows)
            self._passed = (self._passed + count) % self._num_shards
            if first < count:
                return slice_rows(rows, first, None, self._num_shards)


class BatchIterator(UnaryIterator):
    """Batches of `batch_size` consecutive input rows.

    Args:
        drop_remainder: drop a smaller last batch.
        names: the component names, for messages.
    """

    def __init__(
        self, source: BlockIterator, batch_size: int, drop_remainder: bool, names: Sequence[str]
    ) -> None:
        super().__init__(source)
        self._size = batch_size
        self._drop_remainder = drop_remainder
        self._names = names

    def _produce(self, n: int) -> Columns:
        rows = self._input.next_block(n * self._size)
        count = count_rows(rows)
        if count < self._size:
            if self._input.failing:  # rows already read for this batch are lost with it
                self._input.next_block(1)
            if self._drop_remainder:
                raise end_of_sequence()
            return self._join(rows, count)
        _, batches = self._work_on(rows, lambda part, _: self._join(part, self._size), self._size)
        made: Columns = batches
        return made

    def _join(self, rows: Columns, size: int) -> Columns:
        return [batch(column, size, name) for column, name in zip(rows, self._names, strict=True)]

    def _skip(self, n: int) -> int:
        count = self._input.skip(n * self._size)
        return count // self._size if self._drop_remainder else -(-count // self._size)


class BatchedEpochsIterator(UnaryIterator):
    """Batches of rows of arrays in memory over many epochs, each ending with its remainder.

    Equivalent to repeating batches, but rows are gathered and batches cut for many epochs at once:
    with small data sets the overhead per epoch would exceed the training time.

    Args:
        columns: the rows, plain arrays.
        indices: row indices, one epoch after the other.
        epoch_rows: rows per epoch.
        drop_remainder: drop a smaller last batch of each epoch.
    """

    _batch: int = position(0)  # the number of the next one in its epoch

    def __init__(
        self,
        columns: Columns,
        indices: BlockIterator,
        epoch_rows: int,
        batch_size: int,
        drop_remainder: bool,
    ) -> None:
        super().__init__(indices)
        self._columns = columns
        # Rows consumed by each batch of an epoch, and rows kept of them.
        starts = range(0, epoch_rows, batch_size)
        self._taken = np.array([min(batch_size, epoch_rows - start) for start in starts])
        self._sizes = self._taken
        if drop_remainder and self._taken[-1] < batch_size:
            self._taken = np.append(self._taken[:-2], self._taken[-2:].sum())
            self._sizes = np.full(len(self._taken), batch_size)

    def _batches(self, n: int) -> tuple[Any, Any]:
        """The numbers of rows consumed and kept by each of the next batches."""
        numbers = (self._batch + np.arange(n)) % len(self._sizes)
        return self._taken[numbers], self._sizes[numbers]

    def _produce(self, n: int) -> Columns:
        taken, sizes = self._batches(n)
        (rows,) = self._input.next_block(int(taken.sum()))
        count = int(np.searchsorted(np.cumsum(taken), len(rows), "right"))
        taken, sizes = taken[:count], sizes[:count]
        if len(rows) > sizes.sum():
            ends = np.cumsum(taken)
            place = np.arange(len(rows)) - np.repeat(ends - taken, taken)
            rows = rows[place < np.repeat(sizes, taken)]
        self._batch = (self._batch + count) % len(self._sizes)
        return [cut(column, sizes) for column in gather(self._columns, rows)]

    def _skip(self, n: int) -> int:
        taken, _ = self._batches(n)
        skipped = self._input.skip(int(taken.sum()))
        count = int(np.searchsorted(np.cumsum(taken), skipped, "right"))
        self._batch = (self._batch + count) % len(self._sizes)
        return count


class PaddedBatchIterator(BatchIterator):
    """Batches of rows padded to a common shape.

    Args:
        source, batch_size, drop_remainder, names: see `BatchIterator`.
        shapes: the padded row shape of each component; a None dimension is padded to the longest.
        paddings: the padding value of each component.
    """

    def __init__(
        self,
        source: BlockIterator,
        batch_size: int,
        drop_remainder: bool,
        names: Sequence[str],
        shapes: Sequence[Sequence[int | None]],
        paddings: Sequence[Any],
    ) -> None:
        super().__init__(source, batch_size, drop_remainder, names)
        self._shapes = shapes
        self._paddings = paddings

    def _join(self, rows: Columns, size: int) -> Columns:
        return [
            padded_batch(column, size, shape, padding, name)
            for column, shape, padding, name in zip(
                rows, self._shapes, self._paddings, self._names, strict=True
            )
        ]


class UnbatchIterator(UnaryIterator):
    """The slices of the input's rows along their first dimension."""

    def __init__(self, source: BlockIterator, names: Sequence[str]) -> None:
        super().__init__(source)
        self._names = names
        self._ratio = 1.0  # output rows per input row, last time

    def _produce(self, n: int) -> Columns:
        while True:
            rows = self._input.next_block(max(1, round(n / self._ratio)))
            parts = [unbatch(column, name) for column, name in zip(rows, self._names, strict=True)]
            counts = parts[0][1]
            for (_, other), name in zip(parts, self._names, strict=True):
                if not np.array_equal(counts, other):
                    raise InvalidArgumentError.explained(
                        "unbatch(): input shapes are inconsistent on the 0th dimension",
                        expected=f"{counts.tolist()[:10]}, as {self._names[0]} has",
                        received=f"{other.tolist()[:10]} in {name}",
                    )
            self._ratio = max(1.0, float(counts.mean()))
            if counts.sum():
                return [column for column, _ in parts]


class DrawingFunctions:
    """Started functions, and the random stream that their random operations share.

    Args:
        starts: functions that start them.
        at_end: the error in place of an OutOfRangeError of a function (`StopIteration` in a
            `py_func`), which would end the data as if the input had ended; None to let it end.
    """

    def __init__(
        self,
        starts: Sequence[StartFunction],
        stream: RandomStream,
        at_end: type[OpError] | None = InternalError,
    ) -> None:
        self._starts = starts
        self._at_end = at_end
        self._set(stream)

    def _set(self, stream: RandomStream) -> None:
        self.stream = stream
        self._calls = [self._started(start) for start in self._starts]

    def _started(self, start: StartFunction) -> BlockCall:
        call, at_end = start(self.stream.key), self._at_end
        if at_end is None:
            return call

        def checked(columns: Columns, count: int, first: int, epoch: int) -> Columns:
            try:
                return call(columns, count, first, epoch)
            except OutOfRangeError as error:
                text = f"Function invocation produced OutOfRangeError: {error.message}"
                raise at_end(error.node_def, error.op, text) from error

        return checked

    def __getitem__(self, number: int) -> BlockCall:
        return self._calls[number]

    @property
    def key(self) -> str:
        """The key of the stream."""
        return self.stream.key

    def with_key(self, key: str) -> DrawingFunctions:
        """Switches to the stream with a (restored) key, and returns itself."""
        if key != self.stream.key:
            self._set(RandomStream(key))
        return self


class MapIterator(UnaryIterator):
    """Applies a function to whole blocks.

    Attributes:
        at_end: see `DrawingFunctions`; as in TensorFlow, a mapped function may end the data.
    """

    at_end: ClassVar[type[OpError] | None] = None
    _functions: DrawingFunctions = random_state()
    _epoch: int = pass_number()
    _passed: int = position(0)  # input rows since the start of the pass

    def __init__(self, source: BlockIterator, start: StartFunction, stream: RandomStream) -> None:
        super().__init__(source)
        self._functions = DrawingFunctions([start], stream, self.at_end)

    def _produce(self, n: int) -> Columns:
        return self._apply(n)[1]

    def _apply(self, n: int) -> tuple[Columns, Columns]:
        """Reads up to `n` rows; returns them and the function's results.

        If the function fails, only the rows before the failing one are returned; see `_work_on`.
        """
        rows = self._input.next_block(n)
        function, first = self._functions[0], self._passed
        try:
            rows, results = self._work_on(
                rows, lambda part, count: function(part, count, first, self._epoch)
            )
        except Exception:
            self._passed += 1
            raise
        self._passed += count_rows(rows)
        return rows, results

    def _skip(self, n: int) -> int:
        count = self._input.skip(n)
        self._passed += count
        return count


class FilterIterator(MapIterator):
    """The rows for which a predicate is true."""

    at_end = InternalError
    _size = 0

    def _produce(self, n: int) -> Columns:
        # A constant size for all calls, the largest requested: surplus rows are held, and a
        # compiled predicate is not recompiled for the sizes n, n/2, n/4, ... of exactly filled
        # blocks.
        self._size = max(self._size, n)
        while True:
            rows, (holds,) = self._apply(self._size)
            kept = np.flatnonzero(holds)
            if len(kept) == count_rows(rows):
                return rows
            if len(kept):
                return gather(rows, kept)

    def _skip(self, n: int) -> int:
        return BlockIterator._skip(self, n)


class TakeWhileIterator(MapIterator):
    """The rows before the first for which a predicate is false."""

    at_end = InternalError
    _ended: bool = position(False)

    def _produce(self, n: int) -> Columns:
        if self._ended:
            raise end_of_sequence()
        rows, (holds,) = self._apply(n)
        failing = np.flatnonzero(~np.asarray(holds))
        if not len(failing):
            return rows
        self._ended = True
        if not failing[0]:
            raise end_of_sequence()
        return slice_rows(rows, 0, int(failing[0]))

    def _skip(self, n: int) -> int:
        return BlockIterator._skip(self, n)


class ConcatenateIterator(BlockIterator):
    """The rows of several inputs, one input after the other."""

    def __init__(self, inputs: Sequence[BlockIterator]) -> None:
        super().__init__(*inputs)

    def _produce(self, n: int) -> Columns:
        while self._current < len(self._inputs):
            try:
                return self._inputs[self._current].next_block(n)
            except OutOfRangeError:
                self._current += 1
        raise end_of_sequence()

    def _skip(self, n: int) -> int:
        skipped = 0
        while self._current < len(self._inputs):
            skipped += self._inputs[self._current].skip(n - skipped)
            if skipped == n:
                break
            self._current += 1
        return skipped

    def _begin_pass(self, epoch: int) -> None:
        super()._begin_pass(epoch)
        self._current = 0

    def _restore(self, state: State) -> None:
        self._current = 0  # inputs that have ended raise again
        super()._restore(state)


class ZipIterator(BlockIterator):
    """Rows of several inputs side by side, up to the end of the shortest."""

    def __init__(self, inputs: Sequence[BlockIterator]) -> None:
        super().__init__(*inputs)

    def _produce(self, n: int) -> Columns:
        blocks: list[Columns] = []
        try:
            for each in self._inputs:
                blocks.append(each.next_block(n))
        except OutOfRangeError:
            # Read again, as by a restored `ConcatenateIterator`, it ends again: an input that had
            # moved on might fail.
            for each, block in zip(self._inputs, blocks, strict=False):
                each.unread(block, 0)
            raise
        except Exception:
            self._pass_over(blocks)
            raise
        count = min(map(count_rows, blocks))
        for each, block in zip(self._inputs, blocks, strict=True):
            each.unread(block, count)
        return [column[:count] for block in blocks for column in block]

    def _pass_over(self, blocks: Sequence[Columns]) -> None:
        """Skips one row of all inputs except the one that failed, to keep them aligned.

        Args:
            blocks: the blocks read from the inputs before that one.
        """
        for each, block in zip(self._inputs, blocks, strict=False):
            each.unread(block, 1)
        for each in self._inputs[len(blocks) + 1 :]:
            each.pass_one()

    def _skip(self, n: int) -> int:
        return min(each.skip(n) for each in self._inputs)
