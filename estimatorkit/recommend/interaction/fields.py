"""What the layers of field interactions share: the check of their inputs, and an initializer."""

from __future__ import annotations

import math
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.shapes import TensorShape
from estimatorkit.layers import initializers
from estimatorkit.layers.engine.base import Layer
from estimatorkit.layers.engine.configured import known_dimension


def fields_and_dimension(layer: Layer, input_shape: Any, least: int = 1) -> tuple[int, int]:
    """The number of fields and the dimension of inputs `(batch, fields, dim)`.

    Args:
        layer: named in errors.
        input_shape: the inputs' shape.
        least: the smallest number of fields.

    Raises:
        ValueError: the rank is not 3, a length is unknown, or there are too few fields.
    """
    if TensorShape(input_shape).rank != 3:
        raise value_error(
            f"Layer `{layer.name}` takes the embeddings of fields",
            expected="inputs of shape (batch, fields, dim)",
            received=str(input_shape),
            hint="stack([embedding_1, embedding_2], axis=1)",
        )
    fields, dimension = (known_dimension(input_shape, axis, layer) for axis in (1, 2))
    if fields < least:
        raise value_error(
            f"Layer `{layer.name}` has too few fields",
            expected=f"at least {least}",
            received=str(input_shape),
        )
    return fields, dimension


def of_each_matrix(initializer: Any, rows: int, columns: int) -> Any:
    """`initializer`, or if it is None Glorot's uniform one of each `(rows, columns)` matrix in a
    stack of them (Keras would count the stack as a receptive field).
    """
    if initializer is not None:
        return initializer
    limit = math.sqrt(6.0 / (rows + columns))
    return initializers.RandomUniform(-limit, limit)


__all__ = ["fields_and_dimension", "of_each_matrix"]
