"""Wrappers of recurrent cells: stacks, dropout, residuals, devices, projections, embeddings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.compat.layers.recurrent.rnn_linear import Linear
from estimatorkit.core import nest
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import device as device_scope
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.layers.recurrent.rnn_cell_base import (
    LSTMStateTuple,
    RNNCell,
    assert_like_cell,
)
from estimatorkit.layers.recurrent.steps import initial_state_of
from estimatorkit.ops.array import array, joining
from estimatorkit.ops.control.control_flow import constant_bool
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.nn import nn
from estimatorkit.ops.nn.embedding import embedding_lookup
from estimatorkit.ops.variables.initializers import RandomUniform
from estimatorkit.ops.variables.variable_scope import (
    get_variable,
    get_variable_scope,
    variable_scope,
)


class MultiRNNCell(RNNCell):
    """A stack of cells; the output of each is the input of the next.

    Args:
        cells: the cells, the lowest first.
        state_is_tuple: False concatenates the states into one tensor, as before TensorFlow 1.0.

    Raises:
        TypeError: `cells` is not a list or tuple.
        ValueError: `cells` is empty.
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
        """The state sizes of the cells."""
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
        return tuple(initial_state_of(cell, batch_size, dtype) for cell in self._cells)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """One step of all cells."""
        states = state
        if not self._state_is_tuple:
            states = joining.split(state, [cell.state_size for cell in self._cells], 1)
        elif not isinstance(state, (list, tuple)) or len(state) != len(self._cells):
            raise value_error(
                f"Expected state to be a tuple of length {len(self._cells)}, but received: "
                f"{str(state)[:100]}",
                hint="state_is_tuple=False takes one tensor",
            )
        current, after = inputs, []
        for number, (cell, own) in enumerate(zip(self._cells, states, strict=True)):
            with variable_scope(f"cell_{number}"):
                current, new = cell(current, own)
            after.append(new)
        return current, tuple(after) if self._state_is_tuple else joining.concat(after, 1)


class CellWrapper(RNNCell):
    """A cell around another one, with the same sizes."""

    def __init__(self, cell: RNNCell) -> None:
        super().__init__()
        assert_like_cell(cell)
        self._cell = cell

    @property
    def wrapped_cell(self) -> RNNCell:
        """The inner cell."""
        return self._cell

    @property
    def state_size(self) -> Any:
        """That of the inner cell."""
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        """That of the inner cell."""
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """That of the inner cell."""
        return initial_state_of(self._cell, batch_size, dtype)

    def _step_inside(self, inputs: Any, state: Any, scope: Any) -> Any:
        """One step of the inner cell; cells of Keras do not accept a scope."""
        return self._cell(inputs, state, *([] if scope is None else [scope]))

    @property
    def variables(self) -> list[Variable]:
        """Those of the inner cell."""
        return self._cell.variables

    weights = variables


class DropoutWrapper(CellWrapper):
    """Dropout of the inputs, the outputs and the state of a cell.

    Args:
        cell: the inner cell.
        input_keep_prob, output_keep_prob, state_keep_prob: the fractions to keep; numbers or
            scalar tensors.
        variational_recurrent: whether to drop the same units in all steps of a run (Gal &
            Ghahramani 2015).
        input_size: the size of the inputs, for `variational_recurrent` with input dropout.
        dtype: the dtype of inputs and states, for `variational_recurrent`.
        seed: the seed of the dropout.
        dropout_state_filter_visitor: takes a part of the state and returns whether to drop it; by
            default, all parts but the memory of an LSTM.
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
        """Uniform noise `(1, size)` for all steps and examples of a run."""
        from estimatorkit.ops.math.random import random_uniform

        drawn = [
            random_uniform([1, *_dims(leaf)], dtype=dtype, seed=self._seed_for(what, at))
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
        """One step of the inner cell, with dropout."""
        inputs = self._drop("input", inputs)
        output, new = self._cell(inputs, state)
        return self._drop("output", output), self._drop("state", new)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step; the variables are those of the inner cell."""
        inputs = self._drop("input", inputs)
        output, new = self._step_inside(inputs, state, scope)
        return self._drop("output", output), self._drop("state", new)


def _dims(size: Any) -> list[Any]:
    """The dimensions of a size, which is a number or a `TensorShape`."""
    return list(size.as_list()) if isinstance(size, TensorShape) else [size]


def _not_memory(state: Any) -> Any:
    """True, but for the memory of an LSTM's state."""
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


