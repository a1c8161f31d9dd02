"""Ctrl-C that Python drops: exceptions in callbacks of the collector, weak references, `__del__`.

JAX has a callback of the collector, which runs so often that 2 of 24 `fit`s went on after Ctrl-C.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def keeping_interrupts() -> Iterator[Callable[[], None]]:
    """A context manager for work in the main thread that Ctrl-C is to end, or a decorator.

    It yields a function to call between steps, which raises what was dropped; so does its end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    dropped = False
    before = sys.unraisablehook

    def note(unraisable: Any) -> None:
        nonlocal dropped
        if unraisable.exc_type is KeyboardInterrupt:
            dropped = True
        else:
            before(unraisable)

    def check() -> None:
        nonlocal dropped
        if dropped:
            dropped = False
            raise KeyboardInterrupt

    sys.unraisablehook = note
    try:
        yield check
    finally:
        if sys.unraisablehook is note:
            sys.unraisablehook = before
    check()
