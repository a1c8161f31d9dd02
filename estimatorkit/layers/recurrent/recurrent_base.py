"""The protocol of recurrent cells in Keras: `AbstractRNNCell` and `StackedRNNCells`.

A cell is any object with `state_size` and `call(inputs, states) -> (output, new states)`,
including those of `tf.nn.rnn_cell`. `recurrent.RNN` runs cells over time.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from estimatorkit.core import nest
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import value_error
from estimatorkit.core.shapes import TensorShape
from estimatorkit.layers.engine.base import Layer
from estimatorkit.layers.recurrent.rnn_cell_base import RNNCell
from estimatorkit.layers.recurrent.steps import Step, initial_state_of, zeros_of
from estimatorkit.ops.array import array


def check_cell(cell: Any) -> None:
    """Raises ValueError if `cell` is not a recurrent cell."""
    for attribute, meaning in (("call", "method"), ("state_size", "attribute")):
        if attribute not in dir(cell):
            raise value_error(
                f"The RNN cell should have a `{attribute}` {meaning}",
                expected="call(inputs, states) -> (output, new states), and `state_size`: an "
                "integer, or one for each state",
                received=repr(cell)[:200],
            )


def output_size_of(cell: Any) -> Any:
    """The size of a cell's output; that of its first state by default."""
    size = getattr(cell, "output_size", None)
    if size is not None:
        return size
    return as_list(cell.state_size)[0]


def as_list(states: Any) -> list[Any]:
    """Several states, or sizes of states, as a list; a single one in a list."""
    several = isinstance(states, (list, tuple)) and not isinstance(states, TensorShape)
    return list(states) if several else [states]


def step_of(cell: Any, training: Any, constants: Sequence[Any] | None = None) -> Step:
    """One step of any cell; `training`, a bool or tensor, is passed if the cell accepts it.

    Raises:
        ValueError: there are constants, but the cell does not accept any.
    """
    call = cell.call if isinstance(cell, Layer) or not callable(cell) else cell.__call__
    taken = inspect.signature(call).parameters
    options: dict[str, Any] = {"training": training} if "training" in taken else {}
    if constants:
        if "constants" not in taken:
            raise ValueError(f"RNN cell {cell} does not support constants. Received: {constants}")
        options["constants"] = list(constants)
    takes_one = isinstance(cell, RNNCell)
    called = cell if callable(cell) else cell.call

    def step(inputs: Any, states: Any) -> tuple[Any, Any]:
        alone = takes_one and isinstance(states, (list, tuple)) and len(states) == 1
        output, new = called(inputs, states[0] if alone else states, **options)
        return output, new if nest.is_nested(new) else [new]

    return step


def constants_of(cell: Any, constants: Any) -> Any:
    """The constants if the cell accepts any, else None."""
    return constants if "constants" in inspect.signature(cell.call).parameters else None


def call_arguments(
    layer: Any, inputs: Any, initial_state: Any, constants: Any
) -> tuple[Any, dict[str, Any]]:
    """Separates the inputs of a recurrent layer from initial states and constants.

    Args:
        layer: the layer, whose `_num_constants` is read, and set if there are constants.
        inputs: the inputs, or a list of the inputs, the states and the constants.
        initial_state, constants: as passed to the layer: a list, a single value, or None.

    Returns:
        The inputs, and the arguments `initial_state` and `constants`, lists, of those given.

    Raises:
        ValueError: they are passed both in a list of inputs and as arguments.
    """
    if isinstance(inputs, list):
        if initial_state is not None or constants is not None:
            raise ValueError(
                "Inputs in a list contain the initial state and the constants: do not pass them "
                "as arguments as well."
            )
        if count := layer._num_constants:
            constants, inputs = inputs[-count:], inputs[:-count]
        if len(inputs) > 1:
            initial_state = inputs[1:]
        inputs = inputs[0]
    values = {"initial_state": initial_state, "constants": constants}
    given = {
        name: value if isinstance(value, list) else as_list(value)
        for name, value in values.items()
        if value is not None
    }
    if "constants" in given:
        layer._num_constants = len(given["constants"])
    return inputs, given


