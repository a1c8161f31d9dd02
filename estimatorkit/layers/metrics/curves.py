"""Areas under the ROC and the precision-recall curve, and points on them.

Curves are known at thresholds (`thresholds.counts_at`); the formulas of their areas are shared with
Keras's metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.metrics.streaming import Collections, Metric, streaming
from estimatorkit.layers.metrics.thresholds import Counts, counts_at, even_thresholds, tested
from estimatorkit.layers.weighting import same_shapes
from estimatorkit.ops.array import filling, indexing
from estimatorkit.ops.math import elementwise, reduce

_SUMMATIONS = ("trapezoidal", "careful_interpolation", "interpolation", "minoring", "majoring")


def metric_at_thresholds(
    name: str,
    labels: Any,
    predictions: Any,
    weights: Any,
    thresholds: Sequence[float],
    formula: Callable[[Counts], Tensor],
    metrics_collections: Collections,
    updates_collections: Collections,
) -> Metric:
    """A metric of the four counts at each threshold.

    Args:
        name: its name scope.
        labels, predictions, weights, metrics_collections, updates_collections: see `auc`.
        thresholds: numbers.
        formula: the metric from the counts.
    """

    def sums() -> dict[str, Tensor]:
        truth, guesses = same_shapes(labels, predictions)
        return counts_at(truth, tested(truth, guesses), weights, thresholds)._asdict()

    return streaming(
        name,
        sums,
        lambda *counts: formula(Counts(*counts)),
        metrics_collections,
        updates_collections,
    )


def auc(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
    thresholds: Sequence[float] | None = None,
) -> Metric:
    """The area under the ROC or the precision-recall curve, from its points at thresholds.

    Args:
        labels: of the shape of `predictions`; nonzero means positive.
        predictions: probabilities, in [0, 1].
        weights, metrics_collections, updates_collections, name: see `mean`.
        num_thresholds: the number of points of the curve; it does not affect the cost per batch.
        curve: "ROC" or "PR".
        summation_method: "trapezoidal", "minoring", "majoring" (heights of the rectangles), or
            "careful_interpolation" (Davis & Goadrich 2006; of ROC the same as "trapezoidal").
            "interpolation" is what the heads of `tf.estimator` use: careful interpolation, where
            0 / 0 in a precision or recall is 0 instead of 1.
        thresholds: thresholds between 0 and 1, in place of `num_thresholds` evenly spaced ones;
            0 and 1 are added.

    Returns:
        `(value, update_op)`.

    Raises:
        ValueError: `curve` or `summation_method` is unknown, or `num_thresholds` is less than 2.
    """
    if (
        curve not in ("ROC", "PR")
        or summation_method not in _SUMMATIONS
        or (thresholds is None and num_thresholds < 2)
    ):
        raise value_error(
            "auc: an argument is out of its range",
            expected=f"curve 'ROC' or 'PR', num_thresholds > 1, summation_method in {_SUMMATIONS}",
            received=f"curve={curve!r}, num_thresholds={num_thresholds}, "
            f"summation_method={summation_method!r}",
        )
    if thresholds is None:
        points = even_thresholds(num_thresholds)
    else:
        points = [-1e-7, *sorted(thresholds), 1.0 + 1e-7]
    # Precision without predictions is 1 in tf.metrics, and 0 in tf.keras.metrics ("interpolation").
    epsilon = 0.0 if summation_method == "interpolation" else 1e-6
    return metric_at_thresholds(
        name or "auc",
        labels,
        predictions,
        weights,
        points,
        lambda counts: reduce.reduce_sum(areas(counts, curve, summation_method, epsilon)),
        metrics_collections,
        updates_collections,
    )


def areas(counts: Counts, curve: str, summation_method: str, epsilon: float) -> Tensor:
    """The area between each two thresholds.

    Args:
        counts: at rising thresholds.
        curve, summation_method: see `auc`.
        epsilon: added to ratios, so that 0 / 0 is 1; where it is 0, that is 0.
    """
    right, missed, rejected, wrong = counts
    if curve == "PR" and summation_method.endswith("interpolation"):
        return _careful_areas(right, wrong, right[1:] + missed[1:])
    recalls = elementwise.div_no_nan(right + epsilon, right + missed + epsilon)
    if curve == "ROC":
        x, y = elementwise.div_no_nan(wrong, wrong + rejected + epsilon), recalls
    else:
        x, y = recalls, elementwise.div_no_nan(right + epsilon, right + wrong + epsilon)
    if summation_method == "minoring":
        heights = elementwise.minimum(y[:-1], y[1:])
    elif summation_method == "majoring":
        heights = elementwise.maximum(y[:-1], y[1:])
    else:
        heights = (y[:-1] + y[1:]) / 2.0
    return (x[:-1] - x[1:]) * heights


def _careful_areas(right: Tensor, wrong: Tensor, positives: Tensor) -> Tensor:
    """The integral of precision over recall where true and false positives are linear between
    thresholds.
    """
    decided = right + wrong
    gained = right[:-1] - right[1:]
    slope = elementwise.div_no_nan(gained, elementwise.maximum(decided[:-1] - decided[1:], 0.0))
    intercept = right[1:] - slope * decided[1:]
    known = elementwise.logical_and(
        elementwise.greater(decided[:-1], 0.0), elementwise.greater(decided[1:], 0.0)
    )
    ratio = indexing.where(
        known, elementwise.div_no_nan(decided[:-1], decided[1:]), filling.ones_like(gained)
    )
    area = slope * (gained + intercept * elementwise.log(ratio))
    return elementwise.div_no_nan(area, positives)


def _in_unit_interval(what: str, value: float, num_thresholds: int) -> None:
    if not 0 <= value <= 1 or num_thresholds < 2:
        raise value_error(
            f"`{what}` must be in the range [0, 1]. Currently, `{what}` got {value}",
            expected="a number in [0, 1], and num_thresholds > 1",
            received=f"{what}={value}, num_thresholds={num_thresholds}",
        )


def sensitivity_at_specificity(
    labels: Any,
    predictions: Any,
    specificity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The sensitivity at the threshold whose specificity is nearest to `specificity`.

    Args:
        labels, predictions, weights, metrics_collections, updates_collections, name: see `auc`.
        specificity: the fraction of negative examples to predict as negative, in [0, 1].
        num_thresholds: the number of thresholds to try; the lowest wins a tie.

    Raises:
        ValueError: an argument is out of its range.
    """
    _in_unit_interval("specificity", specificity, num_thresholds)

    def formula(counts: Counts) -> Tensor:
        right, missed, rejected, wrong = counts
        distance = elementwise.abs(rejected / (rejected + wrong + 1e-7) - specificity)
        return _chosen(reduce.argmin(distance, 0), right, right + missed)

    return metric_at_thresholds(
        name or "sensitivity_at_specificity",
        labels,
        predictions,
        weights,
        even_thresholds(num_thresholds),
        formula,
        metrics_collections,
        updates_collections,
    )


