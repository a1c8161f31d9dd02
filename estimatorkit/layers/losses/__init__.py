"""Losses, as `tf.losses`: one number from labels, predictions and weights, put into the collection
LOSSES.

`reduction` holds the shared parts; `distances` and `classification` hold them by kind; `collected`
looks them up again.
"""

from __future__ import annotations

from estimatorkit.layers.losses.classification import (
    hinge_loss,
    log_loss,
    sigmoid_cross_entropy,
    softmax_cross_entropy,
    sparse_softmax_cross_entropy,
)
from estimatorkit.layers.losses.collected import (
    add_loss,
    get_losses,
    get_regularization_loss,
    get_regularization_losses,
    get_total_loss,
)
from estimatorkit.layers.losses.distances import (
    absolute_difference,
    cosine_distance,
    huber_loss,
    mean_pairwise_squared_error,
    mean_squared_error,
)
from estimatorkit.layers.losses.reduction import Reduction, as_reduction, compute_weighted_loss
from estimatorkit.lazy import listing

__all__ = [
    "Reduction",
    "absolute_difference",
    "add_loss",
    "as_reduction",
    "compute_weighted_loss",
    "cosine_distance",
    "get_losses",
    "get_regularization_loss",
    "get_regularization_losses",
    "get_total_loss",
    "hinge_loss",
    "huber_loss",
    "log_loss",
    "mean_pairwise_squared_error",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]
__dir__ = listing(__name__)
