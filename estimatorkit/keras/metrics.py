"""Metrics as objects, functions and names, as `tf.keras.metrics`.

`metric` says what a `Metric` is; `mean_metrics`, `confusion_metrics` and `class_metrics` hold them
by kind; `metrics_by_name` says what names mean.
"""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    **names("estimatorkit.keras.metric_classes.metric", "Metric StreamingMetric"),
    **names(
        "estimatorkit.keras.metric_classes.mean_metrics",
        "Accuracy BinaryAccuracy BinaryCrossentropy CategoricalAccuracy CategoricalCrossentropy",
        "CategoricalHinge CosineSimilarity Hinge KLDivergence LogCoshError Mean MeanAbsoluteError",
        "MeanAbsolutePercentageError MeanMetricWrapper MeanRelativeError MeanSquaredError",
        "MeanSquaredLogarithmicError MeanTensor Poisson RootMeanSquaredError",
        "SparseCategoricalAccuracy SparseCategoricalCrossentropy SparseTopKCategoricalAccuracy",
        "SquaredHinge Sum TopKCategoricalAccuracy",
    ),
    **names(
        "estimatorkit.keras.metric_classes.confusion_metrics",
        "AUC FalseNegatives FalsePositives Precision PrecisionAtRecall Recall RecallAtPrecision",
        "SensitivityAtSpecificity SpecificityAtSensitivity TrueNegatives TruePositives",
    ),
    **names(
        "estimatorkit.keras.metric_classes.class_metrics",
        "BinaryIoU F1Score FBetaScore IoU MeanIoU OneHotIoU OneHotMeanIoU R2Score",
    ),
    **names(
        "estimatorkit.keras.metric_classes.metric_functions",
        "accuracy binary_accuracy categorical_accuracy cosine_proximity",
        "sparse_categorical_accuracy sparse_top_k_categorical_accuracy top_k_categorical_accuracy",
        "cosine=cosine_proximity cosine_similarity=cosine_proximity",
    ),
    **names(
        "estimatorkit.keras.losses",
        "KLD MAE MAPE MSE MSLE binary_crossentropy binary_focal_crossentropy",
        "categorical_crossentropy categorical_focal_crossentropy hinge kl_divergence kld",
        "kullback_leibler_divergence log_cosh logcosh mae mape mean_absolute_error",
        "mean_absolute_percentage_error mean_squared_error mean_squared_logarithmic_error mse msle",
        "poisson sparse_categorical_crossentropy squared_hinge",
    ),
    **names(
        "estimatorkit.keras.metric_classes.metrics_by_name", "as_metric deserialize get serialize"
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
