"""Recurrent networks over time: `dynamic_rnn`, `static_rnn`, their bidirectional forms, `raw_rnn`.

`dynamic_rnn` is one XLA loop (a `Scan`) for any sequence length; `static_rnn` takes and returns
lists, and unrolls if steps may differ. With `sequence_length`, outputs after the end of an example
are zero and its state no longer changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.compat.layers.recurrent.rnn_cell import RNNCell, assert_like_cell
from estimatorkit.compat.layers.recurrent.rnn_cell_variants import SAME_EACH_STEP
from estimatorkit.core import builtin_ops, nest
from estimatorkit.core.conversion import constant, convert_to_tensor
from estimatorkit.core.dtypes import int32
from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.recurrent.steps import (
    choose,
    initial_state_of,
    reverse_steps,
    size_of,
    zeros_of,
)
from estimatorkit.ops.array import filling, joining
from estimatorkit.ops.control.control_flow import while_loop
from estimatorkit.ops.control.decoded_steps import transposed
from estimatorkit.ops.control.higher_order import scan_op
from estimatorkit.ops.control.tensor_array import TensorArray
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.variables.variable_scope import get_variable_scope, variable_scope


def dynamic_rnn(
    cell: RNNCell,
    inputs: Any,
    sequence_length: Any = None,
    initial_state: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, Any]:
    """Runs a cell over sequences in one loop.

    Args:
        cell: the cell, of `nn.rnn_cell` or `keras.layers`.
        inputs: `(batch, time, ...)`, or a nested structure of such.
        sequence_length: int `(batch,)`: the number of steps of each example; all by default.
        initial_state: the state before the first step; zeros of `dtype` by default.
        dtype: of the initial state; required without `initial_state`.
        parallel_iterations, swap_memory: accepted for compatibility only and without effect.
        time_major: whether inputs and outputs are `(time, batch, ...)`.
        scope: the variable scope; 'rnn' by default.

    Returns:
        The outputs, `(batch, time, ...)`, and the last state.

    Raises:
        ValueError: neither `initial_state` nor `dtype` is given, or shapes do not match.
    """
    assert_like_cell(cell)
    with variable_scope(scope or "rnn"):
        columns = nest.map_structure(
            lambda value: _time_major(convert_to_tensor(value), time_major), inputs
        )
        first = nest.flatten(columns)[0]
        batch, steps = size_of(first, 1), size_of(first, 0)
        state = _initial_state(cell, initial_state, dtype, batch)
        lengths = _lengths(sequence_length, batch)
        last, outputs = loop_over_time(cell, columns, state, steps, lengths)
        return nest.map_structure(lambda value: _time_major(value, time_major), outputs), last


def loop_over_time(
    cell: Any, columns: Any, state: Any, steps: Any, lengths: Tensor | None
) -> tuple[Any, Any]:
    """The last state, and the outputs `(time, batch, ...)`, of a cell run in one loop.

    `columns` are the inputs, `(time, batch, ...)`.
    """

    def one(carry: Any, element: Any) -> tuple[Any, Any]:
        number, values = element
        output, new = _step(cell, values, carry, number, lengths)
        return new, output

    return scan_op(one, state, (filling.range_(0, steps), columns))


def _step(
    cell: Any, values: Any, state: Any, number: Any, lengths: Tensor | None
) -> tuple[Any, Any]:
    """Output and state after a step; zeros and the previous state for examples that ended."""
    output, new = cell(values, state)
    if lengths is None:
        return output, new
    going = elementwise.less(number, lengths)
    zeros = nest.map_structure(filling.zeros_like, output)
    return choose(going, output, zeros), choose(going, new, state)


def _time_major(value: Tensor, already: bool) -> Tensor:
    """Swaps batch and time, unless the value is time major `already`."""
    if already:
        return value
    rank = value.shape.rank
    if rank is None or rank < 2:
        raise value_error(
            f"Input tensor should have rank >= 2. Received input={value} of rank {rank}",
            expected="the dimensions batch and time",
            made_at=value.op.source,
        )
    return transposed(value)


def _initial_state(cell: RNNCell, given: Any, dtype: Any, batch: Any) -> Any:
    if given is not None:
        return given
    if dtype is None:
        raise ValueError("If no initial_state is provided, argument `dtype` must be specified")
    return initial_state_of(cell, batch, dtype)


def _integers(given: Any) -> Any:
    """Lengths of any numeric dtype as int32; None as None."""
    if given is None:
        return None
    return elementwise.cast(convert_to_tensor(given, name="sequence_length"), int32)


def _lengths(given: Any, batch: Any) -> Tensor | None:
    """Checked lengths, one for each example; `batch` is an int or, if unknown, a tensor."""
    if given is None:
        return None
    lengths: Tensor = _integers(given)
    if lengths.shape.rank not in (1, None):
        raise value_error(
            "Argument sequence_length must be a vector of length batch_size. "
            f"Received sequence_length={lengths} of shape: {lengths.shape}",
            made_at=lengths.op.source,
        )
    if isinstance(batch, int) and not lengths.shape.is_compatible_with([batch]):
        raise value_error(
            "sequence_length does not match the batch size",
            expected=f"({batch},)",
            received=lengths,
            made_at=lengths.op.source,
        )
    return lengths


def static_rnn(
    cell: RNNCell,
    inputs: Sequence[Any],
    initial_state: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Runs a cell over a list of inputs.

    Cells of this package run in one loop, which compiles faster and runs as fast as unrolled steps
    (25 steps of two LSTMs and their gradients compile in 2 s instead of 15 s). Other cells, whose
    steps may differ, are unrolled.

    Args:
        cell: the cell.
        inputs: a list with an element for each step: `(batch, ...)`, or a nested structure of such.
        initial_state, dtype, sequence_length: see `dynamic_rnn`.
        scope: the variable scope; 'rnn' by default.

    Returns:
        The list of outputs, and the last state.

    Raises:
        TypeError: `inputs` is not a list.
        ValueError: `inputs` is empty, neither `initial_state` nor `dtype` is given, or
            `sequence_length` does not have shape `(batch,)`.
    """
    assert_like_cell(cell)
    if not isinstance(inputs, (list, tuple)):
        raise TypeError(f"Argument `inputs` must be a sequence. Received: {inputs}")
    if not inputs:
        raise ValueError("Argument `inputs` must not be empty.")
    with variable_scope(scope or "rnn"):
        steps = [nest.map_structure(convert_to_tensor, each) for each in inputs]
        first = nest.flatten(steps[0])[0]
        batch = size_of(first, 0)
        state = _initial_state(cell, initial_state, dtype, batch)
        lengths = _lengths(sequence_length, batch)
        if is_same_each_step(cell) and are_alike(steps):
            columns = nest.map_structure(lambda *values: joining.stack(values), *steps)
            last, outputs = loop_over_time(cell, columns, state, len(steps), lengths)
            rows = [joining.unstack(each, len(steps)) for each in nest.flatten(outputs)]
            return [nest.pack_sequence_as(outputs, each) for each in zip(*rows, strict=True)], last
        results = []
        for number, values in enumerate(steps):
            if number:
                get_variable_scope().reuse_variables()
            output, state = _step(cell, values, state, constant(number, int32), lengths)
            results.append(output)
        return results, state


