"""Metrics of an experiment beyond its estimator's own, and what a model without features scores.

Regressors always report `rmse`, `mae` and `r2`. Classifiers of two classes report the areas under
their curves from all predictions, and `average_precision`: with the 200 even thresholds of
TensorFlow's heads, `auc` of a rare class is off in the third digit. The key `metrics` adds those of
`keras.metrics`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import estimatorkit as ek
from estimatorkit.estimator.extenders import extended
from estimatorkit.experiment.errors import ConfigurationError
from estimatorkit.experiment.estimators import Classifier, MultiTask, Regressor
from estimatorkit.experiment.examples import GROUP
from estimatorkit.experiment.schema import Experiment, Metric
from estimatorkit.keras.metric_classes.odds_curves import AreaByOdds

OF_CLASSES = ("accuracy", "precision", "recall")
"""Metrics of two classes that depend on the threshold of the predictions."""

_DECIDED = (
    "BinaryAccuracy",
    "F1Score",
    "FBetaScore",
    "FalseNegatives",
    "FalsePositives",
    "Precision",
    "Recall",
    "TrueNegatives",
    "TruePositives",
)
"""Configured metrics of two classes that do so, too, unless they have a threshold of their own."""


def of_classes(experiment: Experiment) -> tuple[str, ...]:
    """The names of an experiment's metrics that depend on the threshold of its predictions."""
    kind: Any = experiment.estimator
    added = (_made(kind, each).name for each in experiment.metrics if _decides(kind, each))
    return (*OF_CLASSES, *added)


def _decides(kind: Any, metric: Metric) -> bool:
    """Whether a metric compares the classes that are predicted, not their probabilities."""
    own = {"threshold", "thresholds", "top_k"} & (metric.model_extra or {}).keys()
    is_binary = isinstance(kind, Classifier) and kind.n_classes == 2
    return is_binary and metric.type in _DECIDED and not own


def with_metrics_of_classes(experiment: Experiment, estimator: Any) -> Any:
    """The estimator with `of_classes` as its only metrics: a much smaller graph to evaluate."""
    names = of_classes(experiment)

    def chosen(spec: Any, *_: Any) -> Any:
        metrics = spec.eval_metric_ops
        return spec._replace(eval_metric_ops={name: metrics[name] for name in names})

    return extended(estimator, chosen)


def unrecorded(
    estimator: Any, input_fn: Callable[..., Any], steps: int | None = None
) -> dict[str, Any]:
    """The metrics of the newest checkpoint, which leave no trace: TensorBoard would show a run."""
    name = f"report-{os.getpid()}"
    try:
        found: dict[str, Any] = estimator.evaluate(input_fn, steps, name=name)
    finally:
        shutil.rmtree(estimator.eval_dir(name), ignore_errors=True)
    return found


def with_metrics(experiment: Experiment, estimator: Any) -> Any:
    """The estimator, with the metrics of the experiment.

    Raises:
        ConfigurationError: a metric does not take its arguments.
    """
    kind = experiment.estimator
    if not isinstance(kind, Regressor | Classifier | MultiTask):
        return estimator
    for each in experiment.metrics:
        _made(kind, each)

    def added(features: Any, labels: Any, predictions: Any) -> dict[str, Any]:
        weights = features[kind.weight_column] if kind.weight_column else None
        found: dict[str, Any] = {}
        for ending, (truth, guesses) in _compared(kind, labels, predictions).items():
            if isinstance(kind, Regressor):
                found |= _errors(kind, truth, guesses, weights)
            if isinstance(kind, Classifier) and kind.n_classes == 2:
                found |= _areas(truth, guesses, weights)
            for each in experiment.metrics:
                metric = _made(kind, each)
                expected = ek.argmax(truth, 1) if each.type.startswith("Sparse") else truth
                more = {} if each.group is None else {"groups": features[GROUP + each.group]}
                decided = _decides(kind, each)
                given = ek.cast(predictions["class_ids"], guesses.dtype) if decided else guesses
                metric.update_state(expected, given, sample_weight=weights, **more)
                found[metric.name + ending] = metric
        return found

    return ek.estimator.add_metrics(estimator, added)


def _made(kind: Regressor | Classifier | MultiTask, metric: Metric) -> Any:
    """A metric of `keras.metrics`; F-scores are one number unless `average` says otherwise."""
    given: dict[str, Any] = dict(metric.model_extra or {})
    if metric.type in ("F1Score", "FBetaScore"):
        given = {"average": "macro", **given}
        if getattr(kind, "n_classes", 2) == 2 and not isinstance(kind, Regressor):
            given = {"threshold": 0.5, **given}
    try:
        return getattr(ek.keras.metrics, metric.type)(**given)
    except (TypeError, ValueError) as error:
        raise ConfigurationError.explained(
            f"metrics: {metric.type} does not take its arguments: {error}",
            expected=f"those of keras.metrics.{metric.type}",
            received=", ".join(map(str, given)) or "none",
        ) from error


