"""Recurrent cells, as `tf.nn.rnn_cell`: one step each, `(inputs, state) -> (output, new state)`.

A cell gets its variables on its first call, under the variable scope of that call and its name, and
uses them in every later one. `rnn` runs cells over time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from estimatorkit.core import nest
from estimatorkit.core.control_flow import constant_bool
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import device as device_scope
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.initializers import Constant
from estimatorkit.core.ops import array, elementwise, filling, joining, linalg, nn
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variable_scope import VariableScope, get_variable, variable_scope
from estimatorkit.core.variables import Variable

Activation = Callable[[Any], Tensor]


class LSTMStateTuple(NamedTuple):
    """The state of an LSTM cell.

    Attributes:
        c: the cell's memory, `(batch, units)`.
        h: its output, `(batch, units)`.
    """

    c: Any
    h: Any

    @property
    def dtype(self) -> Any:
        """The dtype of both."""
        return self.c.dtype


class RNNCell:
    """What all cells are; subclass it with `state_size`, `output_size` and `call(inputs, state)`.

    A subclass may make its variables in `build(inputs_shape)`, which runs before the first `call`.

    Args:
        trainable: whether its variables are listed as trainable.
        name: its variable scope; the class's name in lower case and with underscores by default,
            made unique.
        dtype: accepted for TensorFlow's signature; variables have the inputs' dtype.
        _reuse: share the variables of a cell that was called under the same scope.
    """

    def __init__(
        self,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        _reuse: bool | None = None,
        **kwargs: Any,
    ) -> None:
        if kwargs:
            raise TypeError(f"{type(self).__name__} got unexpected arguments {sorted(kwargs)}.")
        self.trainable = trainable
        self._name = name
        self._reuse = _reuse
        self._scope: VariableScope | None = None
        self.built = False

    @property
    def name(self) -> str:
        """The name of its variable scope."""
        return self._name or _snake_case(type(self).__name__)

    @property
    def state_size(self) -> Any:
        """The size, or nested structure of sizes, of the state without the batch dimension."""
        raise NotImplementedError(f"{type(self).__name__} must define state_size")

    @property
    def output_size(self) -> Any:
        """The size of the output without the batch dimension."""
        raise NotImplementedError(f"{type(self).__name__} must define output_size")

    def build(self, inputs_shape: Any) -> None:
        """Makes the variables that a subclass wants to have before its first `call`."""

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: the output and the new state."""
        raise NotImplementedError(f"{type(self).__name__} must define call(inputs, state)")

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step.

        Args:
            inputs: `(batch, n)`.
            state: as `zero_state` gives it.
            scope: the variable scope (a name or a `VariableScope`) on the first call.

        Returns:
            The output, and the new state.
        """
        with self._variables(scope):
            if not self.built:
                self.build(_shape_of(inputs))
                self.built = True
            return self.call(inputs, state)

    def _variables(self, scope: Any) -> Any:
        if self._scope is not None:
            return variable_scope(self._scope, reuse=True, auxiliary_name_scope=False)
        return self._first_scope(scope)

    def _first_scope(self, scope: Any) -> Any:
        chosen = scope if scope is not None else self._name
        opened = variable_scope(
            chosen, default_name=_snake_case(type(self).__name__), reuse=self._reuse
        )
        return _Remembering(self, opened)

    @property
    def variables(self) -> list[Variable]:
        """Its variables; none before the first call."""
        return [] if self._scope is None else self._scope.global_variables()

    weights = variables

    @property
    def trainable_variables(self) -> list[Variable]:
        """Those of its variables that are trainable."""
        return [] if self._scope is None else self._scope.trainable_variables()

    trainable_weights = trainable_variables

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros.

        Args:
            batch_size: an int or an int32 scalar tensor.
            dtype: the dtype of the state.
        """
        with get_default_graph().name_scope(f"{type(self).__name__}ZeroState"):
            return zeros_of(self.state_size, batch_size, dtype)

    def get_initial_state(
        self, inputs: Any = None, batch_size: Any = None, dtype: Any = None
    ) -> Any:
        """A state of zeros for inputs `(batch, ...)`, or for a batch size and dtype."""
        if inputs is not None:
            tensor = convert_to_tensor(inputs)
            batch_size, dtype = array.shape(tensor)[0], tensor.dtype
        return self.zero_state(batch_size, dtype)

    # -- for subclasses

    def add_variable(
        self,
        name: str,
        shape: Any,
        dtype: Any = None,
        initializer: Any = None,
        trainable: bool = True,
        **kwargs: Any,
    ) -> Variable:
        """A variable of the cell: made on the first call, the same one on later calls."""
        kwargs["trainable"] = trainable and self.trainable
        return get_variable(name, shape, dtype, initializer, **kwargs)

    add_weight = add_variable


