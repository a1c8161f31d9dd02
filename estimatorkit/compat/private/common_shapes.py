"""`tensorflow.python.framework.common_shapes`: static shape functions."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.shapes import TensorShape
from estimatorkit.ops.debug.shape_matching import broadcast_static_shape


def rank(tensor: Any) -> int | None:
    """The rank of a tensor, or None if it is unknown."""
    known: int | None = tensor.shape.rank
    return known


def has_fully_defined_shape(tensor: Any) -> bool:
    """Whether all dimensions of a tensor are known."""
    known: bool = tensor.shape.is_fully_defined()
    return known


def is_broadcast_compatible(shape_x: TensorShape, shape_y: TensorShape) -> bool:
    """Whether two shapes have known ranks and can be broadcast together."""
    if shape_x.rank is None or shape_y.rank is None:
        return False
    try:
        broadcast_static_shape(shape_x, shape_y)
    except ValueError:
        return False
    return True


def broadcast_shape(shape_x: TensorShape, shape_y: TensorShape) -> TensorShape:
    """The broadcast shape of two shapes.

    Raises:
        ValueError: they are incompatible.
    """
    return broadcast_static_shape(shape_x, shape_y)
