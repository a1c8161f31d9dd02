"""Areas under the ROC and the precision-recall curve.

What a batch adds is a histogram of its predictions, one bucket between each two thresholds, for
positive and negative examples; the counts at every threshold follow from its sums from the end. So
a batch costs one pass over its examples, however many thresholds there are.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.conversion import make
from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import explain
from estimatorkit.core.ops import elementwise, filling, indexing, reduce
from estimatorkit.core.registry import Case
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.metrics.streaming import Collections, Metric, streaming
from estimatorkit.layers.weighting import broadcast, remove_squeezable_dimensions


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

    return streaming(
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
