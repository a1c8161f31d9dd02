from estimatorkit.keras.metrics import (
    Accuracy as Accuracy, AUC as AUC, binary_accuracy as binary_accuracy,
    binary_crossentropy as binary_crossentropy,
    binary_focal_crossentropy as binary_focal_crossentropy, BinaryAccuracy as BinaryAccuracy,
    BinaryCrossentropy as BinaryCrossentropy, BinaryIoU as BinaryIoU,
    categorical_accuracy as categorical_accuracy,
    categorical_crossentropy as categorical_crossentropy,
    categorical_focal_crossentropy as categorical_focal_crossentropy,
    CategoricalAccuracy as CategoricalAccuracy, CategoricalCrossentropy as CategoricalCrossentropy,
    CategoricalHinge as CategoricalHinge, cosine_similarity as cosine_similarity,
    CosineSimilarity as CosineSimilarity, deserialize as deserialize, F1Score as F1Score,
    FalseNegatives as FalseNegatives, FalsePositives as FalsePositives, FBetaScore as FBetaScore,
    get as get, Hinge as Hinge, hinge as hinge, IoU as IoU, kl_divergence as kl_divergence,
    KLD as KLD, kld as kld, KLDivergence as KLDivergence,
    kullback_leibler_divergence as kullback_leibler_divergence, log_cosh as log_cosh,
    logcosh as logcosh, LogCoshError as LogCoshError, MAE as MAE, mae as mae, MAPE as MAPE,
    mape as mape, Mean as Mean, mean_absolute_percentage_error as mean_absolute_percentage_error,
    mean_squared_logarithmic_error as mean_squared_logarithmic_error,
    MeanAbsoluteError as MeanAbsoluteError,
    MeanAbsolutePercentageError as MeanAbsolutePercentageError, MeanIoU as MeanIoU,
    MeanMetricWrapper as MeanMetricWrapper, MeanRelativeError as MeanRelativeError,
    MeanSquaredError as MeanSquaredError,
    MeanSquaredLogarithmicError as MeanSquaredLogarithmicError, MeanTensor as MeanTensor,
    Metric as Metric, MSE as MSE, mse as mse, MSLE as MSLE, msle as msle, OneHotIoU as OneHotIoU,
    OneHotMeanIoU as OneHotMeanIoU, Poisson as Poisson, poisson as poisson, Precision as Precision,
    PrecisionAtRecall as PrecisionAtRecall, R2Score as R2Score, Recall as Recall,
    RecallAtPrecision as RecallAtPrecision, RootMeanSquaredError as RootMeanSquaredError,
    SensitivityAtSpecificity as SensitivityAtSpecificity, serialize as serialize,
    sparse_categorical_accuracy as sparse_categorical_accuracy,
    sparse_categorical_crossentropy as sparse_categorical_crossentropy,
    sparse_top_k_categorical_accuracy as sparse_top_k_categorical_accuracy,
    SparseCategoricalAccuracy as SparseCategoricalAccuracy,
    SparseCategoricalCrossentropy as SparseCategoricalCrossentropy,
    SparseTopKCategoricalAccuracy as SparseTopKCategoricalAccuracy,
    SpecificityAtSensitivity as SpecificityAtSensitivity, squared_hinge as squared_hinge,
    SquaredHinge as SquaredHinge, Sum as Sum,
    top_k_categorical_accuracy as top_k_categorical_accuracy,
    TopKCategoricalAccuracy as TopKCategoricalAccuracy, TrueNegatives as TrueNegatives,
    TruePositives as TruePositives,
)
from estimatorkit.layers.metrics.means import (
    accuracy as accuracy, accuracy_baseline as accuracy_baseline, mean as mean,
    mean_absolute_error as mean_absolute_error, mean_cosine_distance as mean_cosine_distance,
    mean_relative_error as mean_relative_error, mean_squared_error as mean_squared_error,
    mean_tensor as mean_tensor, percentage_below as percentage_below,
    root_mean_squared_error as root_mean_squared_error,
)
from estimatorkit.layers.metrics.curves import (
    auc as auc, sensitivity_at_specificity as sensitivity_at_specificity,
    specificity_at_sensitivity as specificity_at_sensitivity,
)
from estimatorkit.layers.metrics.top_k import (
    average_precision_at_k as average_precision_at_k, precision_at_k as precision_at_k,
    precision_at_top_k as precision_at_top_k, recall_at_k as recall_at_k,
    recall_at_top_k as recall_at_top_k,
    sparse_average_precision_at_k as sparse_average_precision_at_k,
    sparse_precision_at_k as sparse_precision_at_k,
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
from estimatorkit.layers.metrics.classes import (
    mean_iou as mean_iou, mean_per_class_accuracy as mean_per_class_accuracy,
)
from estimatorkit.layers.metrics.click_models import (
    calibration as calibration, calibration_by_bucket as calibration_by_bucket,
    normalized_cross_entropy as normalized_cross_entropy,
)
from estimatorkit.layers.metrics.ranking import (
    group_auc as group_auc, hit_rate_at_k as hit_rate_at_k, list_recall_at_k as list_recall_at_k,
    mean_average_precision_at_k as mean_average_precision_at_k,
    mean_reciprocal_rank as mean_reciprocal_rank, ndcg_at_k as ndcg_at_k,
)
from estimatorkit.keras.metrics import (
    Calibration as Calibration, CalibrationByBucket as CalibrationByBucket, GroupAUC as GroupAUC,
    HitRate as HitRate, ListRecall as ListRecall, MeanAveragePrecision as MeanAveragePrecision,
    MeanReciprocalRank as MeanReciprocalRank, NDCG as NDCG,
    NormalizedCrossEntropy as NormalizedCrossEntropy,
)
