"""Lazy public names: a package says where its names live, and each is imported when it is first
used.

So `import estimatorkit` costs milliseconds and starts neither JAX nor pandas.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from estimatorkit.core.errors import did_you_mean


def attach(
    package: str, places: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Makes a package's `__getattr__`, `__dir__` and `__all__`.

    Args:
        package: the package's `__name__`.
        places: for each public name 'module' (the name is that module) or 'module:attribute'.
    """

    def get(name: str) -> Any:
        place = places.get(name)
        if place is None:
            hint = did_you_mean(name, places)
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}" + (f"; {hint}" if hint else "")
            )
        module_name, _, attribute = place.partition(":")
        module = importlib.import_module(module_name)
        value = getattr(module, attribute) if attribute else module
        setattr(sys.modules[package], name, value)  # found at once the next time
        return value

    return get, lambda: sorted(places), sorted(places)


def names(module: str, *exported: str, **renamed: str) -> dict[str, str]:
    """Places for names of one module: those that keep their name, and those called otherwise."""
    return {
        **{name: f"{module}:{name}" for name in exported},
        **{name: f"{module}:{inner}" for name, inner in renamed.items()},
    }
