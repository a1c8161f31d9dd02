"""Recurrent cells of `contrib.rnn`: LSTM variants (layer normalization, coupled gates, NAS), the
update-gate cell, and wrappers with highway connections and attention.
"""

from __future__ import annotations

from typing import Any

from estimatorkit.compat.layers.recurrent import rnn_cell
from estimatorkit.compat.layers.recurrent.rnn_cell import BasicRNNCell, LSTMShapedCell, RNNCell
from estimatorkit.compat.layers.recurrent.rnn_cell_block import (
    GRUBlockCell,
    GRUBlockCellV2,
    LSTMBlockCell,
)
from estimatorkit.compat.layers.recurrent.rnn_cell_wrappers import CellWrapper
from estimatorkit.compat.layers.recurrent.rnn_linear import Linear
from estimatorkit.core import nest
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.recurrent.rnn_cell_base import (
    assert_like_cell,
    input_size,
)
from estimatorkit.lazy import listing
from estimatorkit.ops.array import array, joining
from estimatorkit.ops.math import elementwise, linalg, reduce
from estimatorkit.ops.nn import nn
from estimatorkit.ops.nn.activations import xw_plus_b
from estimatorkit.ops.variables.initializers import Constant, Zeros
from estimatorkit.ops.variables.variable_scope import (
    get_variable,
    get_variable_scope,
    variable_scope,
)

_EPSILON = 1e-12


class _NormalizingCell(LSTMShapedCell):
    """A cell with layer normalization (Ba et al. 2016).

    Args:
        layer_norm: whether to normalize.
        norm_gain, norm_shift: the initial values of `gamma` and `beta`.
        kwargs: as for `LSTMShapedCell`.
    """

    def __init__(
        self,
        num_units: int,
        layer_norm: bool,
        norm_gain: float,
        norm_shift: float,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, **kwargs)
        self._layer_norm = layer_norm
        self._gain, self._shift = norm_gain, norm_shift

    def _norm(self, value: Tensor, scope: str) -> Tensor:
        """The value, normalized with the variables `gamma` and `beta` under a scope."""
        if not self._layer_norm:
            return value
        size, dtype = value.shape[-1], value.dtype
        with variable_scope(scope):
            gamma = get_variable("gamma", [size], dtype, initializer=Constant(self._gain))
            beta = get_variable("beta", [size], dtype, initializer=Constant(self._shift))
        mean, variance = nn.moments(value, [-1], keep_dims=True)
        return nn.batch_normalization(value, mean, variance, beta, gamma, _EPSILON)


