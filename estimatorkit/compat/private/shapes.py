"""`tensorflow.python.framework.tensor_shape`: shapes whose dimensions have `.value`."""

from __future__ import annotations

from typing import Any

from estimatorkit.core import shapes
from estimatorkit.core.shapes import UNKNOWN_DIMENSION, TensorShape, UnknownDimension, as_shape


class _Dimensions(type):
    """Metaclass that unites known and unknown dimensions, one class in TensorFlow 1, two here."""

    def __call__(cls, value: Any) -> Any:
        (dim,) = TensorShape([value]).as_list()
        if isinstance(getattr(value, "value", value), int) and dim is None:
            raise ValueError(f"Dimension {value} must be >= 0")
        return UNKNOWN_DIMENSION if dim is None else shapes.Dimension(dim)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, (shapes.Dimension, UnknownDimension))


class Dimension(metaclass=_Dimensions):
    """A dimension of a shape.

    Args:
        value: an int, or None if unknown.

    Raises:
        TypeError: it is neither.
        ValueError: it is negative.
    """


def dimension_value(dimension: Any) -> int | None:
    """A dimension as an int, or None."""
    value: int | None = getattr(dimension, "value", dimension)
    return value


def dimension_at_index(shape: Any, index: int) -> Any:
    """The `Dimension` of a shape at an index; unknown if the rank is."""
    known = as_shape(shape)
    size = None if known.rank is None else known.as_list()[index]
    return UNKNOWN_DIMENSION if size is None else shapes.Dimension(size)


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
    """A shape of unknown dimensions, and rank if not given."""
    known = ndims if rank is None else rank
    return TensorShape(None if known is None else [None] * known)


__all__ = [
    "Dimension",
    "TensorShape",
    "as_shape",
    "dimension_at_index",
    "dimension_value",
    "matrix",
    "scalar",
    "unknown_shape",
    "vector",
]
