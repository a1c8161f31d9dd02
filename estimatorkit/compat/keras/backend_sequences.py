"""`tf.keras.backend`: loops over steps, and connectionist temporal classification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.compat.ops.nn.ctc import ctc_loss
from estimatorkit.compat.ops.nn.ctc_decoders import ctc_beam_search_decoder, ctc_greedy_decoder
from estimatorkit.core import nest
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import bool_, int32, int64
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.keras.backend_state import epsilon
from estimatorkit.layers.recurrent.steps import run_steps
from estimatorkit.ops.array import array, filling, indexing, rearrange
from estimatorkit.ops.array.gather_nd import gather_nd
from estimatorkit.ops.control.decoded_steps import transposed
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.sparse.sparse import sparse_tensor_to_dense


def rnn(
    step_function: Callable[..., Any],
    inputs: Any,
    initial_states: Sequence[Any],
    go_backwards: bool = False,
    mask: Any = None,
    constants: Sequence[Any] | None = None,
    unroll: bool = False,
    input_length: Any = None,
    time_major: bool = False,
    zero_output_for_mask: bool = False,
    return_all_outputs: bool = True,
) -> tuple[Any, Any, list[Any]]:
    """A loop over the steps of inputs.

    Args:
        step_function: of (inputs of a step, states + constants), giving the output and the new
            states.
        inputs: `(batch, steps, ...)`, or a structure of such.
        initial_states: the states before the first step.
        go_backwards: whether to begin with the last step.
        mask: `(batch, steps)`: masked steps keep the previous states and output.
        constants: given to each step behind the states.
        unroll, input_length: accepted for compatibility only; the loop compiles either way.
        time_major: whether inputs and outputs are `(steps, batch, ...)`.
        zero_output_for_mask: whether masked steps give zeros.
        return_all_outputs: whether to give the outputs of all steps; otherwise those of the last.

    Returns:
        The last output, the outputs `(batch, steps, ...)`, the last states.
    """

    def turned(tensor: Any) -> Tensor:
        made = convert_to_tensor(tensor)
        return made if time_major else transposed(made)

    def step(row: Any, states: Any) -> tuple[Any, Any]:
        output, new = step_function(row, [*states, *(constants or ())])
        return output, new

    columns = nest.map_structure(turned, inputs)
    states = [nest.map_structure(convert_to_tensor, each) for each in initial_states]
    example, _ = step(nest.map_structure(lambda each: each[0], columns), states)
    before = nest.map_structure(filling.zeros_like, example)
    going = None
    if mask is not None:
        given = convert_to_tensor(mask)
        if len(given.shape) == 3:
            given = array.squeeze(given, [2])
        going = turned(elementwise.cast(given, bool_))
    outputs, last, states = run_steps(
        step,
        columns,
        states,
        going,
        before=before,
        every=return_all_outputs,
        zeros=zero_output_for_mask,
        reverse=go_backwards,
    )
    if not return_all_outputs:
        outputs = nest.map_structure(lambda each: array.expand_dims(each, 0), last)
    elif go_backwards:
        outputs = nest.map_structure(lambda each: rearrange.reverse(each, [0]), outputs)
    return last, nest.map_structure(turned, outputs), list(states)


# -- connectionist temporal classification


def ctc_label_dense_to_sparse(labels: Any, label_lengths: Any) -> SparseTensor:
    """Labels as a sparse tensor.

    Args:
        labels: `(batch, longest)`.
        label_lengths: `(batch,)`: how many of each row count.
    """
    dense = convert_to_tensor(labels)
    length = array.shape(dense)[1]
    counts = rearrange.sequence_mask(label_lengths, length)
    indices = indexing.where(counts)
    shape = elementwise.cast(array.shape(dense), int64)
    return SparseTensor(elementwise.cast(indices, int64), gather_nd(dense, indices), shape)


def _log_of_steps(y_pred: Any) -> Tensor:
    """Logarithms of probabilities, `(steps, batch, classes)`."""
    return elementwise.log(array.transpose(y_pred, [1, 0, 2]) + epsilon())


def ctc_batch_cost(y_true: Any, y_pred: Any, input_length: Any, label_length: Any) -> Tensor:
    """The loss of connectionist temporal classification (Graves et al. 2006).

    Args:
        y_true: labels `(batch, longest)`.
        y_pred: probabilities `(batch, steps, classes)`; the last class is the blank.
        input_length: `(batch, 1)`: how many steps of each example count.
        label_length: `(batch, 1)`: how many labels of each example count.

    Returns:
        `(batch, 1)`.
    """
    lengths = elementwise.cast(array.squeeze(input_length, [-1]), int32)
    counts = elementwise.cast(array.squeeze(label_length, [-1]), int32)
    labels = ctc_label_dense_to_sparse(elementwise.cast(y_true, int32), counts)
    losses = ctc_loss(labels, _log_of_steps(convert_to_tensor(y_pred)), lengths)
    return array.expand_dims(losses, 1)


def ctc_decode(
    y_pred: Any,
    input_length: Any,
    greedy: bool = True,
    beam_width: int = 100,
    top_paths: int = 1,
) -> tuple[list[Tensor], Tensor]:
    """The likeliest labels of steps.

    Args:
        y_pred: probabilities `(batch, steps, classes)`; the last class is the blank.
        input_length: `(batch,)`: how many steps of each example count.
        greedy: whether to take the likeliest class of each step, or a beam search.
        beam_width: of the search.
        top_paths: how many results the search gives.

    Returns:
        A list with the labels of each path, `(batch, steps)`, padded with -1; and the logarithms of
        their probabilities, `(batch, paths)`, which are negated if `greedy`.
    """
    given = convert_to_tensor(y_pred)
    lengths = elementwise.cast(input_length, int32)
    steps = _log_of_steps(given)
    if greedy:
        found, scores = ctc_greedy_decoder(steps, lengths)
    else:
        found, scores = ctc_beam_search_decoder(steps, lengths, beam_width, top_paths)
    shape = elementwise.cast(array.shape(given)[:2], int64)
    wide = [SparseTensor(each.indices, each.values, shape) for each in found]
    return [sparse_tensor_to_dense(each, -1) for each in wide], scores


__all__ = ["ctc_batch_cost", "ctc_decode", "ctc_label_dense_to_sparse", "rnn"]
