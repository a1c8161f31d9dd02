"""The threads of NumPy's BLAS.

OpenBLAS uses all cores from some 10,000 multiplications on, and its threads wait by spinning: on a
machine with other work, which may be XLA's compilation, the products of an LSTM's steps take 2 to
10 times as long as on one, and those of a softmax over 10,000 words 20 times.
"""

from __future__ import annotations

import functools
import threading
from contextlib import AbstractContextManager
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_within = 0
_before: list[int] = []


@functools.cache
def _libraries() -> list[Any]:
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


class _OneThread:
    """See `one_thread`; a generator would take 2 us more per run."""

    def __enter__(self) -> None:
        global _within, _before
        with _lock:
            if not _within:
                _before = [each.num_threads for each in _libraries()]
                for each in _libraries():
                    each.set_num_threads(1)
            _within += 1

    def __exit__(self, *_: object) -> None:
        global _within
        with _lock:
            _within -= 1
            if not _within:
                for each, count in zip(_libraries(), _before, strict=True):
                    each.set_num_threads(count)


_one_thread = _OneThread()


def one_thread() -> AbstractContextManager[None]:
    """A context manager in which BLAS computes on the calling thread; in other threads, too."""
    return _one_thread
