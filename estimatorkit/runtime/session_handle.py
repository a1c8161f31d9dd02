"""`TensorHandle`: a reference to a tensor that a session keeps between runs."""

from __future__ import annotations

import itertools
from typing import Any

from estimatorkit.core.errors import InvalidArgumentError

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
        """The tensor's value.

        Raises:
            TypeError: it was deleted, or `get_raw_handle` has been called.
        """
        self._check()
        return self._store.value(self._handle)

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
