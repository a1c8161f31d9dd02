"""`SqueezeExcitation`: weights of fields, computed from all of them."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.configured import ConfiguredLayer
from estimatorkit.ops.array import array
from estimatorkit.ops.math import linalg, reduce
from estimatorkit.recommend.interaction.fields import fields_and_dimension


class SqueezeExcitation(ConfiguredLayer):
    """The squeeze-and-excitation network of fields, SENET (FiBiNET, arXiv:1905.09433).

    Each field's vector is multiplied by its weight: activation(activation(z x squeeze) x
    excitation), where z are the means of the vectors.

    Inputs and outputs: floats `(batch, fields, dim)`. Variables: `squeeze` `(fields, n)` and
    `excitation` `(n, fields)`, n = max(1, fields // reduction_ratio).

    Args:
        reduction_ratio: how many times fewer hidden units there are than fields.
        activation: of both layers; 'relu' by default.
        kernel_initializer, kernel_regularizer: of both variables; see `Dense`.
        kwargs: as for `Layer`.

    Raises:
        ValueError: `reduction_ratio` is not positive.
    """

    def __init__(
        self,
        reduction_ratio: int = 3,
        activation: Any = "relu",
        kernel_initializer: Any = "glorot_uniform",
        kernel_regularizer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if reduction_ratio < 1:
            raise value_error(
                "reduction_ratio is too small", expected="at least 1", received=reduction_ratio
            )
        self.keep_arguments(locals())
        self.reduction_ratio = reduction_ratio

    def build(self, input_shape: Any) -> None:
        """Makes the two layers."""
        fields, _ = fields_and_dimension(self, input_shape)
        reduced = max(1, fields // self.reduction_ratio)
        self.squeeze = self.add_configured_weight("squeeze", [fields, reduced], "kernel")
        self.excitation = self.add_configured_weight("excitation", [reduced, fields], "kernel")
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        hidden = self.activation(linalg.matmul(reduce.reduce_mean(inputs, -1), self.squeeze))
        weights = self.activation(linalg.matmul(hidden, self.excitation))
        result: Tensor = inputs * array.expand_dims(weights, -1)
        return result


__all__ = ["SqueezeExcitation"]
