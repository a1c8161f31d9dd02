"""Garbage collection, put off while many objects are made that stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """A context manager, or decorator, in which the process collects no garbage.

    Collections go through all objects again and again while imports and traces make more of them,
    and find next to nothing: 0.4 of the 7 CPU seconds of a transformer's program, 0.16 of the 1.4
    of a linear regression's. What is made within stays young: moved to the oldest generation, it
    would not count towards the next full collection (models in a loop grew by 6 MB each).
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
