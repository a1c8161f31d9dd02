"""Losses as objects and by name, as `tf.keras.losses`.

`loss` defines `Loss`; the classes here wrap the functions of `error_functions` and
`crossentropy`. Names mean what stands in one fixed table, or the user's own
(`layers.serialization`); nothing is imported by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from estimatorkit.core.tensor import Tensor
from estimatorkit.keras.crossentropy import (
    binary_crossentropy as binary_crossentropy,
    binary_focal_crossentropy as binary_focal_crossentropy,
    categorical_crossentropy as categorical_crossentropy,
    categorical_focal_crossentropy as categorical_focal_crossentropy,
    sparse_categorical_crossentropy as sparse_categorical_crossentropy,
)
from estimatorkit.keras.error_functions import (
    categorical_hinge as categorical_hinge,
    cosine_similarity as cosine_similarity,
    hinge as hinge,
    huber as huber,
    kl_divergence as kl_divergence,
    log_cosh as log_cosh,
    mean_absolute_error as mean_absolute_error,
    mean_absolute_percentage_error as mean_absolute_percentage_error,
    mean_squared_error as mean_squared_error,
    mean_squared_logarithmic_error as mean_squared_logarithmic_error,
    poisson as poisson,
    squared_hinge as squared_hinge,
)
from estimatorkit.keras.loss import (
    Loss as Loss,
    LossFunctionWrapper as LossFunctionWrapper,
    LossOfFunction,
    Reduction as Reduction,
    plain_config,
)
from estimatorkit.layers.serialization import Registry, classes_in
from estimatorkit.lazy import listing


class MeanSquaredError(LossOfFunction, function=mean_squared_error):
    """The mean squared error (`mean_squared_error`)."""


class MeanAbsoluteError(LossOfFunction, function=mean_absolute_error):
    """The mean absolute error (`mean_absolute_error`)."""


class MeanAbsolutePercentageError(LossOfFunction, function=mean_absolute_percentage_error):
    """The mean absolute error in percent of the labels (`mean_absolute_percentage_error`)."""


class MeanSquaredLogarithmicError(LossOfFunction, function=mean_squared_logarithmic_error):
    """The mean squared error of logarithms (`mean_squared_logarithmic_error`)."""


class LogCosh(LossOfFunction, function=log_cosh):
    """The mean of log(cosh(error)) (`log_cosh`)."""


class Poisson(LossOfFunction, function=poisson):
    """The Poisson loss, for predictions that are expected counts (`poisson`)."""


class KLDivergence(LossOfFunction, function=kl_divergence):
    """The Kullback-Leibler divergence between distributions (`kl_divergence`)."""


class Hinge(LossOfFunction, function=hinge):
    """The hinge loss, for labels -1 and 1, or 0 and 1 (`hinge`)."""


class SquaredHinge(LossOfFunction, function=squared_hinge):
    """The squared hinge loss (`squared_hinge`)."""


class CategoricalHinge(LossOfFunction, function=categorical_hinge):
    """The hinge loss for several classes (`categorical_hinge`)."""


class Huber(LossFunctionWrapper):
    """The Huber loss (`huber`).

    Args:
        delta: the absolute error above which the loss is linear.
        reduction, name: see `Loss`.
    """

    def __init__(
        self, delta: float = 1.0, reduction: str = Reduction.AUTO, name: str | None = "huber_loss"
    ) -> None:
        super().__init__(huber, reduction, name, delta=delta)


class CosineSimilarity(LossFunctionWrapper):
    """The negative cosine similarity of labels and predictions (`cosine_similarity`).

    Args:
        axis: the axis of the vectors.
        reduction, name: see `Loss`.
    """

    def __init__(
        self,
        axis: int = -1,
        reduction: str = Reduction.AUTO,
        name: str | None = "cosine_similarity",
    ) -> None:
        super().__init__(cosine_similarity, reduction, name, axis=axis)


class BinaryCrossentropy(LossFunctionWrapper):
    """The cross-entropy for labels in {0, 1} (`binary_crossentropy`).

    Args:
        from_logits, label_smoothing, axis: see the function.
        reduction, name: see `Loss`.
    """

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str = Reduction.AUTO,
        name: str | None = "binary_crossentropy",
    ) -> None:
        rest = {"from_logits": from_logits, "label_smoothing": label_smoothing, "axis": axis}
        super().__init__(binary_crossentropy, reduction, name, **rest)
        self.from_logits = from_logits


class BinaryFocalCrossentropy(LossFunctionWrapper):
    """The focal cross-entropy for labels in {0, 1} (`binary_focal_crossentropy`).

    Args:
        apply_class_balancing, alpha, gamma, from_logits, label_smoothing, axis: see the function.
        reduction, name: see `Loss`.
    """

    def __init__(
        self,
        apply_class_balancing: bool = False,
        alpha: float = 0.25,
        gamma: float = 2.0,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str = Reduction.AUTO,
        name: str | None = "binary_focal_crossentropy",
    ) -> None:
        rest = {"from_logits": from_logits, "label_smoothing": label_smoothing, "axis": axis}
        focus = {"apply_class_balancing": apply_class_balancing, "alpha": alpha, "gamma": gamma}
        super().__init__(binary_focal_crossentropy, reduction, name, **focus, **rest)
        self.from_logits = from_logits


class CategoricalCrossentropy(LossFunctionWrapper):
    """The cross-entropy between distributions over classes (`categorical_crossentropy`).

    Args:
        from_logits, label_smoothing, axis: see the function.
        reduction, name: see `Loss`.
    """

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str = Reduction.AUTO,
        name: str | None = "categorical_crossentropy",
    ) -> None:
        rest = {"from_logits": from_logits, "label_smoothing": label_smoothing, "axis": axis}
        super().__init__(categorical_crossentropy, reduction, name, **rest)


class CategoricalFocalCrossentropy(LossFunctionWrapper):
    """The focal cross-entropy over classes (`categorical_focal_crossentropy`).

    Args:
        alpha, gamma, from_logits, label_smoothing, axis: see the function.
        reduction, name: see `Loss`.
    """

    def __init__(
        self,
        alpha: float = 0.25,
        gamma: float = 2.0,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str = Reduction.AUTO,
        name: str | None = "categorical_focal_crossentropy",
    ) -> None:
        rest = {"from_logits": from_logits, "label_smoothing": label_smoothing, "axis": axis}
        focus = {"alpha": alpha, "gamma": gamma}
        super().__init__(categorical_focal_crossentropy, reduction, name, **focus, **rest)
        self.from_logits = from_logits


class SparseCategoricalCrossentropy(LossFunctionWrapper):
    """The cross-entropy for labels that are class indices (`sparse_categorical_crossentropy`).

    Args:
        from_logits, ignore_class: see the function.
        reduction, name: see `Loss`.
    """

    def __init__(
        self,
        from_logits: bool = False,
        ignore_class: int | None = None,
        reduction: str = Reduction.AUTO,
        name: str | None = "sparse_categorical_crossentropy",
    ) -> None:
        rest = {"from_logits": from_logits, "ignore_class": ignore_class}
        super().__init__(sparse_categorical_crossentropy, reduction, name, **rest)


mse = MSE = mean_squared_error
mae = MAE = mean_absolute_error
mape = MAPE = mean_absolute_percentage_error
msle = MSLE = mean_squared_logarithmic_error
kld = KLD = kullback_leibler_divergence = kl_divergence
logcosh = log_cosh
cosine = cosine_proximity = cosine_similarity

FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    **{
        each.__name__: each
        for each in (
            binary_crossentropy,
            binary_focal_crossentropy,
            categorical_crossentropy,
            categorical_focal_crossentropy,
            categorical_hinge,
            cosine_similarity,
            hinge,
            huber,
            kl_divergence,
            log_cosh,
            mean_absolute_error,
            mean_absolute_percentage_error,
            mean_squared_error,
            mean_squared_logarithmic_error,
            poisson,
            sparse_categorical_crossentropy,
            squared_hinge,
        )
    },
    **{"mse": mse, "MSE": mse, "mae": mae, "MAE": mae, "mape": mape, "MAPE": mape},
    **{"msle": msle, "MSLE": msle, "kld": kld, "KLD": kld, "logcosh": log_cosh},
    **{"kullback_leibler_divergence": kld, "cosine": cosine, "cosine_proximity": cosine},
    **{"bce": binary_crossentropy, "BCE": binary_crossentropy, "huber_loss": huber},
}
"""Functions by their names."""

_CLASSES = classes_in(__name__, Loss)
_REGISTRY = Registry("loss function", {**FUNCTIONS, **_CLASSES})


def get(identifier: Any) -> Any:
    """Resolves an identifier to a loss.

    Args:
        identifier: None, a name ('mse', 'MeanSquaredError'), a config, a function or a `Loss`.

    Returns:
        None, a function or a `Loss`.

    Raises:
        ValueError: the identifier is unknown.
    """
    return _REGISTRY.get(plain_config(identifier))


def serialize(loss: Any, use_legacy_format: bool = False) -> Any:
    """Returns the name of a function, or the class and config of a `Loss`.

    Args:
        loss: a function or a `Loss`.
        use_legacy_format: accepted for compatibility only; there is one format.
    """
    return _REGISTRY.serialize(loss)


def deserialize(
    name: Any, custom_objects: Mapping[str, Any] | None = None, use_legacy_format: bool = False
) -> Any:
    """Creates a loss from its name or config.

    Args:
        name: a name or a config.
        custom_objects: a dict from names to your own classes and functions.
        use_legacy_format: accepted for compatibility only; both formats are read.

    Raises:
        ValueError: the name is unknown; nothing is imported by name.
    """
    return _REGISTRY.deserialize(plain_config(name), custom_objects)


__all__ = [
    *_CLASSES,
    "KLD",
    "Loss",
    "LossFunctionWrapper",
    "MAE",
    "MAPE",
    "MSE",
    "MSLE",
    "Reduction",
    "binary_crossentropy",
    "binary_focal_crossentropy",
    "categorical_crossentropy",
    "cosine",
    "categorical_focal_crossentropy",
    "categorical_hinge",
    "cosine_proximity",
    "deserialize",
    "cosine_similarity",
    "get",
    "hinge",
    "huber",
    "kl_divergence",
    "kld",
    "log_cosh",
    "logcosh",
    "kullback_leibler_divergence",
    "mae",
    "mape",
    "mean_absolute_error",
    "mean_squared_error",
    "mean_absolute_percentage_error",
    "mean_squared_logarithmic_error",
    "mse",
    "msle",
    "poisson",
    "serialize",
    "sparse_categorical_crossentropy",
    "squared_hinge",
]
__dir__ = listing(__name__)
