"""`ShuffleIterator`: tf.data's buffered shuffle, vectorised.

A buffer holds `buffer_size` rows; each draw yields the row of a random slot, which the next input
row refills; at the end of the input the remaining rows are permuted. A buffer that holds the whole
input therefore yields a uniform permutation. Draws depend on (key, epoch, draw index) only, so the
order is independent of block sizes, and a position is restored by re-reading the epoch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import OutOfRangeError
from estimatorkit.data.execution.block_iterator import (
    BlockIterator,
    end_of_sequence,
    pass_number,
    position,
    random_state,
)
from estimatorkit.data.execution.buffers import Columns, concatenate, count_rows, gather
from estimatorkit.data.execution.randomness import RandomStream, nested_epoch
from estimatorkit.data.execution.replaying import ReplayIterator

_FILL_ROWS = (
    65536  # rows per read while filling the buffer: bounds the blocks of a huge buffer_size
)


class ShuffleIterator(ReplayIterator):
    """The rows of the input in the order described above.

    Args:
        buffer_size: rows in the buffer; memory grows with the rows present only.
        stream: the random draws.
        reshuffle: whether each epoch has a different order.
    """

    _stream: RandomStream = random_state()

    def __init__(
        self, source: BlockIterator, buffer_size: int, stream: RandomStream, reshuffle: bool
    ) -> None:
        self._buffer_size = buffer_size
        self._stream = stream
        self._reshuffle = reshuffle
        super().__init__(source)

    def _forget(self) -> None:
        self._filling: list[Columns] = []  # the blocks read so far
        self._buffer: Columns | None = None  # filled at the first draw
        self._pool: Columns | None = None  # see _pool_rows
        self._order: NDArray[np.int64] | None = None  # of the rows left after the input has ended

    def _make(self, n: int) -> Columns:
        buffer = self._fill() if self._buffer is None else self._buffer
        rows = self._exchange(buffer, n) if self._order is None else None
        if rows is None:  # the input has ended
            rows = self._drain(buffer, n)
        return rows

    @property
    def _random_epoch(self) -> int:
        return self._epoch if self._reshuffle else 0

    def _fill(self) -> Columns:
        blocks = self._filling  # kept if the input fails: the next call continues
        missing = self._buffer_size - sum(map(count_rows, blocks))
        while missing:
            try:
                rows = self._input.next_block(min(missing, _FILL_ROWS))
            except OutOfRangeError:
                if not blocks:
                    raise
                break
            blocks.append(rows)
            missing -= count_rows(rows)
        self._filling = []
        # A block may be shared, and draws write into the buffer.
        self._buffer = concatenate(blocks)
        if not all(isinstance(column, np.ndarray) for column in self._buffer):
            self._pool_rows()
        return self._buffer

    def _pool_rows(self) -> None:
        """Switches the buffer to indices into a pool of rows, because rows of different shapes
        cannot replace each other in place.
        """
        self._pool = self._buffer
        self._buffer = [np.arange(count_rows(self._pool or []))]

    def _exchange(self, buffer: Columns, n: int) -> Columns | None:
        """Yields rows of random slots, refilled from the input; None once that has ended."""
        try:
            fresh = self._input.next_block(n)
        except OutOfRangeError:
            return None
        if self._pool is None and not _alike(buffer, fresh):
            self._pool_rows()
            buffer = self._buffer or []
        if self._pool is not None:
            fresh = self._into_pool(buffer, fresh)
        count = count_rows(fresh)
        slots = self._stream.slots(self._random_epoch, self._position, count, count_rows(buffer))
        # A draw yields the fresh row of the previous draw on the same slot or, if there is none,
        # the slot's initial row; the stable sort groups draws by slot in order.
        order = np.argsort(slots, kind="stable")
        again = slots[order[1:]] == slots[order[:-1]]
        later, earlier = order[1:][again], order[:-1][again]
        last = order[np.append(~again, True)]
        rows = gather(buffer, slots)
        for out, column, new in zip(rows, buffer, fresh, strict=True):
            out[later] = new[earlier]
            column[slots[last]] = new[last]
        return self._from_pool(rows)

    def _into_pool(self, buffer: Columns, fresh: Columns) -> Columns:
        """Adds rows to the pool and returns their indices."""
        pool = self._pool or []
        if count_rows(pool) > 2 * count_rows(buffer) + _FILL_ROWS:  # most rows of the pool are used
            pool = gather(pool, buffer[0])
            buffer[0][:] = np.arange(count_rows(pool))
        first = count_rows(pool)
        self._pool = concatenate([pool, fresh])
        return [np.arange(first, first + count_rows(fresh))]

    def _from_pool(self, rows: Columns) -> Columns:
        return rows if self._pool is None else gather(self._pool, rows[0])

    def _drain(self, buffer: Columns, n: int) -> Columns:
        if self._order is None:
            self._order = self._stream.permutation(self._random_epoch, count_rows(buffer))
        if not len(self._order):
            raise end_of_sequence()
        chosen, self._order = self._order[:n], self._order[n:]
        return self._from_pool(gather(buffer, chosen))


class PermutationIterator(BlockIterator):
    """A range in random order: equivalent to a `ShuffleIterator` whose buffer holds all, without
    the buffer; or to repeating that, many epochs at once.

    Args:
        numbers: the range.
        stream: the random draws.
        reshuffle: whether each epoch has a different order.
    """

    is_repeated = False
    _stream: RandomStream = random_state()
    _outer: int = pass_number()
    _epoch: int = position(0)
    _position: int = position(0)

    def __init__(self, numbers: range, stream: RandomStream, reshuffle: bool) -> None:
        super().__init__()
        self._numbers = np.arange(numbers.start, numbers.stop, numbers.step)
        self._stream = stream
        self._reshuffle = reshuffle
        self._count: int | None = 1 if len(numbers) else 0

    def repeated(self, count: int | None) -> PermutationIterator:
        """This iterator, if unused, repeated for `count` epochs; indefinitely if None."""
        self.is_repeated = True
        self._count = count if len(self._numbers) else 0
        return self

    def _order(self) -> NDArray[np.int64]:
        epoch = nested_epoch(self._outer, self._epoch) if self.is_repeated else self._outer
        return self._stream.permutation(epoch if self._reshuffle else 0, len(self._numbers))

    def _produce(self, n: int) -> Columns:
        parts: list[NDArray[np.int64]] = []
        while n and self._epoch != self._count:
            parts.append(self._order()[self._position : self._position + n])
            n -= len(parts[-1])
            self._move(len(parts[-1]))
        if not parts:
            raise end_of_sequence()
        return [self._numbers[np.concatenate(parts)]]

    def _move(self, rows: int) -> None:
        epochs, self._position = divmod(self._position + rows, len(self._numbers))
        self._epoch += epochs

    def _skip(self, n: int) -> int:
        if self._count is not None:
            n = min(n, (self._count - self._epoch) * len(self._numbers) - self._position)
        if n:
            self._move(n)
        return n


def _alike(buffer: Columns, fresh: Columns) -> bool:
    """Whether rows of one block can replace rows of the other in place."""
    return all(
        isinstance(new, np.ndarray) and old.shape[1:] == new.shape[1:]
        for old, new in zip(buffer, fresh, strict=True)
    )
