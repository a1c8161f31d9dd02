"""`trace_function`: traces the user functions of transformations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.data import ports


def trace_function(function: Callable[..., Any], element_spec: Any, *, unpack: bool = True) -> Any:
    """Traces a function given to a transformation, as a `DatasetFunction`.

    Args:
        element_spec: the spec of its argument.
        unpack: whether an element that is a plain tuple becomes several arguments, as in tf.data (a
            dict or a named tuple never does); otherwise the components always do.

    Raises:
        ValueError: `function` is not callable.
    """
    if not callable(function):
        raise value_error(
            "a function of an element is required",
            expected="a callable",
            received=repr(function),
        )

    def of_element(element: Any) -> Any:
        several = type(element) is tuple if unpack else True
        return function(*element) if several else function(element)

    return ports.traced_functions.dataset_function(of_element, element_spec)
