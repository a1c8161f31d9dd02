"""What names, configurations and the arguments of `compile` mean, of metrics.

Names mean what stands in one fixed table, or the user's own (`layers.serialization`); nothing is
imported by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.keras import losses
from estimatorkit.keras.crossentropy import (
    binary_crossentropy,
    categorical_crossentropy,
    sparse_categorical_crossentropy,
)
from estimatorkit.keras.loss import Loss, plain_config
from estimatorkit.keras.metric_classes import (
    class_metrics,
    confusion_metrics,
    mean_metrics,
    ranking_metrics,
)
from estimatorkit.keras.metric_classes.mean_metrics import MeanMetricWrapper
from estimatorkit.keras.metric_classes.metric import Metric
from estimatorkit.keras.metric_classes.metric_functions import (
    accuracy,
    binary_accuracy,
    categorical_accuracy,
    cosine_proximity,
    sparse_categorical_accuracy,
    sparse_top_k_categorical_accuracy,
    top_k_categorical_accuracy,
)
from estimatorkit.layers.serialization import Registry

FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    **losses.FUNCTIONS,
    **{
        each.__name__: each
        for each in (
            *(accuracy, binary_accuracy, categorical_accuracy, sparse_categorical_accuracy),
            *(sparse_top_k_categorical_accuracy, top_k_categorical_accuracy, cosine_proximity),
        )
    },
    **{
        "acc": accuracy,
        "ACC": accuracy,
        "cosine": cosine_proximity,
        "cosine_similarity": cosine_proximity,
    },
}
"""Functions by their names; of the cosine, that which is greater where vectors are nearer."""

_CLASSES = (
    *(*class_metrics.CLASSES, *confusion_metrics.CLASSES),
    *(*mean_metrics.CLASSES, *ranking_metrics.CLASSES),
)
_REGISTRY = Registry("metric function", {**FUNCTIONS, **{each.__name__: each for each in _CLASSES}})


def get(identifier: Any) -> Any:
    """Resolves an identifier to a metric.

    Args:
        identifier: None, a name ('mse', 'AUC'), a config, a function or a `Metric`.

    Returns:
        None, a function or a `Metric`.

    Raises:
        ValueError: the identifier is unknown.
    """
    if isinstance(identifier, Metric):
        return identifier
    return _REGISTRY.get(plain_config(identifier))


def serialize(metric: Any, use_legacy_format: bool = False) -> Any:
    """Returns the name of a function, or the class and config of a `Metric`.

    Args:
        metric: a function or a `Metric`.
        use_legacy_format: accepted for compatibility only; there is one format.
    """
    return _REGISTRY.serialize(metric)


def deserialize(
    config: Any, custom_objects: Mapping[str, Any] | None = None, use_legacy_format: bool = False
) -> Any:
    """Creates a metric from its name or config.

    Args:
        config: a name or a config.
        custom_objects: a dict from names to your own classes and functions.
        use_legacy_format: accepted for compatibility only; both formats are read.

    Raises:
        ValueError: the name is unknown; nothing is imported by name.
    """
    return _REGISTRY.deserialize(plain_config(config), custom_objects)


_BY_LABELS = {
    "accuracy": (binary_accuracy, sparse_categorical_accuracy, categorical_accuracy),
    "crossentropy": (
        *(binary_crossentropy, sparse_categorical_crossentropy, categorical_crossentropy),
    ),
}
_SHORT = {"acc": "accuracy", "ce": "crossentropy"}


def as_metric(identifier: Any, y_true: Any, y_pred: Any) -> Metric:
    """Resolves an element of `metrics` in a model's `compile` to a metric.

    Args:
        identifier: see `get`. 'accuracy' ('acc') and 'crossentropy' ('ce') mean the variant
            for two classes, class indices or one-hot labels, depending on the shapes.
        y_true, y_pred: labels and predictions, or their shapes.

    Returns:
        A `Metric`. Functions and losses become a `MeanMetricWrapper` with their name.

    Raises:
        ValueError: the identifier is unknown.
    """
    short = identifier.lower() if isinstance(identifier, str) else ""
    kinds = _BY_LABELS.get(_SHORT.get(short, short))
    if kinds is not None:
        found: Any = kinds[_kind_of_labels(_shape(y_true), _shape(y_pred))]
    else:
        found = get(identifier)
    if isinstance(found, Metric):
        return found
    own = getattr(found, "name", None) or getattr(found, "__name__", type(found).__name__)
    name = identifier if isinstance(identifier, str) else own
    function = found.call if isinstance(found, Loss) else found
    return MeanMetricWrapper(function, name)


def _shape(value: Any) -> TensorShape:
    return TensorShape(getattr(value, "shape", value))


def _kind_of_labels(truth: TensorShape, guesses: TensorShape) -> int:
    """0 for two classes, 1 for class indices, 2 for one-hot labels."""
    if guesses.rank and guesses[-1] == 1:
        return 0
    if truth.rank is None or guesses.rank is None:
        return 2
    narrower = truth.rank < guesses.rank
    return 1 if narrower or (truth.rank > 0 and truth[-1] == 1) else 2
