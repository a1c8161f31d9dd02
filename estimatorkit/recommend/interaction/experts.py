"""Mixtures of experts for several tasks: `MultiGateMixtureOfExperts`,
`ProgressiveLayeredExtraction`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.dense_and_embedding import Dense
from estimatorkit.layers.engine.configured import ConfiguredLayer, known_dimension
from estimatorkit.layers.noise import Dropout
from estimatorkit.ops.array import array, joining
from estimatorkit.ops.linalg.products import einsum
from estimatorkit.ops.math import reduce


class _Experts(ConfiguredLayer):
    """Networks of the same form over one input: `(batch, n)` to `(batch, experts, units[-1])`.

    Variables: `kernel_<i>` `(experts, n, units[i])` and `bias_<i>` `(experts, units[i])`; one
    product computes a layer of all experts.
    """

    kernel_initializer: Any

    def __init__(
        self, experts: int, units: Sequence[int], activation: Any, dropout: float, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.experts = experts
        self.units = tuple(units)
        self.keep(activation=activation, kernel_initializer="glorot_uniform")
        self._dropping = Dropout(dropout, dtype=self.dtype_policy)

    def build(self, input_shape: Any) -> None:
        """Creates the variables."""

        def start(shape: Any, dtype: Any = None, **_: Any) -> Tensor:
            # Glorot initialization uses the fans of a single expert's matrix.
            each = [self.kernel_initializer(shape[1:], dtype=dtype) for _ in range(shape[0])]
            return joining.stack(each)

        width = known_dimension(input_shape, -1, self)
        self._layers = []
        for at, units in enumerate(self.units):
            kernel = self.add_weight(
                f"kernel_{at}", [self.experts, width, units], initializer=start
            )
            bias = self.add_weight(f"bias_{at}", [self.experts, units], initializer="zeros")
            self._layers.append((kernel, bias))
            width = units
        super().build(input_shape)

    def call(self, inputs: Tensor, training: Any = None) -> Tensor:
        """The experts' outputs."""
        net, equation = inputs, "bn,enu->beu"
        for kernel, bias in self._layers:
            net = self.activation(einsum(equation, net, kernel) + bias)
            net, equation = self._dropping(net, training=training), "ben,enu->beu"
        return net


