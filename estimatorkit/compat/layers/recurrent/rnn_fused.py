"""Recurrent layers of `contrib.rnn`: fused LSTMs, cell adaptors, stacked bidirectional RNNs.

Only the interface is "fused": XLA fuses the operations of any cell. Inputs are time major.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from estimatorkit.compat.layers.recurrent.rnn import (
    bidirectional_dynamic_rnn,
    dynamic_rnn,
    loop_over_time,
    static_bidirectional_rnn,
    static_rnn,
)
from estimatorkit.compat.layers.recurrent.rnn_cell import LSTMStateTuple, RNNCell
from estimatorkit.compat.layers.recurrent.rnn_cell_block import LSTMBlockCell
from estimatorkit.core import nest
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import int32
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.recurrent.steps import reverse_steps, size_of
from estimatorkit.lazy import listing
from estimatorkit.ops.array import joining
from estimatorkit.ops.control.decoded_steps import transposed
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.variables.variable_scope import variable_scope


class FusedRNNCell:
    """Base class of recurrent layers, called with `(time, batch, n)` or a list of steps."""

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple[Any, Any]:
        """Runs the layer.

        Args:
            inputs: `(time, batch, n)`, or a list of `(batch, n)`.
            initial_state: the state before the first step; zeros of `dtype` by default.
            dtype: of the initial state; required without `initial_state`.
            sequence_length: int `(batch,)`; all steps by default.
            scope: the variable scope.

        Returns:
            The outputs, in the same form as the inputs, and the last state.
        """
        raise NotImplementedError(f"{type(self).__name__} must define __call__")


class FusedRNNCellAdaptor(FusedRNNCell):
    """A cell as a `FusedRNNCell`.

    Args:
        cell: the cell.
        use_dynamic_rnn: whether to use `dynamic_rnn` rather than `static_rnn`.
    """

    def __init__(self, cell: RNNCell, use_dynamic_rnn: bool = False) -> None:
        self._cell = cell
        self._use_dynamic_rnn = use_dynamic_rnn

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple[Any, Any]:
        """See `FusedRNNCell`."""
        is_list = isinstance(inputs, list)
        rest = {"initial_state": initial_state, "dtype": dtype, "scope": scope}
        rest["sequence_length"] = sequence_length
        if self._use_dynamic_rnn:
            values = joining.stack(inputs) if is_list else inputs
            outputs, state = dynamic_rnn(self._cell, values, time_major=True, **rest)
            return (joining.unstack(outputs) if is_list else outputs), state
        steps = inputs if is_list else joining.unstack(inputs)
        found, state = static_rnn(self._cell, steps, **rest)
        return (found if is_list else joining.stack(found)), state


class TimeReversedFusedRNN(FusedRNNCell):
    """A `FusedRNNCell` run backwards; outputs are in the order of the inputs."""

    def __init__(self, cell: FusedRNNCell) -> None:
        self._cell = cell

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple[Any, Any]:
        """See `FusedRNNCell`."""
        outputs, state = self._cell(
            _reversed(inputs, sequence_length),
            initial_state=initial_state,
            dtype=dtype,
            sequence_length=sequence_length,
            scope=scope,
        )
        return _reversed(outputs, sequence_length), state


def _reversed(values: Any, lengths: Any) -> Any:
    return list(reversed(values)) if isinstance(values, list) else reverse_steps(values, lengths)


class LSTMBlockWrapper(FusedRNNCell):
    """Base class of fused LSTMs."""

    @property
    def num_units(self) -> int:
        """The number of units."""
        raise NotImplementedError(f"{type(self).__name__} must define num_units")


class LSTMBlockFusedCell(LSTMBlockWrapper):
    """An LSTM over time.

    Args:
        num_units, forget_bias, cell_clip, use_peephole, reuse, dtype: see `LSTMBlockCell`.
        name: the variable scope.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        reuse: bool | None = None,
        dtype: Any = None,
        name: str | None = "lstm_fused_cell",
    ) -> None:
        self._cell = LSTMBlockCell(
            num_units, forget_bias, cell_clip, use_peephole, dtype, reuse, name
        )

    @property
    def num_units(self) -> int:
        """The number of units."""
        return self._cell.output_size

    @property
    def variables(self) -> list[Any]:
        """The variables; none before the first call."""
        return self._cell.variables

    weights = variables

    @property
    def trainable_variables(self) -> list[Any]:
        """The trainable variables."""
        return self._cell.trainable_variables

    trainable_weights = trainable_variables

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple[Any, Any]:
        """See `FusedRNNCell`.

        Raises:
            ValueError: neither `initial_state` nor `dtype` is given, or the state is not a pair.
        """
        is_list = isinstance(inputs, list)
        columns = joining.stack(inputs) if is_list else convert_to_tensor(inputs)
        if columns.shape.with_rank(3)[2] is None:
            raise ValueError(f"Expecting inputs_shape[2] to be set: {columns.shape}")
        if initial_state is None:
            if dtype is None:
                raise ValueError("Either initial_state or dtype needs to be specified")
            initial_state = self._cell.zero_state(size_of(columns, 1), dtype)
        if len(initial_state) != 2:
            raise ValueError("Expecting initial_state to be a tuple with length 2 or None")
        lengths = None
        if sequence_length is not None:
            lengths = elementwise.cast(convert_to_tensor(sequence_length), int32)
        state, outputs = loop_over_time(
            functools.partial(self._cell, scope=scope),
            columns,
            LSTMStateTuple(*initial_state),
            size_of(columns, 0),
            lengths,
        )
        return (joining.unstack(outputs) if is_list else outputs), state


