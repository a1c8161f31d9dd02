"""Speeds up the import of JAX.

JAX parses the metadata of all installed packages to find ROCm's plugin: with 230 of them a tenth of
the time in which a program adds two numbers. It is searched by the names of folders instead.
Another tenth goes into modules that few programs use: those are loaded when they are used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from estimatorkit.garbage import frozen
from estimatorkit.runtime.xla.dataclass_methods import compile_on_use
from estimatorkit.runtime.xla.import_hooks import import_on_use, import_within

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_SEARCHING = "jax._src.numpy.array_constructors"
"""The module of jax 0.10 that searches on import; with other versions nothing changes."""

_SELDOM_USED = frozenset(
    {
        "jax._src.clusters",
        "jax.extend.pallas",
        "jaxlib.mosaic.python.mosaic_gpu",
        "jaxlib.mosaic.python.tpu",
        "numpy.f2py",
        "numpy.testing",
    }
)
"""Modules that JAX or SciPy import but seldom use, and whose import has no side effects. Those that
checkpoints need are not among them: a process that has dropped its privileges may be unable to read
them."""


def import_faster() -> None:
    """Makes importing JAX faster; adds to `sys.meta_path`."""
    import_within(frozen, lambda name: name == "jax")
    import_within(_only_plugins, lambda name: name == _SEARCHING)
    import_on_use(_SELDOM_USED)
    compile_on_use()


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
    from pathlib import Path

    for folder in sys.path:
        for found in Path(folder or ".").glob("jax_rocm*-info"):
            yield Distribution.at(found)