def assert_like_cell(cell: Any, what: str = "cell") -> None:
    """Raises TypeError where the argument `what` is no recurrent cell."""
    missing = [each for each in ("state_size", "output_size", "zero_state") if not _has(cell, each)]
    if missing or not callable(cell):
        raise TypeError(
            explain(
                f"The argument {what!r} ({str(cell)[:100]}) is not an RNNCell",
                expected="a callable with state_size, output_size and zero_state",
                received=repr(cell)[:200],
            )
        )


def _has(cell: Any, attribute: str) -> bool:
    # Asking the class first: a property that is not overridden raises NotImplementedError.
    return hasattr(type(cell), attribute) or hasattr(cell, attribute)


def _shape_of(inputs: Any) -> Any:
    """The shape of an input, or the structure of the shapes of several."""
    return nest.map_structure(lambda each: convert_to_tensor(each).shape, inputs)


class _Remembering:
    """A variable scope that tells a cell which one it is."""

    def __init__(self, cell: RNNCell, scope: Any) -> None:
        self._cell = cell
        self._scope = scope

    def __enter__(self) -> Any:
        entered = self._scope.__enter__()
        self._cell._scope = entered
        return entered

    def __exit__(self, *error: Any) -> Any:
        return self._scope.__exit__(*error)


def _snake_case(name: str) -> str:
    """`BasicLSTMCell` as `basic_lstm_cell`."""
    result = ""
    for at, letter in enumerate(name):
        after_lower = at and (name[at - 1].islower() or name[at + 1 : at + 2].islower())
        result += ("_" if letter.isupper() and after_lower else "") + letter.lower()
    return result


def zeros_of(size: Any, batch_size: Any, dtype: Any) -> Any:
    """Zeros `(batch, ...)` for a size: an int, a shape, or a structure of such."""
    if nest.is_nested(size):
        leaves = [zeros_of(each, batch_size, dtype) for each in nest.flatten(size)]
        return nest.pack_sequence_as(size, leaves)
    dims = size.as_list() if isinstance(size, TensorShape) else [size]
    if isinstance(batch_size, Tensor):
        from estimatorkit.core.registry import constant_value

        known = constant_value(batch_size)
        batch_size = batch_size if known is None else int(known)
    if isinstance(batch_size, Tensor):
        shape = joining.stack([batch_size, *dims])
        zeros = filling.zeros(shape, dtype)
        zeros.set_shape([None, *dims])
        return zeros
    return filling.zeros([int(batch_size), *dims], dtype)


def _input_size(inputs: Tensor, cell: RNNCell) -> int:
    size = inputs.shape[-1] if inputs.shape.rank else None
    if size is None:
        raise ValueError(
            explain(
                f"{type(cell).__name__}: expected inputs.shape[-1] to be known",
                received=inputs,
                made_at=inputs.op.source,
                hint="give the placeholder a shape, or call set_shape",
            )
        )
    return size


def _linear(
    cell: RNNCell,
    values: Sequence[Tensor],
    units: int,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    scope: str | None = None,
) -> Tensor:
    """values x kernel + bias, with the variables `kernel` and `bias` (under `scope`)."""
    prefix = f"{scope}/" if scope else ""
    rows = sum(_input_size(value, cell) for value in values)
    dtype = values[0].dtype
    joined = values[0] if len(values) == 1 else joining.concat(list(values), 1)
    kernel = cell.add_variable(f"{prefix}kernel", [rows, units], dtype, kernel_initializer)
    bias = cell.add_variable(
        f"{prefix}bias",
        [units],
        dtype,
        Constant(0.0) if bias_initializer is None else bias_initializer,
    )
    return nn.bias_add(linalg.matmul(joined, kernel), bias)


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
        self._activation = _activation(activation)

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
        output = self._activation(_linear(self, [convert_to_tensor(inputs), state], self._units))
        return output, output


