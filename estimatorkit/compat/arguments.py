"""Adapts functions to the argument names, orders and defaults of other TensorFlow versions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any


def signature_of(defaults: Mapping[str, Any]) -> inspect.Signature:
    """A signature of arguments with defaults; `Parameter.empty` or `...` if required."""
    kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    return inspect.Signature(
        [
            inspect.Parameter(name, kind, default=empty if default is ... else default)
            for name, default in defaults.items()
        ]
    )


def with_arguments(
    module: str,
    name: str,
    function: Callable[..., Any],
    arguments: str,
    defaults: Mapping[str, Any] | None = None,
    **fixed: Any,
) -> Callable[..., Any]:
    """A function that calls another with different arguments.

    Args:
        module, name: its location, for its own description.
        function: the called function.
        arguments: its arguments in order, separated by spaces: `name`, `name=inner` if `function`
            calls it `inner`, or `name=` if it has no effect.
        defaults: those that `function` lacks.
        fixed: further arguments of `function`.
    """
    known = inspect.signature(function).parameters
    inner: dict[str, str] = {}
    for each in arguments.split():
        outer, equals, other = each.partition("=")
        inner[outer] = other if equals else outer
    own = {outer: known[each].default if each else None for outer, each in inner.items()}
    signature = signature_of({**own, **(defaults or {})})

    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) > len(inner):
            raise TypeError(
                f"{name}() takes at most {len(inner)} positional arguments, got {len(args)}"
            )
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = {inner[name]: value for name, value in bound.arguments.items() if inner[name]}
        return function(**given, **fixed)

    call.__module__, call.__name__, call.__qualname__ = module, name, name
    call.__doc__ = f"`{function.__name__}` with the arguments {', '.join(inner)}."
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call