class LayerNormBasicLSTMCell(_NormalizingCell):
    """LSTM with layer normalization (Ba et al. 2016) and recurrent dropout (Semeniuta et al. 2016).

    Args:
        num_units: the number of units.
        forget_bias: added to the forget gate.
        input_size: deprecated and ignored.
        activation: tanh by default.
        layer_norm: whether to normalize gates and memory; if False, gates have a bias instead.
        norm_gain, norm_shift: the initial values of gammas and betas.
        dropout_keep_prob: the fraction of the candidates to keep; a number or a scalar tensor.
        dropout_prob_seed: the seed of the dropout.
        reuse: see `RNNCell`.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: Any = None,
        activation: Any = elementwise.tanh,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(
            num_units, layer_norm, norm_gain, norm_shift, activation=activation, _reuse=reuse
        )
        self._forget_bias = forget_bias
        self._keep_prob = dropout_keep_prob
        self._seed = dropout_prob_seed

    def call(self, inputs: Any, state: Any) -> tuple[Tensor, Any]:
        """One step."""
        memory, output = state
        joined = joining.concat([convert_to_tensor(inputs), output], 1)
        size, dtype = input_size(joined, self), joined.dtype
        gates = linalg.matmul(joined, self.add_variable("kernel", [size, 4 * self._units], dtype))
        if not self._layer_norm:
            gates = nn.bias_add(gates, self.add_variable("bias", [4 * self._units], dtype))
        i, j, f, o = joining.split(gates, 4, 1)
        i, j = self._norm(i, "input"), self._norm(j, "transform")
        f, o = self._norm(f, "forget"), self._norm(o, "output")
        candidate = self._activation(j)
        if not isinstance(self._keep_prob, float) or self._keep_prob < 1:
            candidate = nn.dropout(candidate, keep_prob=self._keep_prob, seed=self._seed)
        forget = elementwise.sigmoid(f + self._forget_bias)
        new = self._norm(memory * forget + elementwise.sigmoid(i) * candidate, "state")
        return self._result(new, self._activation(new) * elementwise.sigmoid(o))


class CoupledInputForgetGateLSTMCell(_NormalizingCell):
    """LSTM whose input gate is 1 - forget gate (Greff et al. 2015).

    Args:
        num_units: the number of units.
        use_peepholes: whether the gates depend on the memory.
        initializer: accepted for compatibility only and without effect.
        num_proj: the size of the projected output; None for no projection.
        proj_clip: clips the projected output to [-proj_clip, proj_clip].
        num_unit_shards, num_proj_shards: the number of variables into which kernels are split by
            rows.
        forget_bias: added to the forget gate.
        state_is_tuple: False keeps both parts of the state in one tensor.
        activation: tanh by default.
        reuse: see `RNNCell`.
        layer_norm: whether to normalize gates and memory.
        norm_gain, norm_shift: the initial values of gammas and betas.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int = 1,
        num_proj_shards: int = 1,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = elementwise.tanh,
        reuse: bool | None = None,
        layer_norm: bool = False,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
    ) -> None:
        super().__init__(
            num_units,
            layer_norm,
            norm_gain,
            norm_shift,
            num_proj=num_proj,
            proj_clip=proj_clip,
            state_is_tuple=state_is_tuple,
            activation=activation,
            _reuse=reuse,
        )
        self._use_peepholes = use_peepholes
        self._shards = num_unit_shards, num_proj_shards
        self._forget_bias = forget_bias

    def _kernel(self, name: str, rows: int, columns: int, dtype: Any, shards: int) -> Any:
        if shards > rows:
            raise ValueError(f"Too many shards: shape={[rows, columns]}, num_shards={shards}")
        sizes = [rows // shards + (at < rows % shards) for at in range(shards)]
        parts = [
            self.add_variable(f"{name}_{at}", [size, columns], dtype)
            for at, size in enumerate(sizes)
        ]
        return parts[0] if shards == 1 else joining.concat(parts, 0)

    def call(self, inputs: Any, state: Any) -> tuple[Tensor, Any]:
        """One step."""
        units, sigmoid = self._units, elementwise.sigmoid
        memory, output = self._parts(state)
        joined = joining.concat([convert_to_tensor(inputs), output], 1)
        dtype = joined.dtype
        kernel = self._kernel("W", input_size(joined, self), 3 * units, dtype, self._shards[0])
        bias = self.add_variable("B", [3 * units], dtype, Zeros())
        gates = linalg.matmul(joined, kernel)
        if not self._layer_norm:
            gates = nn.bias_add(gates, bias)
        j, f, o = joining.split(gates, 3, 1)
        j, f, o = self._norm(j, "transform"), self._norm(f, "forget"), self._norm(o, "output")
        f = f + self._forget_bias
        if self._use_peepholes:
            of_forget = self.add_variable("W_F_diag", [units], dtype)
            of_output = self.add_variable("W_O_diag", [units], dtype)
            f = f + of_forget * memory
        forget = sigmoid(f)
        new = self._norm(forget * memory + (1 - forget) * self._activation(j), "state")
        if self._use_peepholes:
            o = o + of_output * new
        return self._result(new, sigmoid(o) * self._activation(new))

    def _projection(self, dtype: Any) -> Any:
        return self._kernel("W_P", self._units, self.output_size, dtype, self._shards[1])


class NASCell(LSTMShapedCell):
    """The recurrent cell found by neural architecture search (Zoph & Le 2017).

    Args:
        num_units: the number of units.
        num_proj: the size of the projected output; None for no projection.
        use_bias: whether to add a bias.
        reuse: see `RNNCell`.
        kwargs: further arguments of `RNNCell`.
    """

    def __init__(
        self,
        num_units: int,
        num_proj: int | None = None,
        use_bias: bool = False,
        reuse: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, num_proj, None, True, None, _reuse=reuse, **kwargs)
        self._use_bias = use_bias

    def call(self, inputs: Any, state: Any) -> tuple[Tensor, Any]:
        """One step."""
        inputs, units = convert_to_tensor(inputs), self._units
        memory, output = state
        sigmoid, tanh, relu = elementwise.sigmoid, elementwise.tanh, nn.relu
        dtype, columns = inputs.dtype, 8 * units
        recurrent = self.add_variable("recurrent_kernel", [self.output_size, columns], dtype)
        kernel = self.add_variable("kernel", [input_size(inputs, self), columns], dtype)
        of_output = linalg.matmul(output, recurrent)
        if self._use_bias:
            of_output = nn.bias_add(of_output, self.add_variable("bias", [columns], dtype, Zeros()))
        x = joining.split(linalg.matmul(inputs, kernel), 8, 1)
        m = joining.split(of_output, 8, 1)
        first = tanh(sigmoid(x[0] + m[0]) * relu(x[1] + m[1]))
        second = tanh(sigmoid(x[2] + m[2]) + relu(x[3] * m[3]))
        third = tanh(tanh(x[4] + m[4]) * sigmoid(x[5] + m[5]))
        fourth = sigmoid(tanh(x[6] + m[6]) + sigmoid(x[7] + m[7]))
        new = tanh(first + memory) * second
        return self._result(new, tanh(new * tanh(third + fourth)))

    def _projection(self, dtype: Any) -> Any:
        return self.add_variable("projection_weights", [self._units, self._num_proj], dtype)


class UGRNNCell(BasicRNNCell):
    """Update-gate recurrent cell (Collins et al. 2017).

    Args:
        num_units: the number of units.
        initializer: of the kernel.
        forget_bias: added to the gate.
        activation: tanh by default.
        reuse: see `RNNCell`.
    """

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        forget_bias: float = 1.0,
        activation: Any = elementwise.tanh,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(num_units, activation, reuse)
        self._initializer = initializer
        self._forget_bias = forget_bias

    def call(self, inputs: Any, state: Any) -> tuple[Tensor, Tensor]:
        """One step."""
        joined = joining.concat([convert_to_tensor(inputs), state], 1)
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            both = Linear(joined, 2 * self._units, True)(joined)
        gate, candidate = joining.split(both, 2, 1)
        gate = elementwise.sigmoid(gate + self._forget_bias)
        new = gate * state + (1.0 - gate) * self._activation(candidate)
        return new, new


class HighwayWrapper(CellWrapper):
    """Highway connections around a cell (Srivastava et al. 2015).

    The output is carry * inputs + transform * output.

    Args:
        cell: the inner cell, whose outputs have the shape of its inputs.
        couple_carry_transform_gates: whether transform is 1 - carry.
        carry_bias_init: the initial bias of the carry gate.
    """

    def __init__(
        self,
        cell: Any,
        couple_carry_transform_gates: bool = True,
        carry_bias_init: float = 1.0,
    ) -> None:
        super().__init__(cell)
        self._couples = couple_carry_transform_gates
        self._bias_init = carry_bias_init

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step; the gates' variables are in the current variable scope."""
        outputs, after = self._step_inside(inputs, state, scope)
        return nest.map_structure(self._highway, inputs, outputs), after

    def _highway(self, inputs: Any, outputs: Any) -> Any:
        inputs.shape.assert_is_compatible_with(outputs.shape)
        carry = self._gate("carry", inputs, self._bias_init)
        if self._couples:
            transform = 1 - carry
        else:
            transform = self._gate("transform", inputs, -self._bias_init)
        return inputs * carry + outputs * transform

    def _gate(self, name: str, inputs: Tensor, start: float) -> Tensor:
        size = input_size(inputs, self)
        weights = get_variable(f"{name}_w", [size, size])
        bias = get_variable(f"{name}_b", [size], initializer=Constant(start))
        return elementwise.sigmoid(xw_plus_b(inputs, weights, bias))


class AttentionCellWrapper(RNNCell):
    """A cell with attention over its last outputs (Bahdanau et al. 2015).

    Args:
        cell: the inner cell.
        attn_length: the number of past outputs to attend to.
        attn_size: the size of an output; that of the inner cell by default.
        attn_vec_size: the size of the attention's hidden layer; `attn_size` by default.
        input_size: the size of the inner cell's inputs; that of the inputs by default.
        state_is_tuple: False keeps the whole state in one tensor.
        reuse: see `RNNCell`.

    Raises:
        ValueError: `attn_length` is not positive, or the inner cell's state is a tuple and
            `state_is_tuple` is False.
    """

    def __init__(
        self,
        cell: Any,
        attn_length: int,
        attn_size: int | None = None,
        attn_vec_size: int | None = None,
        input_size: int | None = None,
        state_is_tuple: bool = True,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        assert_like_cell(cell)
        if nest.is_nested(cell.state_size) and not state_is_tuple:
            raise ValueError(
                "Cell returns tuple of states, but the flag state_is_tuple is not set. State size "
                f"is: {cell.state_size}"
            )
        if attn_length <= 0:
            raise ValueError(f"attn_length should be greater than zero, got {attn_length}")
        self._cell = cell
        self._length = attn_length
        self._size = attn_size or cell.output_size
        self._vector_size = attn_vec_size or self._size
        self._input_size = input_size
        self._state_is_tuple = state_is_tuple

    @property
    def state_size(self) -> Any:
        """The sizes of the inner state, the attention and the past outputs; or their sum."""
        sizes = (self._cell.state_size, self._size, self._size * self._length)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        """`attn_size`."""
        return int(self._size)

    def call(self, inputs: Any, state: Any) -> tuple[Tensor, Any]:
        """One step."""
        parts = state
        if not self._state_is_tuple:
            sizes = [self._cell.state_size, self._size, self._size * self._length]
            parts = joining.split(state, sizes, 1)
        inner, read, kept = parts
        past = array.reshape(kept, [-1, self._length, self._size])
        given = [convert_to_tensor(inputs), read]
        size = self._input_size or input_size(given[0], self)
        output, inner = self._cell(Linear(given, size, True)(given), inner)
        query = joining.concat(nest.flatten(inner), 1) if nest.is_nested(inner) else inner
        read = self._read(query, past)
        with variable_scope("attn_output_projection"):
            output = Linear([output, read], self._size, True)([output, read])
        past = joining.concat([past[:, 1:], array.expand_dims(output, 1)], 1)
        after = (inner, read, array.reshape(past, [-1, self._length * self._size]))
        return output, after if self._state_is_tuple else joining.concat(list(after), 1)

    def _read(self, query: Tensor, past: Tensor) -> Tensor:
        """The mean of the past outputs, weighted by their attention scores."""
        size, units = self._size, self._vector_size
        with variable_scope("attention"):
            kernel = get_variable("attn_w", [1, 1, size, units])
            vector = get_variable("attn_v", [units])
            projected = Linear(query, units, True)(query)
        features = linalg.matmul(
            array.reshape(past, [-1, size]), array.reshape(kernel, [size, units])
        )
        features = array.reshape(features, [-1, self._length, units])
        hidden = elementwise.tanh(features + array.expand_dims(projected, 1))
        weights = nn.softmax(reduce.reduce_sum(vector * hidden, 2))
        read = reduce.reduce_sum(array.expand_dims(weights, 2) * past, 1)
        return array.reshape(read, [-1, size])


SAME_EACH_STEP = (
    *rnn_cell.SAME_EACH_STEP,
    GRUBlockCell,
    GRUBlockCellV2,
    LSTMBlockCell,
    LayerNormBasicLSTMCell,
    CoupledInputForgetGateLSTMCell,
    NASCell,
    UGRNNCell,
    HighwayWrapper,
    AttentionCellWrapper,
)
"""Those of `rnn_cell` and of `contrib.rnn`."""

__all__ = [
    "AttentionCellWrapper",
    "CoupledInputForgetGateLSTMCell",
    "HighwayWrapper",
    "LayerNormBasicLSTMCell",
    "NASCell",
    "UGRNNCell",
]
__dir__ = listing(__name__)
