"""`tensorflow.python.framework.ops`: helpers for names, graphs and gradients."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from estimatorkit.core import gradients
from estimatorkit.core.composite import is_composite
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.graph import get_default_graph, name_scope
from estimatorkit.core.tensor import Operation

_uids = itertools.count(1)


def uid() -> int:
    """A number unique within this process."""
    return next(_uids)


def name_from_scope_name(name: str) -> str:
    """The name of an operation for a scope string: without a trailing '/'."""
    return name.removesuffix("/")


def strip_name_scope(name: str, export_scope: str | None) -> str:
    """A name with the scope removed; 'loc:@' and '^' are kept."""
    if not export_scope:
        return name
    scope = re.escape(export_scope.removesuffix("/"))
    return re.sub(rf"([\^]|loc:@|^){scope}[\/]+(.*)", r"\1\2", name, count=1)


def prepend_name_scope(name: str, import_scope: str | None) -> str:
    """A name within a scope; 'loc:@' and '^' stay in front."""
    if not import_scope:
        return name
    scope = import_scope.removesuffix("/")
    return re.sub(r"([\^]|loc:@|^)(.*)", rf"\1{scope}/\2", name, count=1)


def get_gradient_function(op: Operation) -> Any:
    """The function registered for an operation's gradient, or another rule it uses; None if there
    is none, or the operation has no inputs.
    """
    return gradients.gradient_rule(op)[0] if op.inputs else None


def has_default_graph() -> bool:
    """True: there is always one."""
    return True


def inside_function() -> bool:
    """Whether the default graph is a function's body."""
    return get_default_graph().building_function


def executing_eagerly_outside_functions() -> bool:
    """False: there is no eager execution."""
    return False


def convert_n_to_tensor(values: Sequence[Any], dtype: Any = None, name: str | None = None) -> Any:
    """The values as a list of tensors.

    Raises:
        TypeError: `values` is not a sequence.
    """
    if not isinstance(values, Sequence):
        raise TypeError("values must be a sequence.")
    return [
        convert_to_tensor(value, dtype, None if name is None else f"{name}_{at}")
        for at, value in enumerate(values)
    ]


def convert_to_tensor_or_composite(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """The value as a tensor; a sparse tensor or `IndexedSlices` is returned unchanged."""
    return value if is_composite(value) else convert_to_tensor(value, dtype, name)


def op_scope(
    values: Sequence[Any], name: str | None, default_name: str | None = None
) -> AbstractContextManager[str]:
    """`name_scope` with an older argument order."""
    return name_scope(name, default_name, values)
