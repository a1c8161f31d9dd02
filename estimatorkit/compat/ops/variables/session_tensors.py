"""Tensors that persist in a session between runs: `get_session_handle` and related functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.conversion import make
from estimatorkit.core.dtypes import as_dtype, string
from estimatorkit.core.errors import type_error
from estimatorkit.core.registry import Role, Spec, apply, register
from estimatorkit.core.shapes import SCALAR, UNKNOWN
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.runtime.session_handle import SessionStore, TensorHandle


def _text(handle: Any) -> str:
    raw = np.asarray(handle, object).item()
    return raw.decode() if isinstance(raw, bytes) else str(raw)


def _keep(value: Any, *, context: Any, label: str) -> Any:
    # A copy, because the run may reuse the array's memory.
    return np.array(SessionStore.of(context).keep(label, np.array(value)).encode(), object)


def _value(handle: Any, *, context: Any, dtype: Any) -> Any:
    found = SessionStore.of(context).value(_text(handle))
    if found.dtype != dtype.numpy_dtype:
        raise ValueError(f"the tensor of this handle has dtype {found.dtype}, not {dtype.name}")
    return found


def _forget(handle: Any, *, context: Any) -> list[Any]:
    SessionStore.of(context).forget(_text(handle))
    return []


for _type, _kernel, _infer in (
    ("GetSessionHandle", _keep, lambda inputs, attrs: [Spec(string, SCALAR)]),
    ("GetSessionTensor", _value, lambda inputs, attrs: [Spec(attrs["dtype"], UNKNOWN)]),
    ("DeleteSessionTensor", _forget, lambda inputs, attrs: []),
):
    register(
        _type,
        _kernel,
        role=Role.SESSION_HANDLE if _type == "GetSessionHandle" else None,
        infer=_infer,
        gradient=None,
        where="host",
        context=True,
        pure=False,
        client_only=True,
    )


def get_session_handle(data: Any, name: str | None = None) -> Tensor:
    """Stores a tensor in the session, in host memory, for later runs.

    Returns:
        A string scalar; fetching it yields a `TensorHandle`.

    Raises:
        TypeError: `data` is not a tensor.
    """
    if not isinstance(data, Tensor):
        raise type_error("`data` must be of type Tensor.", received=repr(data)[:200])
    return make("GetSessionHandle", {"value": data}, {"label": data.op.name}, name)


def get_session_tensor(handle: Any, dtype: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Reads a tensor that an earlier run stored.

    Args:
        handle: the handle's text; TensorFlow takes the device from it, here it is ignored.
        dtype: the tensor's dtype.

    Returns:
        A placeholder for the handle's text, and the tensor.
    """
    holder = placeholder(string, [])
    attrs = {"dtype": as_dtype(dtype)}
    return holder, make("GetSessionTensor", {"handle": holder}, attrs, name)


def delete_session_tensor(handle: Any, name: str | None = None) -> tuple[Tensor, Operation]:
    """Deletes a stored tensor from the session.

    Args:
        handle: the handle's text; TensorFlow takes the device from it, here it is ignored.

    Returns:
        A placeholder for the handle's text, and the operation.
    """
    holder = placeholder(string, [])
    return holder, apply("DeleteSessionTensor", [holder], name=name)


__all__ = ["TensorHandle", "delete_session_tensor", "get_session_handle", "get_session_tensor"]
