"""Counts of right and wrong decisions between two classes, and the ratios precision and recall.

An example is decided positive where its prediction is not 0 or, in the `..._at_thresholds`
metrics, above a threshold. Counts are sums of weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from estimatorkit.core.conversion import constant
from estimatorkit.core.dtypes import bool_, float32
from estimatorkit.core.ops import array, elementwise, reduce
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.metrics.streaming import Collections, Metric, streaming
from estimatorkit.layers.weighting import broadcast, remove_squeezable_dimensions


def _decisions(
    labels: Any, predictions: Any, weights: Any, thresholds: Sequence[float] | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Truth, decision and weight of each example, flat; with thresholds, decisions have a row for
    each.
    """
    truth, guesses = remove_squeezable_dimensions(labels, predictions)
    full = broadcast(1.0 if weights is None else weights, elementwise.cast(guesses, float32))
    flat = [array.reshape(each, [-1]) for each in (truth, guesses, full)]
    truth, guesses, full = elementwise.cast(flat[0], bool_), flat[1], flat[2]
    if thresholds is None:
        return truth, elementwise.cast(guesses, bool_), full
    limits = constant(np.asarray(thresholds, np.float32)[:, None])
    return truth, elementwise.greater(elementwise.cast(guesses, float32), limits), full


def _count(truth: Tensor, decision: Tensor, weights: Tensor) -> Tensor:
    both = elementwise.cast(elementwise.logical_and(truth, decision), float32)
    return reduce.reduce_sum(both * weights, -1)


def _ratio(
    name: str,
    is_precision: bool,
    labels: Any,
    predictions: Any,
    weights: Any,
    thresholds: Sequence[float] | None,
    metrics_collections: Collections,
    updates_collections: Collections,
) -> Metric:
    """True positives over those (precision) decided or (recall) labelled positive."""

    def sums() -> dict[str, Tensor]:
        truth, decision, full = _decisions(labels, predictions, weights, thresholds)
        if is_precision:
            wrong = _count(elementwise.logical_not(truth), decision, full)
        else:
            wrong = _count(truth, elementwise.logical_not(decision), full)
        key = "false_positives" if is_precision else "false_negatives"
        return {"true_positives": _count(truth, decision, full), key: wrong}

    return streaming(
        name,
        sums,
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
    """Of the examples decided positive, how many are.

    Args:
        labels, predictions: of one shape; all but 0 is positive.
        weights, metrics_collections, updates_collections, name: see `mean`.

    Returns:
        `(value, update_op)`; 0 where nothing was decided positive.
    """
    return _ratio(
        *(name or "precision", True, labels, predictions, weights, None),
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
    """Of the positive examples, how many were decided so; arguments as for `precision`."""
    return _ratio(
        *(name or "recall", False, labels, predictions, weights, None),
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
    """`precision` where positive means a prediction above a threshold; one value a threshold."""
    return _ratio(
        *(name or "precision_at_thresholds", True, labels, predictions, weights, thresholds),
        *(metrics_collections, updates_collections),
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
    """`recall` where positive means a prediction above a threshold; one value a threshold."""
    return _ratio(
        *(name or "recall_at_thresholds", False, labels, predictions, weights, thresholds),
        *(metrics_collections, updates_collections),
    )


def _confusion(
    name: str,
    truth_wanted: bool,
    decision_wanted: bool,
    labels: Any,
    predictions: Any,
    weights: Any,
    metrics_collections: Collections,
    updates_collections: Collections,
) -> Metric:
    def sums() -> dict[str, Tensor]:
        truth, decision, full = _decisions(labels, predictions, weights, None)
        chosen = truth if truth_wanted else elementwise.logical_not(truth)
        decided = decision if decision_wanted else elementwise.logical_not(decision)
        return {"count": _count(chosen, decided, full)}

    return streaming(name, sums, lambda count: count, metrics_collections, updates_collections)


def true_positives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The weight of positive examples decided positive; arguments as for `precision`."""
    return _confusion(
        *(name or "true_positives", True, True, labels, predictions, weights),
        *(metrics_collections, updates_collections),
    )


def true_negatives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The weight of negative examples decided negative; arguments as for `precision`."""
    return _confusion(
        *(name or "true_negatives", False, False, labels, predictions, weights),
        *(metrics_collections, updates_collections),
    )


def false_positives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The weight of negative examples decided positive; arguments as for `precision`."""
    return _confusion(
        *(name or "false_positives", False, True, labels, predictions, weights),
        *(metrics_collections, updates_collections),
    )


def false_negatives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The weight of positive examples decided negative; arguments as for `precision`."""
    return _confusion(
        *(name or "false_negatives", True, False, labels, predictions, weights),
        *(metrics_collections, updates_collections),
    )