class AbstractRNNCell(Layer):
    """Base class of recurrent cells (`tf.keras.layers.AbstractRNNCell`).

    Subclasses define `state_size`, `output_size` and `call(inputs, states)`, which returns the
    output and the new states. Any `Layer` with `call` and `state_size` can serve as a cell, too.
    """

    def call(self, inputs: Any, states: Any) -> tuple[Any, Any]:
        """One step: the output, and the new states in the structure of `states`."""
        raise NotImplementedError("Abstract method")

    @property
    def state_size(self) -> Any:
        """The size, or structure of sizes, of the state without the batch."""
        raise NotImplementedError("Abstract method")

    @property
    def output_size(self) -> Any:
        """The size of the output without the batch."""
        raise NotImplementedError("Abstract method")

    def get_initial_state(
        self, inputs: Any = None, batch_size: Any = None, dtype: Any = None
    ) -> Any:
        """Zeros for the batch size and dtype of `inputs`, or those given."""
        if inputs is not None:
            tensor = convert_to_tensor(inputs)
            batch_size, dtype = array.shape(tensor)[0], tensor.dtype
        return zeros_of(self.state_size, batch_size, dtype)


class StackedRNNCells(Layer):
    """A stack of cells as one cell (`tf.keras.layers.StackedRNNCells`).

    Args:
        cells: the cells, the lowest first.
        reverse_state_order: whether states are ordered from the last cell to the first, as in
            early versions of TensorFlow.
        kwargs: as for `Layer`.

    Raises:
        ValueError: an element is not a recurrent cell.
    """

    def __init__(
        self, cells: Sequence[Any], reverse_state_order: bool = False, **kwargs: Any
    ) -> None:
        for cell in cells:
            check_cell(cell)
        super().__init__(**kwargs)
        self.cells = list(cells)
        self.reverse_state_order = reverse_state_order

    def in_order(self, states: Sequence[Any]) -> tuple[Any, ...]:
        """Converts between the order of the cells and that of the states, both ways."""
        return tuple(states[::-1] if self.reverse_state_order else states)

    @property
    def state_size(self) -> tuple[Any, ...]:
        """The sizes of the cells' states."""
        return self.in_order([each.state_size for each in self.cells])

    @property
    def output_size(self) -> Any:
        """The output size of the last cell."""
        return output_size_of(self.cells[-1])

    def get_initial_state(
        self, inputs: Any = None, batch_size: Any = None, dtype: Any = None
    ) -> tuple[Any, ...]:
        """The initial states of the cells."""
        if inputs is not None:
            tensor = convert_to_tensor(inputs)
            batch_size, dtype = array.shape(tensor)[0], tensor.dtype
        return self.in_order([initial_state_of(each, batch_size, dtype) for each in self.cells])

    def build(self, input_shape: Any) -> None:
        """Builds the cells."""
        batch = nest.flatten(input_shape)[0].dims[0]
        for cell in self.cells:
            if isinstance(cell, Layer) and not cell.built:
                cell.build(input_shape)
            input_shape = nest.map_structure(
                lambda size: (
                    TensorShape([batch, *TensorShape(size).as_list()])
                    if isinstance(size, TensorShape)
                    else TensorShape([batch, size])
                ),
                output_size_of(cell),
            )
        super().build(input_shape)

    def call(
        self, inputs: Any, states: Any, constants: Any = None, training: Any = None
    ) -> tuple[Any, Any]:
        """One step of all cells."""
        given = nest.pack_sequence_as(self.state_size, nest.flatten(states))
        new = []
        for cell, state in zip(self.cells, self.in_order(given), strict=True):
            several = nest.is_nested(state)
            inputs, after = step_of(cell, training, constants_of(cell, constants))(
                inputs, state if several else [state]
            )
            new.append(after if several else nest.flatten(after)[0])
        return inputs, self.in_order(new)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        from estimatorkit.layers.registry import serialize

        config = {**super().get_config(), "cells": [serialize(each) for each in self.cells]}
        if self.reverse_state_order:
            config["reverse_state_order"] = True
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> StackedRNNCells:
        """Recreates the cells from `get_config`."""
        from estimatorkit.layers.registry import deserialize

        cells = [deserialize(each, custom_objects) for each in config["cells"]]
        return cls(**{**config, "cells": cells})


__all__ = [
    "AbstractRNNCell",
    "StackedRNNCells",
    "as_list",
    "call_arguments",
    "check_cell",
    "constants_of",
    "output_size_of",
    "step_of",
]
