"""`FactorizationMachine`: products of all pairs of fields."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.configured import ConfiguredLayer
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.recommend.interaction.fields import fields_and_dimension


class FactorizationMachine(ConfiguredLayer):
    """The second-order term of a factorization machine (Rendle 2010; DeepFM, arXiv:1703.04247).

    The sum over all pairs of fields of the dot product of their vectors, in time linear in the
    number of fields: half of (sum of vectors)^2 - sum of (vectors^2). There are no variables.

    Inputs: floats `(batch, fields, dim)`. Outputs: `(batch, 1)`, or `(batch, dim)`.

    Args:
        reduce_sum: whether to sum over the dimension, as a factorization machine does. Otherwise
            the outputs are the pooled products `(batch, dim)` of neural factorization machines
            (arXiv:1708.05027).
        kwargs: as for `Layer`.

    Raises:
        ValueError: the inputs do not have three dimensions.
    """

    def __init__(self, reduce_sum: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.reduce_sum = reduce_sum

    def build(self, input_shape: Any) -> None:
        """Checks the inputs."""
        fields_and_dimension(self, input_shape)
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        square_of_sum = elementwise.square(reduce.reduce_sum(inputs, 1))
        sum_of_squares = reduce.reduce_sum(elementwise.square(inputs), 1)
        pooled: Tensor = (square_of_sum - sum_of_squares) * 0.5
        return reduce.reduce_sum(pooled, 1, keepdims=True) if self.reduce_sum else pooled


__all__ = ["FactorizationMachine"]
