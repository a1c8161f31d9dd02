"""Composite values: sparse tensors, `IndexedSlices` and tensor arrays as their component tensors.

A class is composite if `_components()` returns its tensors and its constructor takes them in the
same order (or it has `_with_components(tensors)`). This is the whole interface that control flow,
functions and sessions use.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from estimatorkit.core.dtypes import DType
    from estimatorkit.core.graph import Graph
    from estimatorkit.core.tensor import Operation, Tensor

Function = TypeVar("Function", bound=Callable[..., Any])


class OfValues:
    """A composite of values and of where they are."""

    _values: Tensor

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self._values.dtype

    @property
    def op(self) -> Operation:
        """The operation that produces the values."""
        return self._values.op

    @property
    def name(self) -> str:
        """The name of the values."""
        return self._values.name

    @property
    def graph(self) -> Graph:
        """The graph that holds the tensors."""
        return self._values.graph

    def consumers(self) -> list[Operation]:
        """The operations that have one of its tensors as an input."""
        return list(dict.fromkeys(op for part in self._components() for op in part.consumers()))

    def with_values(self, new_values: Any) -> Any:
        """The same places with other values."""
        raise NotImplementedError

    def _components(self) -> tuple[Tensor, ...]:
        """Its component tensors."""
        raise NotImplementedError


def is_composite(value: Any) -> bool:
    """Whether `value` is a composite of tensors."""
    return hasattr(value, "_components")


def with_components(value: Any, tensors: Sequence[Any]) -> Any:
    """A composite like `value`, with other component tensors."""
    make = getattr(value, "_with_components", None)
    return type(value)(*tensors) if make is None else make(tensors)


def on_values(*kinds: type[OfValues]) -> Callable[[Function], Function]:
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
            return x.with_values(function(x._values, *args[1:], **rest))

        return cast(Function, mapped)

    return decorate
