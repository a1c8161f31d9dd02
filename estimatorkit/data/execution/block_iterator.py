"""`BlockIterator`: how a dataset's plan is executed, a block of rows at a time.

The class is the contract and what all iterators share: filling a block up to the size asked for,
holding back what came too much, saving and restoring the position. A subclass says how to produce
*some* next rows, and where its inputs stand.

A position is small (counts, epochs, keys; never rows), JSON-able, and exact: it names the next row,
whatever sizes the blocks had before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

from estimatorkit.core.errors import (
    CancelledError,
    InvalidArgumentError,
    OutOfRangeError,
    value_error,
)
from estimatorkit.data.execution.buffers import Columns, concatenate, count_rows, slice_rows

State: TypeAlias = dict[str, Any]

SKIP_ROWS = 8192  # rows a time, where skipping must produce them


def end_of_sequence() -> OutOfRangeError:
    """The error that ends a pass over a dataset."""
    return OutOfRangeError(None, None, "End of sequence")


class BlockIterator(ABC):
    """Executes one dataset plan.

    Not for several threads at once. A subclass defines the methods with an underscore and lists its
    inputs.

    Args:
        inputs: the iterators it reads from.
    """

    def __init__(self, *inputs: BlockIterator) -> None:
        self._inputs = inputs
        self._held: deque[Columns] = deque()  # rows produced, not yet handed out
        self._base: State = {}  # the position at which the held rows were produced ...
        self._used = 0  # ... and how many rows since have been handed out
        self._mark: tuple[State, int] = ({}, 0)  # the same two where the last block begins
        self._failure: Exception | None = None  # met after rows that had to go out first ...
        self._failed_at: State = {}  # ... and the position before it, where it is met again
        self._closed = False

    def next_block(self, n: int) -> Columns:
        """Returns the next rows.

        Args:
            n: how many at most, >= 1.

        Returns:
            The columns, each of m rows, 1 <= m <= n; m < n only where the input ends, or fails
            (see `failing`).

        Raises:
            OutOfRangeError: there are no more rows.
        """
        if n < 1:
            raise value_error("a block must have rows", expected="n >= 1", received=n)
        if self._closed:
            raise CancelledError(None, None, "The iterator is closed.")
        parts: list[Columns] = []
        missing = n
        while missing:
            if not self._held and not self._hold(missing, defer=bool(parts)):
                break
            if not parts:
                self._mark = (self._base, self._used)
            rows = self._held[0]
            count = count_rows(rows)
            if count <= missing:
                parts.append(self._held.popleft())
            else:
                count = missing
                parts.append(slice_rows(rows, 0, count))
                self._held[0] = slice_rows(rows, count)
            self._used += count
            missing -= count
        return parts[0] if len(parts) == 1 else concatenate(parts)

    def next_stretch(self, n: int) -> Columns:
        """As `next_block`, but a block may also end where the rows after it are to be asked for
        only once these are used. For who hands out elements, not for who makes others of them.
        """
        return self.next_block(n)

    def next_ahead(self, n: int) -> Columns | None:
        """The same before the rows that came last are used; None if the next ones must wait."""
        return self.next_block(n)

    def _hold(self, n: int, *, defer: bool) -> bool:
        """Produces rows into `_held`; an error met while `defer` waits, and gives False."""
        failure, self._failure = self._failure, None
        if failure is None:
            base = self._save()
            try:
                rows = self._produce(n)
            except Exception as error:
                failure, self._failed_at = error, base
            else:
                self._held.append(rows)
                self._base, self._used = base, 0
                return True
        if not defer:
            raise failure
        self._failure = failure
        return False

    def next_rows(self, n: int) -> Columns | None:
        """As `next_block`, but None instead of an error, which the next call raises."""
        try:
            return self.next_block(n)
        except Exception as error:
            self._failure = error
            return None

    def pass_one(self) -> None:
        """Goes on by one row, or by an error in the place of one."""
        if self.next_rows(1) is None:
            self._failure = None

    @property
    def failing(self) -> bool:
        """Whether the next call raises an error other than the end of the input: then a block that
        was short is no last one."""
        failure = None if self._held else self._failure
        return failure is not None and not isinstance(failure, OutOfRangeError)

    def unread(self, block: Columns, used: int) -> None:
        """Gives back the rows from `used` on of the block that `next_block` returned last."""
        if used < count_rows(block):
            self._held.appendleft(slice_rows(block, used))
            self._base, self._used = self._mark[0], self._mark[1] + used

    def skip(self, n: int) -> int:
        """Passes over up to `n` rows, without producing them where that can be avoided.

        Returns:
            How many were passed over: fewer than `n` only at the end of the input.
        """
        skipped = 0
        while self._held and skipped < n:
            count = min(n - skipped, count_rows(self._held[0]))
            skipped += count
            self._used += count
            self._held[0] = slice_rows(self._held[0], count)
            if not count_rows(self._held[0]):
                self._held.popleft()
        if skipped < n and self._failure is None:
            skipped += self._skip(n - skipped)
        return skipped

    def get_state(self) -> State:
        """Returns the position of the next row: a small dict that JSON can hold."""
        if self._held:
            state = {**self._base, "used": self._used}
        else:
            state = self._save() if self._failure is None else self._failed_at
        return {"iterator": type(self).__name__, **state}

    def set_state(self, state: State) -> None:
        """Goes to a position that `get_state` of the same pipeline returned.

        Raises:
            InvalidArgumentError: the position is that of another pipeline.
        """
        name = type(self).__name__
        if state.get("iterator") != name:
            raise InvalidArgumentError.explained(
                "the saved position of the input belongs to another pipeline",
                expected=name,
                received=state.get("iterator"),
                hint="the input function has changed since the position was saved; "
                "start the input anew or restore the former input function",
            )
        self._clear()
        self._restore(state)
        self.skip(state.get("used", 0))

    def restart(self, epoch: int) -> None:
        """Begins another pass over the input.

        Args:
            epoch: its number; the first pass, of a new iterator, is number 0. Shuffles draw their
                order by it, rather than count the passes: how many were begun depends on how far
                somebody had read ahead.
        """
        self._clear()
        self._restart(epoch)

    def close(self) -> None:
        """Stops threads and frees inputs; may be called again."""
        self._closed = True
        self._clear()
        for each in self._inputs:
            each.close()

    def _clear(self) -> None:
        self._held.clear()
        self._failure = None

    @abstractmethod
    def _produce(self, n: int) -> Columns:
        """Returns at least one row, at best `n`; or raises OutOfRangeError."""

    @abstractmethod
    def _save(self) -> State:
        """The position from which `_produce` continues."""

    @abstractmethod
    def _restore(self, state: State) -> None:
        """Goes to a position that `_save` returned."""

    @abstractmethod
    def _restart(self, epoch: int) -> None:
        """Begins pass number `epoch`."""

    def _skip(self, n: int) -> int:
        """Passes over up to `n` rows, nothing being held; returns how many."""
        skipped = 0
        while skipped < n:
            try:
                skipped += count_rows(self.next_block(min(n - skipped, SKIP_ROWS)))
            except OutOfRangeError:
                break
        return skipped


class UnaryIterator(BlockIterator):
    """An iterator with one input; by default its position is the input's."""

    def __init__(self, source: BlockIterator) -> None:
        super().__init__(source)
        self._input = source

    def _work_on(
        self, rows: Columns, work: Callable[[Columns, int], Any], unit: int = 1
    ) -> tuple[Columns, Any]:
        """Does work on the rows that the input gave last, or on the first of them.

        Where it fails, fewer rows are tried, so that those before the bad one come out; the next
        call meets that one first, raises its error, and stands behind it.

        Args:
            rows: at least `unit` rows.
            work: takes rows and how many they are.
            unit: rows that belong together; those beyond a multiple wait for the next call.

        Returns:
            The rows that it was done on, and its result.
        """
        units = count_rows(rows) // unit
        while True:
            used = units * unit
            part = slice_rows(rows, 0, used)
            try:
                result = work(part, used)
            except Exception:
                if units == 1:
                    self._input.unread(rows, used)
                    raise
                units //= 2
            else:
                self._input.unread(rows, used)
                return part, result

    def _save(self) -> State:
        return {"input": self._input.get_state()}

    def _restore(self, state: State) -> None:
        self._input.set_state(state["input"])

    def _restart(self, epoch: int) -> None:
        self._input.restart(epoch)