def _activation(given: Any, default: Activation = elementwise.tanh) -> Activation:
    if given is None:
        return default
    if isinstance(given, str):
        found: Activation = getattr(nn, given, None) or getattr(elementwise, given)
        return found
    chosen: Activation = given
    return chosen


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
        inputs, units = convert_to_tensor(inputs), self._units
        open_gates = Constant(1.0) if self._bias_initializer is None else self._bias_initializer
        gates = elementwise.sigmoid(
            _linear(self, [inputs, state], 2 * units, self._kernel_initializer, open_gates, "gates")
        )
        reset, update = joining.split(gates, 2, 1)
        candidate = self._activation(
            _linear(
                self,
                [inputs, reset * state],
                units,
                self._kernel_initializer,
                self._bias_initializer,
                "candidate",
            )
        )
        new = update * state + (1 - update) * candidate
        return new, new


class LSTMCell(RNNCell):
    """Long short-term memory (Hochreiter & Schmidhuber 1997), with peepholes and a projection.

    Gates in the order i, j, f, o of the kernel's columns, as in TensorFlow.

    Args:
        num_units: the number of units.
        use_peepholes: let the gates see the memory (Sak et al. 2014).
        cell_clip: clip the memory to [-cell_clip, cell_clip].
        initializer: of the kernels.
        num_proj: the size of the output, if it is projected.
        proj_clip: clip the projected output.
        num_unit_shards, num_proj_shards: accepted for TensorFlow's signature.
        forget_bias: added to the forget gate.
        state_is_tuple: False keeps c and h in one tensor, as before 1.0.
        activation: tanh by default.
        reuse, name, dtype: see `RNNCell`.
    """

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
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._units = int(num_units)
        self._use_peepholes = use_peepholes
        self._cell_clip = cell_clip
        self._initializer = initializer
        self._num_proj = num_proj
        self._proj_clip = proj_clip
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = _activation(activation)

    @property
    def state_size(self) -> Any:
        """`LSTMStateTuple(units, output size)`, or their sum."""
        if self._state_is_tuple:
            return LSTMStateTuple(self._units, self.output_size)
        return self._units + self.output_size

    @property
    def output_size(self) -> int:
        """The number of units, or the size of the projection."""
        return self._num_proj or self._units

    def call(self, inputs: Any, state: Any) -> tuple[Tensor, Any]:
        """One step."""
        inputs, units = convert_to_tensor(inputs), self._units
        if self._state_is_tuple:
            memory, output = state
        else:
            memory, output = joining.split(state, [units, self.output_size], 1)
        gates = _linear(self, [inputs, output], 4 * units, self._initializer)
        i, j, f, o = joining.split(gates, 4, 1)
        f = f + self._forget_bias
        if self._use_peepholes:
            dtype = inputs.dtype
            of_forget, of_input, of_output = (
                self.add_variable(f"w_{gate}_diag", [units], dtype, self._initializer)
                for gate in "fio"
            )
            f, i = f + of_forget * memory, i + of_input * memory
        sigmoid = elementwise.sigmoid
        new = sigmoid(f) * memory + sigmoid(i) * self._activation(j)
        if self._cell_clip is not None:
            new = elementwise.clip_by_value(new, -self._cell_clip, self._cell_clip)
        if self._use_peepholes:
            o = o + of_output * new
        result = sigmoid(o) * self._activation(new)
        if self._num_proj is not None:
            shape = [units, self._num_proj]
            kernel = self.add_variable("projection/kernel", shape, inputs.dtype, self._initializer)
            result = linalg.matmul(result, kernel)
            if self._proj_clip is not None:
                result = elementwise.clip_by_value(result, -self._proj_clip, self._proj_clip)
        if self._state_is_tuple:
            return result, LSTMStateTuple(new, result)
        return result, joining.concat([new, result], 1)


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


