"""Tensors that persist in a session between runs: `get_session_handle` and related functions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.conversion import make
from estimatorkit.core.dtypes import as_dtype, string
from estimatorkit.core.errors import InvalidArgumentError, type_error
from estimatorkit.core.registry import Spec, apply, register
from estimatorkit.core.shapes import SCALAR, UNKNOWN
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.runtime.prepared_run import register_fetched

_STORE = "session tensors"


class SessionStore:
    """The tensors that a session keeps, by handle."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._values: dict[str, Any] = {}

    @staticmethod
    def of(state: Any) -> SessionStore:
        """The store of a session's `State`."""
        store: SessionStore = state.resource(_STORE, SessionStore)
        return store

    def keep(self, name: str, value: Any) -> str:
        """Keeps a value, and returns its handle, 'name;number;device'."""
        handle = f"{name};{next(self._numbers)};/device:CPU:0"
        self._values[handle] = value
        return handle

    def value(self, handle: str) -> Any:
        """The value.

        Raises:
            InvalidArgumentError: there is no such value, or it was deleted.
        """
        if handle not in self._values:
            words = f"The tensor with handle '{handle}' is not in the session store."
            raise InvalidArgumentError(None, None, words)
        return self._values[handle]

    def forget(self, handle: str) -> None:
        """Discards the value, if kept."""
        self._values.pop(handle, None)


class TensorHandle:
    """The result of fetching `get_session_handle`.

    The tensor is kept until the handle is deleted or garbage-collected. A handle can be fed for any
    tensor of its dtype and shape.

    Args:
        store: the store that keeps the tensor.
        handle: its string form.
    """

    def __init__(self, store: SessionStore, handle: str) -> None:
        self._store = store
        self._handle = handle
        self._owns = True

    @property
    def handle(self) -> str:
        """The string to feed to the placeholder of `get_session_tensor`."""
        return self._handle

    def _check(self) -> None:
        if not self._owns:
            raise TypeError(f"Persistent tensor {self._handle} may have already been deleted.")

    def eval(self) -> Any:
        """The tensor's value, which a feed of the handle has.

        Raises:
            TypeError: it was deleted, or `get_raw_handle` has been called.
        """
        self._check()
        return self._store.value(self._handle)

    _fed_value = eval

    def delete(self) -> None:
        """Deletes the tensor.

        Raises:
            TypeError: it was deleted, or `get_raw_handle` has been called.
        """
        self._check()
        self._owns = False
        self._store.forget(self._handle)

    def get_raw_handle(self) -> str:
        """The string form; the tensor is then kept until `delete_session_tensor` deletes it."""
        self._owns = False
        return self._handle

    def __del__(self) -> None:
        if self._owns:
            self._store.forget(self._handle)

    def __str__(self) -> str:
        return self._handle


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
        infer=_infer,
        gradient=None,
        where="host",
        context=True,
        pure=False,
        client_only=True,
    )

register_fetched(
    "GetSessionHandle", lambda state, value: TensorHandle(SessionStore.of(state), value.decode())
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
