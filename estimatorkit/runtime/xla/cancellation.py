"""Cancellation of runs: deadlines, closed sessions, and loops on a device that may not end."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from types import FrameType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.core.errors import CancelledError, DeadlineExceededError, OpError


class _Run(threading.local):
    """The deadline and the watch of a thread's run."""

    deadline: float | None = None
    watch: Callable[[], None] | None = None


class Cancellation:
    """What ends the runs of a session before they are complete.

    It is closed with the session; each thread may have a deadline and a function that is watched.

    Attributes:
        is_closed: whether the session was closed.
    """

    def __init__(self) -> None:
        self.is_closed = False
        self._run = _Run()

    def close(self) -> None:
        """Cancels all runs, as the session closes."""
        self.is_closed = True

    @property
    def time_left(self) -> float | None:
        """Seconds until the deadline of this thread's run; None without one."""
        deadline = self._run.deadline
        return None if deadline is None else max(deadline - time.monotonic(), 0.0)

    @contextmanager
    def deadline(self, seconds: float) -> Iterator[None]:
        """A context manager that sets a deadline for this thread's run, in seconds; 0 for none."""
        outer = self._run.deadline
        self._run.deadline = time.monotonic() + seconds if seconds else outer
        try:
            yield
        finally:
            self._run.deadline = outer

    @contextmanager
    def watched(self, watch: Callable[[], None]) -> Iterator[None]:
        """A context manager in which checks also call `watch`, which may raise."""
        self._run.watch = watch
        try:
            yield
        finally:
            self._run.watch = None

    def check(self) -> None:
        """Raises an error if this thread's run is cancelled (see `State.raise_if_cancelled`)."""
        self._check(self._run.deadline, self._run.watch)

    def check_of_thread(self) -> Callable[[], None]:
        """Returns a function that checks this thread's run, and may be called in other threads."""
        return partial(self._check, self._run.deadline, self._run.watch)

    def _check(self, deadline: float | None, watch: Callable[[], None] | None) -> None:
        if self.is_closed:
            raise CancelledError(None, None, "Step was cancelled: the session was closed.")
        if deadline is not None and time.monotonic() > deadline:
            raise DeadlineExceededError(None, None, "Timed out waiting for notification.")
        if watch is not None:
            watch()


FIRST = 256
"""Iterations until a loop asks for the first time."""

FIRST_OF_SCALARS = 16384
"""The same for a loop of few scalar operations, which takes less than 1 us an iteration."""

_INTERVAL = 0.03
_MOST_ITERATIONS = 1 << 30

_numbers = itertools.count(1)
_running: dict[int, LoopWatch] = {}
_number: ContextVar[Any] = ContextVar("number", default=None)


class LoopWatch:
    """A call of an executable with potentially endless loops.

    Args:
        check: called from any thread; raises to cancel the call.

    Attributes:
        number: the argument of the executable that identifies the call.
    """

    def __init__(self, check: Callable[[], None]) -> None:
        self.number = np.int32(next(_numbers) % _MOST_ITERATIONS)
        self._check = check
        self._error: BaseException | None = None
        self._asked = time.perf_counter()

    @property
    def is_over(self) -> bool:
        """Whether the call has been cancelled: its loops end."""
        return self._error is not None

    @contextmanager
    def running(self) -> Iterator[None]:
        """A context manager for the call and the wait for its results; raises what cancelled it.

        A signal that raises in the main thread (Ctrl-C) stops the loops first: the exception would
        otherwise surface inside the callback, and the variables donated to the call would be lost.
        """
        _running[int(self.number)] = self
        handler = signal.getsignal(signal.SIGINT)
        in_main = threading.current_thread() is threading.main_thread() and callable(handler)

        def handle(signum: int, frame: FrameType | None) -> None:
            try:
                handler(signum, frame)  # type: ignore[misc, operator]
            except BaseException as error:
                self._error = error

        if in_main:
            signal.signal(signal.SIGINT, handle)
        try:
            yield
        finally:
            if in_main:
                signal.signal(signal.SIGINT, handler)
            del _running[int(self.number)]
        if self._error is not None:
            raise self._error

    def wait(self, array: Any) -> None:
        """Blocks until an array is ready, while handling signals."""
        started = time.perf_counter()
        while not array.is_ready():
            time.sleep(max(5e-5, (time.perf_counter() - started) / 50))  # at most 2% late

    def iterations(self, done: int) -> int:
        """The number of iterations to run before the next check; 0 to stop."""
        try:
            self._check()
        except OpError as error:
            self._error = error
        now = time.perf_counter()
        factor = min(16.0, _INTERVAL / max(now - self._asked, 1e-9))
        self._asked = now
        more = min(max(int(done * factor), FIRST), _MOST_ITERATIONS)
        return 0 if self._error is not None else more


@contextmanager
def cancellable(number: Any) -> Iterator[None]:
    """A context manager that traces loops so that the call with this number is cancellable.

    Args:
        number: an int32 scalar, traced by JAX; None makes loops not cancellable.
    """
    token = _number.set(number)
    try:
        yield
    finally:
        _number.reset(token)


def call_number() -> Any:
    """The call number for loops being traced; None if they are not cancellable."""
    return _number.get()


def iterations_until_next(number: Any, done: Any, is_over: Any) -> Any:
    """The number of iterations until the next check, in JAX; 0 to stop."""

    def ask() -> Any:
        shape = jax.ShapeDtypeStruct((), jnp.int32)  # type: ignore[no-untyped-call]
        return jax.pure_callback(_answer, shape, number, done)

    return lax.cond(is_over, lambda: jnp.zeros((), jnp.int32), ask)


def _answer(number: Any, done: Any) -> Any:
    watch = _running.get(int(number))
    return np.int32(0 if watch is None else watch.iterations(int(done)))
