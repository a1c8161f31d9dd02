"""A Griffe extension: documents functions that the source makes by calls (`abs = _unary(...)`).

Griffe reads sources. Where that finds an attribute, or nothing, or a function whose decorator gives
it other arguments, the signature and the docstring of the value at run time are taken.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parents[1]))

from docs.reference_pages import NAMESPACES, documented_here, module_of


class RuntimeDocstrings(griffe.Extension):
    """Replaces what has no docstring in the source by what it is at run time."""

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **_: Any) -> None:
        """Looks at every documented name."""
        for namespace in NAMESPACES:
            parent = loader.modules_collection[f"estimatorkit.{namespace}".rstrip(".")]
            parent = parent.final_target if isinstance(parent, griffe.Alias) else parent
            module = module_of(namespace)
            for name in documented_here(namespace):
                found = _found(parent, name)
                value = getattr(module, name)
                if found is not None and found.is_class and not found.has_docstring:
                    target = found.final_target if isinstance(found, griffe.Alias) else found
                    target.docstring = _docstring(value, target)
                elif found is None or not found.has_docstring or _is_adapted(found, value):
                    if name in parent.members:
                        parent.del_member(name)
                    parent.set_member(name, _described(parent, name, value))


def _found(parent: griffe.Object | griffe.Alias, name: str) -> griffe.Object | griffe.Alias | None:
    """A class or a function that Griffe has found; None for anything else."""
    try:
        found = parent[name]
        return found if found.is_class or found.is_function else None
    except (KeyError, griffe.AliasResolutionError):
        return None


def _is_adapted(found: griffe.Object | griffe.Alias, value: Any) -> bool:
    """Whether a decorator has changed a function's arguments."""
    if not found.is_function or not found.decorators:
        return False
    return [each.name for each in found.parameters] != list(inspect.signature(value).parameters)


def _docstring(value: Any, owner: griffe.Object) -> griffe.Docstring:
    return griffe.Docstring(inspect.cleandoc(value.__doc__ or ""), parent=owner)


def _described(parent: griffe.Object, name: str, value: Any) -> griffe.Alias | griffe.Object:
    """An alias of a class in another module, or what the value is at run time."""
    if not isinstance(value, type):
        return _function(name, value)
    home = f"{value.__module__}.{value.__qualname__}"
    if home != f"{parent.path}.{name}":
        return griffe.Alias(name, home)
    made = griffe.Class(name)
    made.docstring = _docstring(value, made)
    made.set_member("__init__", _function("__init__", value))
    return made


def _function(name: str, value: Any) -> griffe.Function:
    signature = inspect.signature(value)
    parameters = [
        griffe.Parameter(
            each.name,
            annotation=_annotation(each.annotation),
            kind=griffe.ParameterKind(each.kind.description),
            default=None if each.default is each.empty else repr(each.default),
        )
        for each in signature.parameters.values()
    ]
    function = griffe.Function(
        name,
        parameters=griffe.Parameters(*parameters),
        returns=_annotation(signature.return_annotation),
    )
    function.docstring = None if name == "__init__" else _docstring(value, function)
    return function


def _annotation(annotation: Any) -> str | None:
    if annotation is inspect.Signature.empty:
        return None
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
