"""Metrics of decisions between many classes: confusion matrices and what follows from them."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, float32, float64, int64
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.layers.metrics.confusion_matrix import count_pairs
from estimatorkit.layers.metrics.streaming import (
    Collections,
    Metric,
    Sums,
    metric_like,
    metric_variable,
    streaming,
)
from estimatorkit.layers.weighting import broadcast
from estimatorkit.ops.array import array, indexing, segment
from estimatorkit.ops.linalg import diagonals
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.math.checked import checked


def matrix_of(
    labels: Any, predictions: Any, num_classes: int, weights: Any, dtype: DType
) -> Tensor:
    """A batch's confusion matrix: rows are labels, columns predictions.

    Args:
        labels, predictions: class indices of one shape, in [0, num_classes).
        num_classes: the number of classes.
        weights: None, a scalar, or of the shape of `labels` with 1 in any place.
        dtype: of the matrix.
    """
    rows, columns, counts = _examples(labels, predictions, weights, dtype)
    known = []
    for given, test in ((rows, "label classes"), (columns, "predicted classes")):
        ids = checked(given, test, num_classes)
        inside = elementwise.clip_by_value(ids, 0, elementwise.cast(num_classes, int64) - 1)
        counts = counts * elementwise.cast(elementwise.equal(inside, ids), dtype)
        known.append(inside)
    truth, guesses = known
    return count_pairs(truth, guesses, num_classes, dtype, counts)


def _examples(
    labels: Any, predictions: Any, weights: Any, dtype: DType
) -> tuple[Tensor, Tensor, Tensor]:
    """Labels and predictions, int64, and weights as vectors of one length."""
    truth = convert_to_tensor(labels, name="labels")
    guesses = convert_to_tensor(predictions, name="predictions")
    guesses.shape.assert_is_compatible_with(truth.shape)
    full = broadcast(1.0 if weights is None else weights, elementwise.cast(truth, dtype))
    rows, columns, counts = (array.reshape(each, [-1]) for each in (truth, guesses, full))
    return elementwise.cast(rows, int64), elementwise.cast(columns, int64), counts


def streaming_confusion_matrix(
    labels: Any, predictions: Any, num_classes: int, weights: Any = None
) -> tuple[Variable, Tensor]:
    """A confusion matrix over a stream of batches (`metrics_impl._streaming_confusion_matrix`).

    Args:
        labels, predictions, num_classes, weights: see `matrix_of`.

    Returns:
        A float64 variable `(num_classes, num_classes)`, and the operation that adds a batch to it.
    """
    name = "total_confusion_matrix"
    total = metric_variable([num_classes, num_classes], float64, name)
    return total, total.assign_add(matrix_of(labels, predictions, num_classes, weights, float64))


def mean_overlap(matrix: Tensor, classes: Any = None) -> Tensor:
    """The mean over classes of intersection / union, of classes that there were.

    Args:
        matrix: a confusion matrix.
        classes: the indices of the classes that count; all by default.
    """
    both = diagonals.diag_part(matrix)
    either = reduce.reduce_sum(matrix, 0) + reduce.reduce_sum(matrix, 1) - both
    if classes is not None:
        both, either = (indexing.gather(each, classes) for each in (both, either))
    seen = elementwise.cast(elementwise.not_equal(either, 0.0), matrix.dtype)
    return elementwise.div_no_nan(
        reduce.reduce_sum(elementwise.div_no_nan(both, either)), reduce.reduce_sum(seen)
    )


def mean_iou(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The mean over classes of the intersection of labels and predictions over their union.

    Args:
        labels, predictions: integers in [0, num_classes), of one shape.
        num_classes: the number of classes.
        weights, metrics_collections, updates_collections, name: see `mean`.

    Returns:
        `(value, update_op)`; the update gives the confusion matrix, as TensorFlow's.
    """

    def sums() -> dict[str, Tensor]:
        matrix = matrix_of(labels, predictions, num_classes, weights, float64)
        return {"total_confusion_matrix": matrix}

    return streaming(
        name or "mean_iou",
        sums,
        lambda matrix: elementwise.cast(mean_overlap(matrix), float32),
        metrics_collections,
        updates_collections,
        updated_formula=lambda matrix: matrix,
    )


def _accuracies(total: Tensor, count: Tensor) -> Tensor:
    return elementwise.div_no_nan(count, total)


def _mean_accuracy(total: Tensor, count: Tensor) -> Tensor:
    return reduce.reduce_mean(_accuracies(total, count))


@metric_like(mean_iou, _mean_accuracy, "mean_accuracy", _accuracies)
def mean_per_class_accuracy(labels: Any, predictions: Any, num_classes: int, weights: Any) -> Sums:
    """The mean over classes of how often examples of the class were predicted right.

    Args:
        labels, predictions, num_classes, weights, metrics_collections, updates_collections, name:
            see `mean_iou`; predictions may be any integers. Classes without examples count as 0.

    Returns:
        `(value, update_op)`; the update gives the accuracy of each class, as TensorFlow's.
    """
    truth, guesses = (
        array.reshape(elementwise.cast(each, int64), [-1]) for each in (labels, predictions)
    )
    each = None if weights is None else array.reshape(weights, [-1])
    truth, guesses, counts = _examples(truth, guesses, each, float32)
    truth = checked(truth, "index", num_classes)
    right = counts * elementwise.cast(elementwise.equal(truth, guesses), float32)
    return {
        key: segment.unsorted_segment_sum(value, truth, num_classes)
        for key, value in (("total", counts), ("count", right))
    }
