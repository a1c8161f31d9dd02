"""Context managers around the import of other packages' modules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
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
