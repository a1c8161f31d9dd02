"""Metrics of the k classes with the greatest scores: precision, recall, average precision.

Labels and predicted classes of an example are two sets; TensorFlow compares them on the host, here
they are compared by their ids on the device. Labels may be dense, one or many an example, or a
SparseTensor with many. Sums are float64, as TensorFlow's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float64, int64
from estimatorkit.core.errors import value_error
from estimatorkit.core.sparse_tensor import SparseTensor, SparseTensorValue
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.arguments import arguments_of
from estimatorkit.layers.metrics.streaming import Collections, Metric, streaming
from estimatorkit.layers.weighting import broadcast
from estimatorkit.ops.array import array, filling, indexing, ranking
from estimatorkit.ops.debug.shape_matching import match_rank
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.sparse.sparse import sparse_tensor_to_dense

_SPARSE = (SparseTensor, SparseTensorValue)
_NOTHING = np.iinfo(np.int64).min
"""Stands where a set has no element."""


class _Sets(NamedTuple):
    """Labels `(..., labels)` and predicted classes `(..., k)`, int64, padded with `_NOTHING`."""

    labels: Tensor
    predictions: Tensor


def _sets(labels: Any, predictions: Any, class_id: int | None = None) -> _Sets:
    chosen = elementwise.cast(convert_to_tensor(predictions, name="predictions"), int64)
    if isinstance(labels, _SPARSE):
        truth = sparse_tensor_to_dense(labels, np.int64(_NOTHING), validate_indices=False)
    else:
        truth = elementwise.cast(convert_to_tensor(labels, name="labels"), int64)
    truth = match_rank(truth, chosen, adjust="expand")
    ranks = (truth.shape.rank, chosen.shape.rank)
    if None not in ranks and ranks[0] != ranks[1]:
        raise value_error(
            f"Unexpected labels shape {truth.shape} for predictions shape {chosen.shape}",
            expected="labels of the rank of predictions, or of one less",
            received=f"{truth.name} {truth.shape}",
            made_at=truth.op.source,
        )
    if class_id is not None:
        truth, chosen = (_only(each, class_id) for each in (truth, chosen))
    return _Sets(truth, chosen)


def _only(ids: Tensor, class_id: int) -> Tensor:
    wanted = elementwise.equal(ids, convert_to_tensor(class_id, int64))
    return indexing.where(wanted, ids, filling.zeros_like(ids) + _NOTHING)


def _elements(ids: Tensor) -> Tensor:
    """Marks the first occurrence of each element of a set."""
    places = filling.range_(array.shape(ids)[-1])
    earlier = elementwise.less(array.expand_dims(places, 0), array.expand_dims(places, 1))
    same = elementwise.equal(array.expand_dims(ids, -1), array.expand_dims(ids, -2))
    again = reduce.reduce_any(elementwise.logical_and(same, earlier), -1)
    return elementwise.logical_and(
        elementwise.logical_not(again), elementwise.not_equal(ids, _NOTHING)
    )


def _shared(ids: Tensor, others: Tensor) -> Tensor:
    """Whether each of `ids` is among `others`."""
    same = elementwise.equal(array.expand_dims(ids, -1), array.expand_dims(others, -2))
    return reduce.reduce_any(same, -1)


def _size(mask: Tensor) -> Tensor:
    return reduce.reduce_sum(elementwise.cast(mask, float64), -1)


def _at_k(
    what: str,
    other: str,
    labels: Any,
    predictions_idx: Any,
    k: int | None,
    class_id: int | None,
    weights: Any,
    metrics_collections: Collections,
    updates_collections: Collections,
    name: str | None,
) -> Metric:
    """True positives over the sum of them and of false positives or negatives."""
    sets = _sets(labels, predictions_idx, class_id)
    suffix = f"_at_{'k' if k is None else k}" + ("" if class_id is None else f"_class{class_id}")

    def sums() -> dict[str, Tensor]:
        labels, chosen = _elements(sets.labels), _elements(sets.predictions)
        right = elementwise.logical_and(chosen, _shared(sets.predictions, sets.labels))
        if other == "false_positive":
            wrong = elementwise.logical_and(chosen, elementwise.logical_not(right))
        else:
            missed = elementwise.logical_not(_shared(sets.labels, sets.predictions))
            wrong = elementwise.logical_and(labels, missed)
        sizes = {"true_positive": _size(right), other: _size(wrong)}
        return {
            kind + suffix: reduce.reduce_sum(
                size if weights is None else size * broadcast(weights, size, adjust=False)
            )
            for kind, size in sizes.items()
        }

    return streaming(
        name or what + suffix,
        sums,
        lambda right, wrong: right / (right + wrong),
        metrics_collections,
        updates_collections,
    )


def precision_at_top_k(
    labels: Any,
    predictions_idx: Any,
    k: int | None = None,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The fraction of the predicted classes of an example that are among its labels.

    Args:
        labels: int64: `(...)` with one label per example, `(..., labels)`, or a SparseTensor of
            that shape. Pad rows with fewer labels with values that are not classes, such as -1.
        predictions_idx: the predicted classes, int64 `(..., k)`.
        k: used in names only.
        class_id: the only class to count; all by default.
        weights: a scalar or one per example, `(...)`.
        metrics_collections, updates_collections, name: see `mean`.

    Returns:
        `(value, update_op)`, float64; NaN if no class was predicted.

    Raises:
        ValueError: the ranks do not match.
    """
    rest = (k, class_id, weights, metrics_collections, updates_collections, name)
    return _at_k("precision", "false_positive", labels, predictions_idx, *rest)