def _compared(kind: Any, labels: Any, predictions: Any) -> dict[str, tuple[Any, Any]]:
    """What metrics compare, by the ending of their keys: '/<name>' for each of several heads."""
    if isinstance(kind, Regressor):
        return {"": _numbers(kind, labels, predictions)}
    if isinstance(kind, Classifier):
        return {"": _classes(kind, labels, predictions)}
    return {
        f"/{name}": (
            ek.reshape(ek.cast(column, ek.float32), [-1, 1]),
            predictions[name, "logistic"],
        )
        for name, column in labels.items()
    }


def _numbers(kind: Any, labels: Any, predictions: Any) -> tuple[Any, Any]:
    """Labels and predictions, `(batch, label_dimension)`."""
    guesses = predictions["predictions"]
    return ek.reshape(ek.cast(labels, ek.float32), ek.shape(guesses)), guesses


def _classes(kind: Any, labels: Any, predictions: Any) -> tuple[Any, Any]:
    """One-hot labels and probabilities, `(batch, classes)`; of two classes those of the second,
    `(batch, 1)`.
    """
    names = kind.label_vocabulary or range(kind.n_classes)
    column = ek.reshape(labels, [-1, 1])
    truth = ek.cast(ek.equal(column, ek.constant([list(names)], column.dtype)), ek.float32)
    guesses = predictions["probabilities"]
    return (truth[:, 1:], guesses[:, 1:]) if kind.n_classes == 2 else (truth, guesses)


def _areas(truth: Any, guesses: Any, weights: Any) -> dict[str, Any]:
    """The areas under the curves of two classes."""
    found = {
        "auc": AreaByOdds("ROC"),
        "auc_precision_recall": AreaByOdds("PR"),
        "average_precision": ek.keras.metrics.AveragePrecision(),
    }
    for metric in found.values():
        metric.update_state(truth, guesses, sample_weight=weights)
    return found


def _errors(kind: Regressor, truth: Any, guesses: Any, weights: Any) -> dict[str, Any]:
    """The errors of a regressor, in units of the label.

    R2 is computed from scaled labels: float32 squares of dollars lose their deviations.
    """
    metrics = ek.keras.metrics
    scaling = kind.label_scaling
    scaled = [
        each if scaling is None else (each - scaling.mean) / scaling.deviation
        for each in (truth, guesses)
    ]
    found = {
        "rmse": (metrics.RootMeanSquaredError(), (truth, guesses)),
        "mae": (metrics.MeanAbsoluteError(), (truth, guesses)),
        "r2": (metrics.R2Score(), scaled),
    }
    for metric, values in found.values():
        metric.update_state(values[0], values[1], sample_weight=weights)
    return {name: metric for name, (metric, _) in found.items()}


# -- baselines


def baseline(
    experiment: Experiment,
    labels: Any,
    evaluated: Any,
    weights: NDArray[Any] | None = None,
) -> dict[str, float]:
    """What the best constant scores: the mean of the training labels, or their majority.

    Args:
        labels: of the training.
        evaluated: the labels that are predicted.
        weights: of these.

    Returns:
        'rmse', 'mae' and 'r2' of a regressor, 'accuracy' of a classifier, and 'auc' and
        'average_precision' if it has two classes that are both evaluated; empty without labels, or
        with several.
    """
    if isinstance(experiment.estimator, Classifier):
        values, counts = np.unique(labels.astype(str), return_counts=True)
        right = evaluated.astype(str) == values[counts.argmax()]
        found = {"accuracy": float(np.average(right, weights=weights))}
        if experiment.estimator.n_classes == 2 and len(np.unique(evaluated.astype(str))) == 2:
            second = (experiment.estimator.label_vocabulary or ("0", "1"))[1]
            share = np.average(evaluated.astype(str) == second, weights=weights)
            found |= {"auc": 0.5, "average_precision": float(share)}
        return found
    if not isinstance(experiment.estimator, Regressor) or labels.ndim > 1:
        return {}
    errors = evaluated.astype(float) - labels.astype(float).mean()
    mean = np.average(evaluated.astype(float), weights=weights)
    spread = np.average((evaluated - mean) ** 2, weights=weights)
    squared = np.average(errors**2, weights=weights)
    return {
        "rmse": float(np.sqrt(squared)),
        "mae": float(np.average(np.abs(errors), weights=weights)),
        "r2": float(1 - squared / spread) if spread else 0.0,
    }
