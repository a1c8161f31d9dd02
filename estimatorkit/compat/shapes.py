"""`tensorflow.python.framework.tensor_shape`: shapes whose dimensions have `.value`."""

from __future__ import annotations

from typing import Any

from estimatorkit.core import shapes
from estimatorkit.core.shapes import UNKNOWN_DIMENSION, TensorShape, UnknownDimension, as_shape


def Dimension(value: Any) -> shapes.Dimension | UnknownDimension:
    """A dimension; None for an unknown one."""
    given = getattr(value, "value", value)
    return UNKNOWN_DIMENSION if given is None else shapes.Dimension(given)


def dimension_value(dimension: Any) -> int | None:
    """The int behind a dimension, or None."""
    value: int | None = getattr(dimension, "value", dimension)
    return value


def scalar() -> TensorShape:
    """The shape of a scalar."""
    return TensorShape([])


def vector(length: Any) -> TensorShape:
    """The shape of a vector."""
    return TensorShape([length])


def matrix(rows: Any, columns: Any) -> TensorShape:
    """The shape of a matrix."""
    return TensorShape([rows, columns])


def unknown_shape(ndims: int | None = None, rank: int | None = None) -> TensorShape:
    """A shape of which nothing, or only the rank, is known."""
    known = ndims if rank is None else rank
    return TensorShape(None if known is None else [None] * known)


__all__ = [
    "Dimension",
    "TensorShape",
    "as_shape",
    "dimension_value",
    "matrix",
    "scalar",
    "unknown_shape",
    "vector",
]
