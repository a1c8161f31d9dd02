from estimatorkit.layers.metrics.classes import (
    mean_iou as mean_iou, mean_per_class_accuracy as mean_per_class_accuracy,
)
from estimatorkit.layers.metrics.click_models import (
    calibration as calibration, calibration_by_bucket as calibration_by_bucket,
    normalized_cross_entropy as normalized_cross_entropy,
)
from estimatorkit.layers.metrics.confusion import (
    false_negatives as false_negatives,
    false_negatives_at_thresholds as false_negatives_at_thresholds,
    false_positives as false_positives,
    false_positives_at_thresholds as false_positives_at_thresholds, precision as precision,
    precision_at_thresholds as precision_at_thresholds, recall as recall,
    recall_at_thresholds as recall_at_thresholds, true_negatives as true_negatives,
    true_negatives_at_thresholds as true_negatives_at_thresholds, true_positives as true_positives,
    true_positives_at_thresholds as true_positives_at_thresholds,
)
from estimatorkit.layers.metrics.curves import (
    auc as auc, sensitivity_at_specificity as sensitivity_at_specificity,
    specificity_at_sensitivity as specificity_at_sensitivity,
)
from estimatorkit.layers.metrics.means import (
    accuracy as accuracy, accuracy_baseline as accuracy_baseline, mean as mean,
    mean_absolute_error as mean_absolute_error, mean_cosine_distance as mean_cosine_distance,
    mean_relative_error as mean_relative_error, mean_squared_error as mean_squared_error,
    mean_tensor as mean_tensor, percentage_below as percentage_below,
    root_mean_squared_error as root_mean_squared_error,
)
from estimatorkit.layers.metrics.ranking import (
    group_auc as group_auc, hit_rate_at_k as hit_rate_at_k, list_recall_at_k as list_recall_at_k,
    mean_average_precision_at_k as mean_average_precision_at_k,
    mean_reciprocal_rank as mean_reciprocal_rank, ndcg_at_k as ndcg_at_k,
)
from estimatorkit.layers.metrics.top_k import (
    average_precision_at_k as average_precision_at_k, precision_at_k as precision_at_k,
    precision_at_top_k as precision_at_top_k, recall_at_k as recall_at_k,
    recall_at_top_k as recall_at_top_k,
    sparse_average_precision_at_k as sparse_average_precision_at_k,
    sparse_precision_at_k as sparse_precision_at_k,
)
