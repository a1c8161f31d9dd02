"""What is set for the process before JAX is imported: XLA's flags, and malloc's arenas."""

from __future__ import annotations

import ctypes
import os
import sys

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


MOST_CORES = 4
"""With more, threads that compile might wait for each other at the only arena (not measured)."""

_ARENA_MAX = -8
"""glibc's `M_ARENA_MAX` (malloc.h)."""


def share_arenas() -> bool:
    """Has all threads allocate in glibc's main arena; returns whether it does so.

    XLA's client allocates the temporaries of a step in a thread of its own, whose arena glibc
    limits to 64 MB: what is larger it maps anew for each call. A residual network's step with
    100 MB took 25,400 page faults, 47 of 186 ms of the processor. In the main arena it takes none,
    as `keep_freed_memory` (`host_tuning`) keeps it. Two threads that compiled at the same time
    waited for it 170 times in 2.5 s, and took as much time of the processor.

    Threads that exist already keep their arenas; hence the package calls this when it is imported.
    With more than `MOST_CORES` there is an arena for each core, not eight. No effect with other C
    libraries, `ESTIMATORKIT_HOST_TUNING=0`, or if `MALLOC_ARENA_MAX` or `GLIBC_TUNABLES` is set.
    """
    chosen = {"MALLOC_ARENA_MAX", "GLIBC_TUNABLES"} & os.environ.keys()
    if chosen or os.environ.get("ESTIMATORKIT_HOST_TUNING") == "0" or sys.platform != "linux":
        return False
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    cores = os.cpu_count() or 1
    arenas = 1 if cores <= MOST_CORES else cores
    return set_option is not None and set_option(_ARENA_MAX, arenas) == 1 and arenas == 1
