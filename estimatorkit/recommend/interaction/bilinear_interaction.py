"""`BilinearInteraction`: the products of pairs of fields, one of them transformed."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.configured import ConfiguredLayer
from estimatorkit.ops.array import indexing
from estimatorkit.ops.linalg.products import einsum
from estimatorkit.ops.math import linalg
from estimatorkit.recommend.interaction.fields import fields_and_dimension, of_each_matrix

_TYPES = ("all", "each", "interaction")


class BilinearInteraction(ConfiguredLayer):
    """Bilinear products of all pairs of fields (FiBiNET, arXiv:1905.09433).

    Of the pair of fields i < j: (v_i x kernel) * v_j, elementwise.

    Inputs: floats `(batch, fields, dim)`. Outputs: `(batch, fields * (fields - 1) / 2, dim)`, in
    the order (0, 1), (0, 2), ..., (1, 2), ... Variables: `kernel`, `(dim, dim)` or a stack of them.

    Args:
        bilinear_type: 'all' for one matrix; 'each' for one of each field but the last;
            'interaction' (default) for one of each pair.
        kernel_initializer: Glorot's uniform one of each matrix by default.
        kernel_regularizer: see `Dense`.
        kwargs: as for `Layer`.

    Raises:
        ValueError: `bilinear_type` is unknown, or there are fewer than two fields.
    """

    kernel_initializer: Any
    kernel_regularizer: Any

    def __init__(
        self,
        bilinear_type: str = "interaction",
        kernel_initializer: Any = None,
        kernel_regularizer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if bilinear_type not in _TYPES:
            raise value_error(
                "bilinear_type is unknown",
                expected=f"one of {', '.join(_TYPES)}",
                received=repr(bilinear_type),
                hint=did_you_mean(str(bilinear_type), _TYPES),
            )
        self.keep_arguments(locals())
        self.bilinear_type = bilinear_type

    def build(self, input_shape: Any) -> None:
        """Makes the matrices."""
        fields, dimension = fields_and_dimension(self, input_shape, least=2)
        self._left, self._right = np.triu_indices(fields, 1)
        stack = {"all": [], "each": [fields - 1], "interaction": [len(self._left)]}
        self.kernel = self.add_weight(
            "kernel",
            [*stack[self.bilinear_type], dimension, dimension],
            initializer=of_each_matrix(self.kernel_initializer, dimension, dimension),
            regularizer=self.kernel_regularizer,
        )
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        right = indexing.gather(inputs, self._right, axis=1)
        if self.bilinear_type == "interaction":
            left = indexing.gather(inputs, self._left, axis=1)
            moved = einsum("bpd,pde->bpe", left, self.kernel)
        else:
            moved = (
                linalg.matmul(inputs, self.kernel)
                if self.bilinear_type == "all"
                else einsum("bfd,fde->bfe", inputs[:, :-1], self.kernel)
            )
            moved = indexing.gather(moved, self._left, axis=1)
        result: Tensor = moved * right
        return result


__all__ = ["BilinearInteraction"]
