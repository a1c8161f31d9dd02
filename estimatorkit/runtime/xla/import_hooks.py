"""Import hooks: other packages' modules are executed within a context manager, or on first use."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence, Set
from contextlib import AbstractContextManager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, TypeAlias

_Execute: TypeAlias = Callable[[ModuleType], None]


def import_within(
    context: Callable[[], AbstractContextManager[Any]], applies: Callable[[str], bool]
) -> None:
    """Executes modules within a context manager when they are imported.

    Calling it again with the same `context` has no effect.

    Args:
        context: makes the context manager.
        applies: whether it is for a module of this full name. If several hooks are, they are
            nested, the one added last outside.
    """

    def within(execute: _Execute) -> _Execute:
        def exec_module(module: ModuleType) -> None:
            with context():
                execute(module)

        return exec_module

    _install(context, applies, within)


def import_on_use(names: Set[str]) -> None:
    """Defers the execution of modules until an attribute that they lack is first accessed.

    Other threads that access the module meanwhile wait (before Python 3.11.9,
    `importlib.util.LazyLoader` gives them a partially executed module). An error is raised where
    the attribute is accessed. Calling it again with the same names has no effect.

    Args:
        names: the modules' full names.
    """
    _install(names, names.__contains__, _deferred)


def _install(
    key: object, applies: Callable[[str], bool], change: Callable[[_Execute], _Execute]
) -> None:
    if not any(isinstance(each, _Hook) and each.key == key for each in sys.meta_path):
        sys.meta_path.insert(0, _Hook(key, applies, change))


class _Hook:
    """An import finder that changes how modules are executed.

    Not a subclass of `MetaPathFinder`: importing `importlib.abc` would double the time of the
    package's import.

    Args:
        key: hooks with equal keys are the same.
        applies: whether it is for a module of this full name.
        change: returns a loader's new `exec_module`, given the old one.
    """

    def __init__(
        self, key: object, applies: Callable[[str], bool], change: Callable[[_Execute], _Execute]
    ) -> None:
        self.key = key
        self._applies = applies
        self._change = change

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the finders after this one find."""
        if not self._applies(name):
            return None
        after = sys.meta_path[sys.meta_path.index(self) + 1 :]
        found = next(filter(None, (each.find_spec(name, path, target) for each in after)), None)
        if found is not None and found.loader is not None:
            loader: Any = found.loader
            loader.exec_module = self._change(loader.exec_module)
        return found


def _deferred(execute: _Execute) -> _Execute:
    """Returns an `exec_module` that defers `execute` to the first access of a missing attribute."""

    def exec_module(module: ModuleType) -> None:
        lock = threading.RLock()
        is_running = False

        def missing(name: str) -> Any:
            nonlocal is_running
            with lock:
                if module.__dict__.get("__getattr__") is missing:
                    if is_running:  # a circular import
                        raise AttributeError(f"module {module.__name__!r} has no {name!r} yet")
                    is_running = True
                    try:
                        execute(module)
                    finally:
                        is_running = False
                    if module.__dict__.get("__getattr__") is missing:
                        del module.__getattr__
            return getattr(module, name)

        module.__getattr__ = missing  # type: ignore[method-assign]

    return exec_module
