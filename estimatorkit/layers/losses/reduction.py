"""What all losses share: `Reduction`, and how losses and weights become one number.

`compute_weighted_loss` does the weighting and the reduction for every loss, for the heads and for
Keras's losses. `as_reduction` also takes the names of `tf.keras.losses.Reduction`, which TensorFlow
2's estimators use. Losses of float64 stay float64 (TensorFlow computes them in float32). Losses of
labels and predictions of 16 bits are float32, except cross-entropies of logits: these are summed in
float32, and the result has their dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32, float64
from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Tensor
from estimatorkit.distribute.replica_context import note_loss_reduction
from estimatorkit.layers.weighting import aligned
from estimatorkit.ops.array import array, filling
from estimatorkit.ops.math import elementwise, reduce


class Reduction:
    """How a batch of weighted losses is reduced to a scalar.

    NONE: not at all. SUM: their sum. SUM_OVER_BATCH_SIZE: the sum divided by the number of losses.
    MEAN: the sum divided by the sum of the weights. SUM_BY_NONZERO_WEIGHTS: the sum divided by the
    number of nonzero weights. AUTO: TensorFlow 2's name for SUM_OVER_BATCH_SIZE.
    """

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    AUTO = SUM_OVER_BATCH_SIZE
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """All values."""
        return (
            cls.NONE,
            cls.SUM,
            cls.MEAN,
            cls.SUM_OVER_BATCH_SIZE,
            cls.SUM_OVER_NONZERO_WEIGHTS,
            cls.SUM_BY_NONZERO_WEIGHTS,
        )

    @classmethod
    def validate(cls, key: str) -> None:
        """Raises ValueError if `key` is none of the values."""
        as_reduction(key)


_BY_NAME = {
    "none": Reduction.NONE,
    "sum": Reduction.SUM,
    "sum_over_batch_size": Reduction.SUM_OVER_BATCH_SIZE,
    "auto": Reduction.SUM_OVER_BATCH_SIZE,
    "mean": Reduction.MEAN,
    "sum_by_nonzero_weights": Reduction.SUM_BY_NONZERO_WEIGHTS,
    "sum_over_nonzero_weights": Reduction.SUM_BY_NONZERO_WEIGHTS,
}


def as_reduction(value: Any, allow_none: bool = True) -> str:
    """Converts a name to a value of `Reduction`.

    Args:
        value: a value of `Reduction` or its name, or one of `tf.keras.losses.Reduction` ("sum",
            "auto", ...); case is ignored.
        allow_none: whether to accept NONE.

    Raises:
        ValueError: `value` is not a reduction, or is NONE and `allow_none` is False.
    """
    found = None
    if isinstance(value, str):
        found = _BY_NAME.get(value.lower().removeprefix("weighted_"))
    if found is None or (found == Reduction.NONE and not allow_none):
        names = [name for name in _BY_NAME if allow_none or name != "none"]
        near = did_you_mean(value.lower(), names) if isinstance(value, str) else None
        raise value_error(
            f"Invalid loss_reduction: {value}",
            expected="one of " + ", ".join(map(repr, names)),
            received=repr(value),
            hint=near or "'sum_over_batch_size' is the mean over the batch, 'sum' the sum",
        )
    return found


def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Multiplies losses by weights and reduces them to a scalar.

    Args:
        losses: floats of any shape, one loss per element.
        weights: a scalar, or of the shape of `losses`, where any dimension may be 1 instead.
        scope: the name scope.
        loss_collection: the collection to add the result to, or None.
        reduction: a `Reduction`.

    Returns:
        A scalar, or the weighted losses if `reduction` is NONE, of the dtype of `losses`.

    Raises:
        ValueError: the shape of the weights does not match, or `reduction` is not a `Reduction`.
    """
    chosen = as_reduction(reduction)
    note_loss_reduction(chosen)
    with get_default_graph().name_scope(scope or "weighted_loss"):
        values = convert_to_tensor(losses, name="losses")
        # In 16 bits neither the sum nor the number of losses would be exact.
        given = values.dtype
        if given is not float64:
            values = elementwise.cast(values, float32)
        is_one = isinstance(weights, (int, float)) and weights == 1
        fitting = None if is_one else aligned(weights, values, adjust=False)
        weighted = values if fitting is None else values * fitting
        if chosen == Reduction.NONE:
            loss = weighted
        else:
            loss = reduce.reduce_sum(weighted)
            if chosen != Reduction.SUM:
                divisor = _divisor(values, fitting, chosen)
                loss = elementwise.div_no_nan(loss, divisor, name="value")
        loss = elementwise.cast(loss, given)
        if loss_collection is not None:
            get_default_graph().add_to_collection(loss_collection, loss)
        return loss


def _divisor(values: Tensor, weights: Tensor | None, reduction: str) -> Tensor:
    if weights is None or reduction == Reduction.SUM_OVER_BATCH_SIZE:
        return elementwise.cast(array.size(values), values.dtype)
    full = filling.ones_like(values) * weights
    if reduction == Reduction.MEAN:
        return reduce.reduce_sum(full)
    zero = convert_to_tensor(0, full.dtype)
    return reduce.reduce_sum(elementwise.cast(elementwise.not_equal(full, zero), full.dtype))


def element_wise(
    name: str,
    loss: Callable[[Tensor, Tensor], Tensor],
    labels: Any,
    predictions: Any,
    weights: Any,
    scope: str | None,
    loss_collection: str | None,
    reduction: str,
    widens: bool = True,
) -> Tensor:
    """A loss of each prediction and its label, both cast to float.

    Args:
        name: the loss's name, its name scope by default.
        loss: gives a loss, or losses of examples, from labels and predictions.
        labels, predictions: numbers of one shape.
        weights, scope, loss_collection, reduction: see `compute_weighted_loss`.
        widens: compute predictions of 16 bits in float32, as their squares and small numbers added
            to them need.

    Raises:
        ValueError: one is None, or their shapes differ.
    """
    for what, value in (("labels", labels), ("predictions", predictions)):
        if value is None:
            raise ValueError(f"{what} must not be None.")
    with get_default_graph().name_scope(scope or name) as inner:
        guesses = convert_to_tensor(predictions, name="predictions")
        if not guesses.dtype.is_floating or (widens and guesses.dtype is not float64):
            guesses = elementwise.cast(guesses, float32)
        truth = convert_to_tensor(labels, dtype_hint=guesses.dtype, name="labels")
        truth = elementwise.cast(truth, guesses.dtype)
        if not truth.shape.is_compatible_with(guesses.shape):
            raise value_error(
                f"Shapes of labels and predictions are incompatible in {name}",
                expected=f"labels of shape {guesses.shape}",
                received=f"{truth.name} {truth.shape}",
                made_at=truth.op.source,
                hint="reshape or squeeze one of them; (batch, 1) and (batch,) are not the same",
            )
        return compute_weighted_loss(
            loss(truth, guesses), weights, inner, loss_collection, reduction
        )
