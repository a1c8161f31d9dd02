"""Arguments that are written once: those of another function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def arguments_of(other: Callable[P, Any]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Lets a function have the arguments of another one, of which it gets each by its name.

    Type checkers and `inspect.signature` see the other's names, order and defaults.
    """
    signature = inspect.signature(other)

    def decorate(function: Callable[..., R]) -> Callable[P, R]:
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
            bound.apply_defaults()
            return function(**bound.arguments)

        call.__module__, call.__doc__ = function.__module__, function.__doc__
        call.__name__ = call.__qualname__ = function.__name__
        vars(call)["__signature__"] = signature
        return call

    return decorate


__all__ = ["arguments_of"]
