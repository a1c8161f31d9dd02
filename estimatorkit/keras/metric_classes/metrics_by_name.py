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
from estimatorkit.keras.loss import Loss, plain_config
from estimatorkit.keras.metric_classes import (
    class_metrics,
    confusion_metrics,
    mean_metrics,
    metric_functions as functions,
    odds_curves,
    ranking_metrics,
)
from estimatorkit.keras.metric_classes.mean_metrics import MeanMetricWrapper
from estimatorkit.keras.metric_classes.metric import Metric
from estimatorkit.layers.serialization import Registry, classes_in

FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    **losses.FUNCTIONS,
    **{
        each.__name__: each
        for each in (
            functions.accuracy,
            functions.binary_accuracy,
            functions.categorical_accuracy,
            functions.cosine_proximity,
            functions.sparse_categorical_accuracy,
            functions.sparse_top_k_categorical_accuracy,
            functions.top_k_categorical_accuracy,
        )
    },
    **dict.fromkeys(("acc", "ACC"), functions.accuracy),
    **dict.fromkeys(("cosine", "cosine_similarity"), functions.cosine_proximity),
}
"""Functions by their names; of the cosine, that which is greater where vectors are nearer."""

_CLASSES = {
    name: kind
    for module in (class_metrics, confusion_metrics, mean_metrics, odds_curves, ranking_metrics)
    for name, kind in classes_in(module.__name__, Metric).items()
}
_REGISTRY = Registry("metric function", {**FUNCTIONS, **_CLASSES})


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
    "accuracy": (
        functions.binary_accuracy,
        functions.sparse_categorical_accuracy,
        functions.categorical_accuracy,
    ),
    "crossentropy": (
        losses.binary_crossentropy,
        losses.sparse_categorical_crossentropy,
        losses.categorical_crossentropy,
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
