"""`contrib.losses` and `slim.losses`: `tf.losses` with predictions before labels.

The loss is the sum divided by the number of nonzero weights, as in contrib. Weights are a scalar or
have the leading dimensions of the losses: `(batch,)` weights whole examples.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from estimatorkit.compat.contrib.metrics import predictions_first
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32
from estimatorkit.layers import losses
from estimatorkit.ops.array import array
from estimatorkit.ops.math import elementwise


def _older(function: Callable[..., Any], *order: str, of_examples: bool = False) -> Any:
    """A loss with contrib's argument order and weights.

    Args:
        function: the loss.
        order: see `predictions_first`.
        of_examples: whether there is one loss per row of the last axis of the predictions.
    """
    reordered = predictions_first(function, *order) if order else function
    signature = inspect.signature(reordered)

    @functools.wraps(reordered)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        weights = bound.arguments.get("weights", 1.0)
        if not isinstance(weights, (int, float)):
            rank = convert_to_tensor(bound.args[0]).shape.rank
            bound.arguments["weights"] = _from_left(weights, rank, int(of_examples))
        return reordered(*bound.args, **bound.kwargs)

    return call


def _from_left(weights: Any, rank: int | None, less: int) -> Any:
    """Expands weights with trailing dimensions of 1 to the rank of the losses.

    Raises:
        ValueError: a rank is unknown.
    """
    tensor = elementwise.cast(convert_to_tensor(weights, name="weights"), float32)
    for what, known in (("weights", tensor.shape.rank), ("losses", rank)):
        if known is None:
            raise ValueError(f"{what}.get_shape().ndims cannot be None")
    if len(tensor.shape) > 1 and tensor.shape[-1] in (1, None):
        tensor = array.squeeze(tensor, [-1])
    missing = (rank or 0) - less - len(tensor.shape)
    for _ in range(missing if len(tensor.shape) else 0):
        tensor = array.expand_dims(tensor, -1)
    return tensor


absolute_difference = _older(losses.absolute_difference, "predictions", "labels")
compute_weighted_loss = _older(losses.compute_weighted_loss)
cosine_distance = _older(losses.cosine_distance, "predictions", "labels")
hinge_loss = _older(losses.hinge_loss, "logits", "labels", "scope")
log_loss = _older(losses.log_loss, "predictions", "labels")
mean_pairwise_squared_error = _older(losses.mean_pairwise_squared_error, "predictions", "labels")
mean_squared_error = _older(losses.mean_squared_error, "predictions", "labels")
sigmoid_cross_entropy = _older(losses.sigmoid_cross_entropy, "logits", "multi_class_labels")
softmax_cross_entropy = _older(
    losses.softmax_cross_entropy, "logits", "onehot_labels", of_examples=True
)
sparse_softmax_cross_entropy = _older(
    losses.sparse_softmax_cross_entropy, "logits", "labels", of_examples=True
)

__all__ = [
    "absolute_difference",
    "compute_weighted_loss",
    "cosine_distance",
    "hinge_loss",
    "log_loss",
    "mean_squared_error",
    "mean_pairwise_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]
