"""`BlockIterator`: executes a dataset's plan one block of rows at a time.

The class is the contract and the shared implementation: filling blocks to the requested size,
holding surplus rows, saving and restoring the position. Subclasses produce *some* next rows and
declare what their position consists of: `_taken: int = position(0)`.

A position is small (counts, epochs, keys; never rows), JSON-able, and exact: it names the next row,
independently of previous block sizes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar

from estimatorkit.core.errors import (
    CancelledError,
    DataLossError,
    InvalidArgumentError,
    OutOfRangeError,
    value_error,
)
from estimatorkit.data.execution.buffers import Columns, concatenate, count_rows, slice_rows

State: TypeAlias = dict[str, Any]
_T = TypeVar("_T")

SKIP_ROWS = 8192  # rows at a time, if skipping must produce them


def end_of_sequence() -> OutOfRangeError:
    """The error that ends an epoch of a dataset."""
    return OutOfRangeError(None, None, "End of sequence")


class _Position(NamedTuple):
    """An attribute that is saved under its name.

    Attributes:
        start: its value at the start of a pass; None for the number of the pass.
        is_random: whether its `key` is saved, and no pass changes it.
    """

    start: Any = None
    is_random: bool = False


def position(start: _T) -> _T:
    """Declares an attribute of a `BlockIterator` as a part of its position.

    Args:
        start: the value at the start of a pass; immutable, and JSON can hold it.
    """
    declared: Any = _Position(start)
    return declared  # type: ignore[no-any-return]


def pass_number() -> int:
    """Declares the attribute with the number of the pass, as `position`."""
    declared: Any = _Position()
    return declared  # type: ignore[no-any-return]


def random_state() -> Any:
    """Declares an attribute with `key` and `with_key()`, as a `RandomStream`; see `position`."""
    return _Position(is_random=True)


class BlockIterator(ABC):
    """Executes a dataset plan.

    Not thread-safe. A subclass defines `_produce`, declares its position and lists its inputs.

    Args:
        inputs: the iterators it reads from.
    """

    _start_values: ClassVar[Mapping[str, Any]] = {}  # by attribute of the position
    _saved: ClassVar[tuple[tuple[str, str], ...]] = ()  # these attributes, with their keys
    _random: ClassVar[str | None] = None  # the attribute whose key is saved

    def __init_subclass__(cls) -> None:
        declared = {name: each for name, each in vars(cls).items() if isinstance(each, _Position)}
        for name, each in declared.items():
            delattr(cls, name)  # the attributes of instances are faster without
            if each.is_random:
                cls._random = name
            else:
                cls._start_values = {**cls._start_values, name: each.start}
        cls._saved = tuple((name.removeprefix("_"), name) for name in cls._start_values)

    def __init__(self, *inputs: BlockIterator) -> None:
        self._inputs = inputs
        self._held: deque[Columns] = deque()  # rows produced but not yet returned
        self._base: State = {}  # the position at which the held rows were produced ...
        self._used = 0  # ... and the rows returned since then
        self._mark: tuple[State, int] = ({}, 0)  # both at the start of the last block
        self._failure: Exception | None = None  # deferred until preceding rows are returned ...
        self._failed_at: State = {}  # ... and the position before it
        self._closed = False
        self._begin_pass(0)

    def next_block(self, n: int) -> Columns:
        """Returns the next rows.

        Args:
            n: the maximum number of rows, >= 1.

        Returns:
            The columns, each of m rows, 1 <= m <= n; m < n only if the input ends or fails (see
            `failing`).

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
        """Like `next_block`, but the block may also end where later rows may be requested only once
        these are used. For consumers of elements, not for transformations.
        """
        return self.next_block(n)

    def next_ahead(self, n: int) -> Columns | None:
        """Like `next_stretch`, before the previous rows are used; None if the next must wait."""
        return self.next_block(n)

    def _hold(self, n: int, *, defer: bool) -> bool:
        """Produces rows into `_held`. With `defer`, an error is kept for the next call and returns
        False.
        """
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
        """Like `next_block`, but returns None instead of an error, which the next call raises."""
        try:
            return self.next_block(n)
        except Exception as error:
            self._failure = error
            return None

    def pass_one(self) -> None:
        """Skips one row, or one error in place of a row."""
        if self.next_rows(1) is None:
            self._failure = None

    @property
    def failing(self) -> bool:
        """Whether the next call raises an error other than the end of the input: a short block is
        then not the last one.
        """
        failure = None if self._held else self._failure
        return failure is not None and not isinstance(failure, OutOfRangeError)

    def unread(self, block: Columns, used: int) -> None:
        """Pushes back the rows from `used` on of the block that `next_block` returned last."""
        if used < count_rows(block):
            self._held.appendleft(slice_rows(block, used))
            self._base, self._used = self._mark[0], self._mark[1] + used

    def skip(self, n: int) -> int:
        """Skips up to `n` rows, without producing them if possible.

        Returns:
            The number of skipped rows: less than `n` only at the end of the input.
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
        """Restores a position that `get_state` of the same pipeline returned.

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
            epoch: the number of the pass; the initial one is 0. Shuffles derive their order from it
                instead of counting passes, since prefetching may have begun later ones.
        """
        self._clear()
        self._restart(epoch)

    def close(self) -> None:
        """Stops threads and closes inputs; idempotent."""
        self._closed = True
        self._clear()
        for each in self._inputs:
            each.close()

    def _clear(self) -> None:
        self._held.clear()
        self._failure = None

    @abstractmethod
    def _produce(self, n: int) -> Columns:
        """Returns at least one row and ideally `n`, or raises OutOfRangeError."""

    def _begin_pass(self, epoch: int) -> None:
        """Sets the attributes of the position to those at the start of pass number `epoch`."""
        for name, start in self._start_values.items():
            setattr(self, name, epoch if start is None else start)

    def _own_position(self) -> State:
        """The attributes of the position."""
        state = {}
        for key, name in self._saved:
            state[key] = getattr(self, name)
        if self._random is not None:
            state["key"] = getattr(self, self._random).key
        return state

    def _restore_own(self, state: State) -> None:
        for key, name in self._saved:
            setattr(self, name, state[key])
        if self._random is not None:
            setattr(self, self._random, getattr(self, self._random).with_key(state["key"]))

    def _save(self) -> State:
        """The position at which `_produce` continues: its attributes, and that of the inputs."""
        state = self._own_position()
        if self._inputs:
            state["inputs"] = [each.get_state() for each in self._inputs]
        return state

    def _restore(self, state: State) -> None:
        """Restores a position that `_save` returned."""
        self._restore_own(state)
        states: Sequence[State] = state["inputs"] if self._inputs else ()
        if len(self._inputs) != len(states):
            raise InvalidArgumentError.explained(
                "the saved position of the input belongs to another pipeline",
                expected=f"{len(self._inputs)} inputs",
                received=len(states),
            )
        for each, there in zip(self._inputs, states, strict=True):
            each.set_state(there)

    def _restart(self, epoch: int) -> None:
        """Begins pass number `epoch`."""
        self._begin_pass(epoch)
        for each in self._inputs:
            each.restart(epoch)

    def _skip(self, n: int) -> int:
        """Skips up to `n` rows while no rows are held; returns how many."""
        skipped = 0
        while skipped < n:
            try:
                skipped += count_rows(self.next_block(min(n - skipped, SKIP_ROWS)))
            except OutOfRangeError:
                break
        return skipped


def check_numbers(state: Any) -> None:
    """Raises DataLossError if a position contains numbers that none can have."""
    pending = [state]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            if max(each.get("used", 0), each.get("skip", 0)) >= _MOST_ROWS:
                pending.append(-1)
            pending.extend(each.values())
        elif isinstance(each, list):
            pending.extend(each)
        elif isinstance(each, (int, float)) and not 0 <= each < 1 << 64:
            raise DataLossError.explained(
                "the saved position of the input is malformed",
                expected=f"counts from 0 to 2**64, and up to {_MOST_ROWS} rows of a block",
                received=repr(each)[:100],
            )


_MOST_ROWS = 1 << 28
"""Of a block: more do not fit in memory."""


class UnaryIterator(BlockIterator):
    """An iterator with one input."""

    def __init__(self, source: BlockIterator) -> None:
        super().__init__(source)
        self._input = source

    def _work_on(
        self, rows: Columns, work: Callable[[Columns, int], Any], unit: int = 1
    ) -> tuple[Columns, Any]:
        """Applies `work` to the rows that the input returned last, or to a prefix of them.

        If `work` fails, shorter prefixes are tried, so that the rows before the failing one are
        returned first; the next call raises that row's error and continues after it.

        Args:
            rows: at least `unit` rows.
            work: called with rows and their number.
            unit: rows that belong together; those beyond a multiple wait for the next call.

        Returns:
            The processed rows, and the result.
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
        state = self._own_position()
        state["input"] = self._input.get_state()
        return state

    def _restore(self, state: State) -> None:
        self._restore_own(state)
        self._input.set_state(state["input"])
