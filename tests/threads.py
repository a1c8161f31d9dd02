"""The threads of a test: those it has started, without those left by earlier tests."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

WAIT_SECS = 20.0


class StartedThreads:
    """Looks at the threads that were started after this object was made."""

    def __init__(self) -> None:
        self._before = set(threading.enumerate())

    def running(self, prefix: str = "") -> list[str]:
        """The names, with this prefix, of those that run."""
        return [each.name for each in self._own(prefix)]

    def have_ended(self, prefix: str = "") -> bool:
        """Whether all with this prefix end; waits for them."""
        return comes_true(lambda: not self._own(prefix))

    def _own(self, prefix: str) -> list[threading.Thread]:
        return [
            each
            for each in threading.enumerate()
            if each not in self._before and each.name.startswith(prefix)
        ]


def comes_true(condition: Callable[[], bool]) -> bool:
    """Whether a condition is true soon; waits for it."""
    end = time.monotonic() + WAIT_SECS
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


def run_together(functions: Sequence[Callable[[], None]]) -> None:
    """Calls functions on a thread each, switching often; raises what one of them raised."""
    begin = threading.Barrier(len(functions))

    def run(function: Callable[[], None]) -> None:
        begin.wait()
        function()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(len(functions)) as pool:
            for done in [pool.submit(run, function) for function in functions]:
                done.result()
    finally:
        sys.setswitchinterval(interval)
