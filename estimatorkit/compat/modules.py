"""TensorFlow 1's module tree, built from tables instead of files.

`tables.MODULES` defines the modules of `estimatorkit.compat.v1`, the modules they re-export and the
names they add. They can be imported like real ones (`import estimatorkit.compat.v1.keras.layers`,
`from estimatorkit.compat.v1.contrib import rnn`), and fetch a name on first use.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from estimatorkit.compat.later import sentence
from estimatorkit.core.errors import did_you_mean
from estimatorkit.lazy import fetch, names, public_names

ROOT = "estimatorkit.compat.v1"


@dataclass(frozen=True)
class Table:
    """The contents of a module.

    Attributes:
        behind: modules whose names it re-exports; the first that has a name wins.
        fallback: modules searched after these, whose names `dir` does not list.
        names: 'module:attribute' or 'module', by name.
        instead: replacements for names that do not exist; see also `later`.
    """

    behind: Sequence[str] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)
    fallback: Sequence[str] = ()


def tables_of(rows: str) -> dict[str, Table]:
    """Parses rows (see `tables`) to tables by module."""
    tables = {}
    for row in re.split(r"\n(?=\S)", rows.strip().replace("\n        ", " ")):
        head, *lines = row.split("\n    ")
        modules, _, behind = head.partition(":")
        own: dict[str, str] = {}
        instead: dict[str, str] = {}
        for line in lines:
            absent, arrow, sentence = line.partition(" -> ")
            name, equals, module = line.partition(" = ")
            if arrow:
                instead |= dict.fromkeys(absent.split(), sentence)
            elif equals:
                own[name] = _full(module)
            else:
                place, _, exported = line.partition(": ")
                own |= names(_full(place), exported)
        for each in modules.split():
            for module, last in _expanded(each):
                places = [_full(place.replace("*", last)) for place in behind.split()]
                tables[module] = Table(places, own, instead)
    return tables


def _full(place: str) -> str:
    return f"estimatorkit{place}".rstrip(".") if place.startswith(".") else place


def _expanded(pattern: str) -> Iterator[tuple[str, str]]:
    """The modules that a pattern expands to, each with the value of its last braces."""
    parts = [part.split(",") for part in re.split("[{}]", pattern)]
    for chosen in itertools.product(*parts):
        yield "".join(chosen), chosen[-2] if len(chosen) > 1 else ""


def look_up(module: str, table: Table, children: Mapping[str, str], name: str) -> Any:
    """The value of a name of a table's module.

    Args:
        module: the module's full name.
        children: its submodules' full names.

    Raises:
        AttributeError: there is none; the message suggests a replacement.
    """
    place = table.names.get(name) or children.get(name)
    if place is not None:
        return fetch(place)
    if name.startswith("__"):  # requested of every module by tools: import nothing
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    for each in (*table.behind, *table.fallback):
        value = getattr(fetch(each), name, _MISSING)
        if value is not _MISSING:
            return value
    raise AttributeError(
        f"module {module!r} has no attribute {name!r}: {_absent(module, table, children, name)}"
    )


def _absent(module: str, table: Table, children: Mapping[str, str], name: str) -> str:
    """The message for a missing name, with its replacement."""
    below = module.removeprefix(ROOT).removeprefix(".")
    short = f"tf.{below}" if below else "tf"
    known = all_names(table, children)
    if name in known:  # requested as a module
        return f"{short}.{name} is not a module; use `from {module} import {name}`"
    hint = (
        table.instead.get(name)
        or sentence(f"{below}.{name}" if below else name)
        or did_you_mean(name, [*known, *_public_names(table.fallback)])
        or f"dir({short}) lists what is"
    )
    return f"{short}.{name} is not part of estimatorkit; {hint}"


_MISSING = object()


def all_names(table: Table, children: Mapping[str, str]) -> list[str]:
    """The public names of a table's module."""
    return sorted({*table.names, *children, *_public_names(table.behind)})


def _public_names(modules: Sequence[str]) -> set[str]:
    return {name for each in modules for name in public_names(fetch(each))}


class TableModule(ModuleType):
    """A module defined by a table."""

    def __init__(self, name: str, table: Table, children: Mapping[str, str]) -> None:
        super().__init__(name, f"TensorFlow 1's `{name.removeprefix(ROOT + '.')}`.")
        self._table = table
        self._children = children
        self.__path__: list[str] = []

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """All names: programs look levels up in `vars(tf.logging)`."""
        for name in all_names(self._table, self._children):
            getattr(self, name)
        space: dict[str, Any] = vars(ModuleType)["__dict__"].__get__(self)
        return space

    def __getattr__(self, name: str) -> Any:
        """Fetches and caches a name."""
        value = look_up(self.__name__, self._table, self._children, name)
        setattr(self, name, value)
        return value

    @property
    def __all__(self) -> list[str]:
        """The names for `import *`."""
        return [name for name in dir(self) if not name.startswith("_")]

    def __dir__(self) -> list[str]:
        """The public names."""
        return all_names(self._table, self._children)


class TableFinder(MetaPathFinder, Loader):
    """Finds the modules of the tables below `ROOT`.

    Args:
        tables: by name below `ROOT`, for example 'contrib.rnn'; missing parent packages ('contrib')
            are added.
    """

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = tables
        self._parents: set[str] = set()
        for name in tables:
            parent = name.rpartition(".")[0]
            while parent and not self._is_module(parent):
                self._parents.add(parent)
                parent = parent.rpartition(".")[0]

    @property
    def modules(self) -> Iterator[str]:
        """The names of all modules below `ROOT`, including parent packages."""
        return itertools.chain(self._tables, self._parents)

    def table(self, name: str) -> Table:
        """The table of a module; empty for a parent package that has none."""
        return Table() if name in self._parents else self._tables[name]

    def _is_module(self, name: str) -> bool:
        return name in self._tables or name in self._parents

    def children(self, name: str) -> dict[str, str]:
        """The submodules of a module by their last name component ('' is the root)."""
        prefix = f"{name}." if name else ""
        return {
            each[len(prefix) :]: f"{ROOT}.{each}"
            for each in self.modules
            if each.startswith(prefix) and "." not in each[len(prefix) :] and each != name
        }

    def find_spec(
        self, fullname: str, path: Any = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of the tables, None for modules elsewhere.

        Raises:
            ModuleNotFoundError: `fullname` is below `ROOT`, but in none of the tables. The message
                suggests a replacement, also for `from estimatorkit.compat.v1.keras.layers import
                Dense`, since Python looks for a module if there is no attribute. The error has no
                `name`, because Python would then replace the message.
        """
        name = fullname.removeprefix(f"{ROOT}.")
        if name == fullname:
            return None
        if self._is_module(name):
            return ModuleSpec(fullname, self, is_package=True)
        above, _, last = name.rpartition(".")
        if not self._is_module(above):
            return None
        absent = _absent(f"{ROOT}.{above}", self.table(above), self.children(above), last)
        raise ModuleNotFoundError(f"No module or name {fullname!r}: {absent}")

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Creates the module."""
        name = spec.name.removeprefix(f"{ROOT}.")
        return TableModule(spec.name, self.table(name), self.children(name))

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing."""


def install(tables: Mapping[str, Table]) -> TableFinder:
    """Registers a finder for the tables' modules, once.

    It comes first in `sys.meta_path`: the folders of stubs would be namespace packages.
    """
    for each in sys.meta_path:
        if isinstance(each, TableFinder):
            return each
    finder = TableFinder(tables)
    sys.meta_path.insert(0, finder)
    return finder