@arguments_of(precision_at_top_k)
def recall_at_top_k(**given: Any) -> Metric:
    """The fraction of the labels of an example that were predicted; see `precision_at_top_k`.

    Labels that are not classes count as missed. The value is NaN if there are no labels.
    """
    return _at_k("recall", "false_negative", **given)


def precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """`precision_at_top_k` of the k classes with the greatest scores.

    Args:
        labels, class_id, weights, metrics_collections, updates_collections, name: see
            `precision_at_top_k`.
        predictions: scores `(..., classes)`.
        k: the number of predicted classes per example.
    """
    rest = (k, class_id, weights, metrics_collections, updates_collections, name)
    return precision_at_top_k(labels, ranking.top_k(predictions, k).indices, *rest)


@arguments_of(precision_at_k)
def recall_at_k(predictions: Any, k: int, **given: Any) -> Metric:
    """`recall_at_top_k` of the k classes with the greatest scores; arguments: `precision_at_k`."""
    return recall_at_top_k(predictions_idx=ranking.top_k(predictions, k).indices, k=k, **given)


def average_precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The mean over examples of the average precision of their k best classes.

    The average precision is the sum of the precisions at the ranks of correct classes, divided by
    the number of labels, or by k if there are more labels.

    Args:
        labels, predictions, k, weights, metrics_collections, updates_collections, name: see
            `precision_at_k`.

    Returns:
        `(value, update_op)`, float64; NaN if an example has no labels, as in TensorFlow.

    Raises:
        ValueError: `k` is less than 1, or the ranks do not match.
    """
    if k < 1:
        raise ValueError(f"Invalid k={k}. `k` should be >= 1.")

    def sums() -> dict[str, Tensor]:
        scores = convert_to_tensor(predictions, name="predictions")
        sets = _sets(labels, ranking.top_k(scores, k).indices)
        relevant = elementwise.cast(_shared(sets.predictions, sets.labels), float64)
        precisions = reduce.cumsum(relevant, -1) / np.arange(1, k + 1, dtype=np.float64)
        counted = _countable(sets.labels, scores, isinstance(labels, _SPARSE))
        found = reduce.reduce_sum(precisions * relevant, -1)
        average = found / elementwise.minimum(_size(counted), float(k))
        full = broadcast(1.0 if weights is None else weights, average, adjust=False)
        # TensorFlow's names of the two variables.
        return {"max_1": reduce.reduce_sum(full), "total": reduce.reduce_sum(average * full)}

    return streaming(
        name or f"average_precision_at_{k}",
        sums,
        lambda count, total: elementwise.div_no_nan(total, count),
        metrics_collections,
        updates_collections,
    )


def _countable(labels: Tensor, scores: Tensor, are_sparse: bool) -> Tensor:
    """The labels that could have been found: dense ones repeated count again, as TensorFlow's."""
    if are_sparse:
        return _elements(labels)
    classes = elementwise.cast(array.shape(scores)[-1], int64)
    return elementwise.logical_and(
        elementwise.greater_equal(labels, convert_to_tensor(0, int64)),
        elementwise.less(labels, classes),
    )


sparse_precision_at_k = precision_at_k
sparse_average_precision_at_k = average_precision_at_k
