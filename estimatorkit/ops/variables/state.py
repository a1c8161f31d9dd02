"""State ops: variable handles, reads and assignments.

A `VarHandleOp` refers to the session state of that name. Kernels are pure: they map the old value
to the new one. The op's registration says which inputs are handles and which variables change
(`updates`, `overwrites`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core.dtypes import bool_, resource, string
from estimatorkit.core.errors import (
    FailedPreconditionError,
    OutOfRangeError,
    value_error,
)
from estimatorkit.core.faults import Fault, in_range
from estimatorkit.core.registry import Case, Role, Spec, fixed, register, same_as_input
from estimatorkit.core.shapes import TensorShape, differ
from estimatorkit.ops.array.gather_nd import check_updates, point_fault
from estimatorkit.ops.array.indexing import (
    bounds_of_slices,
    index_fault,
    index_of,
    infer_strided_slice,
)
from estimatorkit.ops.math.broadcasting import broadcast_shapes

_VALUE = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)
_ROWS = np.array([2, 0, 2], np.int32)
_NEW = np.array([[0.5, 1.0], [-1.0, 2.0], [0.25, 4.0]], np.float32)


def _no_run(dtype: Any, shape: Any) -> Any:
    raise AssertionError("a variable handle cannot be executed")


register(
    "VarHandleOp", _no_run, infer=fixed(resource), gradient=None, pure=False, role=Role.VARIABLE
)


def of_handle(inputs: Any, attrs: Any) -> list[Spec]:
    """Infers one output with the spec of the variable whose handle is the first input."""
    handle = inputs[0].op.attrs
    return [Spec(handle["dtype"], handle["shape"])]


register(
    "ReadVariableOp",
    lambda value: value,
    role=Role.READ,
    takes_shards=True,
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


def _moved(function: Any) -> Any:
    def kernel(old: Any, delta: Any) -> Any:
        if np.ndim(delta) and differ(np.shape(delta), old.shape):
            raise ValueError(
                f"Cannot update variable with shape {list(old.shape)} using a Tensor with shape "
                f"{list(np.shape(delta))}, shapes must be equal."
            )
        return (function(old, delta),) * 2

    return kernel


for _type, _function in (
    ("AssignAddVariableOp", lambda old, delta: old + delta),
    ("AssignSubVariableOp", lambda old, delta: old - delta),
):
    register(
        _type,
        _moved(_function),
        infer=of_handle,
        gradient=None,
        updates=(0,),
        pure=False,
        cases=lambda function=_function: [
            Case((_VALUE, _VALUE * 3), {}, (function(_VALUE, _VALUE * 3),) * 2)
        ],
    )


def _scattered(function: Any) -> Any:
    def kernel(old: Any, indices: Any, updates: Any) -> Any:
        wanted = (*np.shape(indices), *old.shape[1:])
        if np.ndim(updates) and differ(np.shape(updates), wanted):
            raise ValueError(
                "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = "
                f"[], got updates.shape {list(np.shape(updates))}, indices.shape "
                f"{list(np.shape(indices))}, params.shape {list(old.shape)}"
            )
        new = function(old, indices, updates)
        return new, new

    return kernel


def _rows_fault(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[Fault]:
    return in_range(1, inputs[1], inputs[0].shape[0])


def _method(name: str) -> Any:
    return lambda old, at, updates: getattr(old.at[at], name)(updates)


def _set_on_host(old: Any, at: Any, updates: Any) -> Any:
    new = old.copy()
    new[at] = np.asarray(updates)[()]  # NumPy would store a 0-d array of text as an array
    return new


def _divide(old: Any, at: Any, updates: Any) -> Any:
    """Division in the variable's dtype; integers truncate, as in TensorFlow."""
    return jax.lax.div(old, jnp.ones_like(old).at[at].multiply(updates))


def _expected(function: Any) -> Any:
    result = _VALUE.copy()
    for row, update in zip(_ROWS, _NEW, strict=True):
        result[row] = function(result[row], update)
    return result, result


for _type, _change, _python in (
    ("ResourceScatterUpdate", _method("set"), lambda old, new: new),  # of text, too
    ("ResourceScatterAdd", _method("add"), lambda old, new: old + new),
    ("ResourceScatterSub", _method("subtract"), lambda old, new: old - new),
    ("ResourceScatterMul", _method("multiply"), lambda old, new: old * new),
    ("ResourceScatterDiv", _divide, lambda old, new: old / new),
    ("ResourceScatterMin", _method("min"), np.minimum),
    ("ResourceScatterMax", _method("max"), np.maximum),
):
    register(
        _type,
        _scattered(_change),
        numpy_kernel=_scattered(_set_on_host) if _type == "ResourceScatterUpdate" else None,
        fault=_rows_fault,
        infer=of_handle,
        gradient=None,
        updates=(0,),
        pure=False,
        cases=lambda python=_python: [Case((_VALUE, _ROWS, _NEW), {}, _expected(python))],
    )


def _at_points(function: Any, module: Any = jnp) -> Any:
    """Adapts `function` to indices whose last axis enumerates dimensions."""

    def kernel(old: Any, indices: Any, updates: Any) -> Any:
        check_updates(indices, updates, old.shape)
        new = function(old, tuple(module.moveaxis(module.asarray(indices), -1, 0)), updates)
        return new, new

    return kernel


_POINTS = np.array([[2, 1], [0, 0]], np.int32)
_AT_POINTS = np.array([0.5, -1.0], np.float32)


def _expected_at_points(function: Any) -> Any:
    result = _VALUE.copy()
    at = tuple(_POINTS.T)
    result[at] = function(result[at], _AT_POINTS)
    return result, result


