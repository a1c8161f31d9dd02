"""Metrics of predicted click probabilities: normalized cross entropy and calibration.

Sums are float64: differences of a thousandth matter, over hundreds of millions of impressions.
"""

from __future__ import annotations

from typing import Any

from estimatorkit.core.dtypes import float32, float64, int32
from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.metrics.means import mean_squared_error
from estimatorkit.layers.metrics.streaming import (
    Collections,
    Metric,
    Sums,
    metric_like,
    streaming,
)
from estimatorkit.layers.weighting import broadcast, same_shapes
from estimatorkit.ops.array import array, joining, segment
from estimatorkit.ops.math import elementwise, reduce

_LEAST = 1e-7
"""Probabilities are clipped to [1e-7, 1 - 1e-7] in logarithms, as Keras does."""


def _columns(labels: Any, predictions: Any, weights: Any) -> tuple[Tensor, Tensor, Tensor]:
    truth, guesses = same_shapes(labels, predictions)
    truth, guesses = (elementwise.cast(each, float64) for each in (truth, guesses))
    return truth, guesses, broadcast(1.0 if weights is None else weights, guesses)


def _entropy(labels: Tensor, probabilities: Tensor) -> Tensor:
    p = elementwise.clip_by_value(probabilities, _LEAST, 1 - _LEAST)
    return -(labels * elementwise.log(p) + (1.0 - labels) * elementwise.log(1.0 - p))


def entropy_sums(labels: Any, predictions: Any, weights: Any) -> dict[str, Tensor]:
    """The sums of `normalized_cross_entropy`."""
    truth, guesses, full = _columns(labels, predictions, weights)
    terms = {"log_loss": _entropy(truth, guesses) * full, "labels": truth * full, "count": full}
    return {key: reduce.reduce_sum(each) for key, each in terms.items()}


def normalized_entropy(log_loss: Tensor, labels: Tensor, count: Tensor) -> Tensor:
    """`normalized_cross_entropy` from its sums; 0 where all labels are equal."""
    mean = elementwise.div_no_nan(labels, count)
    entropy = elementwise.div_no_nan(log_loss, count * _entropy(mean, mean))
    uncertain = elementwise.cast(mean * (1.0 - mean), "bool")
    return elementwise.cast(entropy * elementwise.cast(uncertain, float64), float32)


def calibration_sums(labels: Any, predictions: Any, weights: Any) -> dict[str, Tensor]:
    """The sums of `calibration`."""
    truth, guesses, full = _columns(labels, predictions, weights)
    return {
        "predictions": reduce.reduce_sum(guesses * full),
        "labels": reduce.reduce_sum(truth * full),
    }


def calibrated(predictions: Tensor, labels: Tensor) -> Tensor:
    """`calibration` from its sums."""
    return elementwise.cast(elementwise.div_no_nan(predictions, labels), float32)


def bucket_sums(labels: Any, predictions: Any, weights: Any, buckets: int) -> dict[str, Tensor]:
    """The sums of `calibration_by_bucket`, each `(buckets,)`.

    Raises:
        ValueError: there is no bucket.
    """
    if buckets < 1:
        raise value_error("calibration_by_bucket needs buckets", expected="num_buckets >= 1")
    truth, guesses, full = (
        array.reshape(each, [-1]) for each in _columns(labels, predictions, weights)
    )
    place = elementwise.clip_by_value(elementwise.floor(guesses * float(buckets)), 0.0, buckets - 1)
    place = elementwise.cast(place, int32)
    terms = {"predictions": guesses * full, "labels": truth * full, "count": full}
    return {key: segment.unsorted_segment_sum(each, place, buckets) for key, each in terms.items()}


def bucket_rows(predictions: Tensor, labels: Tensor, count: Tensor) -> Tensor:
    """`calibration_by_bucket` from its sums."""
    means = [elementwise.div_no_nan(each, count) for each in (predictions, labels)]
    return elementwise.cast(joining.stack([*means, count], 1), float32)


@metric_like(mean_squared_error, normalized_entropy)
def normalized_cross_entropy(labels: Any, predictions: Any, weights: Any) -> Sums:
    """The mean log loss over the entropy of the mean label: 1 for a model that knows only this.

    He et al. 2014, "Practical Lessons from Predicting Clicks on Ads at Facebook".

    Args:
        labels: in [0, 1].
        predictions: probabilities, of the shape of `labels`.
        weights, metrics_collections, updates_collections, name: see `mean`.

    Returns:
        `(value, update_op)`, float32 scalars; 0 if all labels are equal.

    Raises:
        ValueError: the shapes do not fit.
    """
    return entropy_sums(labels, predictions, weights)


@metric_like(normalized_cross_entropy, calibrated)
def calibration(labels: Any, predictions: Any, weights: Any) -> Sums:
    """The mean prediction over the mean label: 1 is calibrated, more predicts too many clicks.

    Arguments as for `normalized_cross_entropy`; 0 if there are no positive labels.
    """
    return calibration_sums(labels, predictions, weights)


def calibration_by_bucket(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_buckets: int = 10,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The mean prediction and the mean label in each of several ranges of predictions.

    Args:
        labels, predictions, weights, metrics_collections, updates_collections, name: see
            `normalized_cross_entropy`.
        num_buckets: the number of ranges, of equal width, of [0, 1].

    Returns:
        `(value, update_op)`, float32 `(num_buckets, 3)`: mean prediction, mean label and the sum of
        weights; 0 in empty buckets.

    Raises:
        ValueError: the shapes do not fit, or `num_buckets` is less than 1.
    """
    return streaming(
        name or "calibration_by_bucket",
        lambda: bucket_sums(labels, predictions, weights, num_buckets),
        bucket_rows,
        metrics_collections,
        updates_collections,
    )
