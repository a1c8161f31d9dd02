"""Sparse tensors: where they come in, and their conversion from and to dense tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.core.conversion import constant
from estimatorkit.core.dtypes import int64
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.ops.array import placeholder, placeholder_with_default
from estimatorkit.core.shapes import as_shape
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor


def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A sparse tensor whose value every run must be fed, as a `SparseTensorValue`.

    Args:
        dtype: the dtype of the values.
        shape: the shape of the whole, None in a place for any length there; a tensor; None for any.
        name: the name, `name/values`, `name/indices` and `name/shape` of the three parts; without
            it they are called `Placeholder`.
    """

    def part(kind: str) -> str | None:
        return f"{name}/{kind}" if name else None

    known = None if shape is None or isinstance(shape, Tensor) else as_shape(shape)
    if isinstance(shape, Tensor):
        dense_shape, rank = shape, shape.shape[0] if shape.shape.rank else None
    elif known is None:
        rank = None
        dense_shape = placeholder(int64, [None], part("shape"))
    else:
        rank = known.rank
        with get_default_graph().name_scope(name or "sparse_placeholder"):
            lengths = [-1 if dim is None else dim for dim in known]
            default = constant(np.array(lengths, np.int64))
        dense_shape = placeholder_with_default(default, [rank], part("shape"))
    made = SparseTensor(
        values=placeholder(dtype, [None], part("values")),
        indices=placeholder(int64, [None, rank], part("indices")),
        dense_shape=dense_shape,
    )
    if known is not None:
        made.set_shape(known)
    return made
