"""Conversion of variable-length lists to sparse tensors, for splits and parsers."""

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
    """The indices, values and shape of a sparse tensor with the lists along its last dimension.

    `rows` has one list for each element of `shape` (the leading dimensions), in row-major order.
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
    """The specs of the three components of a sparse tensor of this rank."""
    return [
        Spec(int64, TensorShape([None, rank])),
        Spec(dtype, TensorShape([None])),
        Spec(int64, TensorShape([rank])),
    ]
