from estimatorkit.keras.crossentropy import (
    binary_crossentropy as binary_crossentropy,
    binary_focal_crossentropy as binary_focal_crossentropy,
    categorical_crossentropy as categorical_crossentropy,
    categorical_focal_crossentropy as categorical_focal_crossentropy,
    sparse_categorical_crossentropy as sparse_categorical_crossentropy,
)
from estimatorkit.keras.losses import (
    BinaryCrossentropy as BinaryCrossentropy, BinaryFocalCrossentropy as BinaryFocalCrossentropy,
    CategoricalCrossentropy as CategoricalCrossentropy,
    CategoricalFocalCrossentropy as CategoricalFocalCrossentropy,
    CategoricalHinge as CategoricalHinge, CosineSimilarity as CosineSimilarity,
    deserialize as deserialize, get as get, Hinge as Hinge, Huber as Huber, KLD as KLD, kld as kld,
    KLDivergence as KLDivergence, kullback_leibler_divergence as kullback_leibler_divergence,
    LogCosh as LogCosh, logcosh as logcosh, MAE as MAE, mae as mae, MAPE as MAPE, mape as mape,
    MeanAbsoluteError as MeanAbsoluteError,
    MeanAbsolutePercentageError as MeanAbsolutePercentageError,
    MeanSquaredError as MeanSquaredError,
    MeanSquaredLogarithmicError as MeanSquaredLogarithmicError, MSE as MSE, mse as mse,
    MSLE as MSLE, msle as msle, Poisson as Poisson, serialize as serialize,
    SparseCategoricalCrossentropy as SparseCategoricalCrossentropy, SquaredHinge as SquaredHinge,
)
from estimatorkit.keras.error_functions import (
    categorical_hinge as categorical_hinge, cosine_similarity as cosine_similarity, hinge as hinge,
    huber as huber, kl_divergence as kl_divergence, log_cosh as log_cosh,
    mean_absolute_error as mean_absolute_error,
    mean_absolute_percentage_error as mean_absolute_percentage_error,
    mean_squared_logarithmic_error as mean_squared_logarithmic_error, poisson as poisson,
    squared_hinge as squared_hinge,
)
from estimatorkit.keras.loss import Loss as Loss
from estimatorkit.layers.losses.distances import (
    absolute_difference as absolute_difference, cosine_distance as cosine_distance,
    huber_loss as huber_loss, mean_pairwise_squared_error as mean_pairwise_squared_error,
    mean_squared_error as mean_squared_error,
)
from estimatorkit.layers.losses.collected import (
    add_loss as add_loss, get_losses as get_losses,
    get_regularization_loss as get_regularization_loss,
    get_regularization_losses as get_regularization_losses, get_total_loss as get_total_loss,
)
from estimatorkit.layers.losses.reduction import (
    as_reduction as as_reduction, compute_weighted_loss as compute_weighted_loss,
    Reduction as Reduction,
)
from estimatorkit.layers.losses.classification import (
    hinge_loss as hinge_loss, log_loss as log_loss, sigmoid_cross_entropy as sigmoid_cross_entropy,
    softmax_cross_entropy as softmax_cross_entropy,
    sparse_softmax_cross_entropy as sparse_softmax_cross_entropy,
)
