"""Losses of numbers: how far predictions are from labels."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import explain
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.ops import array, elementwise, filling, joining, reduce
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.losses.reduction import Reduction, element_wise
from estimatorkit.layers.weighting import broadcast


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
        ValueError: shapes do not fit.
    """

    def loss(y: Tensor, p: Tensor) -> Tensor:
        return elementwise.squared_difference(p, y)

    name = "mean_squared_error"
    return element_wise(name, labels, predictions, loss, weights, scope, loss_collection, reduction)


def absolute_difference(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """|prediction - label|; arguments as for `mean_squared_error`."""

    def loss(y: Tensor, p: Tensor) -> Tensor:
        return elementwise.abs(p - y)

    name = "absolute_difference"
    return element_wise(name, labels, predictions, loss, weights, scope, loss_collection, reduction)


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

    return element_wise(
        "huber_loss", labels, predictions, loss, weights, scope, loss_collection, reduction
    )


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
        axis: the axis of the vectors; it stays, with length 1.
        weights: a scalar, or of the shape of `predictions` with 1 at `axis`.
        scope, loss_collection, reduction: see `compute_weighted_loss`.
        dim: the old name of `axis`.

    Raises:
        ValueError: there is no axis, or two of them.
    """
    if (axis is None) == (dim is None):
        raise ValueError(
            explain(
                "You must specify 'axis'.",
                expected="the axis of the vectors, as axis (or as dim, its old name)",
                received=f"axis={axis}, dim={dim}",
            )
        )
    along = dim if axis is None else axis

    def loss(y: Tensor, p: Tensor) -> Tensor:
        return 1 - reduce.reduce_sum(p * y, along, keepdims=True)

    name = "cosine_distance_loss"
    return element_wise(name, labels, predictions, loss, weights, scope, loss_collection, reduction)


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
        weights: a scalar, or one an example: `(batch,)` or `(batch, 1, ..., 1)`.
        scope, loss_collection: see `compute_weighted_loss`.
    """

    def loss(y: Tensor, p: Tensor) -> Tensor:
        rows = array.reshape(p - y, joining.stack([array.shape(p)[0], -1]))
        pairs = _pairwise(rows)
        given = convert_to_tensor(weights, dtype_hint=p.dtype, name="weights")
        if given.shape.rank not in (0, None):
            given = array.reshape(given, [-1])
        return pairs * broadcast(given, pairs)

    name = "mean_pairwise_squared_error"
    return element_wise(name, labels, predictions, loss, 1.0, scope, loss_collection, Reduction.SUM)


def _pairwise(differences: Tensor) -> Tensor:
    """2 (n sum(d**2) - sum(d)**2) / (n (n - 1)) of each row; 0 where a row has one element."""
    count = elementwise.cast(array.shape(differences)[-1], differences.dtype)
    square = reduce.reduce_sum(elementwise.square(differences), -1)
    whole = elementwise.square(reduce.reduce_sum(differences, -1))
    ordered = count * (count - 1)
    return 2 * elementwise.div_no_nan(count * square - whole, filling.ones_like(square) * ordered)
