"""`sequence_loss`: the weighted cross-entropy of sequences of classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import name_scope
from estimatorkit.core.tensor import Tensor
from estimatorkit.lazy import listing
from estimatorkit.ops.array import array
from estimatorkit.ops.array.selection import count_nonzero
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.nn.nn import sparse_softmax_cross_entropy_with_logits


def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Tensor:
    """The weighted cross-entropy of sequences of classes.

    Args:
        logits: float `(batch, time, classes)`.
        targets: integers `(batch, time)`.
        weights: float `(batch, time)`; 0 for padding.
        average_across_timesteps, average_across_batch: whether to sum over an axis and divide by
            the sum of the weights.
        sum_over_timesteps, sum_over_batch: whether to sum over an axis and divide by the number of
            weights that are not 0.
        softmax_loss_function: of `labels` and `logits`, instead of
            `nn.sparse_softmax_cross_entropy_with_logits`.
        name: of the scope.

    Returns:
        A scalar, `(batch,)`, `(time,)` or `(batch, time)`: the remaining shape of the loss. Where
        the divisor is 0, the loss is 0.

    Raises:
        ValueError: a shape has another rank, or an axis is both averaged and summed over.
    """
    logits, targets = convert_to_tensor(logits), convert_to_tensor(targets)
    weights = convert_to_tensor(weights)
    for what, value, rank in (
        ("Logits", logits, 3),
        ("Targets", targets, 2),
        ("Weights", weights, 2),
    ):
        if value.shape.rank != rank:
            axes_text = "[batch_size x sequence_length{}]".format(" x logits" * (rank == 3))
            raise value_error(
                f"{what} must be a {axes_text} tensor",
                received=f"shape {value.shape}",
                made_at=value.op.source,
            )
    for what, averaged, summed in (
        ("timesteps", average_across_timesteps, sum_over_timesteps),
        ("batch", average_across_batch, sum_over_batch),
    ):
        if averaged and summed:
            raise ValueError(
                f"average_across_{what} and sum_over_{what} cannot be set to True at same time."
            )
    averaged_axes = _axes(average_across_batch, average_across_timesteps)
    summed_axes = _axes(sum_over_batch, sum_over_timesteps)
    if averaged_axes and summed_axes:  # TensorFlow has averaging decide, and reduces that axis only
        summed_axes = []
    with name_scope(name, "sequence_loss", [logits, targets, weights]):
        function = softmax_loss_function or sparse_softmax_cross_entropy_with_logits
        flat = array.reshape(logits, [-1, array.shape(logits)[2]])
        losses = function(labels=array.reshape(targets, [-1]), logits=flat)
        losses = losses * array.reshape(weights, [-1])
        losses = array.reshape(losses, array.shape(logits)[:2])
        axes = averaged_axes or summed_axes
        if not axes:
            return losses
        divisor = (
            reduce.reduce_sum(weights, axes) if averaged_axes else count_nonzero(weights, axes)
        )
        total = reduce.reduce_sum(losses, axes)
        return elementwise.div_no_nan(total, elementwise.cast(divisor, total.dtype))


def _axes(batch: bool, timesteps: bool) -> list[int]:
    return [axis for axis, wanted in enumerate((batch, timesteps)) if wanted]


__all__ = ["sequence_loss"]
__dir__ = listing(__name__)
