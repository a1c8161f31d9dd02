"""Losses of decisions between classes: cross-entropies, log loss and hinge loss."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.arguments import arguments_of
from estimatorkit.layers.losses.reduction import Reduction, compute_weighted_loss, element_wise
from estimatorkit.layers.weighting import remove_squeezable_dimensions
from estimatorkit.ops.array import array
from estimatorkit.ops.debug.shape_matching import match_rank
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.nn import nn


def log_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """The cross-entropy of labels in [0, 1] and predicted probabilities.

    Args:
        labels, predictions, weights, scope, loss_collection, reduction: see `mean_squared_error`.
        epsilon: added inside the logarithms, so that a prediction of 0 gives no infinity.
    """

    def loss(y: Tensor, p: Tensor) -> Tensor:
        return -y * elementwise.log(p + epsilon) - (1 - y) * elementwise.log(1 - p + epsilon)

    rest = (labels, predictions, weights, scope, loss_collection, reduction)
    return element_wise("log_loss", loss, *rest)


def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """The cross-entropy of labels in {0, 1} and a sigmoid of logits, element by element.

    Args:
        multi_class_labels: numbers of the shape of `logits`.
        logits: floats.
        label_smoothing: labels are moved by half of this towards 1/2.
        weights, scope, loss_collection, reduction: see `compute_weighted_loss`.
    """

    def loss(labels: Tensor, scores: Tensor) -> Tensor:
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        return nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=scores, name="xentropy")

    rest = (multi_class_labels, logits, weights, scope, loss_collection, reduction)
    return element_wise("sigmoid_cross_entropy_loss", loss, *rest, widens=False)


def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """The cross-entropy of class probabilities and a softmax of logits.

    Args:
        onehot_labels: numbers `(..., classes)`; no gradient flows to them.
        logits: floats `(..., classes)`.
        label_smoothing: labels become (1 - this) label + this / classes.
        weights: a scalar or one per example, `(...)`.
        scope, loss_collection, reduction: see `compute_weighted_loss`.
    """
    with get_default_graph().name_scope(scope or "softmax_cross_entropy_loss") as inner:
        scores = convert_to_tensor(logits, name="logits")
        labels = elementwise.cast(
            convert_to_tensor(onehot_labels, dtype_hint=scores.dtype, name="labels"), scores.dtype
        )
        if label_smoothing > 0:
            classes = elementwise.cast(array.shape(labels)[-1], scores.dtype)
            labels = labels * (1 - label_smoothing) + label_smoothing / classes
        losses = nn.softmax_cross_entropy_with_logits(labels=labels, logits=scores, name="xentropy")
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """The cross-entropy of class indices and a softmax of logits.

    Args:
        labels: integers `(...)` or `(..., 1)`, in [0, classes).
        logits: floats `(..., classes)`.
        weights: a scalar or one per example, `(...)` or `(..., 1)`.
        scope, loss_collection, reduction: see `compute_weighted_loss`.
    """
    with get_default_graph().name_scope(scope or "sparse_softmax_cross_entropy_loss") as inner:
        indices, scores = remove_squeezable_dimensions(labels, logits, 1)
        losses = nn.sparse_softmax_cross_entropy_with_logits(
            labels=indices, logits=scores, name="xentropy"
        )
        if not isinstance(weights, (int, float)):
            given = convert_to_tensor(weights, dtype_hint=losses.dtype, name="weights")
            weights = match_rank(given, indices)
        return compute_weighted_loss(losses, weights, inner, loss_collection, reduction)


@arguments_of(sparse_softmax_cross_entropy)
def hinge_loss(labels: Any, logits: Any, **given: Any) -> Tensor:
    """max(0, 1 - (2 label - 1) logit).

    Args:
        labels: 0 or 1, of the shape of `logits`.
        logits: floats; positive where 1 is predicted.
        weights, scope, loss_collection, reduction: see `compute_weighted_loss`.
    """

    def loss(y: Tensor, scores: Tensor) -> Tensor:
        return nn.relu(1 - (2 * y - 1) * scores)

    return element_wise("hinge_loss", loss, labels, logits, **given)
