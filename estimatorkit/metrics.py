"""`tf.metrics`: TensorFlow 1's functions, and version 2's `tf.keras.metrics`.

Where both have a name (`mean_squared_error`), it means TensorFlow 1's function.
"""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    **names(
        "estimatorkit.keras.metrics",
        "AUC Accuracy BinaryAccuracy BinaryCrossentropy BinaryIoU CategoricalAccuracy",
        "CategoricalCrossentropy CategoricalHinge CosineSimilarity F1Score FBetaScore",
        "FalseNegatives FalsePositives Hinge IoU KLD KLDivergence LogCoshError MAE MAPE MSE MSLE",
        "Mean MeanAbsoluteError MeanAbsolutePercentageError MeanIoU MeanMetricWrapper",
        "MeanRelativeError MeanSquaredError MeanSquaredLogarithmicError MeanTensor Metric",
        "OneHotIoU OneHotMeanIoU Poisson Precision PrecisionAtRecall R2Score Recall",
        "RecallAtPrecision RootMeanSquaredError SensitivityAtSpecificity SparseCategoricalAccuracy",
        "SparseCategoricalCrossentropy SparseTopKCategoricalAccuracy SpecificityAtSensitivity",
        "SquaredHinge Sum TopKCategoricalAccuracy TrueNegatives TruePositives binary_accuracy",
        "binary_crossentropy binary_focal_crossentropy categorical_accuracy",
        "categorical_crossentropy categorical_focal_crossentropy cosine_similarity deserialize get",
        "hinge kl_divergence kld kullback_leibler_divergence log_cosh logcosh mae mape",
        "mean_absolute_percentage_error mean_squared_logarithmic_error mse msle poisson serialize",
        "sparse_categorical_accuracy sparse_categorical_crossentropy",
        "sparse_top_k_categorical_accuracy squared_hinge top_k_categorical_accuracy",
    ),
    **names(
        "estimatorkit.layers.metrics",
        "accuracy accuracy_baseline auc average_precision_at_k false_negatives",
        "false_negatives_at_thresholds false_positives false_positives_at_thresholds mean",
        "mean_absolute_error mean_cosine_distance mean_iou mean_per_class_accuracy",
        "mean_relative_error mean_squared_error mean_tensor percentage_below precision",
        "precision_at_k precision_at_thresholds precision_at_top_k recall recall_at_k",
        "recall_at_thresholds recall_at_top_k root_mean_squared_error sensitivity_at_specificity",
        "sparse_average_precision_at_k sparse_precision_at_k specificity_at_sensitivity",
        "true_negatives true_negatives_at_thresholds true_positives true_positives_at_thresholds",
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
