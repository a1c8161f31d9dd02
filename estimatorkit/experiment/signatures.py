"""Signatures of public functions and classes, read from their source.

A configuration is described by the constructors that it calls, but loading one imports none of
them: that would start JAX.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estimatorkit.lazy import stub_of, stub_places

_PACKAGE = Path(__file__).parents[1]
_SEE = re.compile(r"(?:see|as for) `(\w+)`")

REQUIRED = object()
"""The default of an argument without one."""

COMPUTED = object()
"""A default that is no literal."""


@dataclass(frozen=True)
class Argument:
    """An argument of a function.

    Attributes:
        annotation: its type, as an expression.
        default: its value, `REQUIRED` or `COMPUTED`.
        text: what the docstring says about it; empty if nothing.
    """

    annotation: ast.expr
    default: Any
    text: str


@dataclass(frozen=True)
class Signature:
    """A function, a class's constructor, or the fields of a dataclass.

    Attributes:
        summary: the first paragraph of the docstring.
        arguments: by name, in order.
    """

    summary: str
    arguments: dict[str, Argument]


@functools.cache
def signature(place: str, related: tuple[str, ...] = ()) -> Signature:
    """The signature of what is at a place; empty if it is not installed.

    Args:
        place: see `place_of`.
        related: places of what a docstring may refer to ("see `DeepFM`"), and of base classes.
    """
    defined = place_of(place)
    if defined is None:
        return Signature("", {})
    place, node = defined, _definition(defined)
    doc = ast.get_docstring(node) or ""
    texts = _argument_texts(doc)

    def text(argument: str) -> str:
        found = texts.get(argument, "")
        see = _SEE.match(found)
        if see is None:
            return found
        other = _mentioned(see[1], place, related)
        there = signature(other, related).arguments.get(argument) if other else None
        return there.text if there else ""

    found = {
        name: Argument(annotation, default, text(name))
        for name, annotation, default in _arguments(node)
    }
    for other in _with_the_same_arguments(node):
        there = None if found else _mentioned(other, place, related)
        found = signature(there, related).arguments if there else found
    return Signature(" ".join(doc.partition("\n\n")[0].split()), found)


def _with_the_same_arguments(node: ast.ClassDef | ast.FunctionDef) -> Iterator[str]:
    """The names of a class's bases, or of what `arguments_of` names."""
    if isinstance(node, ast.ClassDef):
        yield from map(ast.unparse, node.bases)
    for each in node.decorator_list:
        if isinstance(each, ast.Call) and ast.unparse(each.func) == "arguments_of":
            yield ast.unparse(each.args[0])


def _mentioned(name: str, place: str, related: tuple[str, ...]) -> str | None:
    """The place of what is mentioned at another."""
    beside = f"{place.partition(':')[0]}:{name}"
    return next((each for each in related if each.endswith(f":{name}")), None) or (
        beside if beside != place and _lines(beside) else None
    )


@functools.cache
def _source(module: str) -> str:
    return _PACKAGE.joinpath(*module.split(".")).with_suffix(".py").read_text("utf-8")


@functools.cache
def _public_names(module: str) -> dict[str, str]:
    return stub_places(f"estimatorkit.{module}", stub_of(f"estimatorkit.{module}"))


def place_of(public: str) -> str | None:
    """Where a public name is defined; None if it is a legacy name, and these are not installed.

    Args:
        public: 'module:name', below `estimatorkit`; a module without a stub defines its names.
    """
    module, _, name = public.partition(":")
    names = _public_names(module)
    return names[name].removeprefix("estimatorkit.") if name in names else None if names else public


def _definition(place: str) -> ast.ClassDef | ast.FunctionDef:
    """The definition at a place; only its own lines are parsed, a tenth of a module."""
    node = ast.parse(_lines(place)).body[0]
    assert isinstance(node, ast.ClassDef | ast.FunctionDef)  # noqa: S101 (see `_lines`)
    return node


def _lines(place: str) -> str:
    """The lines of the definition at a place; empty if there is none."""
    module, _, name = place.partition(":")
    lines = re.compile(
        rf"^(?:@[^\n]*\n)*(?:class|def) {name}\b.*?(?=^[^\s)]|\Z)", re.MULTILINE | re.DOTALL
    )
    found = lines.search(_source(module))
    return found[0] if found else ""


def _arguments(node: ast.ClassDef | ast.FunctionDef) -> Iterator[tuple[str, ast.expr, Any]]:
    """Yields names, annotations and defaults."""
    if isinstance(node, ast.ClassDef):
        made = [each for each in node.body if isinstance(each, ast.FunctionDef)]
        init = next((each for each in made if each.name == "__init__"), None)
        if init is None:
            for line in node.body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                    yield line.target.id, line.annotation, _literal(line.value)
            return
        node = init
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    absent = [None] * (len(positional) - len(given.defaults))
    defaults = [*absent, *given.defaults, *given.kw_defaults]
    for each, default in zip([*positional, *given.kwonlyargs], defaults, strict=True):
        if each.annotation is not None:
            yield each.arg, each.annotation, _literal(default)


def _literal(default: ast.expr | None) -> Any:
    if default is None:
        return REQUIRED
    try:
        return ast.literal_eval(default)
    except ValueError:
        return COMPUTED


def _argument_texts(doc: str) -> dict[str, str]:
    """The texts of `Args` (or `Attributes`) by argument; one that several share says little."""
    section = re.search(r"^(?:Args|Attributes):\n(.*?)(?=^\S|\Z)", doc, re.MULTILINE | re.DOTALL)
    entries = re.split(r"^    (?=\w)", section[1] if section else "", flags=re.MULTILINE)
    found: dict[str, str] = {}
    for entry in entries[1:]:
        shared, _, text = " ".join(entry.split()).partition(": ")
        names = shared.split(", ")
        if len(names) == 1 or _SEE.match(text):
            found |= dict.fromkeys(names, text.removesuffix("."))
    return found
