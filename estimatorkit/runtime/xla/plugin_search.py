"""A faster search for ROCm's plugin when JAX is imported: by the names of folders.

JAX parses the metadata of all installed packages to find it: with 230 of them a tenth of the time
in which a program adds two numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from estimatorkit.runtime.xla.import_hooks import import_within

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_SEARCHING = "jax._src.numpy.array_constructors"
"""The module of jax 0.10 that searches on import; with other versions nothing changes."""


def search_by_name() -> None:
    """Makes importing JAX faster; adds to `sys.meta_path`."""
    import_within(_only_plugins, lambda name: name == _SEARCHING)


@contextmanager
def _only_plugins() -> Iterator[None]:
    """A context manager in which only ROCm's plugins seem to be installed."""
    from importlib import metadata

    every = metadata.distributions
    metadata.distributions = plugins  # type: ignore[assignment]
    try:
        yield
    finally:
        metadata.distributions = every


def plugins() -> Iterator[Distribution]:
    """Yields the installed ROCm plugins, such as 'jax-rocm7-plugin'."""
    from importlib.metadata import Distribution

    for folder in sys.path:
        for found in Path(folder or ".").glob("jax_rocm*-info"):
            yield Distribution.at(found)
