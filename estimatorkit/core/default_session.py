"""The default session: a stack per thread, pushed by `with session.as_default():`.

A module of its own, so that `Tensor.eval` and `Operation.run` find their session without importing
it. The stack of default graphs is in `graph`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from estimatorkit.core.errors import value_error


class _Stack(threading.local):
    """The stack of this thread's default sessions."""

    def __init__(self) -> None:
        self.sessions: list[Any] = []


_stack = _Stack()


def get_default_session() -> Any:
    """The innermost session made default, or None."""
    return _stack.sessions[-1] if _stack.sessions else None


@contextmanager
def default_session(session: Any, enforce_nesting: bool = True) -> Iterator[Any]:
    """A context manager that makes `session` the default session.

    Args:
        session: the session.
        enforce_nesting: whether blocks must be exited in reverse order.

    Raises:
        AssertionError: they are not.
    """
    _stack.sessions.append(session)
    try:
        yield session
    finally:
        nested = _stack.sessions[-1:] == [session]
        _stack.sessions.remove(session)
        if enforce_nesting and not nested:
            raise AssertionError(
                f"Nesting violated for default stack of {type(session)} objects: blocks must be "
                "left in the reverse order of their entering."
            )


def session_for(
    graph: Any, session: Any = None, what: str = "evaluate tensor using `eval()`"
) -> Any:
    """Returns `session`, or the default session.

    Args:
        graph: the graph to run.
        session: the session; None for the default one.
        what: its purpose, for error messages.

    Raises:
        ValueError: there is none, or its graph is another.
    """
    session = session or get_default_session()
    if session is None:
        raise value_error(
            f"Cannot {what}: No default session is registered",
            hint="use `with session.as_default():` or pass an explicit session: `session=`",
        )
    if session.graph is not graph:
        raise ValueError(
            "Cannot use the given session to evaluate: its graph is different from the graph of "
            "the tensor or operation."
        )
    return session
