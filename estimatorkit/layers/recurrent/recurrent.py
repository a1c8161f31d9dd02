"""`RNN`: runs a cell over time steps (`tf.keras.layers.RNN`) in one XLA loop.

`recurrent_kinds` has the layers with a fixed cell, such as `LSTM`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.core import nest
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import bool_, int32
from estimatorkit.core.errors import value_error
from estimatorkit.core.function_graph import trace
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.layers.engine.base import Layer
from estimatorkit.layers.engine.input_spec import InputSpec
from estimatorkit.layers.engine.sessions import set_values
from estimatorkit.layers.recurrent.recurrent_base import (
    StackedRNNCells,
    as_list,
    call_arguments,
    check_cell,
    constants_of,
    step_of,
)
from estimatorkit.layers.recurrent.recurrent_cells import (
    FusedCell,
    has_dropout,
    same_dropout_in_all_steps,
)
from estimatorkit.layers.recurrent.rnn_cell_base import RNNCell
from estimatorkit.layers.recurrent.steps import Step, choose, initial_state_of, run_steps, size_of
from estimatorkit.ops.array import filling, indexing, joining, rearrange
from estimatorkit.ops.control.decoded_steps import transposed
from estimatorkit.ops.math import elementwise, reduce


class RNN(Layer):
    """Runs a recurrent cell over time (`tf.keras.layers.RNN`).

    Inputs: `(batch, steps, ...)`, or a tuple or dict of such tensors; a list holds the inputs and
    the initial states. Masked steps keep the state and repeat the previous output.
    Outputs: `(batch, ...)` of the last step, or `(batch, steps, ...)`; with `return_state`, a list
    of the outputs and the last states.

    Args:
        cell: a layer with `call(inputs, states) -> (output, new states)` and `state_size`, or a
            list of cells to stack.
        return_sequences: whether to return the outputs of all steps.
        return_state: whether to return the last states as well.
        go_backwards: whether to start at the last step; outputs are in the order of computation.
        stateful: whether each batch starts from the last states of the previous one, which are
            kept in variables. `updates` assigns them; `fit` and `predict` run it.
        unroll: accepted for compatibility only. It has no effect, except that the number of
            steps must be known.
        time_major: whether inputs, masks and outputs are `(steps, batch, ...)`.
        zero_output_for_mask: whether masked steps output zeros.
        kwargs: as for `Layer`; `input_length` is the number of steps.

    Call arguments:
        inputs: see above.
        mask: bool `(batch, steps)`, False for masked steps.
        training: whether dropout is on.
        initial_state: list of the states before the first step; zeros by default.
        constants: list of tensors for the cell's argument `constants`.

    Raises:
        ValueError: `cell` is not a recurrent cell.
    """

    _untracked = Layer._untracked | {"_states"}

    def __init__(
        self,
        cell: Any,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        time_major: bool = False,
        zero_output_for_mask: bool = False,
        **kwargs: Any,
    ) -> None:
        if isinstance(cell, (list, tuple)):
            cell = StackedRNNCells(cell)
        check_cell(cell)
        if "input_shape" not in kwargs and ("input_dim" in kwargs or "input_length" in kwargs):
            kwargs["input_shape"] = (
                kwargs.pop("input_length", None),
                kwargs.pop("input_dim", None),
            )
        super().__init__(**kwargs)
        self.cell = cell
        self.return_sequences = return_sequences
        self.return_state = return_state
        self.go_backwards = go_backwards
        self.stateful = stateful
        self.unroll = unroll
        self.time_major = time_major
        self.zero_output_for_mask = zero_output_for_mask
        self.supports_masking = True
        self._states: list[Any] | None = None
        self._num_constants = 0

    def build(self, input_shape: Any) -> None:
        """Builds the cell and, in a stateful layer, creates the states."""
        batch_axis, step_axis = (1, 0) if self.time_major else (0, 1)

        def spec(shape: Any) -> InputSpec:
            dims = TensorShape(shape).as_list()
            dims[step_axis] = None
            dims[batch_axis] = dims[batch_axis] if self.stateful else None
            return InputSpec(shape=tuple(dims))

        def of_a_step(shape: Any) -> TensorShape:
            dims = TensorShape(shape).as_list()
            return TensorShape([dims[batch_axis], *dims[2:]])

        self.input_spec = nest.map_structure(spec, input_shape)
        if isinstance(self.cell, Layer):
            _use_policy_of(self, self.cell)
            if not self.cell.built:
                self._build_cell(nest.map_structure(of_a_step, input_shape))
        if self.stateful:
            first = TensorShape(nest.flatten(input_shape)[0]).as_list()
            self._make_states(first[batch_axis])
        super().build(input_shape)

    def _build_cell(self, shape: Any) -> None:
        self.cell.build(shape)

    def _own_weights(self) -> list[Any]:
        own = super()._own_weights()
        return [*own, *self.cell.variables] if isinstance(self.cell, RNNCell) else own

    # -- states

    @property
    def states(self) -> list[Any]:
        """The variables of a stateful layer, one for each state; None for each in other layers."""
        if self._states is None:
            return [None for _ in as_list(self.cell.state_size)]
        return self._states

    def _make_states(self, batch: int | None) -> None:
        if batch is None:
            raise value_error(
                "If a RNN is stateful, it needs to know its batch size",
                received=f"layer {self.name}, whose inputs have an unknown batch size",
                hint="give the first layer batch_input_shape=(batch, steps, n), or `Input` "
                "batch_shape=",
            )
        graph = get_default_graph()
        scope = graph.get_name_scope()
        values = as_list(initial_state_of(self.cell, batch, self.variable_dtype))

        def variable(value: Any) -> Variable:
            with graph.outermost.name_scope(None):
                return Variable(value, trainable=False, name=f"{scope}/Variable")

        self._states = nest.map_structure(variable, values)

    def reset_states(self, states: Any = None) -> None:
        """Sets the states from which the next batch starts.

        Args:
            states: an array `(batch, ...)` for each state; zeros by default.

        Raises:
            AttributeError: the layer is not stateful.
            ValueError: the layer is not built, or the states do not match it.
        """
        if not self.stateful:
            raise AttributeError("Layer must be stateful.")
        if self._states is None:
            raise value_error(
                f"Layer {self.name} has no states to reset yet",
                hint="call the layer, or build(batch_input_shape)",
            )
        variables = nest.flatten(self._states)
        given = [np.zeros(each.shape.as_list()) for each in variables]
        if states is not None:
            given = nest.flatten(states)
        if len(given) != len(variables):
            raise ValueError(
                f"Layer {self.name} expects {len(variables)} states, but it received {len(given)} "
                f"state values. States received: {states}"
            )
        for number, (value, variable) in enumerate(zip(given, variables, strict=True)):
            if tuple(np.shape(value)) != tuple(variable.shape.as_list()):
                raise ValueError(
                    f"State {number} is incompatible with layer {self.name}: expected shape="
                    f"{tuple(variable.shape.as_list())} but found shape={np.shape(value)}"
                )
        set_values(list(zip(variables, given, strict=True)))

    def get_initial_state(self, inputs: Any) -> list[Any]:
        """The states before the first step: those of the cell, or zeros."""
        first = nest.flatten(inputs)[0]
        batch = size_of(first, 1 if self.time_major else 0)
        return as_list(initial_state_of(self.cell, batch, first.dtype))

    def _first_states(self, inputs: Any, given: Any) -> list[Any]:
        """The states before the first step."""
        if self.stateful:
            recorded: list[Any] = nest.map_structure(
                lambda each: self._compute(each.read_value()), self.states
            )
            if given is None:
                return recorded
            used = elementwise.greater(
                elementwise.add_n(
                    [reduce.reduce_sum(elementwise.abs(each)) for each in nest.flatten(recorded)]
                ),
                0.0,
            )
            states: list[Any] = nest.map_structure(
                lambda mine, other: indexing.where(used, mine, self._compute(other)),
                recorded,
                nest.pack_sequence_as(recorded, nest.flatten(given)),
            )
            return states
        if given is None:
            return self.get_initial_state(inputs)
        expected = as_list(self.cell.state_size)
        if len(nest.flatten(given)) != len(nest.flatten(expected)):
            raise ValueError(
                f"Layer has {len(nest.flatten(expected))} states but was passed "
                f"{len(nest.flatten(given))} initial states. Received: initial_state={given}"
            )
        converted = [self._compute(each) for each in nest.flatten(given)]
        for tensor, size in zip(converted, nest.flatten(expected), strict=True):
            _check_state(self, tensor, size)
        return list(nest.pack_sequence_as(expected, converted))

    def _compute(self, value: Any) -> Tensor:
        """Casts a floating point state to the compute dtype."""
        tensor = convert_to_tensor(value)
        return elementwise.cast(tensor, self.compute_dtype) if tensor.dtype.is_floating else tensor

    # -- calling

    def __call__(
        self, inputs: Any, initial_state: Any = None, constants: Any = None, **kwargs: Any
    ) -> Any:
        """Calls the layer; see the class."""
        inputs, given = call_arguments(self, inputs, initial_state, constants)
        return super().__call__(inputs, **kwargs, **given)

    def call(
        self,
        inputs: Any,
        mask: Any = None,
        training: Any = None,
        initial_state: Any = None,
        constants: Any = None,
    ) -> Any:
        """The outputs; see the class."""
        first = nest.flatten(inputs)[0]
        steps = first.shape[0 if self.time_major else 1]
        if self.unroll and steps is None:
            raise value_error(
                "Cannot unroll a RNN if the time dimension is undefined",
                received=first,
                made_at=first.op.source,
                hint="give the inputs a shape, or leave out unroll=True",
            )
        states = self._first_states(inputs, initial_state)
        columns = nest.map_structure(self._turned, inputs)
        if constants is not None:
            constants = [self._compute(each) for each in constants]
        if mask is not None:
            mask = nest.flatten(mask)[0]
            mask = self._turned(mask if mask.dtype is bool_ else elementwise.cast(mask, bool_))
        at_rest = initial_state is None and not self.stateful
        output, states = self._through_cells(columns, states, mask, training, constants, at_rest)
        if self.stateful:
            pairs = zip(nest.flatten(self.states), nest.flatten(states), strict=True)
            self.add_update([mine.assign(elementwise.cast(new, mine.dtype)) for mine, new in pairs])
        if self.return_state:
            return [*(output if isinstance(output, list) else [output]), *states]
        return output

    def _turned(self, tensor: Tensor) -> Tensor:
        """Swaps batch and steps, unless the layer is time major."""
        return tensor if self.time_major else transposed(tensor)

    def _through_cells(
        self,
        columns: Any,
        states: list[Any],
        mask: Tensor | None,
        training: Any,
        constants: Any,
        at_rest: bool,
    ) -> tuple[Any, list[Any]]:
        """The layer's output or outputs, and the last states.

        Stacked cells run one after the other over all steps, so that each multiplies its inputs
        in a single product.
        """
        if not isinstance(self.cell, StackedRNNCells):
            return self._loop(self.cell, columns, states, mask, training, constants, True, at_rest)
        new, last = [], self.cell.cells[-1]
        for cell, state in zip(self.cell.cells, self.cell.in_order(states), strict=True):
            several = nest.is_nested(state)
            columns, after = self._loop(
                cell,
                columns,
                list(state) if several else [state],
                mask,
                training,
                constants_of(cell, constants),
                cell is last,
                at_rest,
            )
            new.append(after if several else after[0])
        return columns, list(self.cell.in_order(new))

    def _loop(
        self,
        cell: Any,
        columns: Any,
        states: list[Any],
        mask: Tensor | None,
        training: Any,
        constants: Any,
        shown: bool,
        at_rest: bool,
    ) -> tuple[Any, list[Any]]:
        """The output and the last states of one cell over all steps.

        Args:
            columns: the inputs, `(steps, batch, ...)`, or a structure of such.
            mask: bool `(steps, batch)`, or None.
            shown: whether the output is that of the layer; else the outputs of all steps,
                `(steps, batch, ...)` and unmasked, are the inputs of the next cell.
            at_rest: whether the states are the cell's own initial states.
        """
        every = self.return_sequences or not shown
        if isinstance(cell, FusedCell) and cell.is_fused and not constants:
            outputs, new = cell.run(columns, states, mask, self.go_backwards, training)
            if shown and mask is not None:
                return self._masked(outputs, new, mask, at_rest), new
            return (self._in_order(outputs) if shown else outputs) if every else new[0], new
        step = step_of(cell, training, constants)
        if training is False or not has_dropout(cell):
            return self._stepwise(step, columns, states, mask, shown)
        with same_dropout_in_all_steps():
            # Draws the dropout masks before the loop; the rest of this step is never run.
            step(nest.map_structure(lambda each: each[0], columns), states)
            return self._stepwise(step, columns, states, mask, shown)

    def _stepwise(
        self, step: Step, columns: Any, states: list[Any], mask: Tensor | None, shown: bool
    ) -> tuple[Any, list[Any]]:
        """`_loop` for any cell, one step at a time."""
        every = self.return_sequences or not shown
        # The loop carries the last output if it is returned, or repeated by masked steps.
        carried = not every or (shown and mask is not None and not self.zero_output_for_mask)
        results = run_steps(
            step,
            columns,
            states,
            mask,
            before=_no_output(step, columns, states) if carried else None,
            every=every,
            zeros=shown and self.zero_output_for_mask,
            reverse=self.go_backwards,
        )
        outputs = results.outputs if every else results.last
        if every and shown:
            outputs = nest.map_structure(self._in_order, outputs)
        return outputs, list(results.states)

    def _masked(self, outputs: Tensor, new: list[Tensor], mask: Tensor, at_rest: bool) -> Tensor:
        """The layer's output with masked steps, for a cell whose output is its first state.

        A masked step repeats the previous output, which is the state; it outputs zeros if
        `zero_output_for_mask` is set or no earlier step was unmasked.
        """
        shown = outputs if self.return_sequences else new[0]
        if self.zero_output_for_mask:
            going = mask if self.return_sequences else mask[0 if self.go_backwards else -1]
        elif at_rest:
            return self._in_order(shown) if self.return_sequences else shown
        elif self.return_sequences:
            counted = reduce.cumsum(elementwise.cast(mask, int32), 0, reverse=self.go_backwards)
            going = elementwise.greater(counted, 0)
        else:
            going = reduce.reduce_any(mask, 0)
        shown = choose(going, shown, filling.zeros_like(shown))
        return self._in_order(shown) if self.return_sequences else shown

    def _in_order(self, outputs: Tensor) -> Tensor:
        """Outputs `(steps, batch, ...)` at their steps' positions, as the layer returns them."""
        ordered = rearrange.reverse(outputs, [0]) if self.go_backwards else outputs
        return self._turned(ordered)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the outputs with `return_sequences`, else None; None for each state."""
        first = None if mask is None else nest.flatten(mask)[0]
        kept = first if self.return_sequences else None
        return [kept, *(None for _ in self.states)] if self.return_state else kept

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        from estimatorkit.layers.registry import serialize

        return {**self._loop_config(), "cell": serialize(self.cell)}

    def _loop_config(self) -> dict[str, Any]:
        config = {**super().get_config(), **{name: getattr(self, name) for name in _LOOP}}
        if self._num_constants:
            config["num_constants"] = self._num_constants
        if self.zero_output_for_mask:
            config["zero_output_for_mask"] = True
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> RNN:
        """Recreates the layer from `get_config`."""
        from estimatorkit.layers.registry import deserialize

        arguments = dict(config)
        constants = arguments.pop("num_constants", 0)
        if "cell" in arguments:
            arguments["cell"] = deserialize(arguments["cell"], custom_objects)
        layer = cls(**arguments)
        layer._num_constants = constants
        return layer


_LOOP = ("return_sequences", "return_state", "go_backwards", "stateful", "unroll", "time_major")


def _use_policy_of(layer: Layer, cell: Layer) -> None:
    """Gives cells without a dtype the policy of their layer."""
    for each in cell.submodules_and_self():
        if not each.built and not each._dtype_given:
            each._policy, each._dtype_given = layer._policy, True


def _check_state(layer: Layer, tensor: Tensor, size: Any) -> None:
    dims = size.as_list() if isinstance(size, TensorShape) else [size]
    if not tensor.shape.is_compatible_with([None, *dims]):
        raise value_error(
            "An `initial_state` was passed that is not compatible with `cell.state_size`",
            expected=f"(batch, {', '.join(map(str, dims))}) for layer {layer.name}",
            received=tensor,
            made_at=tensor.op.source,
        )


def _no_output(step: Step, columns: Any, states: list[Any]) -> Any:
    """Zeros like the output of a step, which is traced and not run."""
    rows = nest.map_structure(lambda each: each[0], columns)
    example = [*nest.flatten(rows), *nest.flatten(states)]
    body = trace(
        step,
        example,
        lambda tensors: nest.pack_sequence_as([rows, states], list(tensors)),
        lambda returned: returned[0],
    )
    known = [each.shape[0] for each in example if each.shape[0] is not None]
    batch = known[0] if known else size_of(nest.flatten(columns)[0], 1)

    def zeros(output: Tensor) -> Tensor:
        dims = output.shape.as_list()[1:]
        made = filling.zeros(joining.stack([batch, *dims]), output.dtype)
        made.set_shape([batch if isinstance(batch, int) else None, *dims])
        return made

    return nest.map_structure(zeros, body.structure)


__all__ = ["RNN"]