for _type, _name, _python in (
    ("ResourceScatterNdUpdate", "set", lambda old, new: new),
    ("ResourceScatterNdAdd", "add", lambda old, new: old + new),
    ("ResourceScatterNdSub", "subtract", lambda old, new: old - new),
    ("ResourceScatterNdMin", "min", np.minimum),
    ("ResourceScatterNdMax", "max", np.maximum),
):
    register(
        _type,
        _at_points(_method(_name)),
        numpy_kernel=_at_points(_set_on_host, np) if _name == "set" else None,
        fault=lambda inputs, attrs: point_fault(1, inputs[0].shape, inputs[1]),
        infer=of_handle,
        gradient=None,
        updates=(0,),
        pure=False,
        cases=lambda python=_python: [
            Case((_VALUE, _POINTS, _AT_POINTS), {}, _expected_at_points(python)),
            Case((_VALUE, _ROWS[:2, None], _NEW[:2]), {}, _expected_rows(python)),
        ],
    )


def _expected_rows(function: Any) -> Any:
    result = _VALUE.copy()
    result[_ROWS[:2]] = function(result[_ROWS[:2]], _NEW[:2])
    return result, result


# -- slices


def _slice_assigned(old: Any, value: Any, *dynamic: Any, index: Any) -> Any:
    new = jnp.asarray(old).at[index_of(index, dynamic)].set(value)
    return new, new


def _slice_assigned_on_host(old: Any, value: Any, *dynamic: Any, index: Any) -> Any:
    return (_set_on_host(old, index_of(index, dynamic), value),) * 2


def _infer_slice_assigned(inputs: Any, attrs: Any) -> list[Spec]:
    whole = of_handle(inputs, attrs)
    handle, value = inputs[:2]
    like = SimpleNamespace(dtype=whole[0].dtype, shape=whole[0].shape, op=handle.op)
    (part,) = infer_strided_slice([like, *inputs[2:]], attrs)

    def refusal(_: int, __: int) -> Exception:
        return value_error(
            f"Cannot broadcast input shape {value.shape} into final shape {part.shape}: "
            f"assignment to a slice of {handle.op.name}",
            made_at=handle.op.source,
        )

    if value.shape.rank is not None and part.shape.rank is not None:
        if value.shape.rank > part.shape.rank:
            raise refusal(0, 0)
        if not broadcast_shapes(value.shape, part.shape, refusal).is_compatible_with(part.shape):
            raise refusal(0, 0)
    return whole


register(
    "ResourceStridedSliceAssign",
    _slice_assigned,
    fault=lambda inputs, attrs: index_fault(inputs, attrs, 2),
    numpy_kernel=_slice_assigned_on_host,
    infer=_infer_slice_assigned,
    gradient=None,
    updates=(0,),
    pure=False,
    static=lambda attrs: bounds_of_slices(attrs, 2),
    cases=lambda: [
        Case(
            (_VALUE, np.array([7.0, 8.0], np.float32), np.int32(1)),
            {"index": ("input", ("slice", None, None, -1))},
            (np.array([[1.0, 2.0], [8.0, 7.0], [5.0, 6.0]], np.float32),) * 2,
        ),
    ],
)


# -- asking the session

register(
    "VarIsInitializedOp",
    lambda *, context, variable: np.asarray(not context.variables.uninitialized([variable])),
    where="host",
    infer=fixed(bool_),
    gradient=None,
    context=True,
    pure=False,
    holder="variable",
)


def _report_uninitialized(*, context: Any, variables: tuple[str, ...]) -> Any:
    missing = context.variables.uninitialized(variables)
    return np.array([name.encode() for name in missing], object)


def _assert_initialized(*, context: Any, variables: tuple[str, ...]) -> list[Any]:
    missing = context.variables.uninitialized(variables)
    if missing:
        raise FailedPreconditionError.explained(
            f"Attempting to use uninitialized value {missing[0]}",
            received=f"no value yet for {', '.join(missing)}",
            hint="run global_variables_initializer() or restore a checkpoint first",
        )
    return []


register(
    "ReportUninitializedVariables",
    _report_uninitialized,
    where="host",
    infer=fixed(string, TensorShape([None])),
    gradient=None,
    context=True,
    pure=False,
    client_only=True,
)
register(
    "AssertVariablesInitialized",
    _assert_initialized,
    where="host",
    infer=lambda inputs, attrs: [],
    gradient=None,
    context=True,
    pure=False,
    client_only=True,
)


def _initialized_value(initial: Any, *, context: Any, variable: str) -> Any:
    with context.variables.lock:  # a concurrent run may donate the buffer
        value = context.variables.values.get(variable)
        return initial if value is None else np.array(value)


register(
    "InitializedValue",
    _initialized_value,
    where="host",
    infer=same_as_input(),
    gradient=None,
    context=True,
    pure=False,
    holder="variable",
)


def _count_up_to(
    before: Any, *, context: Any, variable: str, limit: int, in_body: bool = False
) -> Any:
    """Increments atomically: reads the value under the lock, as `before` may be stale."""
    with nullcontext() if in_body else context.lock:
        value = np.array(before if in_body else context.values[variable])
        if value >= limit:
            raise OutOfRangeError(None, None, f"Reached limit of {limit}")
        after = value + value.dtype.type(1)
        if in_body:  # inside a function body the value is private until the body ends
            return after, value
        context.values[variable] = after
    return value


register(
    "CountUpTo",
    _count_up_to,
    where="host",
    infer=of_handle,
    gradient=None,
    updates=lambda attrs: (0,) if attrs.get("in_body") else (),
    context=True,
    pure=False,
    holder="variable",
)
