"""Streaming metrics in graph form, as `tf.metrics`: each function gives `(value, update_op)`.

`streaming` says what a metric is; `means`, `confusion` and `curves` hold the metrics by kind.
"""

from __future__ import annotations

from estimatorkit.layers.metrics.confusion import (
    false_negatives,
    false_positives,
    precision,
    precision_at_thresholds,
    recall,
    recall_at_thresholds,
    true_negatives,
    true_positives,
)
from estimatorkit.layers.metrics.curves import auc
from estimatorkit.layers.metrics.means import (
    accuracy,
    accuracy_baseline,
    mean,
    mean_absolute_error,
    mean_squared_error,
    root_mean_squared_error,
)
from estimatorkit.lazy import listing

__all__ = [
    "accuracy",
    "accuracy_baseline",
    "auc",
    "false_negatives",
    "false_positives",
    "mean",
    "mean_absolute_error",
    "mean_squared_error",
    "precision",
    "precision_at_thresholds",
    "recall",
    "recall_at_thresholds",
    "root_mean_squared_error",
    "true_negatives",
    "true_positives",
]
__dir__ = listing(__name__)
