"""Lists of different lengths as sparse tensors: what splits and parsers give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import DType, int64
from estimatorkit.core.registry import Spec
from estimatorkit.core.shapes import TensorShape


def rows_as_sparse(
    rows: Sequence[Sequence[Any]], shape: Sequence[int], dtype: DType
) -> list[NDArray[Any]]:
    """The indices, the values and the shape of a sparse tensor, whose last dimension the lists are.

    Args:
        rows: a list for each element of `shape`, in row-major order.
        shape: the first dimensions.
        dtype: of what the lists hold.
    """
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    total = int(lengths.sum())
    owner = np.repeat(np.arange(len(rows)), lengths)
    column = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    indices = np.empty((total, len(shape) + 1), np.int64)
    for axis, place in enumerate(np.unravel_index(owner, shape) if shape else ()):
        indices[:, axis] = place
    indices[:, -1] = column
    values = np.empty(total, dtype.numpy_dtype)
    values[:] = [each for row in rows for each in row]
    longest = int(lengths.max()) if len(rows) else 0
    return [indices, values, np.array([*shape, longest], np.int64)]


def sparse_specs(rank: int | None, dtype: DType) -> list[Spec]:
    """What is known of the three parts of a sparse tensor of this rank."""
    return [
        Spec(int64, TensorShape([None, rank])),
        Spec(dtype, TensorShape([None])),
        Spec(int64, TensorShape([rank])),
    ]