class MultiRNNCell(RNNCell):
    """Cells one on top of the other; each takes the output of the one below.

    Args:
        cells: the cells, from the bottom.
        state_is_tuple: False joins the states into one tensor, as before 1.0.

    Raises:
        TypeError: the cells are no list.
        ValueError: there are none.
    """

    def __init__(self, cells: Sequence[RNNCell], state_is_tuple: bool = True) -> None:
        super().__init__()
        if not isinstance(cells, (list, tuple)):
            raise TypeError(f"cells must be a list or tuple, but received: {cells}.")
        if not cells:
            raise ValueError("Must specify at least one cell for MultiRNNCell.")
        for cell in cells:
            assert_like_cell(cell, "cell")
        self._cells = list(cells)
        self._state_is_tuple = state_is_tuple

    @property
    def state_size(self) -> Any:
        """The cells' state sizes."""
        sizes = tuple(cell.state_size for cell in self._cells)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        """The output size of the topmost cell."""
        return self._cells[-1].output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros for each cell."""
        if not self._state_is_tuple:
            return super().zero_state(batch_size, dtype)
        return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """One step of all cells."""
        states = state
        if not self._state_is_tuple:
            states = joining.split(state, [cell.state_size for cell in self._cells], 1)
        elif not isinstance(state, (list, tuple)) or len(state) != len(self._cells):
            raise ValueError(
                explain(
                    f"Expected state to be a tuple of length {len(self._cells)}, but received: "
                    f"{str(state)[:100]}",
                    hint="state_is_tuple=False takes one tensor",
                )
            )
        current, after = inputs, []
        for number, (cell, own) in enumerate(zip(self._cells, states, strict=True)):
            with variable_scope(f"cell_{number}"):
                current, new = cell(current, own)
            after.append(new)
        return current, tuple(after) if self._state_is_tuple else joining.concat(after, 1)


class _Wrapper(RNNCell):
    """A cell around another one, whose sizes it has."""

    def __init__(self, cell: RNNCell) -> None:
        super().__init__()
        assert_like_cell(cell)
        self._cell = cell

    @property
    def wrapped_cell(self) -> RNNCell:
        """The cell inside."""
        return self._cell

    @property
    def state_size(self) -> Any:
        """That of the cell inside."""
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        """That of the cell inside."""
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """That of the cell inside."""
        return self._cell.zero_state(batch_size, dtype)

    @property
    def variables(self) -> list[Variable]:
        """Those of the cell inside."""
        return self._cell.variables

    weights = variables


class DropoutWrapper(_Wrapper):
    """Drops parts of the inputs, the outputs and the state at each step.

    Args:
        cell: the cell inside.
        input_keep_prob, output_keep_prob, state_keep_prob: the parts that are kept; numbers or
            scalar tensors.
        variational_recurrent: drop the same parts at every step of a run (Gal & Ghahramani 2015).
        input_size: with `variational_recurrent` and input dropout: the inputs' size.
        dtype: with `variational_recurrent`: the dtype.
        seed: of the random numbers.
        dropout_state_filter_visitor: of each part of the state whether it is dropped; by default
            everything but the memory of an LSTM.
    """

    def __init__(
        self,
        cell: RNNCell,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False,
        input_size: Any = None,
        dtype: Any = None,
        seed: int | None = None,
        dropout_state_filter_visitor: Any = None,
    ) -> None:
        super().__init__(cell)
        for what, keep in (
            ("input", input_keep_prob),
            ("output", output_keep_prob),
            ("state", state_keep_prob),
        ):
            if isinstance(keep, (int, float)) and not 0.0 < keep <= 1.0:
                raise ValueError(
                    f"Parameter {what}_keep_prob must be between 0 and 1. Received {keep}"
                )
        self._keep = {
            "input": input_keep_prob,
            "output": output_keep_prob,
            "state": state_keep_prob,
        }
        self._seed = seed
        self._filter = dropout_state_filter_visitor
        self._noise: dict[str, Any] = {}
        if variational_recurrent:
            if dtype is None:
                raise ValueError("When variational_recurrent=True, dtype must be provided")
            if input_size is None and not (
                isinstance(input_keep_prob, (int, float)) and input_keep_prob >= 1.0
            ):
                raise ValueError(
                    "When variational_recurrent=True and input_keep_prob < 1.0 or is unknown, "
                    "input_size must be provided"
                )
            sizes = {
                "input": input_size,
                "output": cell.output_size,
                "state": cell.state_size,
            }
            self._noise = {
                what: self._draw(what, size, dtype)
                for what, size in sizes.items()
                if size is not None
            }

    def _draw(self, what: str, size: Any, dtype: Any) -> Any:
        """The parts that stay through all steps of a run, the same for a whole batch's units."""
        from estimatorkit.core.ops.random import random_uniform

        drawn = [
            random_uniform([1, leaf], dtype=dtype, seed=self._seed_for(what, at))
            for at, leaf in enumerate(nest.flatten(size))
        ]
        return nest.pack_sequence_as(size, drawn)

    def _seed_for(self, what: str, position: int) -> int | None:
        if self._seed is None:
            return None
        return self._seed * 31 + ("input", "output", "state").index(what) * 7 + position

    def _drop(self, what: str, values: Any) -> Any:
        keep = self._keep[what]
        if constant_bool(isinstance(keep, (int, float)) and keep >= 1.0):
            return values
        leaves = nest.flatten(values)
        noise = nest.flatten(self._noise[what]) if what in self._noise else [None] * len(leaves)
        chosen = self._dropped_parts(what, values)
        dropped = [
            self._drop_one(leaf, keep, own, self._seed_for(what, at)) if wanted else leaf
            for at, (leaf, own, wanted) in enumerate(zip(leaves, noise, chosen, strict=True))
        ]
        return nest.pack_sequence_as(values, dropped)

    @staticmethod
    def _drop_one(value: Tensor, keep: Any, noise: Any, seed: int | None) -> Tensor:
        if noise is None:
            return nn.dropout(value, keep_prob=keep, seed=seed)
        kept = elementwise.floor(keep + noise)
        return elementwise.div(value, keep) * kept

    def _dropped_parts(self, what: str, values: Any) -> list[bool]:
        if what != "state":
            return [True] * len(nest.flatten(values))
        if self._filter is not None:
            return _visit(self._filter, values)
        return _visit(_not_memory, values)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """One step of the cell inside, with dropout around it."""
        inputs = self._drop("input", inputs)
        output, new = self._cell(inputs, state)
        return self._drop("output", output), self._drop("state", new)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step; the variables are those of the cell inside."""
        inputs = self._drop("input", inputs)
        output, new = self._cell(inputs, state, scope)
        return self._drop("output", output), self._drop("state", new)


def _not_memory(state: Any) -> Any:
    """Of an LSTM's state all but the memory."""
    return LSTMStateTuple(c=False, h=True) if isinstance(state, LSTMStateTuple) else True


