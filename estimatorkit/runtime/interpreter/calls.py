"""Equations that programs do not contain: those of calls are inlined, others do nothing."""

from __future__ import annotations

from typing import Any

from jax.extend.core import ClosedJaxpr

SAME = frozenset(
    {"stop_gradient", "optimization_barrier", "name", "copy", "copy_p", "random_wrap"}
    | {"random_unwrap", "device_put", "sharding_constraint", "pvary"}
)
"""Primitives whose results are their operands."""


_CALLS = frozenset(
    {"jit", "pjit", "closed_call", "core_call", "call", "custom_jvp_call", "custom_vjp_call"}
    | {"remat", "remat2", "checkpoint", "custom_vmap_call"}
)


def called_function(source: Any) -> ClosedJaxpr | None:
    """The function that an equation calls with its operands; None if it is none."""
    if source.primitive.name not in _CALLS:
        return None
    parameters = source.params
    (inner,) = (parameters[key] for key in ("call_jaxpr", "jaxpr", "call") if key in parameters)
    return inner if isinstance(inner, ClosedJaxpr) else ClosedJaxpr(inner, ())
