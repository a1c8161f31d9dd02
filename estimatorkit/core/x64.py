"""64-bit mode of JAX, enabled only around code that needs it.

JAX cuts 64-bit values to 32 bits unless told otherwise. Graphs honour int64 and float64, so tracing
and the calls of executables that touch wide types happen inside `with x64():`. The process-wide
flag is never changed, so that other JAX code in the same program is not affected.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any


def x64() -> AbstractContextManager[Any]:
    """A context in which JAX keeps 64-bit types."""
    import jax

    context: AbstractContextManager[Any] = jax.enable_x64(True)
    return context
