"""Ctrl-C at moments when it would be lost, or harm: it is put off to the next one.

* Python drops exceptions of callbacks of the collector and of weak references, and of `__del__`.
  JAX has a callback of the collector, which runs so often that 5 of 40 `run`s went on to their end.
* JAX's extension modules turn what is raised while they are imported into other errors: of 40
  `run`s one crashed, one aborted, one hung, and one told of an ImportError.
* JAX passes over all exceptions (`except:`) where it tries what a traced value can do: 3 of 177
  exports went on.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

from estimatorkit.runtime.xla.import_hooks import import_within

_PAUSE_SECS = 0.01
"""Long enough for a callback or an import to return."""

_ATOMIC = "jax", "jaxlib"
"""Packages that are imported as a whole."""


def keep_interrupts() -> None:
    """Makes Ctrl-C end the program at any moment, without a crash; for the rest of the program.

    Adds to `sys.unraisablehook`, which is told of dropped exceptions, and to `sys.meta_path`.
    """
    if not isinstance(sys.unraisablehook, _Keeping):
        sys.unraisablehook = _Keeping(sys.unraisablehook)
    import_within(_atomic, lambda name: name.partition(".")[0] in _ATOMIC)


class _Keeping:
    """A `sys.unraisablehook` that sends SIGINT again; gives all else to the one before."""

    def __init__(self, before: Any) -> None:
        self._before = before

    def __call__(self, unraisable: Any) -> None:
        # Nothing calls the callback once the program has ended: there is nothing to interrupt.
        is_program = sys._getframe().f_back is not None
        if unraisable.exc_type is KeyboardInterrupt and is_program and _in_main_thread():
            _send_again()
        else:
            self._before(unraisable)


@contextmanager
def interrupts_put_off(whole: bool = False) -> Iterator[None]:
    """A context manager, or decorator, that Ctrl-C does not end before its end.

    Args:
        whole: whether not even a second Ctrl-C does, and the first comes a moment after the end.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not _in_main_thread() or not callable(handler):
        yield
        return
    came = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal came
        if came and not whole:
            handler(number, frame)
        came = True

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came and whole:
            _send_again()
        elif came:
            handler(signal.SIGINT, sys._getframe())


_atomic = partial(interrupts_put_off, whole=True)


def _in_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


def _send_again() -> None:
    """Sends SIGINT to the main thread, in a moment."""

    def send() -> None:
        time.sleep(_PAUSE_SECS)
        if sys.platform == "win32":
            _thread.interrupt_main()
        else:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # ends waits

    _thread.start_new_thread(send, ())  # takes no lock, unlike threading's
