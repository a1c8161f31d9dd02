"""Losses of numbers: how far predictions are from labels."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.arguments import arguments_of
from estimatorkit.layers.losses.reduction import Reduction, element_wise
from estimatorkit.layers.weighting import aligned
from estimatorkit.ops.array import array, filling, joining
from estimatorkit.ops.math import elementwise, reduce


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """(prediction - label) squared.

    Args:
        labels: numbers of the shape of `predictions`.
        predictions: numbers of any shape.
        weights, scope, loss_collection, reduction: see `compute_weighted_loss`.

    Raises:
        ValueError: the shapes do not match.
    """

    def loss(y: Tensor, p: Tensor) -> Tensor:
        return elementwise.squared_difference(p, y)

    rest = (labels, predictions, weights, scope, loss_collection, reduction)
    return element_wise("mean_squared_error", loss, *rest)


@arguments_of(mean_squared_error)
def absolute_difference(**given: Any) -> Tensor:
    """|prediction - label|; arguments as for `mean_squared_error`."""
    return element_wise("absolute_difference", lambda y, p: elementwise.abs(p - y), **given)


def huber_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    delta: float = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """error**2 / 2 up to an absolute error of `delta`, and its tangent from there (Huber 1964).

    Args:
        labels, predictions, weights, scope, loss_collection, reduction: see `mean_squared_error`.
        delta: where the loss becomes linear.
    """

    def loss(y: Tensor, p: Tensor) -> Tensor:
        error = elementwise.abs(p - y)
        quadratic = elementwise.minimum(error, delta)
        return 0.5 * quadratic * quadratic + delta * (error - quadratic)

    rest = (labels, predictions, weights, scope, loss_collection, reduction)
    return element_wise("huber_loss", loss, *rest)


def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    dim: int | None = None,
) -> Tensor:
    """1 - the sum of label * prediction along an axis; both are taken to be of length 1 already.

    Args:
        labels, predictions: numbers of one shape.
        axis: the axis of the vectors; it is kept, with length 1.
        weights: a scalar, or of the shape of `predictions` with 1 at `axis`.
        scope, loss_collection, reduction: see `compute_weighted_loss`.
        dim: the old name of `axis`.

    Raises:
        ValueError: neither or both of `axis` and `dim` are given.
    """
    if (axis is None) == (dim is None):
        raise value_error(
            "You must specify 'axis'.",
            expected="the axis of the vectors, as axis (or as dim, its old name)",
            received=f"axis={axis}, dim={dim}",
        )
    along = dim if axis is None else axis

    def loss(y: Tensor, p: Tensor) -> Tensor:
        return 1 - reduce.reduce_sum(p * y, along, keepdims=True)

    rest = (labels, predictions, weights, scope, loss_collection, reduction)
    return element_wise("cosine_distance_loss", loss, *rest)


def mean_pairwise_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
) -> Tensor:
    """How much the differences within an example's predictions differ from those of its labels.

    The mean over pairs (i, j) of an example of ((p_i - p_j) - (l_i - l_j))**2, each pair in both
    orders; then the weighted sum over examples.

    Args:
        labels, predictions: numbers `(batch, d0, ..., dn)`.
        weights: a scalar, or one per example: `(batch, 1, ..., 1)`.
        scope, loss_collection: see `compute_weighted_loss`.
    """

    def loss(y: Tensor, p: Tensor) -> Tensor:
        fitting = aligned(weights, y, adjust=False)
        present = elementwise.cast(elementwise.not_equal(fitting, 0), p.dtype)
        differences = p - y
        shape = array.shape(differences)
        rows = joining.stack([shape[0], -1])
        pairs = _pairwise(
            array.reshape(differences, rows),
            array.reshape(filling.ones_like(differences) * present, rows),
        )
        # One number per example, with the rank of the weights.
        each = joining.concat([shape[:1], filling.ones_like(shape[1:])], 0)
        return array.reshape(pairs, each) * fitting

    rest = (labels, predictions, 1.0, scope, loss_collection, Reduction.SUM)
    return element_wise("mean_pairwise_squared_error", loss, *rest)


def _pairwise(differences: Tensor, present: Tensor) -> Tensor:
    """2 (n sum(d**2) - sum(d)**2) / (n (n - 1)) of each row; 0 if n, the number of elements that
    are present, is 0 or 1.
    """
    count = reduce.reduce_sum(present, -1)
    square = reduce.reduce_sum(elementwise.square(differences), -1)
    whole = elementwise.square(reduce.reduce_sum(differences, -1))
    return 2 * elementwise.div_no_nan(count * square - whole, count * (count - 1))
