"""What any recurrent cell is: `AbstractRNNCell`, `StackedRNNCells`, and what `RNN` asks of cells.

A cell is a layer, or another object, with `state_size` and `call(inputs, states) -> (output, new
states)`; the cells of `tf.nn.rnn_cell` are some, too. `recurrent.RNN` runs them over time.
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
    """Raises ValueError if something is no recurrent cell."""
    for attribute, meaning in (("call", "method"), ("state_size", "attribute")):
        if attribute not in dir(cell):
            raise value_error(
                f"The RNN cell should have a `{attribute}` {meaning}",
                expected="call(inputs, states) -> (output, new states), and `state_size`: an "
                "integer, or one for each state",
                received=repr(cell)[:200],
            )


def output_size_of(cell: Any) -> Any:
    """The size of a cell's output: by default that of its first state."""
    size = getattr(cell, "output_size", None)
    if size is not None:
        return size
    return cell.state_size[0] if _is_several(cell.state_size) else cell.state_size


def _is_several(state_size: Any) -> bool:
    return isinstance(state_size, (list, tuple)) and not isinstance(state_size, TensorShape)


def step_of(cell: Any, training: Any, constants: Sequence[Any] | None = None) -> Step:
    """One step of any cell, with the arguments that it takes.

    Args:
        cell: the cell.
        training: whether dropout is on: a bool or a tensor.
        constants: further arguments that are the same in all steps.

    Raises:
        ValueError: there are constants, and the cell takes none.
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
    """The constants where a cell of a stack takes some, else None."""
    return constants if "constants" in inspect.signature(cell.call).parameters else None


class AbstractRNNCell(Layer):
    """What a cell must have (`tf.keras.layers.AbstractRNNCell`).

    Subclasses define `state_size`, `output_size` and `call(inputs, states)`, which gives the output
    and the new states. A `Layer` with `call` and `state_size` is a cell, too.
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
        """Zeros for inputs `(batch, ...)`, or for a batch size and a dtype."""
        if inputs is not None:
            tensor = convert_to_tensor(inputs)
            batch_size, dtype = array.shape(tensor)[0], tensor.dtype
        return zeros_of(self.state_size, batch_size, dtype)


class StackedRNNCells(Layer):
    """Cells on top of each other as one (`tf.keras.layers.StackedRNNCells`).

    Args:
        cells: the cells, the lowest first.
        reverse_state_order: whether the states are listed from the last cell to the first, as
            TensorFlow once did.
        kwargs: as for `Layer`.

    Raises:
        ValueError: one of them is no cell.
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
        """States in the cells' order, or cells' states in the order in which they are listed."""
        return tuple(states[::-1] if self.reverse_state_order else states)

    @property
    def state_size(self) -> tuple[Any, ...]:
        """The sizes of the cells' states."""
        return self.in_order([each.state_size for each in self.cells])

    @property
    def output_size(self) -> Any:
        """That of the last cell."""
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
        """The cells that `get_config` described."""
        from estimatorkit.layers.registry import deserialize

        cells = [deserialize(each, custom_objects) for each in config["cells"]]
        return cls(**{**config, "cells": cells})


__all__ = [
    *("AbstractRNNCell", "StackedRNNCells", "check_cell", "constants_of", "output_size_of"),
    "step_of",
]