def is_same_each_step(cell: RNNCell) -> bool:
    """Whether all calls of a cell create the same operations, without device scopes."""
    inner = getattr(cell, "_cells", None) or [getattr(cell, "_cell", None)]
    return type(cell) in SAME_EACH_STEP and all(
        each is None or is_same_each_step(each) for each in inner
    )


def are_alike(steps: Sequence[Any]) -> bool:
    """Whether there are several steps, all of the same known shape."""
    shapes = [[value.shape.dims for value in nest.flatten(step)] for step in steps]
    return len(steps) > 1 and None not in shapes[0] and all(each == shapes[0] for each in shapes)


def bidirectional_dynamic_rnn(
    cell_fw: RNNCell,
    cell_bw: RNNCell,
    inputs: Any,
    sequence_length: Any = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Bidirectional `dynamic_rnn`, with a cell for each direction.

    Args:
        cell_fw, cell_bw: the cells.
        inputs, sequence_length, dtype, time_major: see `dynamic_rnn`.
        initial_state_fw, initial_state_bw: see `initial_state` there.
        parallel_iterations, swap_memory: accepted for compatibility only and without effect.
        scope: the variable scope; 'bidirectional_rnn' by default.

    Returns:
        `(outputs, states)`, each a pair (forward, backward): the outputs, both in the order of the
        inputs, and the last states.
    """
    time_axis, batch_axis = (0, 1) if time_major else (1, 0)

    def reversed_(value: Any) -> Any:
        return nest.map_structure(
            lambda each: reverse_steps(each, sequence_length, time_axis, batch_axis), value
        )

    sequence_length = _integers(sequence_length)
    assert_like_cell(cell_fw, "cell_fw")
    assert_like_cell(cell_bw, "cell_bw")
    rest = {"dtype": dtype, "time_major": time_major, "sequence_length": sequence_length}
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as forward:
            out_forward, last_forward = dynamic_rnn(
                cell_fw, inputs, initial_state=initial_state_fw, scope=forward, **rest
            )
        with variable_scope("bw") as backward:
            out_backward, last_backward = dynamic_rnn(
                cell_bw,
                reversed_(nest.map_structure(convert_to_tensor, inputs)),
                initial_state=initial_state_bw,
                scope=backward,
                **rest,
            )
        return (out_forward, reversed_(out_backward)), (last_forward, last_backward)


def static_bidirectional_rnn(
    cell_fw: RNNCell,
    cell_bw: RNNCell,
    inputs: Sequence[Any],
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any, Any]:
    """Bidirectional `static_rnn`, with a cell for each direction.

    Args:
        cell_fw, cell_bw: the cells.
        inputs: a list; see `static_rnn`.
        initial_state_fw, initial_state_bw, dtype, sequence_length: see `static_rnn`.
        scope: the variable scope; 'bidirectional_rnn' by default.

    Returns:
        The outputs (forward and backward concatenated along dimension 1), the last forward state
        and the last backward state.
    """

    def reversed_(steps: Sequence[Any]) -> list[Any]:
        if sequence_length is None:
            return list(reversed(steps))
        return joining.unstack(reverse_steps(joining.stack(list(steps)), sequence_length))

    sequence_length = _integers(sequence_length)
    assert_like_cell(cell_fw, "cell_fw")
    assert_like_cell(cell_bw, "cell_bw")
    rest = {"dtype": dtype, "sequence_length": sequence_length}
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as forward:
            out_forward, last_forward = static_rnn(
                cell_fw, inputs, initial_state_fw, scope=forward, **rest
            )
        with variable_scope("bw") as backward:
            out_backward, last_backward = static_rnn(
                cell_bw, reversed_(inputs), initial_state_bw, scope=backward, **rest
            )
        pairs = zip(out_forward, reversed_(out_backward), strict=True)
        return [joining.concat(list(pair), 1) for pair in pairs], last_forward, last_backward


def raw_rnn(
    cell: RNNCell,
    loop_fn: Callable[[Tensor, Any, Any, Any], tuple[Any, Any, Any, Any, Any]],
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """Runs a cell in a loop whose inputs, states and outputs `loop_fn` controls.

    The host drives the loop with one call per step, since the outputs grow. Prefer `dynamic_rnn`,
    which is faster.

    Args:
        cell: the cell.
        loop_fn: `(time, output, state, loop state) -> (finished, next input, next state, emitted
            output, next loop state)` with an int32 time and `finished` bool `(batch,)`. At time 0,
            output, state and loop state are None; it then returns the first input and state, the
            first loop state or None, and as the emitted output None or an example element (without
            the batch dimension) for the shapes and dtypes to emit.
        parallel_iterations, swap_memory: accepted for compatibility only and without effect.
        scope: the variable scope; 'rnn' by default.

    Returns:
        A `TensorArray` of the emitted outputs (zeros after the end of an example) or a structure of
        them, the last state, and the last loop state.

    Raises:
        TypeError: `cell` is not a recurrent cell, or `loop_fn` is not callable.
    """
    assert_like_cell(cell)
    if not callable(loop_fn):
        raise TypeError(f"Argument `loop_fn` must be a callable. Received: {loop_fn}.")
    with variable_scope(scope or "rnn"):
        finished, values, state, shapes, carried = loop_fn(constant(0, int32), None, None, None)
        values = nest.map_structure(convert_to_tensor, values)
        state = nest.map_structure(convert_to_tensor, state)
        batch = size_of(nest.flatten(values)[0], 0)
        zeros = _nothing_emitted(cell, shapes, batch, nest.flatten(state)[0].dtype)
        arrays = nest.map_structure(
            lambda each: TensorArray(each.dtype, 0, dynamic_size=True, element_shape=each.shape),
            zeros,
        )

        def going_on(time: Any, finished: Any, *rest: Any) -> Any:
            return elementwise.logical_not(reduce.reduce_all(finished))

        def step(
            time: Any, finished: Any, values: Any, state: Any, arrays: Any, carried: Any
        ) -> tuple[Any, ...]:
            output, new = cell(values, state)
            given = None if nothing_carried else carried
            ends, following, after, emitted, kept = loop_fn(time + 1, output, new, given)
            going = elementwise.logical_not(finished)
            emitted = choose(going, nest.map_structure(convert_to_tensor, emitted), zeros)
            arrays = nest.map_structure(lambda one, value: one.write(time, value), arrays, emitted)
            return (
                time + 1,
                elementwise.logical_or(finished, ends),
                following,
                choose(going, nest.map_structure(convert_to_tensor, after), state),
                arrays,
                carried if nothing_carried else kept,
            )

        nothing_carried = carried is None
        start = (
            constant(0, int32),
            convert_to_tensor(finished),
            values,
            state,
            arrays,
            constant(0, int32) if nothing_carried else carried,
        )
        _, _, _, last, arrays, carried = while_loop(going_on, step, start)
        return arrays, last, None if nothing_carried else carried


def _nothing_emitted(cell: RNNCell, given: Any, batch: Any, dtype: Any) -> Any:
    """Zeros `(batch, ...)` like the elements `given`, or like the cell's output if None."""
    if given is None:
        return zeros_of(cell.output_size, batch, dtype)

    def zeros(element: Any) -> Any:
        tensor = convert_to_tensor(element)
        return zeros_of(tensor.shape, batch, tensor.dtype)

    return nest.map_structure(zeros, given)


def static_state_saving_rnn(
    cell: RNNCell,
    inputs: Sequence[Any],
    state_saver: Any,
    state_name: Any,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """`static_rnn` that starts from a saved state and saves its last one.

    Args:
        cell: the cell.
        inputs: a list; see `static_rnn`.
        state_saver: an object with the methods `state(name)`, which returns a saved state, and
            `save_state(name, value)`, which returns an operation that saves one. The last output
            depends on that operation.
        state_name: the name of the state, or a nested structure of names if the state is nested.
        sequence_length: see `static_rnn`.
        scope: the variable scope; 'rnn' by default.
    """
    names = state_name if nest.is_nested(state_name) else [state_name]
    states = [state_saver.state(name) for name in nest.flatten(names)]
    initial = nest.pack_sequence_as(cell.state_size, states)
    outputs, state = static_rnn(cell, inputs, initial, sequence_length=sequence_length, scope=scope)
    saved = [
        state_saver.save_state(name, part)
        for name, part in zip(nest.flatten(names), nest.flatten(state), strict=True)
    ]
    from estimatorkit.core.graph import control_dependencies

    with control_dependencies(saved):
        outputs[-1] = builtin_ops.identity(outputs[-1])
    return outputs, state
