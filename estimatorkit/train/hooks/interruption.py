"""`InterruptionHook`: Ctrl-C and SIGTERM end a training after the current step, and save it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from estimatorkit.distribute.exit_codes import TERMINATED
from estimatorkit.logger import logger
from estimatorkit.train.hooks.hooks import FinishedSteps, SessionRunHook

_DEFAULTS: dict[signal.Signals, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}
REASONS = frozenset(f"{number.name} came" for number in _DEFAULTS)
"""The reasons to stop that `InterruptionHook` gives."""


class InterruptionHook(SessionRunHook):
    """Stops the training on SIGINT or SIGTERM.

    Signals that the program or a cluster's role handles itself are left alone, and so are all of
    them outside of the main thread, the only one to handle signals in Python.
    """

    def __init__(self) -> None:
        self._came: signal.Signals | None = None

    @property
    def came(self) -> bool:
        """Whether one of the signals came."""
        return self._came is not None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """A context manager for the training and its end.

        The second signal ends the program at once: the first restores the default handlers.

        Raises:
            KeyboardInterrupt: SIGINT came; the training has been ended and saved.
            SystemExit: SIGTERM came, with code 143.
        """
        handled = [
            number
            for number, default in _DEFAULTS.items()
            if threading.current_thread() is threading.main_thread()
            and signal.getsignal(number) is default
        ]

        def restore() -> None:
            for number in handled:
                signal.signal(number, _DEFAULTS[number])

        def handle(number: int, frame: FrameType | None) -> None:
            restore()
            self._came = signal.Signals(number)
            again = "press Ctrl-C again" if number == signal.SIGINT else "send it again"
            logger.warning(
                "%s: the training ends after this step (%s to exit at once).",
                self._came.name,
                again,
            )

        self._came = None
        for number in handled:
            signal.signal(number, handle)
        try:
            yield
        finally:
            restore()
        if self._came is signal.SIGINT:
            raise KeyboardInterrupt
        if self._came is signal.SIGTERM:
            raise SystemExit(TERMINATED)

    def after_steps(self, steps: FinishedSteps) -> None:
        """Stops the training if a signal came."""
        self.while_waiting(steps.stop)

    def while_waiting(self, stop: list[str]) -> None:
        """Stops waiting for data if a signal came."""
        if self._came is not None:
            stop.append(f"{self._came.name} came")
