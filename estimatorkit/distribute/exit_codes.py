"""Exit codes of cluster processes, for schedulers.

0: the work is done, or was when the process started. 1: an error of the program; restarting does
not help. 138: peers were lost or did not join in time; restart it. 143: SIGTERM was received, and
the state was saved.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

RETRY = 138
TERMINATED = 143


class Interrupted(SystemExit):
    """Ends this process, to be restarted: it or a peer received SIGTERM."""

    def __init__(self) -> None:
        super().__init__(RETRY)


@contextmanager
def on_sigterm(act: Callable[[], None]) -> Iterator[None]:
    """A context manager in which SIGTERM calls a function instead of ending the process.

    No effect outside of the main thread, which alone handles signals in Python.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        act()

    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


__all__ = ["RETRY", "TERMINATED", "Interrupted", "on_sigterm"]
