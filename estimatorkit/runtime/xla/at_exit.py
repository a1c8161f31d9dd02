"""Shutdown: no thread returns from XLA while Python ends.

At exit, Python ends a daemon thread when it next acquires the GIL. A thread returning from XLA does
so inside C++ frames that cannot be unwound, and the process aborts. Therefore daemon threads that
begin a run at exit are parked, and runs in flight are awaited.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
import weakref
from pathlib import Path
from types import FrameType
from typing import Any

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
