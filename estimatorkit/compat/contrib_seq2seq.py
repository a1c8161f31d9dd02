"""Losses of `tf.contrib.seq2seq`; its decoders are loops of one's own (`nn.raw_rnn`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import name_scope
from estimatorkit.core.ops.array import reshape, shape
from estimatorkit.core.ops.reduce import reduce_sum
from estimatorkit.core.tensor import Tensor

_TINY = 1e-12  # where all weights are 0, the loss is 0


def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Tensor:
    """The weighted cross-entropy of sequences of classes.

    Args:
        logits: float `(batch, time, classes)`.
        targets: integers `(batch, time)`.
        weights: float `(batch, time)`; 0 for padding.
        average_across_timesteps, average_across_batch: over which axes to average; what stays is
            the loss's shape.
        softmax_loss_function: of `labels` and `logits`, instead of
            `nn.sparse_softmax_cross_entropy_with_logits`.
        name: of the scope.

    Returns:
        A scalar, `(batch,)`, `(time,)` or `(batch, time)`.

    Raises:
        ValueError: a shape has another rank.
    """
    from estimatorkit.nn import sparse_softmax_cross_entropy_with_logits

    with name_scope(name, "sequence_loss", [logits, targets, weights]):
        logits, targets = convert_to_tensor(logits), convert_to_tensor(targets)
        weights = convert_to_tensor(weights)
        for what, value, rank in (
            ("Logits", logits, 3),
            ("Targets", targets, 2),
            ("Weights", weights, 2),
        ):
            if value.shape.rank not in (None, rank):
                axes_text = "[batch_size x sequence_length{}]".format(" x logits" * (rank == 3))
                raise ValueError(
                    explain(
                        f"{what} must be a {rank}-dimensional {axes_text} tensor",
                        received=f"shape {value.shape}",
                        made_at=value.op.source,
                    )
                )
        function = softmax_loss_function or sparse_softmax_cross_entropy_with_logits
        flat = reshape(logits, [-1, shape(logits)[2]])
        losses = function(labels=reshape(targets, [-1]), logits=flat)
        losses = reshape(losses * reshape(weights, [-1]), shape(logits)[:2])
        axes = [
            axis
            for axis, wanted in enumerate([average_across_batch, average_across_timesteps])
            if wanted
        ]
        if not axes:
            return losses
        return reduce_sum(losses, axes) / (reduce_sum(weights, axes) + _TINY)


__all__ = ["sequence_loss"]
