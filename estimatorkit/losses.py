"""`tf.losses`: TensorFlow 1's functions, and version 2's `tf.keras.losses`.

Where both have a name (`mean_squared_error`), it means TensorFlow 1's function.
"""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    **names(
        "estimatorkit.keras.losses",
        "BinaryCrossentropy BinaryFocalCrossentropy CategoricalCrossentropy",
        "CategoricalFocalCrossentropy CategoricalHinge CosineSimilarity Hinge Huber KLD",
        "KLDivergence LogCosh Loss MAE MAPE MSE MSLE MeanAbsoluteError MeanAbsolutePercentageError",
        "MeanSquaredError MeanSquaredLogarithmicError Poisson SparseCategoricalCrossentropy",
        "SquaredHinge binary_crossentropy binary_focal_crossentropy categorical_crossentropy",
        "categorical_focal_crossentropy categorical_hinge cosine_similarity deserialize get hinge",
        "huber kl_divergence kld kullback_leibler_divergence log_cosh logcosh mae mape",
        "mean_absolute_error mean_absolute_percentage_error mean_squared_logarithmic_error mse",
        "msle poisson serialize sparse_categorical_crossentropy squared_hinge",
    ),
    **names(
        "estimatorkit.layers.losses",
        "Reduction absolute_difference add_loss as_reduction compute_weighted_loss cosine_distance",
        "get_losses get_regularization_loss get_regularization_losses get_total_loss hinge_loss",
        "huber_loss log_loss mean_pairwise_squared_error mean_squared_error sigmoid_cross_entropy",
        "softmax_cross_entropy sparse_softmax_cross_entropy",
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
