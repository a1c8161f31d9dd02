"""Recurrent cells (`tf.nn.rnn_cell`): `(inputs, state) -> (output, new state)` for one step.

The first call of a cell creates its variables, in the variable scope of that call and under the
cell's name; later calls share them. `rnn` runs cells over time. This module exports the base class
from `rnn_cell_base` and the wrappers from `rnn_cell_wrappers`, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimatorkit.compat.layers.recurrent.rnn_cell_wrappers import (
    DeviceWrapper,
    DropoutWrapper,
    EmbeddingWrapper,
    InputProjectionWrapper,
    MultiRNNCell,
    OutputProjectionWrapper,
    ResidualWrapper,
)
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.recurrent.rnn_cell_base import (
    LSTMStateTuple,
    RNNCell,
    activation_of,
    assert_like_cell,
    linear,
)
from estimatorkit.layers.recurrent.steps import zeros_of
from estimatorkit.lazy import listing
from estimatorkit.ops.array import joining
from estimatorkit.ops.math import elementwise, linalg
from estimatorkit.ops.variables.initializers import Constant

__all__ = [
    "SAME_EACH_STEP",
    "BasicLSTMCell",
    "BasicRNNCell",
    "DeviceWrapper",
    "DropoutWrapper",
    "EmbeddingWrapper",
    "GRUCell",
    "InputProjectionWrapper",
    "LSTMCell",
    "LSTMStateTuple",
    "MultiRNNCell",
    "OutputProjectionWrapper",
    "RNNCell",
    "ResidualWrapper",
    "assert_like_cell",
    "zeros_of",
]
__dir__ = listing(__name__)


class BasicRNNCell(RNNCell):
    """output = new state = activation(W input + U state + b).

    Args:
        num_units: the number of units.
        activation: tanh by default.
        reuse, name, dtype: see `RNNCell`.
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._units = int(num_units)
        self._activation = activation_of(activation)

    @property
    def state_size(self) -> int:
        """The number of units."""
        return self._units

    @property
    def output_size(self) -> int:
        """The number of units."""
        return self._units

    def call(self, inputs: Any, state: Any) -> tuple[Tensor, Tensor]:
        """One step."""
        output = self._activation(linear(self, [convert_to_tensor(inputs), state], self._units))
        return output, output


class GRUCell(BasicRNNCell):
    """Gated recurrent unit (Cho et al. 2014): reset gate r, update gate u, candidate c.

    new state = u * state + (1 - u) * c, with c = activation(W [input, r * state] + b).

    Args:
        num_units: the number of units.
        activation: of the candidate, tanh by default.
        kernel_initializer: of both kernels.
        bias_initializer: of both biases; 1 for the gates and 0 for the candidate by default.
        reuse, name, dtype: see `RNNCell`.
    """

    _names = (("gates/kernel", "gates/bias"), ("candidate/kernel", "candidate/bias"))

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: bool | None = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, **kwargs)
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer

    def call(self, inputs: Any, state: Any) -> tuple[Tensor, Tensor]:
        """One step."""
        inputs = convert_to_tensor(inputs)
        bias = Constant(1.0) if self._bias_initializer is None else self._bias_initializer
        gates = self._product([inputs, state], 2 * self._units, self._names[0], bias)
        reset, update = joining.split(elementwise.sigmoid(gates), 2, 1)
        candidate = self._activation(self._candidate(inputs, state, reset))
        new = update * state + (1 - update) * candidate
        return new, new

    def _candidate(self, inputs: Tensor, state: Tensor, reset: Tensor) -> Tensor:
        """The candidate before the activation."""
        values = [inputs, reset * state]
        return self._product(values, self._units, self._names[1], self._bias_initializer)

    def _product(
        self, values: Sequence[Tensor], units: int, name: tuple[str, str], bias: Any
    ) -> Tensor:
        return linear(self, values, units, self._kernel_initializer, bias, name)


