"""The recurrent cell of the Deep Interest Evolution Network (arXiv:1809.03672): `AUGRUCell`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.recurrent.recurrent_cells import GRUCell
from estimatorkit.ops.array import joining
from estimatorkit.ops.math import linalg

_UPDATES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "scale": lambda attention, gate: attention * gate,
    "replace": lambda attention, gate: attention,
    "released": lambda attention, gate: 1.0 - (1.0 - attention) * (1.0 - gate),
}


class AUGRUCell(GRUCell):
    """GRU with an attentional update gate (Zhou et al. 2019, arXiv:1809.03672, section 4.3).

    With attention a, update gate u and candidate c: u' = a * u, and
    new state = (1 - u') * state + u' * c, so that a step without attention does not change the
    state. Inputs: a tuple of `(batch, n)` and the attention `(batch, 1)`; for all steps, as in
    `RNN(AUGRUCell(8))((steps, attention))`, `(batch, steps, n)` and `(batch, steps, 1)`.

    Variables: `kernel` `(n, 3 * units)`, `recurrent_kernel` `(units, 3 * units)`, `bias`
    `(3 * units,)`. Their columns are those of 1 - u, the reset gate and the candidate, in this
    order, as in `GRUCell` with `reset_after=False`.

    Args:
        units: the number of units.
        update: 'scale' (default), u' = a * u; 'replace', u' = a, the paper's AGRU; or 'released',
            u' = 1 - (1 - a) * (1 - u), the form in the authors' released code and in DeepCTR.
        activation: the activation of the candidate.
        recurrent_activation: the activation of the gates.
        use_bias, kernel_initializer, recurrent_initializer, bias_initializer: see `SimpleRNNCell`.
        kwargs: as for `Layer`.

    Raises:
        ValueError: `units` is not positive, or `update` is unknown.
    """

    loop = None
    fixed = (
        "dropout",
        "recurrent_dropout",
        "reset_after",
        "implementation",
        "kernel_regularizer",
        "recurrent_regularizer",
        "bias_regularizer",
        "kernel_constraint",
        "recurrent_constraint",
        "bias_constraint",
    )

    def __init__(
        self,
        units: int,
        update: str = "scale",
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None:
        if update not in _UPDATES:
            raise value_error(
                "update is not known",
                expected=f"one of {list(_UPDATES)}",
                received=repr(update),
                hint=did_you_mean(str(update), _UPDATES),
            )
        super().__init__(
            units,
            activation,
            recurrent_activation,
            use_bias,
            kernel_initializer,
            recurrent_initializer,
            bias_initializer,
            reset_after=False,
            **kwargs,
        )
        self.update = update

    def _kernel_shapes(self, input_shape: Any) -> tuple[list[int], list[int]]:
        return super()._kernel_shapes(input_shape[0])

    @property
    def is_fused(self) -> bool:
        """Whether `run` is equivalent to `call`, which a subclass may override."""
        return type(self).call is AUGRUCell.call

    # The attention travels as the last value of inputs and of projections.

    def run(self, columns: Any, *rest: Any) -> tuple[Tensor, list[Tensor]]:
        """Runs over all steps; see `FusedCell.run`."""
        return super().run(joining.concat(list(columns), -1), *rest)

    def call(self, inputs: Any, states: Any, training: Any = None) -> tuple[Any, Any]:
        """One step: the output and the new states, in a list if `states` is one."""
        return super().call(joining.concat(list(inputs), -1), states, training)

    def project(self, inputs: Tensor) -> Tensor:
        """The products with the kernel, and the attention."""
        return joining.concat([super().project(inputs[..., :-1]), inputs[..., -1:]], -1)

    def advance(
        self, projected: Tensor, states: Sequence[Tensor], mask: Any, *weights: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        """One step."""
        (state,) = states
        of_gates, of_candidate, attention = joining.split(
            projected, [2 * self.units, self.units, 1], 1
        )
        kept, reset = joining.split(
            self.recurrent_activation(of_gates + linalg.matmul(state, weights[0])), 2, 1
        )
        candidate = self.activation(of_candidate + linalg.matmul(reset * state, weights[1]))
        update = _UPDATES[self.update](attention, 1.0 - kept)
        new = state + update * (candidate - state)
        return new, [new]


__all__ = ["AUGRUCell"]
