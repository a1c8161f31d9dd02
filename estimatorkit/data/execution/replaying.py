"""`ReplayIterator`: the base of iterators whose state depends on all previous rows of a pass.

Their position is the number of rows yielded and errors raised since the pass began, and the input's
position there; it is restored by replaying the pass.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from estimatorkit.core.errors import InternalError, OpError, OutOfRangeError
from estimatorkit.data.execution.block_iterator import (
    SKIP_ROWS,
    BlockIterator,
    State,
    UnaryIterator,
    pass_number,
    position,
    random_state,
)
from estimatorkit.data.execution.buffers import Columns, count_rows
from estimatorkit.data.execution.iterators import DrawingFunctions, StartFunction
from estimatorkit.data.execution.randomness import RandomStream


class ReplayIterator(UnaryIterator):
    """An iterator whose position is a number of rows."""

    _epoch: int = pass_number()
    _position: int = position(0)
    _failures: int = position(0)

    def __init__(self, source: BlockIterator) -> None:
        super().__init__(source)
        self._mark_start(0)

    def _mark_start(self, epoch: int) -> None:
        self._begin_pass(epoch)
        self._start = self._input.get_state()
        self._forget()

    @abstractmethod
    def _forget(self) -> None:
        """Drops all state; the input is at the start of the pass."""

    @abstractmethod
    def _make(self, n: int) -> Columns:
        """Returns at least one row and ideally `n`, or raises OutOfRangeError."""

    def _produce(self, n: int) -> Columns:
        try:
            rows = self._make(n)
        except OutOfRangeError:
            raise
        except Exception:
            self._failures += 1
            raise
        self._position += count_rows(rows)
        return rows

    def _save(self) -> State:
        return {**self._own_position(), "start": self._start}

    def _restore(self, state: State) -> None:
        self._restore_own(state)
        self._input.set_state(state["start"])
        self._mark_start(state["epoch"])
        rows, failures = state["position"], state["failures"]
        while self._position < rows or self._failures < failures:
            try:
                self._produce(max(1, min(rows - self._position, SKIP_ROWS)))
            except OutOfRangeError:
                return
            except Exception:  # already raised, unless it is a different one
                if self._failures > failures:
                    raise

    def _restart(self, epoch: int) -> None:
        self._input.restart(epoch)
        self._mark_start(epoch)


class ReplayWithFunction(ReplayIterator):
    """A `ReplayIterator` that runs functions, which may draw random numbers.

    Attributes:
        at_end: see `DrawingFunctions`.

    Args:
        starts: functions that start them.
        stream: the random draws.
    """

    at_end: ClassVar[type[OpError]] = InternalError
    _functions: DrawingFunctions = random_state()

    def __init__(
        self, source: BlockIterator, starts: list[StartFunction], stream: RandomStream
    ) -> None:
        self._functions = DrawingFunctions(starts, stream, self.at_end)
        super().__init__(source)
