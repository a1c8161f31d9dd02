"""Counts of right and wrong decisions between two classes, and the ratios precision and recall.

An example is decided positive where its prediction is not 0 or, in the `..._at_thresholds`
metrics, above a threshold. Counts are sums of weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimatorkit.core.dtypes import bool_, float32
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.metrics.streaming import Collections, Metric, streaming
from estimatorkit.layers.metrics.thresholds import counts_at, tested
from estimatorkit.layers.weighting import broadcast, same_shapes
from estimatorkit.ops.math import elementwise, reduce


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


def _sums(
    kinds: Sequence[str], labels: Any, predictions: Any, weights: Any, thresholds: Any
) -> dict[str, Tensor]:
    """The weight of a batch's examples of each kind; a vector where there are thresholds."""
    if thresholds is not None:
        truth, guesses = same_shapes(labels, predictions)
        counts = counts_at(truth, tested(truth, guesses), weights, thresholds)._asdict()
        return {kind: counts[kind] for kind in kinds}
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


def _ratio(
    name: str,
    other: str,
    labels: Any,
    predictions: Any,
    weights: Any,
    thresholds: Sequence[float] | None,
    metrics_collections: Collections,
    updates_collections: Collections,
) -> Metric:
    """True positives over the sum of them and those of another kind."""
    return streaming(
        name,
        lambda: _sums(("true_positives", other), labels, predictions, weights, thresholds),
        lambda right, wrong: elementwise.div_no_nan(right, right + wrong),
        metrics_collections,
        updates_collections,
    )


def precision(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The fraction of the examples predicted positive that are positive.

    Args:
        labels, predictions: of the same shape; nonzero means positive.
        weights, metrics_collections, updates_collections, name: see `mean`.

    Returns:
        `(value, update_op)`; 0 if nothing was predicted positive.
    """
    return _ratio(
        *(name or "precision", "false_positives", labels, predictions, weights, None),
        *(metrics_collections, updates_collections),
    )


def recall(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The fraction of positive examples that are predicted so; arguments as for `precision`."""
    return _ratio(
        *(name or "recall", "false_negatives", labels, predictions, weights, None),
        *(metrics_collections, updates_collections),
    )


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
    return _ratio(
        *(name or "precision_at_thresholds", "false_positives", labels, predictions, weights),
        *(thresholds, metrics_collections, updates_collections),
    )


def recall_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """`recall` for each threshold: predictions above it are positive."""
    return _ratio(
        *(name or "recall_at_thresholds", "false_negatives", labels, predictions, weights),
        *(thresholds, metrics_collections, updates_collections),
    )


def _confusion(
    kind: str,
    labels: Any,
    predictions: Any,
    weights: Any,
    thresholds: Sequence[float] | None,
    metrics_collections: Collections,
    updates_collections: Collections,
    name: str | None,
) -> Metric:
    def sums() -> dict[str, Tensor]:
        found = _sums((kind,), labels, predictions, weights, thresholds)
        return {key.removeprefix(f"{kind}/"): each for key, each in found.items()}

    rest = (metrics_collections, updates_collections)
    return streaming(name or kind, sums, lambda count: count, *rest)


def true_positives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The total weight of positive examples predicted positive; arguments as for `precision`."""
    rest = (metrics_collections, updates_collections, name)
    return _confusion("true_positives", labels, predictions, weights, None, *rest)


def true_negatives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The total weight of negative examples predicted negative; arguments as for `precision`."""
    rest = (metrics_collections, updates_collections, name)
    return _confusion("true_negatives", labels, predictions, weights, None, *rest)


def false_positives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The total weight of negative examples predicted positive; arguments as for `precision`."""
    rest = (metrics_collections, updates_collections, name)
    return _confusion("false_positives", labels, predictions, weights, None, *rest)


def false_negatives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The total weight of positive examples predicted negative; arguments as for `precision`."""
    rest = (metrics_collections, updates_collections, name)
    return _confusion("false_negatives", labels, predictions, weights, None, *rest)


def true_positives_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The total weight of positive examples predicted positive, for each threshold.

    Predictions above a threshold are positive.
    """
    rest = (metrics_collections, updates_collections, name)
    return _confusion("true_positives", labels, predictions, weights, thresholds, *rest)


def true_negatives_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The total weight of negative examples predicted negative, for each threshold.

    Predictions above a threshold are positive.
    """
    rest = (metrics_collections, updates_collections, name)
    return _confusion("true_negatives", labels, predictions, weights, thresholds, *rest)


def false_positives_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The total weight of negative examples predicted positive, for each threshold.

    Predictions above a threshold are positive.
    """
    rest = (metrics_collections, updates_collections, name)
    return _confusion("false_positives", labels, predictions, weights, thresholds, *rest)


def false_negatives_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The total weight of positive examples predicted negative, for each threshold.

    Predictions above a threshold are positive.
    """
    rest = (metrics_collections, updates_collections, name)
    return _confusion("false_negatives", labels, predictions, weights, thresholds, *rest)
