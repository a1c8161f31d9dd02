"""One step of a beam search: selection of beams and ids."""

from __future__ import annotations

from typing import Any, NamedTuple

from estimatorkit.compat.layers.seq2seq.attention_wrapper import AttentionWrapperState
from estimatorkit.core import nest
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32, int64
from estimatorkit.core.errors import value_error
from estimatorkit.core.registry import constant_value, fixed_value
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.recurrent.steps import size_of
from estimatorkit.lazy import listing
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.array.ranking import top_k
from estimatorkit.ops.control.tensor_array import TensorArray
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.nn import nn


class BeamSearchDecoderState(NamedTuple):
    """The state of a `BeamSearchDecoder`.

    Attributes:
        cell_state: that of the cell, `(batch, beams, ...)`.
        log_probs: of the beams, `(batch, beams)`.
        finished: bool `(batch, beams)`.
        lengths: int64 `(batch, beams)`.
        accumulated_attention_probs: `(batch, beams, places)`, or ().
    """

    cell_state: Any
    log_probs: Any
    finished: Any
    lengths: Any
    accumulated_attention_probs: Any


class BeamSearchDecoderOutput(NamedTuple):
    """The outputs of a step of a `BeamSearchDecoder`, `(batch, beams)` each.

    Attributes:
        scores: log probabilities with penalties.
        predicted_ids: int32, the ids that were chosen.
        parent_ids: int32, the beams that they continue.
    """

    scores: Any
    predicted_ids: Any
    parent_ids: Any


def beam_search_step(
    time: Any,
    logits: Any,
    next_cell_state: Any,
    beam_state: BeamSearchDecoderState,
    batch_size: Any,
    beam_width: int,
    end_token: Any,
    length_penalty_weight: Any,
    coverage_penalty_weight: Any,
) -> tuple[BeamSearchDecoderOutput, BeamSearchDecoderState]:
    """Chooses the best continuations of the beams.

    Args:
        time: the number of the step; accepted for compatibility only.
        logits: `(batch, beams, symbols)`.
        next_cell_state: the cell's state behind the step, `(batch, beams, ...)`.
        beam_state: the state before the step.
        batch_size: an int32 scalar.
        beam_width: the number of beams.
        end_token: int32 scalar; a finished beam has no other continuation, of probability 1.
        length_penalty_weight, coverage_penalty_weight: see `BeamSearchDecoder`.

    Returns:
        The outputs, and the next state.
    """
    finished = beam_state.finished
    going = elementwise.logical_not(finished)
    symbols = size_of(logits, -1)
    chances = mask_finished(nn.log_softmax(logits), end_token, finished)
    total = array.expand_dims(beam_state.log_probs, 2) + chances

    # A continuation is one longer, unless it ends the sequence.
    longer = indexing.one_hot(
        filling.fill(joining.stack([batch_size, beam_width]), end_token),
        symbols,
        convert_to_tensor(0, int64),
        convert_to_tensor(1, int64),
        dtype=int64,
    )
    longer = longer * array.expand_dims(elementwise.cast(going, int64), 2)
    lengths = longer + array.expand_dims(beam_state.lengths, 2)

    attended = attention_probabilities(next_cell_state, coverage_penalty_weight)
    if attended is not None:
        counted = array.expand_dims(elementwise.cast(going, attended.dtype), 2)
        attended = beam_state.accumulated_attention_probs + attended * counted
    scores = scores_of(
        total, lengths, length_penalty_weight, coverage_penalty_weight, finished, attended
    )
    flat = array.reshape(scores, joining.stack([batch_size, -1]))
    best, places = top_k(flat, k=beam_width)
    known = constant_value(convert_to_tensor(batch_size))
    best.set_shape([None if known is None else int(known), beam_width])
    places.set_shape(best.shape)
    parents = elementwise.floordiv(places, symbols)
    ids = elementwise.floormod(places, symbols)

    log_probs = indexing.gather(
        array.reshape(total, joining.stack([batch_size, -1])), places, axis=1, batch_dims=1
    )
    was_finished = of_parents(finished, parents)
    ended = elementwise.logical_or(was_finished, elementwise.equal(ids, end_token))
    added = elementwise.cast(elementwise.logical_not(was_finished), int64)
    state = BeamSearchDecoderState(
        cell_state=nest.map_structure(lambda each: _moved(each, parents), next_cell_state),
        log_probs=log_probs,
        finished=ended,
        lengths=of_parents(beam_state.lengths, parents) + added,
        accumulated_attention_probs=() if attended is None else of_parents(attended, parents),
    )
    return BeamSearchDecoderOutput(best, ids, parents), state


