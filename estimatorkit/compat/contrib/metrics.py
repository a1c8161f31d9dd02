"""`contrib.metrics`: the older names of `tf.metrics`, with predictions before labels.

Each `streaming_...` is the metric of that name with its first two arguments swapped. Metrics
without a successor, except `f1_score` and the helpers for dicts of metrics, raise on lookup
(`compat.tables`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from estimatorkit.compat.arguments import with_arguments
from estimatorkit.core.dtypes import float32
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers import metrics
from estimatorkit.layers.metrics.curves import metric_at_thresholds
from estimatorkit.layers.metrics.streaming import Collections, Metric, streaming, weighted_sums
from estimatorkit.layers.metrics.thresholds import Counts, even_thresholds
from estimatorkit.layers.weighting import broadcast
from estimatorkit.ops.math import elementwise, reduce


def predictions_first(
    function: Callable[..., Any], *order: str, **renamed: str
) -> Callable[..., Any]:
    """The function with `contrib`'s argument order.

    Args:
        function: takes labels before predictions.
        order: the names of its first arguments in the older order.
        renamed: old argument names by new ones.
    """
    rest = [name for name in inspect.signature(function).parameters if name not in order]
    older = " ".join(f"{renamed.get(name, name)}={name}" for name in [*order, *rest])
    return with_arguments(function.__module__, function.__name__, function, older)


_SWAPPED = (
    "accuracy",
    "auc",
    "false_negatives",
    "false_negatives_at_thresholds",
    "false_positives",
    "false_positives_at_thresholds",
    "mean_absolute_error",
    "mean_cosine_distance",
    "mean_iou",
    "mean_relative_error",
    "mean_squared_error",
    "precision",
    "precision_at_thresholds",
    "recall",
    "recall_at_thresholds",
    "root_mean_squared_error",
    "sensitivity_at_specificity",
    "sparse_average_precision_at_k",
    "sparse_precision_at_k",
    "specificity_at_sensitivity",
    "true_negatives",
    "true_negatives_at_thresholds",
    "true_positives",
    "true_positives_at_thresholds",
)
STREAMING: dict[str, Callable[..., Any]] = {
    "streaming_mean": metrics.mean,
    "streaming_mean_tensor": metrics.mean_tensor,
    "streaming_percentage_less": metrics.percentage_below,
    "streaming_sparse_recall_at_k": predictions_first(metrics.recall_at_k, "predictions", "labels"),
    "streaming_recall_at_k": predictions_first(
        metrics.recall_at_k, "predictions", "labels", "k", "weights"
    ),
    "streaming_sparse_precision_at_top_k": predictions_first(
        metrics.precision_at_top_k,
        "predictions_idx",
        "labels",
        "class_id",
        predictions_idx="top_k_predictions",
    ),
    "sparse_recall_at_top_k": predictions_first(
        metrics.recall_at_top_k,
        "labels",
        "predictions_idx",
        "class_id",
        predictions_idx="top_k_predictions",
    ),
    **{
        f"streaming_{name}": predictions_first(getattr(metrics, name), "predictions", "labels")
        for name in _SWAPPED
    },
}
"""The older functions by name."""


def __getattr__(name: str) -> Callable[..., Any]:
    if name in STREAMING:
        return STREAMING[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def accuracy(predictions: Any, labels: Any, weights: Any = None, name: str | None = None) -> Tensor:
    """The accuracy of one batch.

    Args:
        predictions, labels: of the same shape.
        weights: a scalar or one per element.
        name: the operation's name.
    """
    hits = elementwise.cast(elementwise.equal(predictions, labels), float32)
    if weights is None:
        return reduce.reduce_mean(hits, name=name)
    full = broadcast(weights, hits)
    return elementwise.div(reduce.reduce_sum(hits * full), reduce.reduce_sum(full), name=name)


def count(
    values: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The number of values, or the sum of their weights."""

    def sums() -> dict[str, Tensor]:
        return {"count": weighted_sums(values, weights)["count"]}

    rest = (metrics_collections, updates_collections)
    return streaming(name or "count", sums, lambda total: total, *rest)


def f1_score(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The maximum F1 score over evenly spaced thresholds in [0, 1].

    Args:
        labels: of the shape of `predictions`; nonzero means positive.
        predictions: probabilities.
        weights, metrics_collections, updates_collections, name: see `metrics.mean`.
        num_thresholds: the number of thresholds.
    """

    def formula(counts: Counts) -> Tensor:
        right, missed, _, wrong = counts
        precision = right / (right + wrong + 1e-7)
        recall = right / (right + missed + 1e-7)
        return reduce.reduce_max(2.0 * precision * recall / (precision + recall + 1e-7))

    return metric_at_thresholds(
        name or "f1",
        labels,
        predictions,
        weights,
        even_thresholds(num_thresholds),
        formula,
        metrics_collections,
        updates_collections,
    )


def aggregate_metrics(*value_update_tuples: Metric) -> tuple[list[Tensor], list[Tensor]]:
    """The values and the updates of metrics.

    Raises:
        ValueError: there is no metric.
    """
    if not value_update_tuples:
        raise ValueError("Expected at least one value_tensor/update_op pair")
    values, updates = zip(*value_update_tuples, strict=True)
    return list(values), list(updates)


def aggregate_metric_map(
    names_to_tuples: Mapping[str, Metric],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The values and the updates of metrics, by their names."""
    values = {name: value for name, (value, _) in names_to_tuples.items()}
    return values, {name: update for name, (_, update) in names_to_tuples.items()}
