"""NumPy's settings while programs run: of floating-point units, warnings, and threads of BLAS."""

from __future__ import annotations

import threading

from estimatorkit.runtime.interpreter.blas import one_thread
from estimatorkit.runtime.interpreter.floats import as_xla


class _OfThread(threading.local):
    depth = 0
    floats: as_xla


_of_thread = _OfThread()


class numpy_settings:
    """A context manager in which NumPy computes as XLA does, and BLAS on the calling thread.

    It may be nested: only the outermost one of a thread changes anything. Loops that run a program
    in each iteration enter it before, which saves 5 us an iteration.
    """

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
