"""`tf.contrib.crf`: linear-chain conditional random fields (Lafferty et al. 2001).

Common arguments: `inputs` (`potentials`) are tag scores, floats `(batch, steps, tags)`;
`sequence_lengths` ints `(batch,)`; `transition_params` the scores of transitions from tag to tag,
`(tags, tags)`. Steps beyond a sequence's end are ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import bool_, int32
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array.array import expand_dims, shape, transpose
from estimatorkit.ops.array.filling import ones_like, zeros_like
from estimatorkit.ops.array.indexing import gather, one_hot, where
from estimatorkit.ops.array.joining import concat
from estimatorkit.ops.array.rearrange import sequence_mask
from estimatorkit.ops.control.higher_order import scan_op
from estimatorkit.ops.math.elementwise import cast
from estimatorkit.ops.math.reduce import argmax, reduce_logsumexp, reduce_max, reduce_sum
from estimatorkit.ops.variables.variable_scope import get_variable


def crf_log_likelihood(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any = None
) -> tuple[Tensor, Any]:
    """The log-likelihood of tag sequences.

    Args:
        inputs, sequence_lengths: see the module.
        tag_indices: the tags, `(batch, steps)` ints.
        transition_params: see the module; a variable 'transitions' by default.

    Returns:
        The log-likelihoods, `(batch,)`, and the transitions.
    """
    scores = convert_to_tensor(inputs)
    if transition_params is None:
        count = scores.shape[2]
        transition_params = get_variable("transitions", [count, count], scores.dtype)
    score = crf_sequence_score(scores, tag_indices, sequence_lengths, transition_params)
    norm = crf_log_norm(scores, sequence_lengths, transition_params)
    return score - norm, transition_params


def crf_sequence_score(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any
) -> Tensor:
    """The scores of tag sequences, `(batch,)`: unary plus transition scores."""
    return crf_unary_score(tag_indices, sequence_lengths, inputs) + crf_binary_score(
        tag_indices, sequence_lengths, transition_params
    )


def crf_unary_score(tag_indices: Any, sequence_lengths: Any, inputs: Any) -> Tensor:
    """The sums of the unary scores, `(batch,)`."""
    scores = convert_to_tensor(inputs)
    chosen = one_hot(tag_indices, shape(scores)[2], dtype=scores.dtype)
    mask = sequence_mask(sequence_lengths, shape(scores)[1], scores.dtype)
    return reduce_sum(reduce_sum(scores * chosen, 2) * mask, 1)


def crf_binary_score(tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Tensor:
    """The sums of the transition scores, `(batch,)`."""
    tags, transitions = convert_to_tensor(tag_indices), convert_to_tensor(transition_params)
    rows = one_hot(tags[:, :-1], shape(transitions)[0], dtype=transitions.dtype)
    columns = one_hot(tags[:, 1:], shape(transitions)[1], dtype=transitions.dtype)
    taken = reduce_sum(gather(transitions, tags[:, :-1]) * columns, 2)
    mask = sequence_mask(sequence_lengths, shape(rows)[1] + 1, transitions.dtype)
    return reduce_sum(taken * mask[:, 1:], 1)


def crf_log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> Tensor:
    """The log partition function over all tag sequences, `(batch,)`; 0 for empty sequences."""
    scores, transitions = convert_to_tensor(inputs), convert_to_tensor(transition_params)

    def step(alphas: Any, element: Any) -> tuple[Any, Any]:
        own, inside = element
        through = reduce_logsumexp(expand_dims(alphas, 2) + transitions, 1)
        return where(inside, own + through, alphas), ()

    alphas, _ = scan_op(step, scores[:, 0], _after_the_first(scores, sequence_lengths))
    norm = reduce_logsumexp(alphas, 1)
    return where(convert_to_tensor(sequence_lengths) > 0, norm, zeros_like(norm))


def crf_multitag_sequence_score(
    inputs: Any, tag_bitmap: Any, sequence_lengths: Any, transition_params: Any
) -> Tensor:
    """The log-sum-exp of the scores of all allowed tag sequences, `(batch,)`.

    Args:
        inputs, sequence_lengths, transition_params: see the module.
        tag_bitmap: the allowed tags at each step, `(batch, steps, tags)` bools.
    """
    scores = convert_to_tensor(inputs)
    lowest = np.finfo(scores.dtype.numpy_dtype).min
    allowed = where(cast(tag_bitmap, bool_), scores, ones_like(scores) * lowest)
    return crf_log_norm(allowed, sequence_lengths, transition_params)


def crf_decode(
    potentials: Any, transition_params: Any, sequence_length: Any
) -> tuple[Tensor, Tensor]:
    """Decodes the highest-scoring tag sequences with the Viterbi algorithm.

    Args:
        potentials, transition_params: see the module.
        sequence_length: see `sequence_lengths` of the module.

    Returns:
        The tags, `(batch, steps)` int32, 0 beyond the end; and their scores, `(batch,)`.
    """
    scores, transitions = convert_to_tensor(potentials), convert_to_tensor(transition_params)
    elements = _after_the_first(scores, sequence_length)

    def forward(best: Any, element: Any) -> tuple[Any, Any]:
        own, inside = element
        through = expand_dims(best, 2) + transitions
        before = cast(argmax(through, 1), int32)
        return where(inside, own + reduce_max(through, 1), best), before

    best, before = scan_op(forward, scores[:, 0], elements)
    last = cast(argmax(best, 1), int32)

    def backward(tag: Any, element: Any) -> tuple[Any, Any]:
        earlier, inside = element
        came_from = reduce_sum(earlier * one_hot(tag, shape(scores)[2], dtype=int32), 1)
        return where(inside[:, 0], came_from, tag), tag

    first, rest = scan_op(backward, last, (before, elements[1]), reverse=True)
    tags = transpose(concat([expand_dims(first, 0), rest], 0))
    mask = sequence_mask(sequence_length, shape(scores)[1], int32)
    return tags * mask, reduce_max(best, 1)


def _after_the_first(scores: Tensor, lengths: Any) -> tuple[Tensor, Tensor]:
    """The scores of all steps but the first, and a mask of those within the sequences."""
    inside = sequence_mask(lengths, shape(scores)[1])
    return transpose(scores, [1, 0, 2])[1:], expand_dims(transpose(inside)[1:], 2)


def viterbi_decode(score: ArrayLike, transition_params: ArrayLike) -> tuple[list[int], float]:
    """`crf_decode` of a single sequence of arrays, without a session.

    Args:
        score: `(steps, tags)`.
        transition_params: see the module.

    Returns:
        The tags, and their score.
    """
    own, transitions = np.asarray(score), np.asarray(transition_params)
    best = own[0]
    before = []
    for step in own[1:]:
        through = best[:, np.newaxis] + transitions
        before.append(through.argmax(0))
        best = step + through.max(0)
    tags = [int(best.argmax())]
    for earlier in reversed(before):
        tags.append(int(earlier[tags[-1]]))
    return tags[::-1], best.max()
