"""The rows by op type: adding them, and finding them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from estimatorkit.core import ports
from estimatorkit.core.registry.op_def import OpDef, Role, define
from estimatorkit.core.registry.shape_rules import no_outputs
from estimatorkit.core.tensor import Operation

_REGISTRY: dict[str, OpDef] = {}
_MODULES: dict[str, str] = {}  # by op type, of modules that `find` imports


def register(op_type: str, kernel: Callable[..., Any], **facts: Any) -> OpDef:
    """Adds a row to the registry, and returns it (see `op_def.define` for the arguments).

    Raises:
        ValueError: the type is taken.
    """
    if op_type in _REGISTRY:
        raise ValueError(f"op type {op_type!r} is registered twice.")
    _REGISTRY[op_type] = row = define(op_type, kernel, **facts)
    return row


def register_handle(op_type: str, what: str) -> OpDef:
    """Adds a row for handles, which name an object that the session holds and never run.

    Args:
        op_type: the op type.
        what: the kind of object, with its article.
    """

    def never(**_: Any) -> Any:
        raise AssertionError(f"{what} is never executed: its value is looked up")

    return register(op_type, never, infer=no_outputs, gradient=None, where="host", pure=False)


def add_ops(module: str, types: str) -> None:
    """Tells which module registers op types, so that it need not be imported before one is used.

    Args:
        module: its full name.
        types: the op types, separated by spaces.

    Raises:
        ValueError: a type has another module.
    """
    for op_type in types.split():
        if _MODULES.setdefault(op_type, module) != module:
            raise ValueError(f"{op_type!r} has two modules: {_MODULES[op_type]} and {module}.")


def find(op_type: str) -> OpDef | None:
    """The row of `op_type`, whose module is imported if it has not been; None if there is none."""
    if op_type not in _REGISTRY:
        ports.ops.load()
        ports.op_types.load()
        if op_type in _MODULES:
            importlib.import_module(_MODULES[op_type])
    return _REGISTRY.get(op_type)


def lookup(op_type: str) -> OpDef:
    """`find` for a type that exists.

    Raises:
        KeyError: it does not.
    """
    row = _REGISTRY.get(op_type) or find(op_type)
    if row is None:
        raise KeyError(op_type)
    return row


def role_of(op: Operation) -> Role | None:
    """The role of an operation's type."""
    return lookup(op.type).semantics.role


def never_runs(op: Operation) -> bool:
    """Whether an operation is a constant or a handle, which belongs to no segment."""
    return role_of(op) in (Role.CONSTANT, Role.VARIABLE)


def takes_element(op: Operation | None) -> bool:
    """Whether an operation takes the next element of an iterator."""
    return op is not None and role_of(op) in (Role.ELEMENT, Role.ELEMENT_OF_HANDLE)


def registered_types() -> list[str]:
    """All op types. Imports the modules that register them."""
    ports.ops.load()
    ports.op_types.load()
    for module in set(_MODULES.values()):
        importlib.import_module(module)
    return sorted(_REGISTRY)
