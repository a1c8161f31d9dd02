"""`contrib.framework.arg_scope`: default arguments for functions within a block."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any


class _Scopes(threading.local):
    def __init__(self) -> None:
        self.stack: list[dict[str, dict[str, Any]]] = [{}]


_scopes = _Scopes()


def _key(function: Callable[..., Any]) -> str:
    named: str = getattr(function, "_arg_scope_key", "")
    return named or f"{function.__module__}.{function.__qualname__}"


@contextmanager
def arg_scope(
    list_ops_or_scope: Sequence[Callable[..., Any]] | Mapping[str, Any], **kwargs: Any
) -> Iterator[dict[str, dict[str, Any]]]:
    """Sets default arguments of functions decorated by `add_arg_scope` within a block.

    Args:
        list_ops_or_scope: the functions; or a scope yielded by another block, to re-enter it.
        **kwargs: the arguments.

    Raises:
        ValueError: a function is not decorated by `add_arg_scope`, or arguments are given with a
            scope.
        TypeError: the first argument is not a list, a tuple or a scope.
    """
    current = _scopes.stack[-1]
    if isinstance(list_ops_or_scope, Mapping):
        if kwargs:
            raise ValueError(
                "When attempting to re-use a scope by supplying a dictionary, kwargs must be "
                f"empty. Received: {sorted(kwargs)}"
            )
        inner = dict(list_ops_or_scope)
    elif not isinstance(list_ops_or_scope, (list, tuple)):
        raise TypeError(
            "list_ops_or_scope must either be a list/tuple or reused scope (i.e. dict). "
            f"Received: {list_ops_or_scope!r}"
        )
    else:
        inner = dict(current)
        for function in list_ops_or_scope:
            if not hasattr(function, "_arg_scope_key"):
                raise ValueError(f"{function.__name__} is not decorated with @add_arg_scope")
            inner[_key(function)] = {**inner.get(_key(function), {}), **kwargs}
    _scopes.stack.append(inner)
    try:
        yield inner
    finally:
        _scopes.stack.pop()


def add_arg_scope(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: allows `arg_scope` to set default arguments."""
    key = _key(function)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **{**_scopes.stack[-1].get(key, {}), **kwargs})

    wrapped._arg_scope_key = key  # type: ignore[attr-defined]
    return wrapped


def current_arg_scope() -> dict[str, dict[str, Any]]:
    """The current default arguments."""
    return _scopes.stack[-1]


def has_arg_scope(function: Callable[..., Any]) -> bool:
    """Whether `arg_scope` can set the function's default arguments."""
    return hasattr(function, "_arg_scope_key")


def arg_scope_func_key(function: Callable[..., Any]) -> str:
    """The key of a function in scopes."""
    return _key(function)


def arg_scoped_arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the arguments that `arg_scope` can set: those with a default.

    Raises:
        ValueError: the function is not decorated by `add_arg_scope`.
    """
    if not has_arg_scope(function):
        raise ValueError(f"{function.__name__} is not decorated with @add_arg_scope")
    parameters = inspect.signature(function).parameters.values()
    return tuple(each.name for each in parameters if each.default is not each.empty)
