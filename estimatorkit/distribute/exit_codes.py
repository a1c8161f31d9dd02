"""Exit codes of cluster processes, for schedulers.

0: the work is done, or was when the process came. 1: an error of the program, as of any Python
program; starting it again does not help. 138: others were lost, or did not come in time; starting
it again helps. 143: SIGTERM came, and what there was to save is saved.
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
    """Ends this process to be started again: SIGTERM came to it, or to another with which it
    computes.
    """

    def __init__(self) -> None:
        super().__init__(RETRY)


@contextmanager
def on_sigterm(act: Callable[[], None]) -> Iterator[None]:
    """Inside, SIGTERM calls a function in place of ending the process.

    Without effect outside of the main thread, where Python hears of no signals.
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
