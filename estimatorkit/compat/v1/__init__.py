"""TensorFlow 1's module tree: `import estimatorkit.compat.v1 as tf` runs old scripts.

It has all of `estimatorkit`, and the legacy names. The tables in `compat.tables` define the modules
below; missing names raise with a suggested replacement.
"""

from __future__ import annotations

from typing import Any

from estimatorkit.compat.modules import all_names, install, look_up
from estimatorkit.compat.private.private_modules import AllTables
from estimatorkit.compat.tables import PUBLIC, TOP

__version__ = "1.15.5"
VERSION = __version__
GIT_VERSION = __git_version__ = "estimatorkit"
KERAS_VERSION = "2.2.4-tf"
COMPILER_VERSION = __compiler_version__ = "XLA"

_children = install(AllTables(PUBLIC)).children("")


def __getattr__(name: str) -> Any:
    """Fetches a name on first use."""
    value = look_up(__name__, TOP, _children, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return all_names(TOP, _children)
