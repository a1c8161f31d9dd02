"""Public names: a stub lists where a module's names live, and each is imported on first use.

So `import estimatorkit` costs milliseconds and starts neither JAX nor pandas, and type checkers and
editors read the same list that `attach` does (Scientific Python's SPEC 1; the `lazy_loader` package
supports neither absolute imports nor renaming). Modules that are public as they are list their own
names only (`listing`), not what they import.

Paths are strings here: `pathlib` would add a fifth to the time of `import estimatorkit`.
"""

from __future__ import annotations

import ast
import importlib
import os.path
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from estimatorkit.garbage import importing


def attach(
    module: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Makes a module's `__getattr__`, `__dir__` and `__all__` from its stub.

    Args:
        module: its `__name__`.
        file: its `__file__`. See `stub_places` for the stub, `x.pyi` beside `x.py`.
    """
    places = stub_places(module, os.path.splitext(file)[0] + ".pyi")

    def get(name: str) -> Any:
        place = places.get(name)
        if name.startswith("__"):  # Python asks for `__path__` whenever a name is imported
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if place is None:
            from estimatorkit.core.errors import did_you_mean

            hints = [did_you_mean(name, places)]
            if module == __package__:
                hints.append("legacy names are in estimatorkit.compat.v1")
            raise AttributeError(
                "; ".join([f"module {module!r} has no attribute {name!r}", *filter(None, hints)])
            )
        value = fetch(place)
        setattr(sys.modules[module], name, value)  # found at once the next time
        return value

    return get, lambda: sorted(places), sorted(places)


def stub_places(module: str, stub: str | os.PathLike[str]) -> dict[str, str]:
    """The place of each name of a stub: 'module:attribute', or 'module' for a submodule.

    Args:
        module: the module's name.
        stub: its stub, which consists of `from place import name as name` (without `as`, the name
            is not public) and of `other = name`. `from . import name as name` is a submodule, if
            there is one; `from place import *` has all names of another module's stub, and of
            none if there is no such stub: the package works without `compat`, which lists its
            names itself.
    """
    if not os.path.exists(stub):
        return {}
    with open(stub, "rb") as file:
        tree = ast.parse(file.read())
    imported: dict[str, str] = {}
    public: dict[str, str] = {}
    for node in tree.body:
        match node:
            case ast.ImportFrom(names=[ast.alias(name="*")]):
                public |= stub_places(node.module or "", stub_of(node.module or ""))
            case ast.ImportFrom():
                for alias in node.names:
                    beside = os.path.join(os.path.dirname(stub), alias.name)
                    if not node.module and not _is_module(beside):
                        continue
                    place = (
                        f"{node.module}:{alias.name}" if node.module else f"{module}.{alias.name}"
                    )
                    imported[alias.name] = place
                    if alias.asname == alias.name and not alias.name.startswith("__"):
                        public[alias.name] = place
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=inner)):
                public[name] = imported[inner]
            case _:
                raise ValueError(f"{stub}:{node.lineno}: expected an import or `name = name`")
    return public


def _is_module(path: str) -> bool:
    return os.path.isdir(path) or os.path.exists(f"{path}.py")


def stub_of(module: str) -> str:
    """The path of a module's stub, whether it has one or not."""
    path = os.path.join(os.path.dirname(os.path.dirname(__file__)), *module.split("."))
    return os.path.join(path, "__init__.pyi") if os.path.isdir(path) else f"{path}.pyi"


@importing()
def fetch(place: str) -> Any:
    """Imports what is at a place: 'module:name', or 'module'."""
    module, _, name = place.partition(":")
    found = importlib.import_module(module)
    if not name:
        return found
    try:
        return getattr(found, name)
    except AttributeError:
        return importlib.import_module(f"{module}.{name}")


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
        self._found: ModuleType | None = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._found is None:
                self._found = fetch(self._module)
            return getattr(self._found, name)(*args, **kwargs)

        return call


class Port:
    """The functions of a module of a later folder, for a lower one to call.

    The lower folder imports nothing for them: `estimatorkit.wiring` says which module has them.

    Args:
        name: the port's name in the wiring.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        if self._module is None:
            if self._name not in _connected:
                raise RuntimeError(
                    f"nothing is connected to the port {self._name!r}; see wiring.py"
                )
            self._module = fetch(_connected[self._name]._module)
        return getattr(self._module, name)


_connected: dict[str, LazyFunctions] = {}


def connect(modules: dict[str, LazyFunctions]) -> None:
    """Connects modules to ports, by the ports' names."""
    _connected.update(modules)


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
        return name.isupper() and name != "TYPE_CHECKING"
    return bool(home == module or home.startswith(f"{module}."))
