"""Counts of right and wrong decisions between two classes, and the ratios precision and recall.

An example is decided positive where its prediction is not 0 or, in the `..._at_thresholds`
metrics, above a threshold. Counts are sums of weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

from estimatorkit.core.dtypes import bool_, float32
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.metrics.means import mean_squared_error
from estimatorkit.layers.metrics.streaming import (
    Collections,
    Metric,
    Sums,
    metric_like,
    streaming,
)
from estimatorkit.layers.metrics.thresholds import counts_at, tested
from estimatorkit.layers.weighting import broadcast, same_shapes
from estimatorkit.ops.math import elementwise, reduce

P = ParamSpec("P")


def _decisions(labels: Any, predictions: Any, weights: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Truth, decision and weight of each example."""
    truth, guesses = same_shapes(labels, predictions)
    full = broadcast(1.0 if weights is None else weights, elementwise.cast(guesses, float32))
    return elementwise.cast(truth, bool_), elementwise.cast(guesses, bool_), full


_KINDS = {
    "true_positives": (True, True),
    "false_negatives": (True, False),
    "true_negatives": (False, False),
    "false_positives": (False, True),
}
"""What the label and the decision are."""


def _sums(labels: Any, predictions: Any, weights: Any, kinds: Sequence[str]) -> dict[str, Tensor]:
    """The weight of a batch's examples of each kind."""
    truth, decision, full = _decisions(labels, predictions, weights)
    found = {}
    for kind in kinds:
        right, chosen = (
            side if wanted else elementwise.logical_not(side)
            for wanted, side in zip(_KINDS[kind], (truth, decision), strict=True)
        )
        both = elementwise.cast(elementwise.logical_and(right, chosen), float32)
        found[f"{kind}/count"] = reduce.reduce_sum(both * full)
    return found


def _sums_at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any, kinds: Sequence[str]
) -> dict[str, Tensor]:
    """The same for each threshold."""
    truth, guesses = same_shapes(labels, predictions)
    counts = counts_at(truth, tested(truth, guesses), weights, thresholds)._asdict()
    return {kind: counts[kind] for kind in kinds}


def _share(right: Tensor, wrong: Tensor) -> Tensor:
    return elementwise.div_no_nan(right, right + wrong)


@metric_like(mean_squared_error, _share)
def precision(labels: Any, predictions: Any, weights: Any) -> Sums:
    """The fraction of the examples predicted positive that are positive.

    Args:
        labels, predictions: of the same shape; nonzero means positive.
        weights, metrics_collections, updates_collections, name: see `mean`.

    Returns:
        `(value, update_op)`; 0 if nothing was predicted positive.
    """
    return _sums(labels, predictions, weights, ("true_positives", "false_positives"))


@metric_like(precision, _share)
def recall(labels: Any, predictions: Any, weights: Any) -> Sums:
    """The fraction of positive examples that are predicted so; arguments as for `precision`."""
    return _sums(labels, predictions, weights, ("true_positives", "false_negatives"))


def precision_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """`precision` for each threshold: predictions above it are positive."""
    kinds = ("true_positives", "false_positives")
    return streaming(
        name or "precision_at_thresholds",
        lambda: _sums_at_thresholds(labels, predictions, thresholds, weights, kinds),
        _share,
        metrics_collections,
        updates_collections,
    )


@metric_like(precision_at_thresholds, _share)
def recall_at_thresholds(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any
) -> Sums:
    """`recall` for each threshold: predictions above it are positive."""
    kinds = ("true_positives", "false_negatives")
    return _sums_at_thresholds(labels, predictions, thresholds, weights, kinds)


def _count(like: Callable[P, Metric], name: str, examples: str) -> Callable[P, Metric]:
    """The total weight of one kind of examples.

    Args:
        like: `precision`, or `precision_at_thresholds` for a weight at each threshold.
        name: the metric's name.
        examples: what they are.
    """
    kind, at_thresholds, _ = name.partition("_at_thresholds")

    def count(**given: Any) -> Sums:
        if at_thresholds:
            return _sums_at_thresholds(**given, kinds=[kind])
        return {"count": _sums(**given, kinds=[kind])[f"{kind}/count"]}

    said = f"The total weight of {examples}"
    count.__name__, count.__doc__ = name, f"{said}; arguments as for `precision`."
    if at_thresholds:
        count.__doc__ = (
            f"{said}, for each threshold.\n\nPredictions above a threshold are positive."
        )
    return metric_like(like, lambda total: total, kind)(count)


_RIGHT, _MISSED = "positive examples predicted positive", "positive examples predicted negative"
_WRONG, _REJECTED = "negative examples predicted positive", "negative examples predicted negative"
_BY_THRESHOLD = precision_at_thresholds
true_positives = _count(precision, "true_positives", _RIGHT)
true_negatives = _count(precision, "true_negatives", _REJECTED)
false_positives = _count(precision, "false_positives", _WRONG)
false_negatives = _count(precision, "false_negatives", _MISSED)
true_positives_at_thresholds = _count(_BY_THRESHOLD, "true_positives_at_thresholds", _RIGHT)
true_negatives_at_thresholds = _count(_BY_THRESHOLD, "true_negatives_at_thresholds", _REJECTED)
false_positives_at_thresholds = _count(_BY_THRESHOLD, "false_positives_at_thresholds", _WRONG)
false_negatives_at_thresholds = _count(_BY_THRESHOLD, "false_negatives_at_thresholds", _MISSED)
