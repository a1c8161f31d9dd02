"""Stubs of `compat.v1`'s modules, written from `compat.tables` when the package is built.

    python -m estimatorkit.compat.stubs     # writes them into the source tree, beside compat/v1

Type checkers and editors see the modules that `compat.modules` builds at run time. TensorFlow's
private modules (`python.framework.ops`) are typed as Any, unless a table defines them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from estimatorkit.compat.modules import ROOT, Table, TableFinder
from estimatorkit.compat.tables import PUBLIC
from estimatorkit.lazy import stub_of, stub_places

_ANY = "from typing import Any\n\ndef __getattr__(name: str) -> Any: ...\n"
_VERSIONS = """
__version__: str
VERSION: str
GIT_VERSION: str
__git_version__: str
KERAS_VERSION: str
COMPILER_VERSION: str
__compiler_version__: str
"""


def write_stubs(folder: Path) -> None:
    """Writes the stubs, in place of those that there are.

    Args:
        folder: that of `compat.v1`.
    """
    for earlier in folder.rglob("*.pyi"):
        earlier.unlink()
    for path, text in stubs():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def stubs() -> Iterator[tuple[str, str]]:
    """Yields the path below `compat/v1` and the text of each stub."""
    finder = TableFinder(PUBLIC)
    for name in finder.modules:
        table = finder.table(name)
        children = finder.children(name)
        places = dict(_star_places(finder, table)) | children | dict(table.names)
        others = [each for each in table.behind if not _is_ours(each)]
        text = "".join(f"from {module} import *\n" for module in others)
        text += "".join(_line(public, place) for public, place in sorted(places.items()))
        if not name:
            yield "__init__.pyi", text + _VERSIONS
            continue
        private = "python" in name.split(".") or name.startswith("core.")
        path = name.replace(".", "/") + ("/__init__.pyi" if children else ".pyi")
        yield path, text + (_ANY if private and children else "")


def _line(name: str, place: str) -> str:
    """The import of a name. Type checkers take `from x import a as b` for private."""
    module, _, inner = place.partition(":")
    if not inner:
        module, _, inner = module.rpartition(".")
    if inner == name:
        return f"from {module} import {name} as {name}\n"
    return f"from {module} import {inner} as _{name}\n{name} = _{name}\n"


def _star_places(finder: TableFinder, table: Table) -> Iterator[tuple[str, str]]:
    """The places of the names of a table's modules; those of the first module come last."""
    for module in reversed(table.behind):
        if module == ROOT or module.startswith(f"{ROOT}."):
            below = module.removeprefix(ROOT).removeprefix(".")
            own = finder.table(below)
            yield from _star_places(finder, own)
            yield from finder.children(below).items()
            yield from own.names.items()
        elif _is_ours(module):
            stub = Path(stub_of(module))
            if stub.exists():
                yield from stub_places(module, stub).items()
            else:
                yield from _defined(module, stub.with_suffix(".py"))


def _is_ours(module: str) -> bool:
    return module.split(".")[0] == "estimatorkit"


def _defined(module: str, path: Path) -> Iterator[tuple[str, str]]:
    """The places of a module's public names, by its source; `lazy.public_names` imports it."""
    names: set[str] = set()
    for node in ast.parse(path.read_bytes()).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=listed)):
                names = {str(each.value) for each in listed if isinstance(each, ast.Constant)}
                break
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case _:
                pass
    return ((name, f"{module}:{name}") for name in names if not name.startswith("_"))


if __name__ == "__main__":
    write_stubs(Path(__file__).parent / ROOT.rpartition(".")[2])