def _check_stack(
    forward: Any, backward: Any, states_forward: Any, states_backward: Any
) -> tuple[Any, Any]:
    """The states, None for each by default; raises ValueError if the lists do not match."""
    for what, cells in (("fw", forward), ("bw", backward)):
        if not cells:
            raise ValueError(f"Must specify at least one {what} cell for BidirectionalRNN.")
    for what, cells in (("fw", forward), ("bw", backward)):
        if not isinstance(cells, list):
            raise ValueError(f"cells_{what} must be a list of RNNCells (one per layer).")
    if len(forward) != len(backward):
        raise ValueError("Forward and Backward cells must have the same depth.")
    found = []
    for what, states in (("fw", states_forward), ("bw", states_backward)):
        if states is not None and (not isinstance(states, list) or len(states) != len(forward)):
            raise ValueError(
                f"initial_states_{what} must be a list of state tensors (one per layer)."
            )
        found.append(states or [None] * len(forward))
    return found[0], found[1]


def stack_bidirectional_rnn(
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: Sequence[Any],
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], tuple[Any, ...], tuple[Any, ...]]:
    """Stacked `static_bidirectional_rnn` layers; both outputs of each are inputs of the next.

    Args:
        cells_fw, cells_bw: lists of cells, the lowest layer first.
        inputs, dtype, sequence_length: see `static_bidirectional_rnn`.
        initial_states_fw, initial_states_bw: lists of states; zeros by default.
        scope: the variable scope; 'stack_bidirectional_rnn' by default.

    Returns:
        The list of outputs, and the last forward and backward states of all layers.

    Raises:
        ValueError: the lists do not match.
    """
    starts = _check_stack(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    forward, backward = [], []
    values: Any = inputs
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for number, layer in enumerate(zip(cells_fw, cells_bw, *starts, strict=True)):
            with variable_scope(f"cell_{number}") as inner:
                values, one, other = static_bidirectional_rnn(
                    layer[0], layer[1], values, *layer[2:], dtype, sequence_length, inner
                )
            forward.append(one)
            backward.append(other)
    return values, tuple(forward), tuple(backward)


def stack_bidirectional_dynamic_rnn(
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: Any,
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: Any = None,
    swap_memory: bool = False,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Stacked `bidirectional_dynamic_rnn` layers; both outputs of each are inputs of the next.

    Args:
        cells_fw, cells_bw, initial_states_fw, initial_states_bw, scope: see
            `stack_bidirectional_rnn`.
        inputs, dtype, sequence_length, time_major: see `bidirectional_dynamic_rnn`.
        parallel_iterations, swap_memory: accepted for compatibility only and without effect.

    Returns:
        The outputs, and the last forward and backward states of all layers.

    Raises:
        ValueError: the lists do not match.
    """
    starts = _check_stack(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    forward, backward = [], []
    values = inputs
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for number, layer in enumerate(zip(cells_fw, cells_bw, *starts, strict=True)):
            with variable_scope(f"cell_{number}"):
                outputs, states = bidirectional_dynamic_rnn(
                    layer[0],
                    layer[1],
                    values,
                    sequence_length,
                    *layer[2:],
                    dtype,
                    time_major=time_major,
                )
            values = joining.concat(list(outputs), 2)
            forward.append(states[0])
            backward.append(states[1])
    return values, tuple(forward), tuple(backward)


def transpose_batch_time(x: Any) -> Tensor:
    """Swaps batch and time; tensors of unknown rank or rank below 2 are returned unchanged."""
    return transposed(convert_to_tensor(x))


def best_effort_input_batch_size(flat_input: Sequence[Any]) -> Any:
    """The batch size of time major inputs: an int if known, else a tensor."""
    tensors = [convert_to_tensor(each) for each in nest.flatten(flat_input)]
    known = [each for each in tensors if each.shape.rank is not None and each.shape.rank >= 2]
    sizes = [each.shape[1] for each in known if each.shape[1] is not None]
    return sizes[0] if sizes else size_of(tensors[0], 1)


__all__ = [
    "FusedRNNCell",
    "FusedRNNCellAdaptor",
    "LSTMBlockFusedCell",
    "LSTMBlockWrapper",
    "TimeReversedFusedRNN",
    "best_effort_input_batch_size",
    "stack_bidirectional_dynamic_rnn",
    "stack_bidirectional_rnn",
    "transpose_batch_time",
]
__dir__ = listing(__name__)
