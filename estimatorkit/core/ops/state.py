"""State ops: a variable's handle, reading it, and assigning to it.

A handle (`VarHandleOp`) stands for the state of that name in the session. Kernels are pure: they
take the old value and give the new one; which inputs are handles and which of them change is said
by the row (`updates`, `overwrites`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.core.dtypes import bool_, resource
from estimatorkit.core.registry import Case, Spec, fixed, register

_VALUE = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)
_ROWS = np.array([2, 0, 2], np.int32)
_NEW = np.array([[0.5, 1.0], [-1.0, 2.0], [0.25, 0.0]], np.float32)


def _no_run(dtype: Any, shape: Any) -> Any:
    raise AssertionError("a handle is looked up, never run")


register("VarHandleOp", _no_run, infer=fixed(resource), gradient=None, pure=False)


def of_handle(inputs: Any, attrs: Any) -> list[Spec]:
    """One output, with the spec of the variable whose handle is the first input."""
    handle = inputs[0].op.attrs
    return [Spec(handle["dtype"], handle["shape"])]


register(
    "ReadVariableOp",
    lambda value: value,
    numpy_kernel=lambda value: value,
    infer=of_handle,
    gradient="same",
    pure=False,
    cases=lambda: [Case((_VALUE,), {}, _VALUE)],
)
register(
    "AssignVariableOp",
    lambda old, value: (value, value),
    numpy_kernel=lambda old, value: (value, value),
    infer=of_handle,
    gradient=None,
    updates=(0,),
    overwrites=(0,),
    pure=False,
    cases=lambda: [Case((_VALUE, _VALUE * 2), {}, (_VALUE * 2, _VALUE * 2))],
)

for _type, _function in (
    ("AssignAddVariableOp", lambda old, delta: old + delta),
    ("AssignSubVariableOp", lambda old, delta: old - delta),
):
    register(
        _type,
        lambda old, delta, function=_function: (function(old, delta),) * 2,
        infer=of_handle,
        gradient=None,
        updates=(0,),
        pure=False,
        cases=lambda function=_function: [
            Case((_VALUE, _VALUE * 3), {}, (function(_VALUE, _VALUE * 3),) * 2)
        ],
    )


def _scattered(name: str) -> Any:
    def kernel(old: Any, indices: Any, updates: Any) -> Any:
        new = getattr(old.at[indices], name)(updates)
        return new, new

    return kernel


def _expected(function: Any) -> Any:
    result = _VALUE.copy()
    for row, update in zip(_ROWS, _NEW, strict=True):
        result[row] = function(result[row], update)
    return result, result


for _type, _name, _python in (
    ("ResourceScatterUpdate", "set", lambda old, new: new),
    ("ResourceScatterAdd", "add", lambda old, new: old + new),
    ("ResourceScatterSub", "subtract", lambda old, new: old - new),
):
    register(
        _type,
        _scattered(_name),
        infer=of_handle,
        gradient=None,
        updates=(0,),
        pure=False,
        cases=lambda python=_python: [Case((_VALUE, _ROWS, _NEW), {}, _expected(python))],
    )

register(
    "VarIsInitializedOp",
    lambda *, context, variable: np.asarray(context.variables.is_initialized(variable)),
    where="host",
    infer=fixed(bool_),
    gradient=None,
    context=True,
    pure=False,
)
