"""`CompressedInteraction`: the compressed interaction network of xDeepFM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.configured import ConfiguredLayer
from estimatorkit.ops.array import array, joining
from estimatorkit.ops.linalg.products import einsum
from estimatorkit.ops.math import linalg, reduce
from estimatorkit.ops.nn import nn
from estimatorkit.recommend.interaction.fields import fields_and_dimension


class CompressedInteraction(ConfiguredLayer):
    """The compressed interaction network, CIN (xDeepFM, arXiv:1803.05170).

    Map h of layer k is the weighted sum of the elementwise products of each field with each map of
    layer k - 1, where layer 0 are the fields. The outputs are the sums of the maps over `dim`.

    Inputs: floats `(batch, fields, dim)`. Outputs: `(batch, n)`, n the number of maps that are put
    out. Variables: `kernel_<k>` `(fields * maps of layer k - 1, maps)`; `bias_<k>` `(maps,)`.

    Args:
        maps: the number of feature maps of each layer.
        split_half: whether half of the maps of each layer but the last go into the next layer and
            the others are put out. By default all are put out, as in the paper.
        activation: applied to the maps; none by default, which did best in the paper.
        use_bias: whether to add a bias; not in the paper.
        kernel_initializer, bias_initializer, kernel_regularizer: see `Dense`.
        kwargs: as for `Layer`.

    Raises:
        ValueError: there are no maps, or an odd number is to be split.
    """

    def __init__(
        self,
        maps: Sequence[int] = (128, 128),
        split_half: bool = False,
        activation: Any = None,
        use_bias: bool = False,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.keep_arguments(locals())
        self.maps = tuple(maps)
        odd = split_half and any(each % 2 for each in self.maps[:-1])
        if not self.maps or any(each < 1 for each in self.maps) or odd:
            raise value_error(
                "maps does not fit",
                expected="positive numbers, one a layer, even ones to split (except the last)",
                received=f"maps={maps}, split_half={split_half}",
            )
        self.split_half = split_half

    def build(self, input_shape: Any) -> None:
        """Makes the kernels."""
        fields, self._dimension = fields_and_dimension(self, input_shape)
        self.kernels, self.biases = [], []
        before = fields
        for number, count in enumerate(self.maps):
            shape = [fields * before, count]
            self.kernels.append(self.add_configured_weight(f"kernel_{number}", shape, "kernel"))
            if self.use_bias:
                self.biases.append(self.add_configured_weight(f"bias_{number}", [count], "bias"))
            before = count // 2 if self.split_half else count
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        hidden, outputs = inputs, []
        for number, (kernel, count) in enumerate(zip(self.kernels, self.maps, strict=True)):
            products = einsum("bmd,bhd->bdmh", inputs, hidden)
            flat = array.reshape(products, [-1, self._dimension, int(kernel.shape[0])])
            made = linalg.matmul(flat, kernel)
            if self.use_bias:
                made = nn.bias_add(made, self.biases[number])
            hidden = array.transpose(self.activation(made), [0, 2, 1])
            if self.split_half and number < len(self.maps) - 1:
                hidden, direct = hidden[:, : count // 2], hidden[:, count // 2 :]
            else:
                direct = hidden
            outputs.append(direct)
        every = joining.concat(outputs, 1) if len(outputs) > 1 else outputs[0]
        return reduce.reduce_sum(every, -1)


__all__ = ["CompressedInteraction"]
