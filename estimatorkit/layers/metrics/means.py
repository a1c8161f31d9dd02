"""Metrics that are a weighted sum over a sum of weights: means, accuracy and mean errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.metrics.streaming import (
    Collections,
    Metric,
    Sums,
    metric_like,
    streaming,
    weighted_sums,
)
from estimatorkit.layers.weighting import broadcast, remove_squeezable_dimensions, same_shapes
from estimatorkit.ops.math import elementwise, reduce


def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The weighted mean of values.

    Args:
        values: numbers of any shape.
        weights: a scalar, or of the shape of `values` with 1 in any place; 1 by default.
        metrics_collections, updates_collections: names of collections that take the value and the
            update.
        name: the name scope; 'mean' by default.

    Returns:
        `(value, update_op)`, float32 scalars; 0 before any example.

    Raises:
        ValueError: the weights do not fit.
    """
    return streaming(
        name or "mean",
        lambda: weighted_sums(values, weights),
        elementwise.div_no_nan,
        metrics_collections,
        updates_collections,
    )


@metric_like(mean, elementwise.div_no_nan, "mean")
def mean_tensor(values: Any, weights: Any) -> Sums:
    """The weighted mean over batches of each element.

    Args:
        values: numbers of a shape that is known and the same in every batch.
        weights, metrics_collections, updates_collections, name: see `mean`.

    Returns:
        `(value, update_op)`, float32, of the shape of `values`.

    Raises:
        ValueError: the shape of `values` is not known, or the weights do not fit.
    """
    tensor = elementwise.cast(convert_to_tensor(values, name="values"), float32)
    full = broadcast(1.0 if weights is None else weights, tensor)
    return {"total_tensor": tensor * full, "count_tensor": full}


def percentage_below(
    values: Any,
    threshold: float,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The weighted share, in [0, 1], of values below a threshold.

    Args:
        values: numbers of any shape.
        threshold: a number.
        weights, metrics_collections, updates_collections, name: see `mean`.
    """

    def sums() -> dict[str, Tensor]:
        tensor = convert_to_tensor(values, name="values")
        return weighted_sums(elementwise.less(tensor, threshold), weights)

    rest = (metrics_collections, updates_collections)
    return streaming(name or "percentage_below_threshold", sums, elementwise.div_no_nan, *rest)


def accuracy_baseline(
    labels: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The accuracy of always predicting the more frequent of two classes.

    As the heads of `tf.estimator`; labels are 0 and 1, the other arguments as for `mean`.
    """
    return streaming(
        name or "accuracy_baseline",
        lambda: weighted_sums(labels, weights),
        lambda total, count: elementwise.div_no_nan(
            elementwise.maximum(total, count - total), count
        ),
        metrics_collections,
        updates_collections,
    )


def _error_sums(
    error: Callable[[Tensor, Tensor], Tensor], labels: Any, predictions: Any, weights: Any
) -> dict[str, Tensor]:
    truth, guesses = same_shapes(labels, predictions)
    difference = error(elementwise.cast(guesses, float32), elementwise.cast(truth, float32))
    return weighted_sums(difference, weights)


def _root(total: Tensor, count: Tensor) -> Tensor:
    return elementwise.sqrt(elementwise.div_no_nan(total, count))


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The mean of (prediction - label) squared.

    Args:
        labels: numbers of the shape of `predictions`; a last dimension of 1 may be missing in
            either.
        predictions: numbers of any shape.
        weights, metrics_collections, updates_collections, name: see `mean`.
    """
    return streaming(
        name or "mean_squared_error",
        lambda: _error_sums(elementwise.squared_difference, labels, predictions, weights),
        elementwise.div_no_nan,
        metrics_collections,
        updates_collections,
    )


@metric_like(mean_squared_error, _root)
def root_mean_squared_error(labels: Any, predictions: Any, weights: Any) -> Sums:
    """The root of `mean_squared_error`, with its arguments."""
    return _error_sums(elementwise.squared_difference, labels, predictions, weights)


@metric_like(mean_squared_error, elementwise.div_no_nan)
def mean_absolute_error(labels: Any, predictions: Any, weights: Any) -> Sums:
    """The mean of |prediction - label|; arguments as for `mean_squared_error`."""
    return _error_sums(lambda p, y: elementwise.abs(p - y), labels, predictions, weights)


@metric_like(mean_squared_error, elementwise.div_no_nan)
def accuracy(labels: Any, predictions: Any, weights: Any) -> Sums:
    """The fraction of predictions that equal labels; arguments as for `mean_squared_error`."""
    truth, guesses = same_shapes(labels, predictions)
    hits = elementwise.equal(elementwise.cast(guesses, truth.dtype), truth)
    return weighted_sums(hits, weights)


def mean_relative_error(
    labels: Any,
    predictions: Any,
    normalizer: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The mean of |prediction - label| / normalizer; 0 if the normalizer is.

    Args:
        labels, predictions, weights, metrics_collections, updates_collections, name: see
            `mean_squared_error`.
        normalizer: numbers of the shape of `predictions`.
    """

    def error(guesses: Tensor, truth: Tensor) -> Tensor:
        scale, _ = remove_squeezable_dimensions(normalizer, guesses)
        scale.shape.assert_is_compatible_with(guesses.shape)
        return elementwise.div_no_nan(
            elementwise.abs(truth - guesses), elementwise.cast(scale, float32)
        )

    return streaming(
        name or "mean_relative_error",
        lambda: _error_sums(error, labels, predictions, weights),
        elementwise.div_no_nan,
        metrics_collections,
        updates_collections,
    )


def mean_cosine_distance(
    labels: Any,
    predictions: Any,
    dim: int,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """1 - the mean cosine between labels and predictions, taken to be of length 1 already.

    Args:
        labels, predictions: numbers of one shape.
        dim: the axis of the vectors.
        weights: a scalar, or of the shape of `predictions` with 1 at `dim`.
        metrics_collections, updates_collections, name: see `mean`.
    """

    def cosine(guesses: Tensor, truth: Tensor) -> Tensor:
        return reduce.reduce_sum(guesses * truth, dim, keepdims=True)

    return streaming(
        name or "mean_cosine_distance",
        lambda: _error_sums(cosine, labels, predictions, weights),
        lambda total, count: 1.0 - elementwise.div_no_nan(total, count),
        metrics_collections,
        updates_collections,
    )
