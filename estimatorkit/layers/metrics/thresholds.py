"""Right and wrong decisions at many thresholds, by one pass over the examples.

An example is decided positive where its prediction is above a threshold. A batch gives a histogram
of its predictions, one bucket between each two thresholds, for positive and negative examples; the
counts at every threshold follow by running sums. So a batch costs one pass, however many thresholds
there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import registry
from estimatorkit.core.conversion import make
from estimatorkit.core.dtypes import bool_, float32
from estimatorkit.core.registry import Case, Spec
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.weighting import broadcast
from estimatorkit.ops.array import array, indexing
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.math.checked import checked


def _buckets(predictions: Any, limits: NDArray[Any], module: Any) -> Any:
    """How many of the rising `limits` each prediction exceeds; 0 for NaN."""
    known = module.where(predictions == predictions, predictions, -np.inf)
    steps = len(limits) - 1
    even = np.allclose(limits, np.linspace(0, 1, steps + 1), atol=1e-6) if steps else False
    if not even:
        return module.searchsorted(limits, known, side="left")
    # Estimated by a product and corrected by at most one: a binary search takes five times as long
    # on CPU.
    guess = module.ceil(module.clip(known, 0, 1) * np.float32(steps)).astype(np.int32)
    ends = np.concatenate([[-np.inf], limits, [np.inf]]).astype(np.float32)
    table = module.asarray(ends)
    above = (known > table[guess + 1]).astype(np.int32)
    return module.maximum(guess + above - (known <= table[guess]).astype(np.int32), 0)


def _counts(predictions: Any, labels: Any, weights: Any, thresholds: Any, module: Any = jnp) -> Any:
    """The four counts of `Counts`, in that order, at rising thresholds: `(4, thresholds, columns)`.

    From a histogram of positive (row 0) and negative (row 1) weights by bucket and column; bucket i
    holds predictions above i of the thresholds.
    """
    columns, buckets = predictions.shape[1], len(thresholds) + 1
    limits = np.asarray(thresholds, np.float32)
    place = _buckets(predictions, limits, module) * columns + module.arange(columns)
    weight = weights.reshape(-1)
    positive = labels.reshape(-1) != 0
    rows = module.stack([module.where(positive, weight, 0), module.where(positive, 0, weight)], 1)
    rows, start = rows.astype(np.float32), module.zeros((buckets * columns, 2), np.float32)
    if module is jnp:
        start = start.at[place.reshape(-1)].add(rows)
    else:
        np.add.at(start, place.reshape(-1), rows)
    histogram = start.T.reshape(2, buckets, columns)
    if module is np or buckets > _DENSE:
        below = module.cumsum(histogram, 1)[:, :-1]
        above = module.flip(module.cumsum(module.flip(histogram[:, 1:], 1), 1), 1)
    else:
        upper = np.triu(np.ones((buckets - 1, buckets), np.float32), 1)
        both = np.stack([upper, 1 - upper])
        above, below = jnp.einsum("dtb,sbc->dstc", both, histogram, precision="highest")
    return module.stack([above[0], below[0], below[1], above[1]])


_DENSE = 1024
"""Running sums up to here are one product of matrices: XLA compiles it in a tenth of the time."""


def _infer(inputs: Any, attrs: Any) -> list[Spec]:
    return [Spec(float32, TensorShape([4, len(attrs["thresholds"]), inputs[0].shape[1]]))]


def _case(thresholds: Any, expected: Any) -> Case:
    predictions = [[0.0], [0.2], [0.5], [0.51], [1.0]]
    columns = (predictions, [[0], [1], [1], [0], [1]], [[1], [1], [1], [2], [1]])
    return Case(
        tuple(np.array(each, np.float32) for each in columns),
        {"thresholds": np.array(thresholds, np.float32)},
        np.array(expected, np.float32)[..., None],
    )


registry.register(
    "ConfusionCounts",
    _counts,
    infer=_infer,
    gradient=None,
    numpy_kernel=lambda predictions, labels, weights, thresholds: _counts(
        predictions, labels, weights, thresholds, np
    ),
    cases=lambda: [
        _case([0.0, 0.5, 1.0], [[3, 1, 0], [0, 2, 3], [1, 1, 3], [2, 2, 0]]),
        _case([0.2, 0.5], [[2, 1], [1, 2], [1, 1], [2, 2]]),
    ],
)


class Counts(NamedTuple):
    """Weights of examples at each threshold, `(thresholds,)` or `(thresholds, columns)`."""

    true_positives: Tensor
    false_negatives: Tensor
    true_negatives: Tensor
    false_positives: Tensor


def even_thresholds(count: int, margin: float = 1e-7) -> list[float]:
    """0, ..., 1 in even steps, the first and the last moved outwards by `margin`."""
    inner = [(index + 1) / (count - 1) for index in range(count - 2)]
    return [0.0 - margin, *inner, 1.0 + margin]


def tested(labels: Tensor, predictions: Tensor) -> Tensor:
    """Predictions, which must be in [0, 1] when run; as in TensorFlow, any are taken where neither
    they nor the labels are cast, to float32 and bool."""
    if predictions.dtype is float32 and labels.dtype is bool_:
        return predictions
    return checked(elementwise.cast(predictions, float32), "probability")


def counts_at(
    labels: Tensor,
    predictions: Tensor,
    weights: Any,
    thresholds: Sequence[float],
    by_column: bool = False,
) -> Counts:
    """The counts of a batch.

    Args:
        labels: of the shape of `predictions`; all but 0 is positive.
        predictions: floats, `(batch, ...)`.
        weights: None, a scalar, or of the shape of `predictions` with 1 in any place.
        thresholds: numbers in any order.
        by_column: whether each column of `(batch, columns)` counts separately.
    """
    guesses = elementwise.cast(predictions, float32)
    each = {
        "predictions": guesses,
        "labels": elementwise.cast(labels, float32),
        "weights": broadcast(1.0 if weights is None else weights, guesses),
    }
    if not by_column:
        each = {key: array.reshape(value, [-1, 1]) for key, value in each.items()}
    given = np.asarray(thresholds, np.float32)
    order = np.argsort(given, kind="stable")
    counts = make("ConfusionCounts", each, {"thresholds": given[order]})
    if not by_column:
        counts = array.squeeze(counts, [-1])
    if not np.array_equal(order, np.arange(len(order))):
        counts = indexing.gather(counts, np.argsort(order).astype(np.int32), axis=1)
    return Counts(*(counts[kind] for kind in range(4)))
