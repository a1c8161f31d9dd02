"""XLA's process-wide flags, set before JAX is first used."""

from __future__ import annotations

import os

_EXTRA = "--xla_backend_extra_options"
_NO_UNROLLING = "xla_cpu_disable_loop_unrolling"
_NO_STRENGTH_REDUCTION = "-disable-lsr"
_ACCELERATORS = ("jax_plugins", "libtpu")
"""Packages of JAX's other backends, whose compilers would get the options as well."""


def compile_without_unrolling() -> None:
    """Turns LLVM's loop unrolling off, unless `XLA_FLAGS` has backend options already.

    It takes a fifth of the time of a compilation, and steps are as fast without: XLA's loops are
    vectorized, and the library of matrix products comes compiled. XLA reads the flags once, when
    JAX is first used; the package therefore calls this when it is imported.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if _EXTRA not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_EXTRA}={_NO_UNROLLING}".strip()


def compile_without_strength_reduction() -> None:
    """Disables LLVM's loop strength reduction if XLA compiles for x86-64 CPUs only and the program
    has set no backend options.

    It takes 5 to 18 % of the time of a compilation, and steps are as fast without: x86-64
    instructions compute the addresses of an array's elements (seven steps of the programs of
    `benchmarks/cold.py`). Called before the first session, since it needs jaxlib's version: LLVM
    ends the process if it does not know an option.
    """
    import platform  # here, since it would add 1 ms to the package's import
    from importlib.util import find_spec

    from jaxlib.version import __version__ as jaxlib_version

    is_known = jaxlib_version.startswith("0.10.") and platform.machine() in ("x86_64", "AMD64")
    flags = os.environ.get("XLA_FLAGS", "")
    ours = f"{_EXTRA}={_NO_UNROLLING}"
    if is_known and ours in flags.split() and not any(map(find_spec, _ACCELERATORS)):
        os.environ["XLA_FLAGS"] = flags.replace(ours, f"{ours},{_NO_STRENGTH_REDUCTION}")
