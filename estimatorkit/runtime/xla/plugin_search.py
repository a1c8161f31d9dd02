"""JAX's search for ROCm's plugin while it is imported, by names of folders.

JAX parses the metadata of all installed packages to find it: with 230 of them a tenth of the time
in which a program adds two numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_SEARCHING = "jax._src.numpy.array_constructors"
"""The module, of jax 0.10, that searches when it is imported; of another, nothing changes."""


def search_by_name() -> None:
    """Makes the import of JAX quicker; adds to `sys.meta_path`."""
    if not any(isinstance(each, _Finder) for each in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """An import finder of the module that searches."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Finds what Python would find."""
        if name != _SEARCHING:
            return None
        found = PathFinder.find_spec(name, path, target)
        if found is not None and found.loader is not None:
            loader: Any = found.loader
            loader.exec_module = _only_plugins()(loader.exec_module)
        return found


@contextmanager
def _only_plugins() -> Iterator[None]:
    """A context manager, or decorator, in which only ROCm's plugins seem to be installed."""
    from importlib import metadata

    every = metadata.distributions
    metadata.distributions = plugins  # type: ignore[assignment]
    try:
        yield
    finally:
        metadata.distributions = every


def plugins() -> Iterator[Distribution]:
    """Yields the installed plugins of ROCm, such as 'jax-rocm7-plugin'."""
    from importlib.metadata import Distribution

    for folder in sys.path:
        for found in Path(folder or ".").glob("jax_rocm*-info"):
            yield Distribution.at(found)