class LSTMShapedCell(RNNCell):
    """A cell with a memory c and an output h, which may be projected and clipped.

    Args:
        num_units: the size of the memory.
        num_proj: the size of the projected output; None for no projection.
        proj_clip: the bound to which the projected output is clipped; None for no clipping.
        state_is_tuple: whether the state is an `LSTMStateTuple` rather than one tensor.
        activation: tanh by default.
        kwargs: as for `RNNCell`.
    """

    def __init__(
        self,
        num_units: int,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        state_is_tuple: bool = True,
        activation: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._units = int(num_units)
        self._num_proj = num_proj
        self._proj_clip = proj_clip
        self._state_is_tuple = state_is_tuple
        self._activation = activation_of(activation)

    @property
    def state_size(self) -> Any:
        """`LSTMStateTuple(units, output size)`, or their sum."""
        sizes = LSTMStateTuple(self._units, self.output_size)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        """The number of units, or the size of the projection."""
        return int(self._num_proj or self._units)

    def _parts(self, state: Any) -> Any:
        """Memory and output of a state."""
        if self._state_is_tuple:
            return state
        return joining.split(state, [self._units, self.output_size], 1)

    def _projection(self, dtype: Any) -> Any:
        """The kernel of the projection, `(units, num_proj)`."""
        raise NotImplementedError

    def _result(self, memory: Tensor, output: Tensor) -> tuple[Tensor, Any]:
        """The output, projected, and the new state."""
        if self._num_proj is not None:
            output = linalg.matmul(output, self._projection(output.dtype))
            if self._proj_clip is not None:
                output = elementwise.clip_by_value(output, -self._proj_clip, self._proj_clip)
        state = LSTMStateTuple(memory, output)
        return output, state if self._state_is_tuple else joining.concat(list(state), 1)


class LSTMCell(LSTMShapedCell):
    """Long short-term memory (Hochreiter & Schmidhuber 1997), with peepholes and a projection.

    Gate order in the kernel's columns: i, j (candidate), f, o, as in TensorFlow.

    Args:
        num_units: the number of units.
        use_peepholes: whether the gates depend on the memory (Sak et al. 2014).
        cell_clip: clips the memory to [-cell_clip, cell_clip].
        initializer: of the kernels and peepholes.
        num_proj: the size of the projected output; None for no projection.
        proj_clip: clips the projected output to [-proj_clip, proj_clip].
        num_unit_shards, num_proj_shards: accepted for compatibility only and without effect.
        forget_bias: added to the forget gate.
        state_is_tuple: False keeps c and h in one tensor, as before TensorFlow 1.0.
        activation: tanh by default.
        reuse, name, dtype: see `RNNCell`.
    """

    _peepholes = "fio"
    """The order in which peephole variables are created."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: Any = None,
        num_proj_shards: Any = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            num_units,
            num_proj,
            proj_clip,
            state_is_tuple,
            activation,
            name=name,
            dtype=dtype,
            _reuse=reuse,
            **kwargs,
        )
        self._use_peepholes = use_peepholes
        self._cell_clip = cell_clip
        self._initializer = initializer
        self._forget_bias = forget_bias

    def call(self, inputs: Any, state: Any) -> tuple[Tensor, Any]:
        """One step."""
        inputs, units = convert_to_tensor(inputs), self._units
        memory, output = self._parts(state)
        gates = linear(self, [inputs, output], 4 * units, self._initializer)
        i, j, f, o = joining.split(gates, 4, 1)
        f = f + self._forget_bias
        if self._use_peepholes:
            dtype = inputs.dtype
            peepholes = {
                gate: self.add_variable(f"w_{gate}_diag", [units], dtype, self._initializer)
                for gate in self._peepholes
            }
            f, i = f + peepholes["f"] * memory, i + peepholes["i"] * memory
        sigmoid = elementwise.sigmoid
        new = sigmoid(f) * memory + sigmoid(i) * self._activation(j)
        if self._cell_clip is not None:
            new = self._clipped(new, self._cell_clip)
        if self._use_peepholes:
            o = o + peepholes["o"] * new
        return self._result(new, sigmoid(o) * self._activation(new))

    def _projection(self, dtype: Any) -> Any:
        shape = [self._units, self._num_proj]
        return self.add_variable("projection/kernel", shape, dtype, self._initializer)

    @staticmethod
    def _clipped(memory: Tensor, bound: float) -> Tensor:
        return elementwise.clip_by_value(memory, -bound, bound)


class BasicLSTMCell(LSTMCell):
    """`LSTMCell` without peepholes, clipping and projection (Zaremba et al. 2015).

    Args:
        num_units: the number of units.
        forget_bias: added to the forget gate.
        state_is_tuple: see `LSTMCell`.
        activation: tanh by default.
        reuse, name, dtype: see `RNNCell`.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            num_units,
            forget_bias=forget_bias,
            state_is_tuple=state_is_tuple,
            activation=activation,
            reuse=reuse,
            name=name,
            dtype=dtype,
            **kwargs,
        )


SAME_EACH_STEP = (
    BasicRNNCell,
    GRUCell,
    LSTMCell,
    BasicLSTMCell,
    MultiRNNCell,
    DropoutWrapper,
    ResidualWrapper,
    EmbeddingWrapper,
    InputProjectionWrapper,
    OutputProjectionWrapper,
)
"""The cells all calls of which create the same operations, without device scopes."""
