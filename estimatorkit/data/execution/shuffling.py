"""`ShuffleIterator`: tf.data's window shuffle, without a loop over the rows.

A buffer holds `buffer_size` rows; each draw hands out the row of a random slot, which the next
input row refills; when the input has ended, the rows left come out in random order. A buffer that
holds the whole input therefore gives a uniform permutation. Draws depend on (key, epoch, number of
the draw) alone, so the order does not depend on the sizes of the blocks asked for, and a position
is restored by reading the epoch again up to it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import OutOfRangeError
from estimatorkit.data.execution.block_iterator import BlockIterator, State, end_of_sequence
from estimatorkit.data.execution.buffers import Columns, concatenate, count_rows, gather
from estimatorkit.data.execution.randomness import RandomStream, nested_epoch
from estimatorkit.data.execution.replaying import ReplayIterator

_FILL_ROWS = (
    65536  # rows a read while the buffer is filled: bounds what a huge buffer_size asks of a map
)


class ShuffleIterator(ReplayIterator):
    """The rows of the input in the order described above.

    Args:
        source: the input.
        buffer_size: rows in the buffer; memory grows with the rows that come, not with this number.
        stream: the random draws.
        reshuffle: whether each epoch has an order of its own.
    """

    def __init__(
        self, source: BlockIterator, buffer_size: int, stream: RandomStream, reshuffle: bool
    ) -> None:
        self._buffer_size = buffer_size
        self._stream = stream
        self._reshuffle = reshuffle
        super().__init__(source)

    def _forget(self) -> None:
        self._filling: list[Columns] = []  # what the buffer will hold
        self._buffer: Columns | None = None  # filled at the first draw
        self._pool: Columns | None = None  # see _pool_rows
        self._order: NDArray[np.int64] | None = None  # of the rows left, once the input has ended

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
        blocks = self._filling  # kept where the input fails: the next call goes on with it
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
        # A single block may be shared with others, and draws write into the buffer.
        self._buffer = concatenate(blocks)
        if not all(isinstance(column, np.ndarray) for column in self._buffer):
            self._pool_rows()
        return self._buffer

    def _pool_rows(self) -> None:
        """Lets the buffer hold numbers of rows, which stand in a pool: rows of other shapes cannot
        take each other's places."""
        self._pool = self._buffer
        self._buffer = [np.arange(count_rows(self._pool or []))]

    def _exchange(self, buffer: Columns, n: int) -> Columns | None:
        """Hands out rows of random slots, refilled from the input; None once that has ended."""
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
        # A draw gets the fresh row of the draw before it on the same slot, or, if there is none,
        # what the slot held; the stable sort brings the draws of a slot together in their order.
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
        """Adds rows to the pool and returns their numbers."""
        pool = self._pool or []
        if count_rows(pool) > 2 * count_rows(buffer) + _FILL_ROWS:  # most have been handed out
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

    def _save(self) -> State:
        return {"key": self._stream.key, **super()._save()}

    def _restore(self, state: State) -> None:
        self._stream = RandomStream(state["key"])
        super()._restore(state)


class PermutationIterator(BlockIterator):
    """The numbers of a range in random order: what a `ShuffleIterator` gives whose buffer holds
    them all, without the buffer; or what repeating that gives, many epochs at once.

    Args:
        numbers: the range.
        stream: the random draws.
        reshuffle: whether each epoch has an order of its own.
    """

    is_repeated = False

    def __init__(self, numbers: range, stream: RandomStream, reshuffle: bool) -> None:
        super().__init__()
        self._numbers = np.arange(numbers.start, numbers.stop, numbers.step)
        self._stream = stream
        self._reshuffle = reshuffle
        self._count: int | None = 1 if len(numbers) else 0
        self._outer = self._epoch = self._position = 0

    def repeated(self, count: int | None) -> PermutationIterator:
        """This one, as yet unused, for so many epochs; None: without end."""
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

    def _save(self) -> State:
        place = {"outer": self._outer, "epoch": self._epoch, "position": self._position}
        return {"key": self._stream.key, **place}

    def _restore(self, state: State) -> None:
        self._stream = RandomStream(state["key"])
        self._outer = state["outer"]
        self._epoch, self._position = state["epoch"], state["position"]

    def _restart(self, epoch: int) -> None:
        self._outer = epoch
        self._epoch = self._position = 0


def _alike(buffer: Columns, fresh: Columns) -> bool:
    """Whether rows of one can take the places of rows of the other."""
    return all(
        isinstance(new, np.ndarray) and old.shape[1:] == new.shape[1:]
        for old, new in zip(buffer, fresh, strict=True)
    )
