"""Composite values: sparse tensors, `IndexedSlices` and tensor arrays as their component tensors.

A class is composite if `_components()` returns its tensors and its constructor takes them in the
same order (or it has `_with_components(tensors)`). This is the whole interface that control flow,
functions and sessions use.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


class HasValues(Protocol):
    """A composite of values and of where they are."""

    def _map_values(self, function: Callable[[Any], Any]) -> Any:
        """The same with the values that a function returns for its own."""


def is_composite(value: Any) -> bool:
    """Whether `value` is a composite of tensors."""
    return hasattr(value, "_components")


def with_components(value: Any, tensors: Sequence[Any]) -> Any:
    """A composite like `value`, with other component tensors."""
    make = getattr(value, "_with_components", None)
    return type(value)(*tensors) if make is None else make(tensors)


def on_values(*kinds: type[HasValues]) -> Callable[[Function], Function]:
    """A decorator that lets a function of one tensor also map the `values` of composites.

    The result is then a composite, too, which the function's annotation does not say.
    """

    def decorate(function: Function) -> Function:
        first = next(iter(inspect.signature(function).parameters))

        @functools.wraps(function)
        def mapped(*args: Any, **kwargs: Any) -> Any:
            x = args[0] if args else kwargs.get(first)
            if not isinstance(x, kinds):
                return function(*args, **kwargs)
            rest = {name: kwargs[name] for name in kwargs if name != first}
            return x._map_values(lambda values: function(values, *args[1:], **rest))

        return cast(Function, mapped)

    return decorate
