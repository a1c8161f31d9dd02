"""`FieldAttention`: the self-attention among fields of AutoInt."""

from __future__ import annotations

import math
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.configured import ConfiguredLayer
from estimatorkit.ops.array import array
from estimatorkit.ops.linalg.products import einsum
from estimatorkit.ops.math import linalg
from estimatorkit.ops.nn import nn
from estimatorkit.recommend.interaction.fields import fields_and_dimension


class FieldAttention(ConfiguredLayer):
    """Multi-head self-attention among fields, with a residual (AutoInt, arXiv:1810.11921).

    Each head's weights are the softmax over fields of query x key; the outputs are
    relu(heads side by side + inputs x residual). Unlike `MultiHeadAttention` there are neither
    biases nor a projection of the outputs.

    Inputs: floats `(batch, fields, dim)`. Outputs: `(batch, fields, num_heads * key_dim)`.
    Variables: `query`, `key`, `value` and `residual`, `(dim, num_heads * key_dim)`.

    Args:
        num_heads: the number of heads.
        key_dim: the length of each head's queries, keys and values.
        use_residual: whether to add the projected inputs.
        use_scale: whether to divide the scores by sqrt(key_dim); not in the paper.
        kernel_initializer, kernel_regularizer: of all variables; see `Dense`.
        kwargs: as for `Layer`.

    Raises:
        ValueError: a number is not positive.
    """

    def __init__(
        self,
        num_heads: int = 2,
        key_dim: int = 8,
        use_residual: bool = True,
        use_scale: bool = False,
        kernel_initializer: Any = "glorot_uniform",
        kernel_regularizer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if num_heads < 1 or key_dim < 1:
            raise value_error(
                "num_heads and key_dim must be positive",
                received=f"num_heads={num_heads}, key_dim={key_dim}",
            )
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.use_residual = use_residual
        self.use_scale = use_scale
        self.keep(kernel_initializer=kernel_initializer, kernel_regularizer=kernel_regularizer)

    def build(self, input_shape: Any) -> None:
        """Makes the projections."""
        self._fields, dimension = fields_and_dimension(self, input_shape)
        shape = [dimension, self.num_heads * self.key_dim]
        names = ("query", "key", "value", *(("residual",) if self.use_residual else ()))
        self.projections = {
            name: self.add_configured_weight(name, shape, "kernel") for name in names
        }
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        heads = [-1, self._fields, self.num_heads, self.key_dim]
        query, key, value = (
            array.reshape(linalg.matmul(inputs, self.projections[name]), heads)
            for name in ("query", "key", "value")
        )
        scores = einsum("bqhd,bkhd->bhqk", query, key)
        if self.use_scale:
            scores = scores * (1.0 / math.sqrt(self.key_dim))
        mixed = einsum("bhqk,bkhd->bqhd", nn.softmax(scores), value)
        result = array.reshape(mixed, [-1, self._fields, self.num_heads * self.key_dim])
        if self.use_residual:
            result = result + linalg.matmul(inputs, self.projections["residual"])
        return nn.relu(result)


__all__ = ["FieldAttention"]