def of_parents(values: Any, parents: Any) -> Tensor:
    """Gathers the parents' entries from values `(batch, beams, ...)`."""
    found = indexing.gather(values, parents, axis=1, batch_dims=1)
    found.set_shape(values.shape)
    return found


def _moved(leaf: Any, parents: Any) -> Any:
    if isinstance(leaf, TensorArray) or leaf.shape.rank < 2:
        return leaf
    return of_parents(leaf, parents)


def mask_finished(log_probs: Any, end_token: Any, finished: Any) -> Tensor:
    """Restricts finished beams to the end token with log probability 0.

    `log_probs` are `(batch, beams, symbols)`, `finished` is bool `(batch, beams)`.
    """
    dtype = log_probs.dtype
    row = indexing.one_hot(
        end_token,
        size_of(log_probs, -1),
        convert_to_tensor(0.0, dtype),
        convert_to_tensor(dtype.min, dtype),
        dtype=dtype,
    )
    rows = filling.zeros_like(log_probs) + array.reshape(row, [1, 1, -1])
    ended = elementwise.logical_and(
        array.expand_dims(finished, 2), filling.ones_like(log_probs, bool)
    )
    return indexing.where(ended, rows, log_probs)


def attention_probabilities(cell_state: Any, coverage_penalty_weight: Any) -> Any:
    """The mean alignments of a state; None if coverage is not penalized.

    Raises:
        ValueError: coverage is penalized, but no cell has attention.
    """
    if isinstance(coverage_penalty_weight, (int, float)) and coverage_penalty_weight == 0.0:
        return None
    states = [cell_state] if isinstance(cell_state, AttentionWrapperState) else cell_state
    found = [
        _mean(each.alignments)
        for each in (states if isinstance(states, tuple | list) else ())
        if isinstance(each, AttentionWrapperState)
    ]
    if not found:
        raise ValueError("coverage_penalty_weight must be 0.0 if no cell is attentional.")
    return _mean(tuple(found))


def _mean(alignments: Any) -> Any:
    if not isinstance(alignments, tuple):
        return alignments
    if len(alignments) == 1:
        return alignments[0]
    return reduce.reduce_mean(joining.stack(list(alignments), -1), -1)


def scores_of(
    log_probs: Any,
    sequence_lengths: Any,
    length_penalty_weight: Any,
    coverage_penalty_weight: Any,
    finished: Any,
    accumulated_attention_probs: Any,
) -> Tensor:
    """Log probabilities with length and coverage penalties.

    `log_probs` and `sequence_lengths` are `(batch, beams, symbols)`, `finished` is bool
    `(batch, beams)`, `accumulated_attention_probs` is `(batch, beams, places)` or None.

    Raises:
        ValueError: `coverage_penalty_weight` is not a scalar, or attention probabilities are
            missing.
    """
    penalty = length_penalty(sequence_lengths, length_penalty_weight)
    scores: Tensor = log_probs / elementwise.cast(convert_to_tensor(penalty), log_probs.dtype)
    weight = convert_to_tensor(coverage_penalty_weight, name="coverage_penalty_weight")
    if weight.shape.rank != 0:
        raise value_error(
            f"coverage_penalty_weight should be a scalar, but saw shape: {weight.shape}",
            made_at=weight.op.source,
        )
    if fixed_value(weight) == 0.0:
        return scores
    if accumulated_attention_probs is None:
        raise ValueError(
            "accumulated_attention_probs can be None only if coverage penalty is disabled."
        )
    # Padded entries, which are 0, do not count.
    covered = accumulated_attention_probs
    covered = indexing.where(elementwise.equal(covered, 0.0), filling.ones_like(covered), covered)
    lacking = reduce.reduce_sum(elementwise.log(elementwise.minimum(covered, 1.0)), 2)
    lacking = lacking * elementwise.cast(finished, lacking.dtype) * weight
    return scores + array.expand_dims(lacking, 2)


def length_penalty(sequence_lengths: Any, penalty_factor: Any) -> Any:
    """((5 + length) / 6) ** penalty_factor; 1.0 if the factor is 0."""
    factor = convert_to_tensor(penalty_factor, name="penalty_factor")
    factor.set_shape([])
    if fixed_value(factor) == 0:
        return 1.0
    lengths = elementwise.cast(convert_to_tensor(sequence_lengths), float32)
    return elementwise.pow((lengths + 5.0) / 6.0, factor)


__all__ = ["BeamSearchDecoderOutput", "BeamSearchDecoderState", "beam_search_step"]
__dir__ = listing(__name__)