class ResidualWrapper(CellWrapper):
    """Adds the inputs to the outputs.

    Args:
        cell: the inner cell.
        residual_fn: `(inputs, outputs) -> outputs`; the sum by default.

    Raises:
        ValueError: in a step without `residual_fn`, inputs and outputs have different shapes.
    """

    def __init__(self, cell: RNNCell, residual_fn: Any = None) -> None:
        super().__init__(cell)
        self._function = residual_fn

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step; the variables are those of the inner cell."""
        output, new = self._step_inside(inputs, state, scope)
        if self._function is not None:
            return self._function(inputs, output), new
        return nest.map_structure(_sum_of_one_shape, inputs, output), new


def _sum_of_one_shape(inputs: Any, output: Any) -> Any:
    inputs.shape.assert_is_compatible_with(output.shape)
    return inputs + output


class DeviceWrapper(CellWrapper):
    """Places a cell on a device.

    Args:
        cell: the inner cell.
        device: a device name or function, as for `tf.device`.
    """

    def __init__(self, cell: RNNCell, device: Any) -> None:
        super().__init__(cell)
        self._device = device

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step on the device."""
        with device_scope(self._device):
            return self._step_inside(inputs, state, scope)

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The state of zeros, on the device."""
        with device_scope(self._device):
            return initial_state_of(self._cell, batch_size, dtype)


class _Projecting(CellWrapper):
    """A cell with a dense layer on its inputs or outputs, with variables in the cell's scope."""

    def __init__(self, cell: RNNCell, size: int, activation: Any, reuse: Any) -> None:
        super().__init__(cell)
        self._reuse = reuse
        self._size = size
        self._activation = activation
        self._linear: Linear | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """See `RNNCell`."""
        made = super().__deepcopy__(memo)
        made._linear = None
        return made

    def _project(self, value: Any) -> Any:
        if self._linear is None:
            self._linear = Linear(value, self._size, True)
        projected = self._linear(value)
        return projected if self._activation is None else self._activation(projected)


class InputProjectionWrapper(_Projecting):
    """A cell with a dense layer on its inputs (`contrib.rnn.InputProjectionWrapper`).

    Args:
        cell: the inner cell.
        num_proj: the size of the projected input.
        activation: of the projected input; none by default.
        input_size: deprecated and ignored.
        reuse: see `RNNCell`.
    """

    def __init__(
        self,
        cell: RNNCell,
        num_proj: int,
        activation: Any = None,
        input_size: Any = None,
        reuse: Any = None,
    ) -> None:
        super().__init__(cell, num_proj, activation, reuse)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """One step on the projected input."""
        output, new = self._cell(self._project(inputs), state)
        return output, new


class OutputProjectionWrapper(_Projecting):
    """A cell with a dense layer on its outputs (`contrib.rnn.OutputProjectionWrapper`).

    Args:
        cell: the inner cell.
        output_size: the size of the output.
        activation: of the projected output; none by default.
        reuse: see `RNNCell`.

    Raises:
        ValueError: `output_size` is not positive.
    """

    def __init__(
        self, cell: RNNCell, output_size: int, activation: Any = None, reuse: Any = None
    ) -> None:
        if output_size < 1:
            raise ValueError(f"Parameter output_size must be > 0: {output_size}.")
        super().__init__(cell, output_size, activation, reuse)

    @property
    def output_size(self) -> int:
        """The size of the projection."""
        return self._size

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """One step with the projected output."""
        output, new = self._cell(inputs, state)
        return self._project(output), new


class EmbeddingWrapper(CellWrapper):
    """Embeds the ids that are a cell's inputs (`contrib.rnn.EmbeddingWrapper`).

    The table is the variable `embedding`, `(embedding_classes, embedding_size)`, with the dtype of
    the state.

    Args:
        cell: the inner cell.
        embedding_classes: the number of ids.
        embedding_size: the size of an id's vector.
        initializer: of the table; by default that of the variable scope, or uniform with
            variance 1.
        reuse: see `RNNCell`.

    Raises:
        ValueError: a size is not positive.
    """

    def __init__(
        self,
        cell: RNNCell,
        embedding_classes: int,
        embedding_size: int,
        initializer: Any = None,
        reuse: Any = None,
    ) -> None:
        super().__init__(cell)
        self._reuse = reuse
        if embedding_classes <= 0 or embedding_size <= 0:
            raise ValueError(
                "Both embedding_classes and embedding_size must be > 0: "
                f"{embedding_classes}, {embedding_size}."
            )
        self._shape = [embedding_classes, embedding_size]
        self._initializer = initializer

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """One step; `inputs` are int ids `(batch,)` or `(batch, 1)`."""
        first = state[0] if isinstance(state, tuple) else state
        ids = array.reshape(convert_to_tensor(inputs), [-1])
        output, new = self._cell(embedding_lookup(self.table(first.dtype), ids), state)
        return output, new

    def table(self, dtype: Any) -> Variable:
        """The embedding, created or shared in the current variable scope."""
        bound = math.sqrt(3)
        initializer = (
            self._initializer or get_variable_scope().initializer or RandomUniform(-bound, bound)
        )
        return get_variable("embedding", self._shape, dtype, initializer=initializer)
