"""Tuning of the host's memory: huge pages, malloc, and prefetching rows of large tables.

`ESTIMATORKIT_HOST_TUNING=0` in the environment turns all of it off. Results do not change.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
import time
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from estimatorkit.runtime.xla.platforms import by_platform


@functools.cache
def enabled() -> bool:
    """Whether tuning is not disabled by the environment."""
    return os.environ.get("ESTIMATORKIT_HOST_TUNING", "1") != "0"


# -- huge pages

LEAST_BYTES = 16 << 20
"""Smaller arrays fit into the processor's caches."""

_PAGE = 2 << 20
_WISHED, _NOW = 14, 25
"""MADV_HUGEPAGE: pages that are touched from now on; MADV_COLLAPSE (Linux 6.1): those in use."""


def use_huge_pages(arrays: Iterable[Any]) -> int:
    """Asks Linux to move large arrays to huge pages, which reduces TLB misses.

    Args:
        arrays: JAX arrays in host memory of at least `LEAST_BYTES`; others are ignored.

    Returns:
        The number of bytes in huge pages now; 0 if the system does not support them.
    """
    if not (enabled() and sys.platform.startswith("linux")):
        return 0
    moved = 0
    for array in arrays:
        if isinstance(array, jax.Array) and array.nbytes >= LEAST_BYTES and _is_here(array):
            array.block_until_ready()  # pages still being written stay where they are
            moved += _move(array.unsafe_buffer_pointer(), array.nbytes)
    return moved


def _is_here(array: jax.Array) -> bool:
    return all(device.platform == "cpu" for device in array.devices()) and array.is_fully_replicated


def _move(address: int, size: int) -> int:
    first = -(-address // _PAGE) * _PAGE
    length = (address + size) // _PAGE * _PAGE - first
    advise = ctypes.CDLL(None, use_errno=True).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return length if advise(first, length, _WISHED) == 0 == advise(first, length, _NOW) else 0


# -- malloc

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
"""glibc's `M_TRIM_THRESHOLD`, `M_TOP_PAD` and `M_MMAP_THRESHOLD` (malloc.h)."""
_HEAP, _GIGABYTE, _NEVER = 2**26, 2**30, 2**31 - 1
"""`_HEAP` is the size of the heaps from which glibc gives memory to threads. It unmaps an empty one
if there is room for the padding in that before it, hence never: a U-Net's step of 70 ms of all
cores had 10,400 page faults, and takes 50."""


@functools.cache
def keep_freed_memory() -> bool:
    """Tells glibc not to return freed memory, so that steps avoid page faults; returns success.

    XLA's CPU client allocates a step's temporaries in each call. The process stays as large as its
    largest step, until `release_freed_memory`. No effect with other C libraries, or if
    `GLIBC_TUNABLES` or an environment variable of one of the three options is set.
    """
    names = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_")
    chosen = (*names, "GLIBC_TUNABLES")
    if (
        not enabled()
        or platform.libc_ver()[0] != "glibc"
        or any(name in os.environ for name in chosen)
    ):
        return False
    set_option = ctypes.CDLL(None).mallopt
    set_option(_MMAP_THRESHOLD, _GIGABYTE)
    set_option(_TRIM_THRESHOLD, _NEVER)
    set_option(_TOP_PAD, _HEAP)
    return True


@functools.cache
def run_in_calling_thread() -> None:
    """Disables JAX's asynchronous dispatch on CPUs: executables run in the calling thread.

    Runs wait for their results before they return, so that another thread only has to be woken: a
    step of a network for Iris took 100 to 116 us, and takes 70. The main thread's memory is not in
    heaps of 64 MB either (see `_HEAP`), beyond which glibc maps memory anew for each call: a step
    of a residual network with 100 MB of temporaries had 25,000 page faults, and took 155 ms of all
    cores; it has none, and takes 118. No effect once JAX has been used.
    """
    if enabled():
        jax.config.update("jax_cpu_enable_async_dispatch", False)  # type: ignore[no-untyped-call]


_SECS_BETWEEN = 1.0
_released = -_SECS_BETWEEN


def release_freed_memory() -> None:
    """Returns freed memory to the system, at most once a second.

    Called when a program was compiled: the compiler, and the interpreter that has run the program
    until then, leave 300 MB of 890 in a small CNN's training. It takes some 10 ms, and the next
    step gets its pages anew.
    """
    global _released
    now = time.monotonic()
    if keep_freed_memory() and now - _released >= _SECS_BETWEEN:
        _released = now
        ctypes.CDLL(None).malloc_trim(0)


# -- prefetching

_LINE = 64
"""Bytes of a line of the caches."""

_MOST_BYTES = 1 << 20
"""More than this would not stay in a core's cache until it is used."""

_INTEGERS = {2: jnp.int16, 4: jnp.int32, 8: jnp.int64}
"""By the bytes of a number."""


def prefetch_rows(indices: Any, *tables: Any) -> Any:
    """Returns the indices, after prefetching their rows into the CPU caches.

    A short loop reads one element per cache line of every row, so that cache misses overlap; the
    loops that use the rows would wait for a few at a time.

    Args:
        indices: integers of any shape; out-of-range ones are clamped.
        tables: floating arrays with the same number of rows. No effect for small tables, and on
            devices other than CPUs.
    """
    if not enabled():
        return indices
    far = [each for each in tables if _are_far(indices, each)]
    if not far:
        return indices
    return by_platform(indices, *far, cpu=_fetched, default=lambda same, *_: same)


def _are_far(indices: Any, table: Any) -> bool:
    sizes = (*indices.shape, *table.shape)
    if not all(isinstance(size, int) for size in sizes) or not jnp.issubdtype(
        table.dtype, jnp.floating
    ):
        return False
    return (
        table.nbytes >= LEAST_BYTES
        and table.dtype.itemsize in _INTEGERS
        and indices.size * table.nbytes // table.shape[0] <= _MOST_BYTES
    )


def _fetched(indices: Any, *tables: Any) -> Any:
    seen = sum(_sum_of_lines(table, indices) for table in tables)
    # n (n + 1) is even, so this adds 0; compilers cannot know that, and so keep the fetch.
    nothing = (seen * (seen + 1)) & 1
    return indices + nothing.astype(indices.dtype)


def _sum_of_lines(table: Any, indices: Any) -> Any:
    """Sums the bits of one number from each cache line of the rows."""
    size = table.dtype.itemsize
    rows = jnp.take(table, indices.reshape(-1), axis=0, mode="clip").reshape(indices.size, -1)
    rows = lax.stop_gradient(rows)
    bits = lax.bitcast_convert_type(rows[:, :: _LINE // size], _INTEGERS[size])
    return jnp.sum(bits.astype(jnp.int32), dtype=jnp.int32)
