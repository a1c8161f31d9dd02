"""How other packages' modules are imported: within a context manager, or when they are used."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence, Set
from contextlib import AbstractContextManager
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


def import_within(
    context: Callable[[], AbstractContextManager[Any]], applies: Callable[[str], bool]
) -> None:
    """Executes modules within a context manager when they are imported.

    Calling it again with the same `context` has no effect.

    Args:
        context: makes the context manager.
        applies: whether it is for a module of this full name. If several hooks are, the last one
            that was added runs alone.
    """
    hooks = (each for each in sys.meta_path if isinstance(each, _Hook))
    if not any(each.context is context for each in hooks):
        sys.meta_path.insert(0, _Hook(context, applies))


class _Hook:
    """The import finder that `import_within` installs.

    Not a subclass of `MetaPathFinder`: importing `importlib.abc` would double the time of the
    package's import.
    """

    def __init__(
        self, context: Callable[[], AbstractContextManager[Any]], applies: Callable[[str], bool]
    ) -> None:
        self.context = context
        self._applies = applies

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Finds what Python would find."""
        if not self._applies(name):
            return None
        found = PathFinder.find_spec(name, path, target)
        if found is not None and found.loader is not None:
            loader: Any = found.loader
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                with self.context():
                    execute(module)

            loader.exec_module = exec_module
        return found


def import_on_use(names: Set[str]) -> None:
    """Executes modules when a name of theirs is first used, instead of when they are imported.

    Threads that use a module while it is executed wait (`importlib.util.LazyLoader` lets them see
    it half executed before Python 3.11.9). An error is raised where the name is used. Calling it
    again with the same names has no effect.

    Args:
        names: the modules' full names.
    """
    if not any(isinstance(each, _OnUse) and each.names == names for each in sys.meta_path):
        sys.meta_path.insert(0, _OnUse(names))


class _OnUse:
    """The import finder that `import_on_use` installs."""

    def __init__(self, names: Set[str]) -> None:
        self.names = names

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Finds what the other finders find."""
        if name not in self.names:
            return None
        others = (each for each in sys.meta_path if each is not self)
        found = next(filter(None, (each.find_spec(name, path, target) for each in others)), None)
        if found is not None and found.loader is not None:
            loader: Any = found.loader
            loader.exec_module = _when_used(loader.exec_module)
        return found


def _when_used(execute: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
    """`execute` as a function that only prepares a module: its first missing name executes it."""

    def exec_module(module: ModuleType) -> None:
        lock = threading.RLock()
        is_running = False

        def missing(name: str) -> Any:
            nonlocal is_running
            with lock:
                if module.__dict__.get("__getattr__") is missing:
                    if is_running:  # what the module imports asks for a name that comes later
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
