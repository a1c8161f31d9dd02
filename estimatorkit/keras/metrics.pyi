from estimatorkit.keras.metric_classes.metric import (
    Metric as Metric, StreamingMetric as StreamingMetric,
)
from estimatorkit.keras.metric_classes.mean_metrics import (
    Accuracy as Accuracy, BinaryAccuracy as BinaryAccuracy,
    BinaryCrossentropy as BinaryCrossentropy, CategoricalAccuracy as CategoricalAccuracy,
    CategoricalCrossentropy as CategoricalCrossentropy, CategoricalHinge as CategoricalHinge,
    CosineSimilarity as CosineSimilarity, Hinge as Hinge, KLDivergence as KLDivergence,
    LogCoshError as LogCoshError, Mean as Mean, MeanAbsoluteError as MeanAbsoluteError,
    MeanAbsolutePercentageError as MeanAbsolutePercentageError,
    MeanMetricWrapper as MeanMetricWrapper, MeanRelativeError as MeanRelativeError,
    MeanSquaredError as MeanSquaredError,
    MeanSquaredLogarithmicError as MeanSquaredLogarithmicError, MeanTensor as MeanTensor,
    Poisson as Poisson, RootMeanSquaredError as RootMeanSquaredError,
    SparseCategoricalAccuracy as SparseCategoricalAccuracy,
    SparseCategoricalCrossentropy as SparseCategoricalCrossentropy,
    SparseTopKCategoricalAccuracy as SparseTopKCategoricalAccuracy, SquaredHinge as SquaredHinge,
    Sum as Sum, TopKCategoricalAccuracy as TopKCategoricalAccuracy,
)
from estimatorkit.keras.metric_classes.confusion_metrics import (
    AUC as AUC, FalseNegatives as FalseNegatives, FalsePositives as FalsePositives,
    Precision as Precision, PrecisionAtRecall as PrecisionAtRecall, Recall as Recall,
    RecallAtPrecision as RecallAtPrecision, SensitivityAtSpecificity as SensitivityAtSpecificity,
    SpecificityAtSensitivity as SpecificityAtSensitivity, TrueNegatives as TrueNegatives,
    TruePositives as TruePositives,
)
from estimatorkit.keras.metric_classes.class_metrics import (
    BinaryIoU as BinaryIoU, F1Score as F1Score, FBetaScore as FBetaScore, IoU as IoU,
    MeanIoU as MeanIoU, OneHotIoU as OneHotIoU, OneHotMeanIoU as OneHotMeanIoU, R2Score as R2Score,
)
from estimatorkit.keras.metric_classes.odds_curves import AveragePrecision as AveragePrecision
from estimatorkit.keras.metric_classes.ranking_metrics import (
    Calibration as Calibration, CalibrationByBucket as CalibrationByBucket, GroupAUC as GroupAUC,
    HitRate as HitRate, ListRecall as ListRecall, MeanAveragePrecision as MeanAveragePrecision,
    MeanReciprocalRank as MeanReciprocalRank, NDCG as NDCG,
    NormalizedCrossEntropy as NormalizedCrossEntropy,
)
from estimatorkit.keras.metric_classes.metric_functions import (
    accuracy as accuracy, binary_accuracy as binary_accuracy,
    categorical_accuracy as categorical_accuracy, cosine_proximity as cosine_proximity,
    sparse_categorical_accuracy as sparse_categorical_accuracy,
    sparse_top_k_categorical_accuracy as sparse_top_k_categorical_accuracy,
    top_k_categorical_accuracy as top_k_categorical_accuracy,
)
from estimatorkit.keras.crossentropy import (
    binary_crossentropy as binary_crossentropy,
    binary_focal_crossentropy as binary_focal_crossentropy,
    categorical_crossentropy as categorical_crossentropy,
    categorical_focal_crossentropy as categorical_focal_crossentropy,
    sparse_categorical_crossentropy as sparse_categorical_crossentropy,
)
from estimatorkit.keras.error_functions import (
    hinge as hinge, kl_divergence as kl_divergence, log_cosh as log_cosh,
    mean_absolute_error as mean_absolute_error,
    mean_absolute_percentage_error as mean_absolute_percentage_error,
    mean_squared_error as mean_squared_error,
    mean_squared_logarithmic_error as mean_squared_logarithmic_error, poisson as poisson,
    squared_hinge as squared_hinge,
)
from estimatorkit.keras.losses import (
    KLD as KLD, kld as kld, kullback_leibler_divergence as kullback_leibler_divergence,
    logcosh as logcosh, MAE as MAE, mae as mae, MAPE as MAPE, mape as mape, MSE as MSE, mse as mse,
    MSLE as MSLE, msle as msle,
)
from estimatorkit.keras.metric_classes.metrics_by_name import (
    as_metric as as_metric, deserialize as deserialize, get as get, serialize as serialize,
)

cosine = cosine_proximity
cosine_similarity = cosine_proximity