def specificity_at_sensitivity(
    labels: Any,
    predictions: Any,
    sensitivity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The specificity at the threshold whose sensitivity is nearest to `sensitivity`.

    Args:
        labels, predictions, weights, metrics_collections, updates_collections, name: see `auc`.
        sensitivity: the fraction of positive examples to predict as positive, in [0, 1].
        num_thresholds: the number of thresholds to try; the highest wins a tie.

    Raises:
        ValueError: an argument is out of its range.
    """
    _in_unit_interval("sensitivity", sensitivity, num_thresholds)
    points = even_thresholds(num_thresholds)
    points[-1] = 1.0 - 1e-7  # as in TensorFlow: predictions of 1 are positive at every threshold

    def formula(counts: Counts) -> Tensor:
        right, missed, rejected, wrong = counts
        distance = elementwise.abs(right / (right + missed + 1e-7) - sensitivity)
        nearest = elementwise.cast(
            elementwise.equal(distance, reduce.reduce_min(distance)), float32
        )
        return _chosen(reduce.argmax(reduce.cumsum(nearest), 0), rejected, rejected + wrong)

    return metric_at_thresholds(
        name or "specificity_at_sensitivity",
        labels,
        predictions,
        weights,
        points,
        formula,
        metrics_collections,
        updates_collections,
    )


def _chosen(index: Tensor, part: Tensor, whole: Tensor) -> Tensor:
    return indexing.gather(part, index) / (indexing.gather(whole, index) + 1e-7)
