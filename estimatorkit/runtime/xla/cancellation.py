"""Cancellation of loops, deadlines, and shutdown.

At exit, Python ends a daemon thread when it next acquires the GIL. A thread returning from XLA does
so inside C++ frames that cannot be unwound, and the process aborts. Therefore daemon threads that
begin a run at exit are parked, and runs in flight are awaited.
"""

from __future__ import annotations

import atexit
import itertools
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.core.errors import OpError

# A run that compiles takes seconds; one that hangs must not keep the program.
_LONGEST_WAIT = 20.0
_SESSION_FILE = str(Path(__file__).parents[1] / "session.py")

_sessions: weakref.WeakSet[Any] = weakref.WeakSet()
_left = threading.Event()


def watch(session: Any) -> None:
    """Registers a session, whose `stop_daemons()` is called at exit."""
    _sessions.add(session)
    # Last registered, first called: servers of this process, which wait for the runs that they work
    # on, are ended by what was registered when they were made.
    atexit.unregister(_leave)
    atexit.register(_leave)


def park_daemon_threads() -> None:
    """Blocks daemon threads for ever once the program is exiting."""
    if _left.is_set() and threading.current_thread().daemon:
        threading.Event().wait()


def _leave() -> None:
    _left.set()
    for session in list(_sessions):
        session.stop_daemons()
    end = time.monotonic() + _LONGEST_WAIT
    while time.monotonic() < end and any(
        _is_running(frame)
        for thread, frame in sys._current_frames().items()
        if thread != threading.get_ident()
    ):
        time.sleep(0.002)


def _is_running(frame: FrameType | None) -> bool:
    """Whether a thread is computing in a run, rather than waiting for a queue."""
    if frame is None or frame.f_code.co_filename == threading.__file__:
        return False
    while frame is not None:
        if frame.f_code.co_filename == _SESSION_FILE:
            return True
        frame = frame.f_back
    return False


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
