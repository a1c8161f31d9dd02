"""`CrossNetwork` and `CrossNetworkV2`: crosses of bounded degree, one degree a layer."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.configured import ConfiguredLayer, known_dimension
from estimatorkit.ops.array import array
from estimatorkit.ops.linalg.products import einsum
from estimatorkit.ops.math import linalg, reduce
from estimatorkit.recommend.interaction.fields import of_each_matrix


class _Cross(ConfiguredLayer):
    """Base class: `num_layers` layers of n inputs and n outputs."""

    kernel_initializer: Any
    kernel_regularizer: Any

    def __init__(
        self,
        num_layers: int = 2,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if num_layers < 1:
            raise value_error("num_layers is too small", expected="at least 1", received=num_layers)
        self.keep_arguments(locals())
        self.num_layers = num_layers

    def _weights_of_layers(self, stem: str, shape: list[int]) -> list[Any]:
        made = "bias" if stem == "bias" else "kernel"
        return [
            self.add_configured_weight(f"{stem}_{number}", shape, made)
            for number in range(self.num_layers)
        ]


class CrossNetwork(_Cross):
    """A cross network with a weight vector a layer (DCN, arXiv:1708.05123).

    Layer l gives x_(l+1) = x_0 (x_l . w_l) + b_l + x_l.

    Inputs and outputs: floats `(batch, n)`. Variables: `kernel_<l>` and `bias_<l>`, `(n, 1)` and
    `(n,)`.

    Args:
        num_layers: the number of layers; the highest degree of the crosses is one more.
        kernel_initializer, bias_initializer, kernel_regularizer: see `Dense`.
        kwargs: as for `Layer`.

    Raises:
        ValueError: `num_layers` is not positive.
    """

    def build(self, input_shape: Any) -> None:
        """Makes the vectors."""
        width = known_dimension(input_shape, -1, self)
        self.kernels = self._weights_of_layers("kernel", [width, 1])
        self.biases = self._weights_of_layers("bias", [width])
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        crossed = inputs
        for kernel, bias in zip(self.kernels, self.biases, strict=True):
            crossed = inputs * linalg.matmul(crossed, kernel) + bias + crossed
        return crossed


class CrossNetworkV2(_Cross):
    """A cross network with a weight matrix a layer (DCN V2, arXiv:2008.13535).

    Layer l gives x_(l+1) = x_0 * (W_l x_l + b_l) + x_l, with elementwise products. With a `rank`,
    W_l = U_l V_l^T. With several `experts`, the second term is the sum over experts i of
    G_i(x_l) x_0 * (U_i g(C_i g(V_i^T x_l)) + b_l), where G are gates and g is `activation`.

    Inputs and outputs: floats `(batch, n)`. Variables: `bias_<l>` `(n,)` and `kernel_<l>` `(n, n)`;
    or, with e experts of rank r, `project_<l>` (V) `(e, n, r)` and `expand_<l>` (U) `(e, r, n)`,
    and for e > 1 `mix_<l>` (C) `(e, r, r)` and `gate_<l>` `(n, e)`. They multiply from the right.

    Args:
        num_layers: the number of layers; the highest degree of the crosses is one more.
        rank: of the matrices; None (default) for full matrices.
        experts: the number of low-rank matrices that are mixed.
        activation: g, applied in the low-rank space where there are several experts.
        gate_activation: makes weights of the gates' scores; 'softmax' by default.
        kernel_initializer: of the matrices; Glorot's uniform one of each matrix by default.
        bias_initializer, kernel_regularizer: see `Dense`.
        kwargs: as for `Layer`.

    Raises:
        ValueError: a number is not positive, or there are several experts without a rank.
    """

    gate_activation: Any

    def __init__(
        self,
        num_layers: int = 2,
        rank: int | None = None,
        experts: int = 1,
        activation: Any = "tanh",
        gate_activation: Any = "softmax",
        kernel_initializer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_layers, kernel_initializer, **kwargs)
        if experts < 1 or (rank is not None and rank < 1) or (experts > 1 and rank is None):
            raise value_error(
                "rank and experts do not fit",
                expected="rank=None and experts=1, or a rank and a number of experts of at least 1",
                received=f"rank={rank}, experts={experts}",
                hint="a mixture needs low-rank matrices: rank=32, experts=4",
            )
        self.rank = rank
        self.experts = experts
        self.keep(activation=activation, gate_activation=gate_activation)

    def _matrices(self, stem: str, rows: int, columns: int) -> list[Any]:
        shape = [rows, columns] if self.rank is None else [self.experts, rows, columns]
        return [
            self.add_weight(
                f"{stem}_{number}",
                shape,
                initializer=of_each_matrix(self.kernel_initializer, rows, columns),
                regularizer=self.kernel_regularizer,
            )
            for number in range(self.num_layers)
        ]

    def build(self, input_shape: Any) -> None:
        """Makes the matrices."""
        width = known_dimension(input_shape, -1, self)
        if self.rank is None:
            self.kernels = self._matrices("kernel", width, width)
        else:
            self.projections = self._matrices("project", width, self.rank)
            self.expansions = self._matrices("expand", self.rank, width)
            if self.experts > 1:
                self.mixers = self._matrices("mix", self.rank, self.rank)
                self.gates = [
                    self.add_weight(f"gate_{number}", [width, self.experts])
                    for number in range(self.num_layers)
                ]
        self.biases = self._weights_of_layers("bias", [width])
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        crossed = inputs
        for number, bias in enumerate(self.biases):
            crossed = inputs * self._transformed(crossed, number, bias) + crossed
        return crossed

    def _transformed(self, crossed: Tensor, number: int, bias: Any) -> Tensor:
        """What layer `number` multiplies the inputs by."""
        result: Tensor
        if self.rank is None:
            result = linalg.matmul(crossed, self.kernels[number]) + bias
            return result
        low = einsum("bn,enr->ber", crossed, self.projections[number])
        if self.experts == 1:
            result = einsum("ber,ern->bn", low, self.expansions[number]) + bias
            return result
        low = self.activation(einsum("ber,ers->bes", self.activation(low), self.mixers[number]))
        weights = self.gate_activation(linalg.matmul(crossed, self.gates[number]))
        weighted = low * array.expand_dims(weights, -1)
        total = reduce.reduce_sum(weights, 1, keepdims=True)  # 1 for softmax
        result = einsum("ber,ern->bn", weighted, self.expansions[number]) + total * bias
        return result


__all__ = ["CrossNetwork", "CrossNetworkV2"]
