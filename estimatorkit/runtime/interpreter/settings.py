"""The settings of a thread in which programs run: its floating-point units', and those of BLAS."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager

from estimatorkit.runtime.interpreter.blas import one_thread
from estimatorkit.runtime.interpreter.floats import as_xla


class _OfThread(threading.local):
    depth = 0
    floats: as_xla


_of_thread = _OfThread()


class _Settings:
    """See `numpy_settings`."""

    def __enter__(self) -> None:
        if not _of_thread.depth:
            one_thread().__enter__()
            _of_thread.floats = as_xla()
            _of_thread.floats.__enter__()
        _of_thread.depth += 1

    def __exit__(self, *_: object) -> None:
        _of_thread.depth -= 1
        if not _of_thread.depth:
            _of_thread.floats.__exit__()
            one_thread().__exit__(None, None, None)


_settings = _Settings()


def numpy_settings() -> AbstractContextManager[None]:
    """A context manager in which NumPy computes as XLA does, and BLAS on the calling thread.

    It may be nested: only the outermost one of a thread changes anything. Loops that run a program
    in each iteration enter it before, which saves 5 us an iteration.
    """
    return _settings
