"""XLA's process-wide flags, set before JAX is imported."""

from __future__ import annotations

import os

_EXTRA = "--xla_backend_extra_options"
_NO_UNROLLING = "xla_cpu_disable_loop_unrolling"


def compile_without_unrolling() -> None:
    """Turns LLVM's loop unrolling off, unless `XLA_FLAGS` has backend options already.

    It takes a fifth of the time of a compilation, and steps are as fast without: XLA's loops are
    vectorized, and the library of matrix products comes compiled. XLA reads the flags once, when
    JAX is first used; the package therefore calls this when it is imported.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if _EXTRA not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_EXTRA}={_NO_UNROLLING}".strip()
