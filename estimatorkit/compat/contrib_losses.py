"""`contrib.losses` and `slim.losses`: `tf.losses` with predictions before labels.

The loss is the sum divided by the number of weights that are not 0, as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimatorkit.compat.contrib_metrics import predictions_first
from estimatorkit.layers import losses


def _older(function: Callable[..., Any], *order: str) -> Callable[..., Any]:
    return predictions_first(function, *order, module="tf.losses")


absolute_difference = _older(losses.absolute_difference, "predictions", "labels")
cosine_distance = _older(losses.cosine_distance, "predictions", "labels")
hinge_loss = _older(losses.hinge_loss, "logits", "labels", "scope")
log_loss = _older(losses.log_loss, "predictions", "labels")
mean_pairwise_squared_error = _older(losses.mean_pairwise_squared_error, "predictions", "labels")
mean_squared_error = _older(losses.mean_squared_error, "predictions", "labels")
sigmoid_cross_entropy = _older(losses.sigmoid_cross_entropy, "logits", "multi_class_labels")
softmax_cross_entropy = _older(losses.softmax_cross_entropy, "logits", "onehot_labels")
sparse_softmax_cross_entropy = _older(losses.sparse_softmax_cross_entropy, "logits", "labels")

__all__ = [
    *("absolute_difference", "cosine_distance", "hinge_loss", "log_loss", "mean_squared_error"),
    *("mean_pairwise_squared_error", "sigmoid_cross_entropy", "softmax_cross_entropy"),
    "sparse_softmax_cross_entropy",
]
