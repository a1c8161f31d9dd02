"""Streaming metrics in graph form, as `tf.metrics`: each function gives `(value, update_op)`.

A metric is sums over the examples seen and a formula of these sums: `_streaming` makes a local
variable for each sum (collections LOCAL_VARIABLES and METRIC_VARIABLES: no checkpoint holds them),
adds to it in `update_op`, and computes `value` from them. Updates are pure device operations, so an
evaluation can run many batches in one XLA call; sums, not means of batches, are kept, so a short
last batch counts by its examples. Sums are float32, as TensorFlow's: counts are exact up to 2**24
examples of weight 1, and off by at most one part in 2**24 a batch after that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.conversion import constant, convert_to_tensor, make
from estimatorkit.core.dtypes import bool_, float32
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.ops import array, elementwise, filling, indexing, reduce
from estimatorkit.core.registry import Case
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.layers.weighting import broadcast, remove_squeezable_dimensions

Metric = tuple[Tensor, Tensor]
Collections = Sequence[str] | None


def _streaming(
    name: str,
    sums: Callable[[], dict[str, Tensor]],
    formula: Callable[..., Tensor],
    metrics_collections: Collections,
    updates_collections: Collections,
) -> Metric:
    """A metric.

    Args:
        name: its name scope.
        sums: makes what a batch adds to each sum, by the variable's name; shapes are known.
        formula: the metric from the sums, in that order.
        metrics_collections, updates_collections: collections that take the value and the update.
    """
    graph = get_default_graph()
    with graph.name_scope(name):
        increments = sums()
        variables = [
            Variable(
                np.zeros(increment.shape.as_list(), np.float32),
                trainable=False,
                collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
                name=key,
            )
            for key, increment in increments.items()
        ]
        value = array.identity(formula(*(each.value() for each in variables)), name="value")
        updated = [
            variable.assign_add(increment)
            for variable, increment in zip(variables, increments.values(), strict=True)
        ]
        update = array.identity(formula(*updated), name="update_op")
    graph.add_to_collections(metrics_collections or (), value)
    graph.add_to_collections(updates_collections or (), update)
    return value, update


def _weighted_sums(values: Any, weights: Any) -> dict[str, Tensor]:
    """`total`: the sum of the weighted values; `count`: the sum of the weights."""
    tensor = elementwise.cast(convert_to_tensor(values, name="values"), float32)
    if weights is None:
        count = elementwise.cast(array.size(tensor), float32)
        return {"total": reduce.reduce_sum(tensor), "count": count}
    full = broadcast(weights, tensor)
    return {"total": reduce.reduce_sum(tensor * full), "count": reduce.reduce_sum(full)}


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
    return _streaming(
        name or "mean",
        lambda: _weighted_sums(values, weights),
        elementwise.div_no_nan,
        metrics_collections,
        updates_collections,
    )


def accuracy(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """How often predictions equal labels; arguments as for `mean_squared_error`."""

    def sums() -> dict[str, Tensor]:
        truth, guesses = remove_squeezable_dimensions(labels, predictions)
        hits = elementwise.equal(elementwise.cast(guesses, truth.dtype), truth)
        return _weighted_sums(hits, weights)

    return _streaming(
        name or "accuracy", sums, elementwise.div_no_nan, metrics_collections, updates_collections
    )


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
    return _streaming(
        name or "accuracy_baseline",
        lambda: _weighted_sums(labels, weights),
        lambda total, count: elementwise.div_no_nan(
            elementwise.maximum(total, count - total), count
        ),
        metrics_collections,
        updates_collections,
    )


def _errors(
    name: str,
    error: Callable[[Tensor, Tensor], Tensor],
    formula: Callable[[Tensor, Tensor], Tensor],
    labels: Any,
    predictions: Any,
    weights: Any,
    metrics_collections: Collections,
    updates_collections: Collections,
) -> Metric:
    def sums() -> dict[str, Tensor]:
        truth, guesses = remove_squeezable_dimensions(labels, predictions)
        truth.shape.assert_is_compatible_with(guesses.shape)
        difference = error(elementwise.cast(guesses, float32), elementwise.cast(truth, float32))
        return _weighted_sums(difference, weights)

    return _streaming(name, sums, formula, metrics_collections, updates_collections)


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
    return _errors(
        name or "mean_squared_error",
        *(elementwise.squared_difference, elementwise.div_no_nan, labels, predictions, weights),
        *(metrics_collections, updates_collections),
    )


def root_mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The root of `mean_squared_error`, with its arguments."""
    return _errors(
        name or "root_mean_squared_error",
        elementwise.squared_difference,
        lambda total, count: elementwise.sqrt(elementwise.div_no_nan(total, count)),
        *(labels, predictions, weights, metrics_collections, updates_collections),
    )


def mean_absolute_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Collections = None,
    updates_collections: Collections = None,
    name: str | None = None,
) -> Metric:
    """The mean of |prediction - label|; arguments as for `mean_squared_error`."""
    return _errors(
        name or "mean_absolute_error",
        lambda guesses, truth: elementwise.abs(guesses - truth),
        elementwise.div_no_nan,
        *(labels, predictions, weights, metrics_collections, updates_collections),
    )