def _visit(visitor: Callable[[Any], Any], state: Any) -> list[bool]:
    if isinstance(state, (list, tuple)) and not nest.is_namedtuple(state):
        return [flag for part in state for flag in _visit(visitor, part)]
    answer = visitor(state)
    leaves = nest.flatten(state)
    flags = nest.flatten(answer)
    return (
        [bool(flag) for flag in flags]
        if len(flags) == len(leaves)
        else [bool(answer)] * len(leaves)
    )


class ResidualWrapper(_Wrapper):
    """Adds the inputs to the outputs.

    Args:
        cell: the cell inside.
        residual_fn: of inputs and outputs, instead of the sum.
    """

    def __init__(self, cell: RNNCell, residual_fn: Any = None) -> None:
        super().__init__(cell)
        self._function = residual_fn

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step; the variables are those of the cell inside."""
        output, new = self._cell(inputs, state, scope)
        if self._function is not None:
            return self._function(inputs, output), new
        return nest.map_structure(lambda one, other: one + other, inputs, output), new


class DeviceWrapper(_Wrapper):
    """Puts a cell on a device.

    Args:
        cell: the cell inside.
        device: a device's name or function (`tf.device`).
    """

    def __init__(self, cell: RNNCell, device: Any) -> None:
        super().__init__(cell)
        self._device = device

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step on the device."""
        with device_scope(self._device):
            return self._cell(inputs, state, scope)

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The state of zeros, on the device."""
        with device_scope(self._device):
            return self._cell.zero_state(batch_size, dtype)


class OutputProjectionWrapper(_Wrapper):
    """Projects a cell's output by a dense layer (`contrib.rnn.OutputProjectionWrapper`).

    Args:
        cell: the cell inside.
        output_size: the size of the output.
        activation: of the projected output; none by default.
        reuse: see `RNNCell`.
    """

    def __init__(
        self, cell: RNNCell, output_size: int, activation: Any = None, reuse: Any = None
    ) -> None:
        super().__init__(cell)
        self._reuse = reuse
        self._output_size = output_size
        self._activation = activation

    @property
    def output_size(self) -> int:
        """The size of the projection."""
        return self._output_size

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """One step, projected."""
        output, new = self._cell(inputs, state)
        projected = _linear(self, [output], self._output_size)
        return (projected if self._activation is None else self._activation(projected)), new
