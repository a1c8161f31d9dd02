"""The default session: a stack per thread, pushed by `with session.as_default():`.

It lies below `tensor` and `session`, so that `Tensor.eval` and `Operation.run` find the session
they run in. What a session is, this module does not know: `session` says. The stack of default
graphs is in `graph`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from estimatorkit.core.errors import value_error


class _Stack(threading.local):
    """The sessions made default in this thread, the innermost last."""

    def __init__(self) -> None:
        self.sessions: list[Any] = []


_stack = _Stack()


def get_default_session() -> Any:
    """The innermost session made default, or None."""
    return _stack.sessions[-1] if _stack.sessions else None


@contextmanager
def default_session(session: Any, enforce_nesting: bool = True) -> Iterator[Any]:
    """Makes `session` the default session inside the `with` block.

    Args:
        session: the session.
        enforce_nesting: whether blocks must be left in the reverse order of their entering.

    Raises:
        AssertionError: a block is left before one that was entered inside it.
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
    """The session that runs parts of `graph`: `session`, or the default session.

    Args:
        graph: the graph.
        session: the session, None for the default one.
        what: what it is for, in an error.

    Raises:
        ValueError: there is none, or it is the session of another graph.
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
