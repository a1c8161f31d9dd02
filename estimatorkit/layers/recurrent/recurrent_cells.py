"""Recurrent cells (`tf.keras.layers`): `SimpleRNNCell`, `LSTMCell`, `GRUCell`.

`RNN` runs any cell step by step. These cells run over time themselves (`FusedCell.run`): what does
not depend on the state (products with the inputs, dropout masks, casts of weights) is computed for
all steps at once before the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from estimatorkit.core import nest
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers import activations
from estimatorkit.layers.engine.base import Layer
from estimatorkit.layers.engine.configured import ConfiguredLayer, known_dimension
from estimatorkit.layers.recurrent.recurrent_base import AbstractRNNCell
from estimatorkit.layers.recurrent.steps import choose, size_of
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.control.higher_order import scan_op
from estimatorkit.ops.math import elementwise, linalg
from estimatorkit.ops.nn import nn
from estimatorkit.ops.nn.recurrent import recurrent_loop

_TANH = (activations.tanh, elementwise.tanh)
_SIGMOID = (activations.sigmoid, elementwise.sigmoid)


_masks: ContextVar[dict[Any, Any] | None] = ContextVar("dropout_masks", default=None)


@contextmanager
def same_dropout_in_all_steps() -> Iterator[None]:
    """Within the context, each `FusedCell` draws its dropout masks only in its first call."""
    token = _masks.set({})
    try:
        yield
    finally:
        _masks.reset(token)


def has_dropout(cell: Any) -> bool:
    """Whether a cell, or a layer inside it, is a `FusedCell` with dropout."""
    inside = cell.submodules_and_self() if isinstance(cell, Layer) else []
    return any(
        isinstance(each, FusedCell) and (each.dropout or each.recurrent_dropout) for each in inside
    )


class FusedCell(ConfiguredLayer, AbstractRNNCell):
    """Base class of cells that multiply inputs and state by kernels, and can run over all steps.

    Subclasses define `advance`. Variables: `kernel` `(n, gates * units)`, `recurrent_kernel`
    `(units, gates * units)`, `bias`.

    Arguments are those of `SimpleRNNCell`.
    """

    units: int
    bias: Any
    bias_initializer: Any
    bias_regularizer: Any
    bias_constraint: Any
    dropout: float
    recurrent_dropout: float
    gates = 1
    fixed: tuple[str, ...] = ()  # arguments that a subclass does not accept
    loop: str | None = None  # the `recurrent_loop` kind to use if possible
    recurrent_activation: Any = None

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        if units <= 0:
            raise ValueError(
                "Received an invalid value for argument `units`, expected a positive integer, got "
                f"{units}."
            )
        super().__init__(**kwargs)
        self.keep_arguments(locals())
        self.units = int(units)
        self.dropout = min(1.0, max(0.0, dropout))
        self.recurrent_dropout = min(1.0, max(0.0, recurrent_dropout))

    @property
    def state_size(self) -> Any:
        """The number of units."""
        return self.units

    @property
    def output_size(self) -> Any:
        """The number of units."""
        return self.units

    def build(self, input_shape: Any) -> None:
        """Creates the variables."""
        kernel, recurrent_kernel = self._kernel_shapes(input_shape)
        self.kernel = self.add_configured_weight("kernel", kernel)
        self.recurrent_kernel = self.add_configured_weight(
            "recurrent_kernel", recurrent_kernel, "recurrent"
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                self._bias_shape(),
                initializer=self._bias_start(),
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        super().build(input_shape)

    def _kernel_shapes(self, input_shape: Any) -> tuple[list[int], list[int]]:
        width = self.gates * self.units
        return [known_dimension(input_shape, -1, self), width], [self.units, width]

    def _bias_shape(self) -> list[int]:
        return [self.gates * self.units]

    def _bias_start(self) -> Any:
        return self.bias_initializer

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        config = super().get_config()
        return {name: value for name, value in config.items() if name not in self.fixed}

    # -- computing

    def project(self, inputs: Tensor) -> Tensor:
        """inputs x kernel + bias, for inputs `(..., n)`, as one matrix product."""
        *leading, rows = inputs.shape.as_list()
        found = linalg.matmul(
            array.reshape(inputs, [-1, rows]) if len(leading) > 1 else inputs, self.kernel
        )
        bias = self.input_bias()
        if bias is not None:
            found = nn.bias_add(found, bias)
        if len(leading) == 1:
            return found
        sizes = [size_of(inputs, axis) for axis in range(len(leading))]
        return array.reshape(found, [*sizes, self.gates * self.units])

    def input_bias(self) -> Any:
        """The bias of the products with the inputs, or None."""
        return self.bias

    def recurrent_weights(self) -> tuple[Tensor, ...]:
        """The weights for `advance`, read once for all steps."""
        return (convert_to_tensor(self.recurrent_kernel),)

    def advance(
        self, projected: Tensor, states: Sequence[Tensor], mask: Any, *weights: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        """One step.

        Args:
            projected: the result of `project` for the step, `(batch, gates * units)`.
            states: `(batch, units)` each; the first one is the previous output.
            mask: dropout mask of the state in products; None for no dropout.
            weights: `recurrent_weights()`.

        Returns:
            The output and the new states.
        """
        raise NotImplementedError

    @property
    def is_fused(self) -> bool:
        """Whether `run` is equivalent to `call`, which a subclass may override."""
        return type(self).call is FusedCell.call

    def run(
        self,
        columns: Tensor,
        states: Sequence[Tensor],
        mask: Tensor | None,
        reverse: bool,
        training: Any,
    ) -> tuple[Tensor, list[Tensor]]:
        """Runs over all steps.

        Args:
            columns: the inputs, `(steps, batch, n)`.
            mask: bool `(steps, batch)`: the steps that change the states; None for all.
            reverse: whether to start at the last step.
            training: whether dropout is on: a bool or a tensor.

        Returns:
            The outputs, which are the first states after each step, `(steps, batch, units)`; and
            the last states.
        """
        batch = size_of(columns, 1)
        dropped = self._dropout_mask(self.dropout, batch, columns.shape[2:], training)
        projected = self.project(columns if dropped is None else columns * dropped)
        dropped = self._dropout_mask(self.recurrent_dropout, batch, states[0].shape[1:], training)
        weights = self.recurrent_weights()
        if dropped is None and self.loop is not None and self.has_common_activations():
            bias = weights[1] if len(weights) > 1 else None
            return recurrent_loop(self.loop, projected, weights[0], bias, states, mask, reverse)

        def one(states: Any, element: Any) -> tuple[Any, Any]:
            row, going = element
            _, new = self.advance(row, states, dropped, *weights)
            new = choose(going, new, states) if mask is not None else new
            return new, new[0]

        elements = (projected, () if mask is None else mask)
        last, outputs = scan_op(one, list(states), elements, reverse=reverse)
        return outputs, last

    def has_common_activations(self) -> bool:
        """Whether the activations are tanh and sigmoid."""
        return self.activation in _TANH and self.recurrent_activation in _SIGMOID

    def call(self, inputs: Any, states: Any, training: Any = None) -> tuple[Any, Any]:
        """One step: the output and the new states, in a list if `states` is one."""
        alone, batch = not nest.is_nested(states), size_of(inputs, 0)
        dropped = self._mask_of_step("dropout", batch, inputs.shape[1:], training)
        projected = self.project(inputs if dropped is None else inputs * dropped)
        given = [states] if alone else list(states)
        dropped = self._mask_of_step("recurrent_dropout", batch, given[0].shape[1:], training)
        output, new = self.advance(projected, given, dropped, *self.recurrent_weights())
        return output, new[0] if alone else new

    def _mask_of_step(self, name: str, batch: Any, shape: Any, training: Any) -> Any:
        """`_dropout_mask` of the named rate; see `same_dropout_in_all_steps`."""
        drawn = _masks.get()
        if drawn is None or (self, name) not in drawn:
            mask = self._dropout_mask(getattr(self, name), batch, shape, training)
            if drawn is None:
                return mask
            drawn[self, name] = mask
        return drawn[self, name]

    def _dropout_mask(self, rate: float, batch: Any, shape: Any, training: Any) -> Any:
        """The dropout mask for all steps, `(batch, ...)`: 0 or 1 / (1 - rate); None for no dropout.

        `shape` is that of an example, `training` a bool or a scalar tensor.
        """
        traced = isinstance(training, Tensor)
        if not rate or not (traced or training):
            return None
        dims = shape.as_list()
        ones = filling.ones(joining.stack([batch, *dims]), self.compute_dtype)
        ones.set_shape([batch if isinstance(batch, int) else None, *dims])
        dropped = filling.zeros_like(ones) if rate == 1 else nn.dropout(ones, rate=rate)
        if not traced:
            return dropped
        return indexing.where(elementwise.cast(training, bool), dropped, ones)


def _masked(state: Tensor, mask: Any) -> Tensor:
    return state if mask is None else state * mask


class SimpleRNNCell(FusedCell):
    """output = new state = activation(inputs x kernel + state x recurrent kernel + bias).

    Source: `tf.keras.layers.SimpleRNNCell`. Variables: `kernel` `(n, units)`, `recurrent_kernel`
    `(units, units)`, `bias` `(units,)`.

    Args:
        units: the number of units.
        activation: a function or its name.
        use_bias: whether to add a bias.
        kernel_initializer, recurrent_initializer, bias_initializer: initializers or their names.
        kernel_regularizer, recurrent_regularizer, bias_regularizer: functions that return a loss
            given the variable, or their names.
        kernel_constraint, recurrent_constraint, bias_constraint: functions that optimizers apply to
            the variable's new value after each step.
        dropout: the fraction of the inputs to drop in training, the same in all steps (Gal &
            Ghahramani 2016).
        recurrent_dropout: the fraction of the state to drop in its product with the kernel.
        kwargs: as for `Layer`.

    Raises:
        ValueError: `units` is not positive.
    """

    def advance(
        self, projected: Tensor, states: Sequence[Tensor], mask: Any, *weights: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        """One step."""
        output = self.activation(projected + linalg.matmul(_masked(states[0], mask), weights[0]))
        return output, [output]


class LSTMCell(FusedCell):
    """Long short-term memory (Hochreiter & Schmidhuber 1997). States: the output and the memory.

    The kernels' columns are those of the input gate, forget gate, candidate and output gate, in
    this order. Source: `tf.keras.layers.LSTMCell`.

    Args:
        units: the number of units.
        activation: the activation of the candidate and the memory.
        recurrent_activation: the activation of the gates.
        use_bias, kernel_initializer, recurrent_initializer, bias_initializer: see `SimpleRNNCell`.
        unit_forget_bias: whether the forget gate's bias starts at 1 (Jozefowicz et al. 2015).
        implementation: accepted for compatibility only; it has no effect.
        kwargs: as for `SimpleRNNCell`.
    """

    unit_forget_bias: bool
    gates = 4
    gates_axis = 1
    loop: str | None = "LSTM"

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        unit_forget_bias: bool = True,
        *,
        implementation: int = 2,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            units,
            activation,
            use_bias,
            kernel_initializer,
            recurrent_initializer,
            bias_initializer,
            **kwargs,
        )
        self.keep(
            recurrent_activation=recurrent_activation,
            unit_forget_bias=unit_forget_bias,
            implementation=implementation,
        )

    def _bias_start(self) -> Any:
        if not self.unit_forget_bias:
            return self.bias_initializer

        def start(shape: Any, dtype: Any = None, **_: Any) -> Tensor:
            units = self.units
            before, after = (
                self.bias_initializer([size], dtype=dtype)
                for size in (shape[0] - 3 * units, 2 * units)
            )
            return joining.concat([before, filling.ones([units], dtype), after], 0)

        return start

    def recur(self, state: Tensor, weight: Tensor) -> Tensor:
        """The product with the state."""
        return linalg.matmul(state, weight)

    @property
    def state_size(self) -> Any:
        """The number of units, for the output and for the memory."""
        return [self.units, self.units]

    def advance(
        self, projected: Tensor, states: Sequence[Tensor], mask: Any, *weights: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        """One step."""
        output, memory = states
        gates = projected + self.recur(_masked(output, mask), weights[0])
        i, f, candidate, o = joining.split(gates, 4, self.gates_axis)
        gate = self.recurrent_activation
        memory = gate(f) * memory + gate(i) * self.activation(candidate)
        output = gate(o) * self.activation(memory)
        return output, [output, memory]


class GRUCell(FusedCell):
    """Gated recurrent unit (Cho et al. 2014) with an update gate z and a reset gate r.

    new state = z * state + (1 - z) * candidate. The kernels' columns are those of z, r and the
    candidate, in this order. Source: `tf.keras.layers.GRUCell`.

    Args:
        units: the number of units.
        activation: the activation of the candidate.
        recurrent_activation: the activation of the gates.
        use_bias, kernel_initializer, recurrent_initializer, bias_initializer: see `SimpleRNNCell`.
        reset_after: whether r multiplies the product of state and kernel, as in cuDNN, where
            inputs and state have separate biases `(2, 3 * units)`. Otherwise r multiplies the state
            before the product, as in the paper (the default of `compat.v1`).
        implementation: accepted for compatibility only; it has no effect.
        kwargs: as for `SimpleRNNCell`.
    """

    reset_after: bool
    gates = 3
    loop: str | None = "GRU"

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        *,
        reset_after: bool = True,
        implementation: int = 2,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            units,
            activation,
            use_bias,
            kernel_initializer,
            recurrent_initializer,
            bias_initializer,
            **kwargs,
        )
        self.keep(
            recurrent_activation=recurrent_activation,
            reset_after=reset_after,
            implementation=implementation,
        )

    def has_common_activations(self) -> bool:
        """Whether the activations are tanh and sigmoid, and the reset is after the product."""
        return self.reset_after and super().has_common_activations()

    def _bias_shape(self) -> list[int]:
        return [2, 3 * self.units] if self.reset_after else [3 * self.units]

    def input_bias(self) -> Any:
        """The bias of the products with the inputs."""
        return self.bias[0] if self.bias is not None and self.reset_after else self.bias

    def recurrent_weights(self) -> tuple[Tensor, ...]:
        """The kernel and bias of the state, or the kernels of the gates and of the candidate."""
        kernel = convert_to_tensor(self.recurrent_kernel)
        if not self.reset_after:
            return kernel[:, : 2 * self.units], kernel[:, 2 * self.units :]
        return (kernel,) if self.bias is None else (kernel, self.bias[1])

    def advance(
        self, projected: Tensor, states: Sequence[Tensor], mask: Any, *weights: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        """One step."""
        (state,) = states
        entering, units = _masked(state, mask), self.units
        sizes = [2 * units, units]
        of_gates, of_candidate = joining.split(projected, sizes, 1)
        product = linalg.matmul(entering, weights[0])
        if not self.reset_after:
            z, r = joining.split(self.recurrent_activation(of_gates + product), 2, 1)
            candidate = linalg.matmul(r * entering, weights[1])
        else:
            if len(weights) > 1:
                product = nn.bias_add(product, weights[1])
            product, candidate = joining.split(product, sizes, 1)
            z, r = joining.split(self.recurrent_activation(of_gates + product), 2, 1)
            candidate = r * candidate
        new = z * state + (1 - z) * self.activation(of_candidate + candidate)
        return new, [new]


class CuDNNLSTMCell(LSTMCell):
    """`LSTMCell` with the weights of cuDNN: two biases, which are added.

    Args: those of `SimpleRNNCell` not listed in `fixed`, and `unit_forget_bias`.
    """

    fixed = ("activation", "recurrent_activation", "use_bias", "implementation")

    def _bias_shape(self) -> list[int]:
        return [8 * self.units]

    def input_bias(self) -> Any:
        """The sum of both biases."""
        half = 4 * self.units
        return self.bias[:half] + self.bias[half:]


class CuDNNGRUCell(GRUCell):
    """`GRUCell` with the weights of cuDNN: the biases of inputs and state in one vector.

    Args: those of `SimpleRNNCell` not listed in `fixed`.
    """

    fixed = ("activation", "recurrent_activation", "use_bias", "implementation", "reset_after")

    def _bias_shape(self) -> list[int]:
        return [6 * self.units]

    def input_bias(self) -> Any:
        """The bias of the products with the inputs."""
        return self.bias[: 3 * self.units]

    def recurrent_weights(self) -> tuple[Tensor, ...]:
        """The kernel and the bias of the state."""
        return convert_to_tensor(self.recurrent_kernel), self.bias[3 * self.units :]


__all__ = [
    "CuDNNGRUCell",
    "CuDNNLSTMCell",
    "FusedCell",
    "GRUCell",
    "LSTMCell",
    "SimpleRNNCell",
    "has_dropout",
    "same_dropout_in_all_steps",
]
