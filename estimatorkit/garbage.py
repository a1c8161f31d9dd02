"""Garbage collection, put off while many objects are made that stay."""

from __future__ import annotations

import gc
import io
import sys
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import compress
from typing import Any

_BUFFERED = io.BufferedRandom, io.BufferedWriter, io.TextIOWrapper

_HARMLESS = ("_io", "builtins", "jaxlib._jax")
"""Modules whose finalizers, those of buffered files apart, only free what a process holds."""

_FEW = 50_000
"""Objects, a quarter of those of the package and JAX. Python, too, puts off full collections until
a quarter of the old objects is new."""

_MANY = 50
"""Modules of an import that is frozen if a larger one has been."""


@contextmanager
def uncollected() -> Iterator[None]:
    """A context manager, or decorator, in which the process collects no garbage.

    Collections go through all objects again and again while imports and traces make more of them,
    and find next to nothing: 0.4 of the 7 CPU seconds of a transformer's program, 0.16 of the 1.4
    of a linear regression's. What is made within stays young: moved to the oldest generation, it
    would not count towards the next full collection (models in a loop grew by 6 MB each).
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def importing() -> Iterator[None]:
    """`uncollected`, for imports: what new modules hold is old at once, since it stays.

    The next two collections of young objects would go through all of it: 0.1 of the 0.9 CPU seconds
    of a linear regression's program. No loop repeats this: a module is imported once.
    """
    if not gc.isenabled():
        yield
        return
    modules = len(sys.modules)
    with uncollected():
        yield
        added = len(sys.modules) - modules
        if _frozen.is_active:
            if added > _MANY:
                _frozen.freeze(*_finalized())
        elif added and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()  # to the oldest generation, without going through it


@contextmanager
def frozen() -> Iterator[None]:
    """A context manager for the import of a large library, which is frozen for a while.

    Until the program has made many objects itself, or calls `gc.collect`, full collections and the
    end of the program go through its own alone. Nothing is frozen if the program has frozen
    objects: it may rely on them staying so.
    """
    if gc.get_freeze_count():
        yield
        return
    files, others = _finalized()
    if others:
        gc.collect()  # cycles of `numpy.load`, for example, hold closed files
        files, others = _finalized()
    yield
    _frozen.freeze(files, others)


def freeze_at_exit() -> None:
    """Lets Python end without going through all objects, unless some have finalizers.

    It would do so three times: 0.2 of the 0.9 CPU seconds of a linear regression's program, 0.4 of
    the 1.6 of Iris by an estimator. Files that would be written by their finalizers are written.
    """
    files, others = _finalized()
    if others and _frozen.is_active:
        _frozen.is_active = False
        gc.collect()
        files, others = _finalized()
    for each in (*_frozen.files, *files):
        with suppress(OSError, ValueError):
            each.flush()
    if not others:
        gc.freeze()


def _finalized() -> tuple[list[Any], list[Any]]:
    """The objects, frozen ones apart, whose finalizers may do something for others.

    Without those that only a variable of the main module holds, whose end is theirs.

    Returns:
        Files that may hold what is not written yet, and other objects.
    """
    objects = gc.get_objects()
    kinds = list(map(type, objects))  # 200,000 of the package and JAX alone: no Python for each
    finalized = {kind for kind in set(kinds) if hasattr(kind, "__del__")}
    harmless = {kind for kind in finalized if kind.__module__ in _HARMLESS}
    finalized -= {kind for kind in harmless if not issubclass(kind, _BUFFERED)}
    found = list(compress(objects, map(finalized.__contains__, kinds)))
    del objects
    held = set(map(id, getattr(sys.modules.get("__main__"), "__dict__", {}).values()))
    found = [each for each in found if id(each) not in held or sys.getrefcount(each) > 4]
    files = [each for each in found if isinstance(each, _BUFFERED)]
    return files, [each for each in found if not isinstance(each, _BUFFERED)]


class _Frozen:
    """What imports have frozen, until a full collection is due for it, or the program asks for one.

    Attributes:
        is_active: whether something is frozen.
        files: those among it that may hold what is not written yet.
    """

    def __init__(self) -> None:
        self.is_active = False
        self.files: weakref.WeakSet[Any] = weakref.WeakSet()
        self._newest: list[Any] = []

    def freeze(self, files: Iterable[Any], others: Sequence[Any]) -> None:
        """Freezes all objects, unless there are `others` than files with finalizers."""
        if others:
            return
        self.files.update(files)
        gc.freeze()
        self._newest = []
        if not self.is_active:
            self.is_active = True
            gc.callbacks.append(self)

    def __call__(self, phase: str, collection: dict[str, int]) -> None:
        """Unfreezes before a full collection, unless the program has frozen more."""
        if not self.is_active or phase != "start" or collection["generation"] < 2:
            return
        objects = gc.get_objects()
        is_automatic = gc.get_count()[0] > gc.get_threshold()[0]
        if is_automatic and len(objects) < _FEW:
            return
        self.is_active = False
        if any(each is self._newest for each in objects):
            gc.unfreeze()


_frozen = _Frozen()
