"""`contrib.cudnn_rnn`: recurrent layers computed like cuDNN's, compiled by XLA for any device.

Variables have the names of TensorFlow's checkpoints, which are those of the compatible cells:
`cudnn_lstm/rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/kernel`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from estimatorkit.compat.layers.recurrent.rnn import bidirectional_dynamic_rnn, dynamic_rnn
from estimatorkit.compat.layers.recurrent.rnn_cell import (
    BasicRNNCell,
    GRUCell,
    LSTMStateTuple,
    RNNCell,
)
from estimatorkit.compat.layers.recurrent.rnn_cell_block import LSTMBlockCell
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import as_dtype, float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.layers.engine.base import snake_case
from estimatorkit.layers.recurrent.rnn_cell_base import ScopedVariables
from estimatorkit.layers.recurrent.steps import size_of
from estimatorkit.lazy import listing
from estimatorkit.ops.array import array, filling, joining
from estimatorkit.ops.control.decoded_steps import transposed
from estimatorkit.ops.nn import nn
from estimatorkit.ops.variables.initializers import Constant, GlorotUniform
from estimatorkit.ops.variables.variable_scope import variable_scope

CUDNN_RNN_UNIDIRECTION = "unidirectional"
CUDNN_RNN_BIDIRECTION = "bidirectional"
CUDNN_INPUT_LINEAR_MODE = "linear_input"
CUDNN_INPUT_SKIP_MODE = "skip_input"
CUDNN_INPUT_AUTO_MODE = "auto_select"


class CudnnCompatibleLSTMCell(LSTMBlockCell):
    """The LSTM cell of `CudnnLSTM`, without a forget gate bias.

    Args:
        num_units: the number of units.
        reuse: see `RNNCell`.
    """

    def __init__(self, num_units: int, reuse: bool | None = None) -> None:
        super().__init__(num_units, forget_bias=0.0, reuse=reuse, name="cudnn_compatible_lstm_cell")


class CudnnCompatibleGRUCell(GRUCell):
    """The GRU cell of `CudnnGRU`: the reset gate is applied after the product with the state.

    Args:
        num_units: the number of units.
        reuse: see `RNNCell`.
        kernel_initializer: of the kernels; by default that of the variable scope.
    """

    def __init__(
        self, num_units: int, reuse: bool | None = None, kernel_initializer: Any = None
    ) -> None:
        super().__init__(
            num_units,
            reuse=reuse,
            kernel_initializer=kernel_initializer,
            name="cudnn_compatible_gru_cell",
        )

    def _candidate(self, inputs: Tensor, state: Tensor, reset: Tensor) -> Tensor:
        names = [
            (f"candidate/{each}_projection/kernel", f"candidate/{each}_projection/bias")
            for each in ("input", "hidden")
        ]
        of_inputs = self._product([inputs], self._units, names[0], None)
        of_state = self._product([state], self._units, names[1], None)
        return of_inputs + reset * of_state


class _CudnnRNN(ScopedVariables):
    """Stacked recurrent layers.

    Args:
        num_layers: the number of layers.
        num_units: units per layer and direction.
        input_mode: 'linear_input', or 'auto_select' if the input size differs from `num_units`.
        direction: 'unidirectional' or 'bidirectional'.
        dropout: the dropout rate in training, for the outputs of all layers but the last.
        seed: of dropout, and of the default `kernel_initializer`.
        dtype: float16, float32 or float64.
        kernel_initializer: of each gate's kernels, `(num_units, n)`; Glorot uniform by default.
        bias_initializer: of the biases; zeros by default. cuDNN's two biases are a single one here.
        name: the variable scope; the class's name in lower case by default.

    Raises:
        ValueError: the mode, direction or dtype is invalid.
    """

    _states = 1

    def __init__(
        self,
        num_layers: int,
        num_units: int,
        input_mode: str = CUDNN_INPUT_LINEAR_MODE,
        direction: str = CUDNN_RNN_UNIDIRECTION,
        dropout: float = 0.0,
        seed: int | None = None,
        dtype: Any = float32,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
    ) -> None:
        modes = (CUDNN_INPUT_LINEAR_MODE, CUDNN_INPUT_AUTO_MODE)
        directions = (CUDNN_RNN_UNIDIRECTION, CUDNN_RNN_BIDIRECTION)
        for what, given, allowed in (
            ("input_mode", input_mode, modes),
            ("direction", direction, directions),
            ("dtype", as_dtype(dtype).name, ("float16", "float32", "float64")),
        ):
            if given not in allowed:
                raise value_error(
                    f"Invalid {what}", expected=f"one of {allowed}", received=repr(given)
                )
        self.num_layers, self.num_units, self.direction = num_layers, num_units, direction
        self.input_mode, self.dtype, self.name = input_mode, as_dtype(dtype).name, name
        self.built = False
        self._dropout, self._seed = dropout, seed
        self._kernels = GlorotUniform(seed) if kernel_initializer is None else kernel_initializer
        self._biases = Constant(0.0) if bias_initializer is None else bias_initializer
        self._cells = [self._cell() for _ in range(num_layers * self.num_dirs)]

    def _cell(self) -> RNNCell:
        raise NotImplementedError(f"{type(self).__name__} must define _cell")

    @property
    def num_dirs(self) -> int:
        """The number of directions."""
        return 1 if self.direction == CUDNN_RNN_UNIDIRECTION else 2

    def state_shape(self, batch_size: Any) -> tuple[list[Any], ...]:
        """The shape of each state: `(num_layers * num_dirs, batch_size, num_units)`."""
        shape = [self.num_layers * self.num_dirs, batch_size, self.num_units]
        return (shape,) * self._states

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        sequence_lengths: Any = None,
        time_major: bool = True,
        training: bool = True,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Runs the layers.

        Args:
            inputs: `(time, batch, n)`, or `(batch, time, n)` if `time_major` is False.
            initial_state: a tuple of states, `(h, c)` for an LSTM: each `(num_layers * num_dirs,
                batch, num_units)`, or with the batch first if `time_major` is False; zeros by
                default.
            sequence_lengths: int32 `(batch,)`; all steps by default.
            time_major: see `inputs`.
            training: whether to apply dropout.

        Returns:
            The outputs, with a last dimension of `num_dirs * num_units`, and the final states.

        Raises:
            TypeError: `initial_state` is not a tuple.
            ValueError: the inputs do not have three dimensions, or the last one is unknown.
        """
        if initial_state is not None and not isinstance(initial_state, tuple):
            raise TypeError(f"Invalid initial_state type: {initial_state}, expecting tuple.")
        values = convert_to_tensor(inputs, dtype=self.dtype, name="inputs")
        if values.shape.rank not in (3, None):
            raise ValueError(f"Expecting input_shape with 3 dims, got {values.shape.rank}")
        default = self.name or snake_case(type(self).__name__)
        with variable_scope(
            self._scope, default, custom_getter=self._with_initializer, reuse=self.built or None
        ) as scope:
            self._scope = scope
            self.built = True
            values = values if time_major else transposed(values)
            states = self._split(initial_state, size_of(values, 1), time_major)
            outputs, last = self._layers(values, states, sequence_lengths, training)
            parts = zip(*last, strict=True)
            merged = tuple(joining.stack(list(each), 0 if time_major else 1) for each in parts)
            return (outputs if time_major else transposed(outputs)), merged

    def _with_initializer(self, getter: Any, name: str, *args: Any, **kwargs: Any) -> Variable:
        """Variable getter that applies the layer's initializers."""
        if name.endswith("/bias"):
            kwargs["initializer"] = self._biases
        else:
            kwargs["initializer"] = functools.partial(self._kernel, "projection" not in name)
        found: Variable = getter(name, *args, **kwargs)
        return found

    def _kernel(
        self, of_both: bool, shape: Any, dtype: Any = float32, partition_info: Any = None
    ) -> Tensor:
        """The initial value, gate by gate, of a kernel of inputs and states, or of one of them."""
        rows, columns = (int(each) for each in shape)
        units = self.num_units
        parts = [rows - units, units] if of_both else [rows]

        def gate() -> Tensor:
            pieces = [self._kernels([units, each], dtype=dtype) for each in parts]
            return joining.concat([array.transpose(each) for each in pieces], 0)

        return joining.concat([gate() for _ in range(columns // units)], 1)

    def _split(self, given: Any, batch: Any, time_major: bool) -> list[tuple[Tensor, ...]]:
        """The states of each layer and direction."""
        count = len(self._cells)
        if given is None:
            shape = joining.stack([batch, self.num_units])
            zeros = filling.zeros(shape, self.dtype)
            return [(zeros,) * self._states] * count
        tensors = [convert_to_tensor(each, dtype=self.dtype) for each in given]
        parts = [joining.unstack(each, count, 0 if time_major else 1) for each in tensors]
        return list(zip(*parts, strict=True))

    def _layers(
        self, values: Tensor, states: Sequence[Any], lengths: Any, training: bool
    ) -> tuple[Tensor, list[tuple[Tensor, ...]]]:
        """The outputs of the last layer, and the final states of all."""
        last: list[tuple[Tensor, ...]] = []
        for layer in range(self.num_layers):
            if layer and training and self._dropout:
                values = nn.dropout(values, rate=self._dropout, seed=self._seed)
            at = slice(layer * self.num_dirs, (layer + 1) * self.num_dirs)
            starts = [self._for_cell(each) for each in states[at]]
            if self.num_dirs == 1:
                scope = f"rnn/multi_rnn_cell/cell_{layer}"
                values, new = dynamic_rnn(
                    self._cells[layer], values, lengths, starts[0], time_major=True, scope=scope
                )
                last.append(self._of_cell(new))
                continue
            forward, backward = self._cells[at]
            with variable_scope(f"stack_bidirectional_rnn/cell_{layer}"):
                both, news = bidirectional_dynamic_rnn(
                    forward, backward, values, lengths, starts[0], starts[1], time_major=True
                )
            values = joining.concat(list(both), 2)
            last.extend(self._of_cell(each) for each in news)
        return values, last

    @staticmethod
    def _for_cell(state: tuple[Tensor, ...]) -> Any:
        return state[0]

    @staticmethod
    def _of_cell(state: Any) -> tuple[Tensor, ...]:
        return (state,)


class CudnnLSTM(_CudnnRNN):
    """LSTM layers; see `_CudnnRNN` for the arguments. The state is `(h, c)`."""

    _states = 2

    def _cell(self) -> RNNCell:
        return CudnnCompatibleLSTMCell(self.num_units)

    @staticmethod
    def _for_cell(state: tuple[Tensor, ...]) -> Any:
        return LSTMStateTuple(c=state[1], h=state[0])

    @staticmethod
    def _of_cell(state: Any) -> tuple[Tensor, ...]:
        return (state.h, state.c)


class CudnnGRU(_CudnnRNN):
    """GRU layers; see `_CudnnRNN` for the arguments."""

    def _cell(self) -> RNNCell:
        return CudnnCompatibleGRUCell(self.num_units)


class CudnnRNNTanh(_CudnnRNN):
    """Simple recurrent layers with tanh; see `_CudnnRNN` for the arguments."""

    def _cell(self) -> RNNCell:
        return BasicRNNCell(self.num_units)


class CudnnRNNRelu(_CudnnRNN):
    """Simple recurrent layers with relu; see `_CudnnRNN` for the arguments."""

    def _cell(self) -> RNNCell:
        return BasicRNNCell(self.num_units, activation=nn.relu)


__all__ = [
    "CudnnCompatibleGRUCell",
    "CudnnCompatibleLSTMCell",
    "CudnnGRU",
    "CudnnLSTM",
    "CudnnRNNRelu",
    "CudnnRNNTanh",
]
__dir__ = listing(__name__)
