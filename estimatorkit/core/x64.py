"""64-bit mode of JAX, enabled only around code that needs it.

By default JAX truncates 64-bit values to 32 bits. Graphs support int64 and float64, so executables
with such values are traced and called inside `with x64():`. The process-wide flag is never changed,
so other JAX code in the program is not affected.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any


def x64() -> AbstractContextManager[Any]:
    """A context manager in which JAX supports 64-bit types."""
    import jax

    context: AbstractContextManager[Any] = jax.enable_x64(True)
    return context