# -- counts of right and wrong decisions


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

    return _streaming(
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

    return _streaming(name, sums, lambda count: count, metrics_collections, updates_collections)


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


# -- areas under curves


def _histogram(predictions: Any, labels: Any, weights: Any, buckets: int, module: Any = jnp) -> Any:
    """Weights of positive (row 0) and negative (row 1) examples by bucket of the prediction.

    Bucket i holds predictions in (i / (buckets - 1), (i + 1) / (buckets - 1)], the first also 0.
    """
    flat = module.clip(predictions, 0, 1).reshape(-1)
    index = module.maximum(module.ceil(flat * np.float32(buckets - 1)) - 1, 0).astype(np.int32)
    positive = labels.reshape(-1) != 0
    weight = weights.reshape(-1)
    rows = module.stack([module.where(positive, weight, 0), module.where(positive, 0, weight)], 1)
    start = module.zeros((buckets, 2), np.float32)
    if module is jnp:
        return start.at[index].add(rows.astype(np.float32)).T
    np.add.at(start, index, rows)
    return start.T


registry.register(
    "ConfusionHistogram",
    _histogram,
    infer=lambda inputs, attrs: [registry.Spec(float32, TensorShape([2, attrs["buckets"]]))],
    gradient=None,
    numpy_kernel=lambda predictions, labels, weights, buckets: _histogram(
        predictions, labels, weights, buckets, np
    ),
    cases=lambda: [
        Case(
            (
                np.array([0.0, 0.2, 0.5, 0.51, 1.0], np.float32),
                np.array([0, 1, 1, 0, 1], np.float32),
                np.array([1, 1, 1, 2, 1], np.float32),
            ),
            {"buckets": 3},
            np.array([[2, 1, 0], [1, 2, 0]], np.float32),
        )
    ],
)

_SUMMATIONS = ("trapezoidal", "careful_interpolation", "interpolation", "minoring", "majoring")


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
) -> Metric:
    """The area under the ROC or the precision-recall curve, from evenly spaced thresholds.

    Args:
        labels: of the shape of `predictions`; all but 0 is positive.
        predictions: probabilities in [0, 1] (others count as the nearer of the two).
        weights, metrics_collections, updates_collections, name: see `mean`.
        num_thresholds: how many points of the curve are kept; the cost of a batch does not depend
            on it.
        curve: "ROC" or "PR".
        summation_method: "trapezoidal", "minoring", "majoring" (heights of the rectangles), or
            "careful_interpolation" (PR only; Davis & Goadrich 2006). "interpolation" is what the
            heads of `tf.estimator` use: trapezoidal for ROC, careful for PR.

    Returns:
        `(value, update_op)`.

    Raises:
        ValueError: an argument is none of these.
    """
    careful = summation_method == "careful_interpolation" or (
        summation_method == "interpolation" and curve == "PR"
    )
    if (
        curve not in ("ROC", "PR")
        or summation_method not in _SUMMATIONS
        or (careful and curve != "PR")
        or num_thresholds < 2
    ):
        raise ValueError(
            explain(
                "auc: an argument is out of its range",
                expected="curve 'ROC' or 'PR', num_thresholds > 1, 'careful_interpolation' with "
                f"'PR' only, summation_method in {_SUMMATIONS}",
                received=f"curve={curve!r}, num_thresholds={num_thresholds}, "
                f"summation_method={summation_method!r}",
            )
        )

    def sums() -> dict[str, Tensor]:
        truth, guesses = remove_squeezable_dimensions(labels, predictions)
        truth.shape.assert_is_compatible_with(guesses.shape)
        guesses = elementwise.cast(guesses, float32)
        inputs = {
            "predictions": guesses,
            "labels": elementwise.cast(truth, float32),
            "weights": broadcast(1.0 if weights is None else weights, guesses),
        }
        return {"histogram": make("ConfusionHistogram", inputs, {"buckets": num_thresholds})}

    return _streaming(
        name or "auc",
        sums,
        _area_careful if careful else lambda histogram: _area(histogram, curve, summation_method),
        metrics_collections,
        updates_collections,
    )


def _points(histogram: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """True and false positives at each threshold, and all positives and negatives."""
    above = reduce.cumsum(histogram, 1, reverse=True)
    return above[0], above[1], above[0, 0], above[1, 0]


def _area(histogram: Tensor, curve: str, summation_method: str) -> Tensor:
    right, wrong, positives, negatives = _points(histogram)
    # tf.metrics lets the precision of no decisions be 1, tf.keras.metrics ("interpolation") 0.
    epsilon = 0.0 if summation_method == "interpolation" else 1e-6
    recalls = elementwise.div_no_nan(right + epsilon, positives + epsilon)
    if curve == "ROC":
        x, y = elementwise.div_no_nan(wrong, negatives + epsilon), recalls
    else:
        x, y = recalls, elementwise.div_no_nan(right + epsilon, right + wrong + epsilon)
    if summation_method == "minoring":
        heights = elementwise.minimum(y[:-1], y[1:])
    elif summation_method == "majoring":
        heights = elementwise.maximum(y[:-1], y[1:])
    else:
        heights = (y[:-1] + y[1:]) / 2.0
    return reduce.reduce_sum((x[:-1] - x[1:]) * heights)


def _area_careful(histogram: Tensor) -> Tensor:
    """The integral of precision over recall where true and false positives are linear between
    thresholds.
    """
    right, wrong, positives, _ = _points(histogram)
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
    return reduce.reduce_sum(elementwise.div_no_nan(area, positives))


__all__ = [
    "accuracy",
    "accuracy_baseline",
    "auc",
    "false_negatives",
    "false_positives",
    "mean",
    "mean_absolute_error",
    "mean_squared_error",
    "precision",
    "precision_at_thresholds",
    "recall",
    "recall_at_thresholds",
    "root_mean_squared_error",
    "true_negatives",
    "true_positives",
]
