"""Public names: a package says where its names live, and each is imported when it is first used.

So `import estimatorkit` costs milliseconds and starts neither JAX nor pandas. Modules that are
public as they are list their own names only (`listing`), not what they import.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, TypeVar


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
        if name.startswith("__"):  # Python asks for `__path__` whenever a name is imported
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if place is None:
            from estimatorkit.core.errors import did_you_mean

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


def names(module: str, *exported: str) -> dict[str, str]:
    """Places for names of one module.

    Args:
        module: its full name.
        exported: names separated by spaces, in one text or several; `name=inner` where the module
            calls it `inner`.
    """
    pairs = (each.partition("=") for text in exported for each in text.split())
    return {name: f"{module}:{inner or name}" for name, _, inner in pairs}


class LazyFunctions:
    """The functions of a module, which is imported when the first of them is called.

    `scipy.special` takes 200 ms to import, and is asked when constants are folded or rows tested.

    Args:
        module: its full name.
    """

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            return getattr(importlib.import_module(self._module), name)(*args, **kwargs)

        return call


def public_names(module: ModuleType) -> list[str]:
    """The names that a module gives to others: `__all__` if there is one, or else what it
    defines: its functions and classes, and its constants in capitals.
    """
    space = vars(module)
    if "__dir__" in space:
        return [name for name in dir(module) if not name.startswith("_")]
    return _own_names(module)


def listing(module: str, *hidden: str) -> Callable[[], list[str]]:
    """A module's `__dir__`: its `public_names`.

    Args:
        module: the module's `__name__`.
        hidden: names for the package's own use.
    """
    return lambda: [name for name in _own_names(sys.modules[module]) if name not in hidden]


def _own_names(module: ModuleType) -> list[str]:
    space = vars(module)
    if "__all__" in space:
        return sorted(space["__all__"])
    return sorted(name for name, value in space.items() if _is_own(module.__name__, name, value))


def _is_own(module: str, name: str, value: Any) -> bool:
    if name.startswith("_") or isinstance(value, (ModuleType, TypeVar)):
        return False
    home = getattr(value, "__module__", None)
    if home is None:  # a number, a text, a list of these
        return name.isupper()
    return bool(home == module or home.startswith(f"{module}."))
