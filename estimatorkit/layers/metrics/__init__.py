"""Streaming metrics in graph form, as `tf.metrics`: each function gives `(value, update_op)`.

`streaming` defines metrics; `means`, `confusion`, `curves`, `classes`, `top_k`, `ranking` and
`click_models` hold the metrics by kind; `thresholds` counts decisions at many thresholds at once.
"""

from __future__ import annotations

from estimatorkit.layers.metrics.classes import mean_iou, mean_per_class_accuracy
from estimatorkit.layers.metrics.click_models import (
    calibration,
    calibration_by_bucket,
    normalized_cross_entropy,
)
from estimatorkit.layers.metrics.confusion import (
    false_negatives,
    false_negatives_at_thresholds,
    false_positives,
    false_positives_at_thresholds,
    precision,
    precision_at_thresholds,
    recall,
    recall_at_thresholds,
    true_negatives,
    true_negatives_at_thresholds,
    true_positives,
    true_positives_at_thresholds,
)
from estimatorkit.layers.metrics.curves import (
    auc,
    sensitivity_at_specificity,
    specificity_at_sensitivity,
)
from estimatorkit.layers.metrics.means import (
    accuracy,
    accuracy_baseline,
    mean,
    mean_absolute_error,
    mean_cosine_distance,
    mean_relative_error,
    mean_squared_error,
    mean_tensor,
    percentage_below,
    root_mean_squared_error,
)
from estimatorkit.layers.metrics.ranking import (
    group_auc,
    hit_rate_at_k,
    list_recall_at_k,
    mean_average_precision_at_k,
    mean_reciprocal_rank,
    ndcg_at_k,
)
from estimatorkit.layers.metrics.top_k import (
    average_precision_at_k,
    precision_at_k,
    precision_at_top_k,
    recall_at_k,
    recall_at_top_k,
    sparse_average_precision_at_k,
    sparse_precision_at_k,
)
from estimatorkit.lazy import listing

__all__ = [
    "accuracy",
    "accuracy_baseline",
    "auc",
    "average_precision_at_k",
    "calibration",
    "calibration_by_bucket",
    "false_negatives",
    "false_negatives_at_thresholds",
    "false_positives",
    "false_positives_at_thresholds",
    "group_auc",
    "hit_rate_at_k",
    "list_recall_at_k",
    "mean",
    "mean_absolute_error",
    "mean_average_precision_at_k",
    "mean_cosine_distance",
    "mean_iou",
    "mean_per_class_accuracy",
    "mean_reciprocal_rank",
    "mean_relative_error",
    "mean_squared_error",
    "mean_tensor",
    "ndcg_at_k",
    "normalized_cross_entropy",
    "percentage_below",
    "precision",
    "precision_at_k",
    "precision_at_thresholds",
    "precision_at_top_k",
    "recall",
    "recall_at_k",
    "recall_at_thresholds",
    "recall_at_top_k",
    "root_mean_squared_error",
    "sensitivity_at_specificity",
    "sparse_average_precision_at_k",
    "sparse_precision_at_k",
    "specificity_at_sensitivity",
    "true_negatives",
    "true_negatives_at_thresholds",
    "true_positives",
    "true_positives_at_thresholds",
]
__dir__ = listing(__name__)
