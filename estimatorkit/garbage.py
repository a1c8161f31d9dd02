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
"""Modules whose finalizers, except those of buffered files, only release what the end of the
process releases anyway."""

_MANY = 50
"""Once something is frozen, imports of more modules than this are frozen, too."""


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
        elif added and not _frozen.has_others():
            gc.freeze()
            gc.unfreeze()  # to the oldest generation, without going through it


@contextmanager
def frozen() -> Iterator[None]:
    """A context manager that freezes (`gc.freeze`) what the import of a large library creates.

    Until the program creates many objects or calls `gc.collect`, full collections and the end of
    the program visit only objects created later. Does nothing if the program itself has frozen
    objects, since it may rely on their staying frozen.
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
    """Lets Python exit without garbage collections, unless finalizers have to run; flushes files.

    It would make three full ones: 0.2 of the 0.9 CPU seconds of a linear regression's program, 0.4
    of the 1.6 of Iris by an estimator.
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
    """Finds unfrozen objects whose finalizers may have effects outside the process's memory.

    Not those that only a variable of the main module refers to: they are destroyed with it.

    Returns:
        Files, whose buffers may have to be written, and other objects.
    """
    objects = gc.get_objects()
    kinds = list(map(type, objects))  # 200,000 of the package and JAX alone: no Python for each
    finalized = {
        kind
        for kind in set(kinds)
        if hasattr(kind, "__del__")
        and (kind.__module__ not in _HARMLESS or issubclass(kind, _BUFFERED))
    }
    found = list(compress(objects, map(finalized.__contains__, kinds)))
    del objects
    held = set(map(id, getattr(sys.modules.get("__main__"), "__dict__", {}).values()))
    # Four references: the main module's, that of `found`, `each`, and the argument.
    found = [each for each in found if id(each) not in held or sys.getrefcount(each) > 4]
    files = [each for each in found if isinstance(each, _BUFFERED)]
    return files, [each for each in found if not isinstance(each, _BUFFERED)]


class _Frozen:
    """The objects that imports have frozen; a `gc` callback that unfreezes them.

    Automatic collections visit them once there are twice as many others, so that a full one takes
    at most half as long again: full ones that visited all took 0.3 of the 2.1 seconds of a neural
    Turing machine's program.

    Attributes:
        is_active: whether objects are frozen.
        files: the frozen files, whose buffers may have to be written.
    """

    def __init__(self) -> None:
        self.is_active = False
        self.files: weakref.WeakSet[Any] = weakref.WeakSet()
        self._newest: list[Any] = []
        self._has_others = False

    def has_others(self) -> bool:
        """Whether the program has called `gc.freeze` itself, now or at an earlier import.

        Python counts frozen objects one by one, 15 ms for a million, so the answer is kept.
        """
        self._has_others = self._has_others or gc.get_freeze_count() > 0
        return self._has_others

    def freeze(self, files: Iterable[Any], others: Sequence[Any]) -> None:
        """Freezes all objects, given the result of `_finalized`; none if there are `others`."""
        if others:
            return
        self.files.update(files)
        gc.freeze()
        self._newest = []
        if not self.is_active:
            self.is_active = True
            gc.callbacks.append(self)

    def __call__(self, phase: str, collection: dict[str, int]) -> None:
        """Unfreezes before a full collection, unless the program has called `gc.freeze` since."""
        if not self.is_active or phase != "start" or collection["generation"] < 2:
            return
        objects = gc.get_objects()
        is_automatic = gc.get_count()[0] > gc.get_threshold()[0]
        if is_automatic and len(objects) < 2 * gc.get_freeze_count():
            return
        self.is_active = False
        if any(each is self._newest for each in objects):
            gc.unfreeze()


_frozen = _Frozen()
