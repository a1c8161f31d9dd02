"""Large tables in large pages of memory, where the operating system has them.

A training step touches some rows of an embedding table, each in another place. In pages of 4 KiB
the processor's table of pages holds a few megabytes, and every row then costs a walk through the
page tables: steps of 128 rows of 256 bytes took 45 us with 10,000 rows and 166 with a million; in
pages of 2 MiB 70. Linux is therefore asked to move the arrays of variables there, once; a megabyte
takes 3 ms.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable
from typing import Any

import jax

LEAST_BYTES = 16 << 20
"""Smaller arrays fit into the processor's caches."""

_PAGE = 2 << 20
_WISHED, _NOW = 14, 25
"""MADV_HUGEPAGE: pages that are touched from now on; MADV_COLLAPSE (Linux 6.1): those in use."""


def use_huge_pages(arrays: Iterable[Any]) -> int:
    """Asks for large pages; what the arrays hold stays as it is.

    Args:
        arrays: of these, JAX arrays in the memory of this process of at least `LEAST_BYTES`.

    Returns:
        How many bytes are in large pages now: 0 where the system has none, or knows no such wish.
    """
    if not sys.platform.startswith("linux"):
        return 0
    moved = 0
    for array in arrays:
        if isinstance(array, jax.Array) and array.nbytes >= LEAST_BYTES and _is_here(array):
            array.block_until_ready()  # pages that are being written to stay where they are
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
