"""Cancelling compiled loops: deadlines, closed sessions and Ctrl-C end a `while_loop` inside XLA.

XLA cannot be interrupted, so a loop asks the host from time to time whether to go on: first after
`FIRST` iterations, then about every `_INTERVAL` seconds (a host callback takes 0.1 ms, so shorter
loops pay nothing). Each call of an executable with loops is a `LoopWatch` with a number, which the
executable takes as an argument and passes to the callback. A loop that was told to stop ends with
the values that it has; the call then raises what the watch found.
"""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.core.errors import OpError

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
    """One call of an executable whose loops may be endless.

    Args:
        check: called from any thread; raises where the call is to end.

    Attributes:
        number: what the executable takes.
    """

    def __init__(self, check: Callable[[], None]) -> None:
        self.number = np.int32(next(_numbers) % _MOST_ITERATIONS)
        self._check = check
        self._error: BaseException | None = None
        self._asked = time.perf_counter()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Around the call and the wait for its results; raises what ended its loops.

        A signal that raises in the main thread (Ctrl-C) ends the loops first: the exception would
        otherwise surface within the callback, and the variables given to the call would be lost.
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
        """Returns when an array is there; signals are handled meanwhile."""
        started = time.perf_counter()
        while not array.is_ready():
            time.sleep(max(5e-5, (time.perf_counter() - started) / 50))  # at most 2% late

    def iterations(self, done: int) -> int:
        """How many iterations come until the next question, after so many; 0 to stop."""
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
    """While it is open, loops are traced so that the call with this number can end them.

    Args:
        number: an int32 scalar, traced by JAX; None: loops run to their end.
    """
    token = _number.set(number)
    try:
        yield
    finally:
        _number.reset(token)


def call_number() -> Any:
    """The number that loops traced now are to ask with; None where they run to their end."""
    return _number.get()


def iterations_until_next(number: Any, done: Any, is_over: Any) -> Any:
    """The length of a loop's next stretch, in JAX: 0 where the loop is over or is to stop."""

    def ask() -> Any:
        shape = jax.ShapeDtypeStruct((), jnp.int32)  # type: ignore[no-untyped-call]
        return jax.pure_callback(_answer, shape, number, done)

    return lax.cond(is_over, lambda: jnp.zeros((), jnp.int32), ask)


def _answer(number: Any, done: Any) -> Any:
    watch = _running.get(int(number))
    return np.int32(0 if watch is None else watch.iterations(int(done)))
