"""Losses over lists of logits, and bucketed models (`contrib.legacy_seq2seq`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.graph import get_default_graph, name_scope
from estimatorkit.core.tensor import Tensor
from estimatorkit.lazy import listing
from estimatorkit.ops.array import array
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.nn.nn import sparse_softmax_cross_entropy_with_logits
from estimatorkit.ops.variables.variable_scope import get_variable_scope, variable_scope

LossFunction = Callable[..., Any]
_TINY = 1e-12  # if all weights are 0, the loss is 0


def sequence_loss_by_example(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    softmax_loss_function: LossFunction | None = None,
    name: str | None = None,
) -> Tensor:
    """The weighted cross-entropy of each sequence in a batch.

    Args:
        logits: a list of `(batch, symbols)`, one for each step.
        targets: a list of int ids `(batch,)`.
        weights: a list of float `(batch,)`; 0 for padding.
        average_across_timesteps: whether to divide by the sum of a sequence's weights.
        softmax_loss_function: of `labels` and `logits`, instead of
            `nn.sparse_softmax_cross_entropy_with_logits`.
        name: of the scope.

    Returns:
        `(batch,)`.

    Raises:
        ValueError: the lists have different lengths.
    """
    if len(targets) != len(logits) or len(weights) != len(logits):
        raise ValueError(
            "Lengths of logits, weights, and targets must be the same "
            f"{len(logits)}, {len(weights)}, {len(targets)}."
        )
    with name_scope(name, "sequence_loss_by_example", [*logits, *targets, *weights]):
        losses = []
        for logit, target, weight in zip(logits, targets, weights, strict=True):
            if softmax_loss_function is None:
                labels = array.reshape(convert_to_tensor(target), [-1])
                loss = sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logit)
            else:
                loss = softmax_loss_function(labels=target, logits=logit)
            losses.append(loss * weight)
        total = elementwise.add_n(losses)
        if average_across_timesteps:
            total = total / (elementwise.add_n(list(weights)) + _TINY)
        return total


def sequence_loss(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: LossFunction | None = None,
    name: str | None = None,
) -> Tensor:
    """The sum of `sequence_loss_by_example`, or its mean over the batch; a scalar.

    Args:
        logits, targets, weights, average_across_timesteps, softmax_loss_function: see
            `sequence_loss_by_example`.
        average_across_batch: whether to divide by the size of the batch.
        name: of the scope.

    Raises:
        ValueError: the lists have different lengths.
    """
    with name_scope(name, "sequence_loss", [*logits, *targets, *weights]):
        by_example = sequence_loss_by_example(
            logits, targets, weights, average_across_timesteps, softmax_loss_function
        )
        cost = reduce.reduce_sum(by_example)
        if not average_across_batch:
            return cost
        return cost / elementwise.cast(array.shape(convert_to_tensor(targets[0]))[0], cost.dtype)


def model_with_buckets(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    buckets: Sequence[tuple[int, int]],
    seq2seq: Callable[[Any, Any], tuple[Any, Any]],
    softmax_loss_function: LossFunction | None = None,
    per_example_loss: bool = False,
    name: str | None = None,
) -> tuple[list[Any], list[Tensor]]:
    """Builds a model for several sequence lengths, with shared variables.

    Args:
        encoder_inputs, decoder_inputs, targets, weights: lists as long as the last bucket.
        buckets: pairs: the number of encoder and of decoder steps, in ascending order.
        seq2seq: of encoder inputs and decoder inputs, gives outputs and states; called once for
            each bucket, from the second on with `reuse=True`.
        softmax_loss_function: see `sequence_loss_by_example`.
        per_example_loss: whether a loss is `(batch,)`; a scalar by default.
        name: of the scope.

    Returns:
        For each bucket its list of outputs, and its loss.

    Raises:
        ValueError: a list is shorter than the last bucket.
    """
    for what, values, needed in (
        ("encoder_inputs", encoder_inputs, buckets[-1][0]),
        ("targets", targets, buckets[-1][1]),
        ("weights", weights, buckets[-1][1]),
    ):
        if len(values) < needed:
            raise ValueError(
                f"Length of {what} ({len(values)}) must be at least that of last bucket ({needed})."
            )
    outputs, losses = [], []
    loss = sequence_loss_by_example if per_example_loss else sequence_loss
    with get_default_graph().name_scope(name or "model_with_buckets"):
        for number, (encoder_steps, steps) in enumerate(buckets):
            with variable_scope(get_variable_scope(), reuse=True if number else None):
                found, _ = seq2seq(encoder_inputs[:encoder_steps], decoder_inputs[:steps])
                outputs.append(found)
                losses.append(
                    loss(
                        found,
                        targets[:steps],
                        weights[:steps],
                        softmax_loss_function=softmax_loss_function,
                    )
                )
    return outputs, losses


__all__ = ["model_with_buckets", "sequence_loss", "sequence_loss_by_example"]
__dir__ = listing(__name__)
