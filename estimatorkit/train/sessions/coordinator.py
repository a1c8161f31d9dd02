"""`Coordinator`: stops a set of threads together, and propagates their first exception.

Threads poll `should_stop()`; any thread that ends or fails calls `request_stop()`; the main thread
calls `join()`, which raises the exception. `LooperThread` is such a thread, which calls a function
repeatedly.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from estimatorkit.core.errors import OutOfRangeError, explain, value_error
from estimatorkit.logger import logger
from estimatorkit.runtime.xla.at_exit import counted, idle, park_daemon_threads

_LOOK_AGAIN = 0.1
"""The polling interval of `join` in seconds."""


class Coordinator:
    """Coordinates the termination of a set of threads.

    Args:
        clean_stop_exception_types: exceptions that stop without being an error;
            `(OutOfRangeError,)` by default, the end of the input.
    """

    def __init__(
        self, clean_stop_exception_types: Sequence[type[BaseException]] | None = None
    ) -> None:
        self._clean = tuple(
            (OutOfRangeError,) if clean_stop_exception_types is None else clean_stop_exception_types
        )
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._joined = False
        self._threads: set[threading.Thread] = set()

    def request_stop(self, ex: Any = None) -> None:
        """Requests the threads to stop: afterwards `should_stop()` returns true.

        Args:
            ex: an exception, or a `sys.exc_info()` tuple. `join()` raises the first that is not a
                clean stop.

        Raises:
            Exception: `ex` itself, if `join()` is already over.
            TypeError: it is not an exception.
        """
        error = ex[1] if isinstance(ex, tuple) else ex
        if not isinstance(error, BaseException | None):
            raise TypeError(f"ex must be an exception or a sys.exc_info() tuple, got {ex!r}")
        with self._lock:
            if isinstance(error, self._clean):
                error = None
            if error is not None and self._joined:
                raise error
            if self._stop.is_set():
                return
            if error is not None:
                logger.info("Error reported to Coordinator: %s, %s", type(error).__name__, error)
                self._error = error
            self._stop.set()

    def clear_stop(self) -> None:
        """Resets the stop request, the exception and the joined state."""
        with self._lock:
            self._joined = False
            self._error = None
            self._stop.clear()

    def should_stop(self) -> bool:
        """Returns whether a stop has been requested."""
        return self._stop.is_set()

    @contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """A context that reports an exception of its block, and suppresses it."""
        try:
            yield
        except Exception as error:  # `join` raises it
            self.request_stop(error)

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Waits until a stop is requested.

        Args:
            timeout: in seconds; None waits forever.

        Returns:
            Whether a stop has been requested.
        """
        return self._stop.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Adds a thread for `join` to wait for."""
        with self._lock:
            self._threads.add(thread)

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Waits until the threads have ended, and raises the reported exception.

        Args:
            threads: started threads, besides those registered.
            stop_grace_period_secs: seconds for threads to end after a stop request.
            ignore_live_threads: whether to ignore threads that still run then.

        Raises:
            RuntimeError: threads run after the grace period.
            Exception: the exception given to `request_stop`.
        """
        with self._lock:
            waited = [*self._threads, *(threads or ())]
        while not self.should_stop():
            running = next((thread for thread in waited if thread.is_alive()), None)
            if running is None:
                break
            running.join(_LOOK_AGAIN)
        deadline = time.monotonic() + stop_grace_period_secs
        for thread in waited:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))
        stragglers = sorted({thread.name for thread in waited if thread.is_alive()})
        with self._lock:
            self._joined = True
            self._threads = set()
            if self._error is not None:
                raise self._error
        if stragglers:
            problem = f"Coordinator stopped with threads still running: {' '.join(stragglers)}"
            if not ignore_live_threads:
                raise RuntimeError(
                    explain(
                        problem,
                        expected=f"threads to end within {stop_grace_period_secs} seconds",
                        hint="poll coord.should_stop() in each thread, or allow more time: "
                        "join(..., stop_grace_period_secs=...)",
                    )
                )
            logger.info(problem)

    @property
    def joined(self) -> bool:
        """Whether `join` is over."""
        return self._joined

    @property
    def requested_exception(self) -> BaseException | None:
        """The exception given to `request_stop`, if it was not a clean stop."""
        return self._error

    def raise_requested_exception(self) -> None:
        """Raises the exception given to `request_stop`, if any."""
        with self._lock:
            if self._error is not None:
                raise self._error


@contextmanager
def coordinated() -> Iterator[Coordinator]:
    """A context with a coordinator for hooks and their threads, which end with it."""
    coord = Coordinator(clean_stop_exception_types=[])
    try:
        yield coord
    finally:
        coord.request_stop()
        coord.join(ignore_live_threads=True)


class LooperThread(threading.Thread):
    """A thread that repeats a function until its coordinator requests a stop.

    Override `run_loop`, or pass a function. Exceptions are reported to the coordinator.

    Args:
        coord: the coordinator, which also joins the thread.
        timer_interval_secs: seconds between the starts of two calls; None calls without a pause.
        target: the function to call.

    Raises:
        ValueError: `coord` is not a coordinator, or there are arguments without a function.
    """

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any] | None = None,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(coord, Coordinator):
            raise value_error("'coord' argument must be a Coordinator", received=repr(coord)[:200])
        if target is None and (args or kwargs):
            raise ValueError("'args' and 'kwargs' argument require that you also pass 'target'")
        super().__init__(daemon=True)
        self._coord = coord
        self._interval = timer_interval_secs
        self._function = target
        self._arguments = (tuple(args or ()), dict(kwargs or {}))
        coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> LooperThread:
        """Creates and starts a looper thread."""
        looper = LooperThread(coord, timer_interval_secs, target, args, kwargs)
        looper.start()
        return looper

    def run(self) -> None:
        """The body of the thread."""
        counted(self._run)()

    def _run(self) -> None:
        with self._coord.stop_on_exception():
            self.start_loop()
            turn = time.monotonic()
            while not self._wait_for_turn(turn):
                park_daemon_threads()
                turn += self._interval or 0.0
                self.run_loop()
            self.stop_loop()

    def _wait_for_turn(self, turn: float) -> bool:
        if self._interval is None:
            return self._coord.should_stop()
        with idle():
            return self._coord.wait_for_stop(max(0.0, turn - time.monotonic()))

    def start_loop(self) -> None:
        """Called once, before the first iteration."""

    def stop_loop(self) -> None:
        """Called once, after the last iteration."""

    def run_loop(self) -> None:
        """One iteration; calls the function by default."""
        if self._function is not None:
            args, kwargs = self._arguments
            self._function(*args, **kwargs)