class _Gate(ConfiguredLayer):
    """The weights of experts, `(batch, experts)`, a softmax over a network's outputs."""

    def __init__(self, experts: int, units: Sequence[int], activation: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        shared: dict[str, Any] = {"dtype": self.dtype_policy}
        self._hidden = [
            Dense(width, activation, name=f"hidden_{at}", **shared)
            for at, width in enumerate(units)
        ]
        self._weights_of = Dense(experts, "softmax", use_bias=False, name="weights", **shared)

    def call(self, inputs: Tensor) -> Tensor:
        """The weights."""
        for layer in self._hidden:
            inputs = layer(inputs)
        weights: Tensor = self._weights_of(inputs)
        return weights


def _mixed(weights: Tensor, experts: Tensor) -> Tensor:
    """The sum of the experts' outputs `(batch, experts, n)`, weighted."""
    return reduce.reduce_sum(array.expand_dims(weights, -1) * experts, 1)


def _check_counts(layer: ConfiguredLayer, *names: str) -> None:
    for name in names:
        count = getattr(layer, name)
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise value_error(
                f"{name} must be a positive int", received=f"{name}={count!r}", expected="1 or more"
            )


class MultiGateMixtureOfExperts(ConfiguredLayer):
    """Multi-gate mixture-of-experts (MMoE; Ma et al., KDD 2018, doi:10.1145/3219819.3220007).

    The experts are networks that all tasks share; each task has a gate, whose softmax weights sum
    up the experts' outputs. Inputs: `(batch, n)`. Outputs: for each task, `(batch,
    expert_units[-1])`. Sublayers: `experts`, with `kernel_<i>` `(num_experts, n, units)` and
    `bias_<i>` `(num_experts, units)`; and `gate_<task>`, of layers `hidden_<i>` and `weights`
    (without a bias).

    Args:
        num_tasks: the number of tasks.
        num_experts: the number of experts.
        expert_units: the width of each layer of an expert.
        gate_units: the width of each hidden layer of a gate; none by default, as in the paper.
        activation: a function or its name, after each layer of experts and hidden layer of gates.
        dropout: the probability that an output of an expert's layer is dropped in training.
        kwargs: as for `Layer`.

    Raises:
        ValueError: a number is not positive.
    """

    def __init__(
        self,
        num_tasks: int,
        num_experts: int = 3,
        expert_units: Sequence[int] = (256, 128),
        gate_units: Sequence[int] = (),
        activation: Any = "relu",
        dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_tasks = num_tasks
        self.num_experts = num_experts
        self.expert_units = tuple(expert_units)
        self.gate_units = tuple(gate_units)
        self.dropout = dropout
        self.keep(activation=activation)
        _check_counts(self, "num_tasks", "num_experts")

    def build(self, input_shape: Any) -> None:
        """Creates experts and gates."""
        kind: dict[str, Any] = {"activation": self.activation, "dtype": self.dtype_policy}
        self._experts = _Experts(
            self.num_experts, self.expert_units, dropout=self.dropout, name="experts", **kind
        )
        self._gates = [
            _Gate(self.num_experts, self.gate_units, name=f"gate_{task}", **kind)
            for task in range(self.num_tasks)
        ]
        super().build(input_shape)

    def call(self, inputs: Tensor, training: Any = None) -> list[Tensor]:
        """A tensor for each task.

        Args:
            inputs: floats `(batch, n)`.
            training: whether this is training.
        """
        experts = self._experts(inputs, training=training)
        return [_mixed(gate(inputs), experts) for gate in self._gates]


class ProgressiveLayeredExtraction(ConfiguredLayer):
    """Progressive layered extraction (PLE; Tang et al., RecSys 2020, doi:10.1145/3383313.3412236).

    Each level has experts that all tasks share and experts of one task. A task's gate, computed
    from its own input, weights its own experts and the shared ones; up to the last level, a shared
    gate weights all experts. Their sums are the inputs of the next level. One level is the paper's
    customized gate control (CGC). Inputs: `(batch, n)`. Outputs: for each task, `(batch,
    expert_units[-1])`. Sublayers, as in `MultiGateMixtureOfExperts`: `level_<i>_experts_<task>`,
    `level_<i>_experts_shared`, `level_<i>_gate_<task>`, `level_<i>_gate_shared`.

    Args:
        num_tasks: the number of tasks.
        num_levels: the number of levels.
        num_shared_experts: the number of shared experts of a level.
        num_task_experts: the number of experts of each task in a level.
        expert_units, gate_units, activation, dropout: see `MultiGateMixtureOfExperts`.
        kwargs: as for `Layer`.

    Raises:
        ValueError: a number is not positive.
    """

    def __init__(
        self,
        num_tasks: int,
        num_levels: int = 2,
        num_shared_experts: int = 1,
        num_task_experts: int = 1,
        expert_units: Sequence[int] = (256,),
        gate_units: Sequence[int] = (),
        activation: Any = "relu",
        dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_tasks = num_tasks
        self.num_levels = num_levels
        self.num_shared_experts = num_shared_experts
        self.num_task_experts = num_task_experts
        self.expert_units = tuple(expert_units)
        self.gate_units = tuple(gate_units)
        self.dropout = dropout
        self.keep(activation=activation)
        _check_counts(self, "num_tasks", "num_levels", "num_shared_experts", "num_task_experts")

    def build(self, input_shape: Any) -> None:
        """Creates experts and gates."""
        kind: dict[str, Any] = {"activation": self.activation, "dtype": self.dtype_policy}
        own, shared, tasks = self.num_task_experts, self.num_shared_experts, range(self.num_tasks)
        # By level: those of each task, then the shared ones.
        self._experts = [
            [
                _Experts(
                    count,
                    self.expert_units,
                    dropout=self.dropout,
                    name=f"level_{level}_experts_{owner}",
                    **kind,
                )
                for owner, count in [*((task, own) for task in tasks), ("shared", shared)]
            ]
            for level in range(self.num_levels)
        ]
        of_all = [("shared", own * self.num_tasks + shared)]
        self._gates = [
            [
                _Gate(count, self.gate_units, name=f"level_{level}_gate_{owner}", **kind)
                for owner, count in [
                    *((task, own + shared) for task in tasks),
                    *(of_all if level + 1 < self.num_levels else ()),
                ]
            ]
            for level in range(self.num_levels)
        ]
        super().build(input_shape)

    def call(self, inputs: Tensor, training: Any = None) -> list[Tensor]:
        """A tensor for each task.

        Args:
            inputs: floats `(batch, n)`.
            training: whether this is training.
        """
        tasks = self.num_tasks
        nets = [inputs] * (tasks + 1)  # the last one is the shared one
        for experts, gates in zip(self._experts, self._gates, strict=True):
            outputs = [
                each(net, training=training) for each, net in zip(experts, nets, strict=True)
            ]
            seen = [joining.concat([own, outputs[-1]], 1) for own in outputs[:-1]]
            if len(gates) > tasks:
                seen.append(joining.concat(outputs, 1))
            nets = [
                _mixed(gate(net), each)
                for gate, net, each in zip(gates, nets[: len(gates)], seen, strict=True)
            ]
        return nets[:tasks]


__all__ = ["MultiGateMixtureOfExperts", "ProgressiveLayeredExtraction"]
