"""Arrays aligned so that XLA on CPU uses their memory without a copy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

ALIGNMENT = 64  # bytes


def aligned_empty(shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
    """Returns an uninitialized C-contiguous array with 64-byte alignment.

    Args:
        shape: the dimensions.
        dtype: any NumPy dtype; object arrays (strings), which XLA never sees, are not aligned.
    """
    dtype = np.dtype(dtype)
    if dtype.hasobject:
        return np.empty(tuple(shape), dtype)
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + ALIGNMENT, np.uint8)
    offset = -memory.__array_interface__["data"][0] % ALIGNMENT
    return np.ndarray(tuple(shape), dtype, buffer=memory, offset=offset)


def is_aligned(array: NDArray[Any]) -> bool:
    """Whether XLA on CPU can use the array's memory without a copy."""
    start: int = array.__array_interface__["data"][0]
    return start % ALIGNMENT == 0 and array.flags.c_contiguous


def as_aligned(array: NDArray[Any]) -> NDArray[Any]:
    """The array if it is aligned, else an aligned copy."""
    if is_aligned(array):
        return array
    out = aligned_empty(array.shape, array.dtype)
    out[...] = array
    return out
