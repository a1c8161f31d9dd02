"""Losses of numbers and margins as functions, as `tf.keras.losses`: one value per example.

Each takes labels and predictions of one shape and reduces the last axis. `as_floats` is what all of
them do first. Probabilities and divisors are kept `keras.backend.epsilon()` away from 0, as Keras
does.
"""

from __future__ import annotations

import math
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.keras.backend_state import epsilon
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.nn import nn


def as_floats(y_true: Any, y_pred: Any) -> tuple[Tensor, Tensor]:
    """Labels and predictions as tensors of one floating dtype: that of the predictions, or float32.

    Raises:
        ValueError: their shapes would only fit by broadcasting one of them to a matrix.
    """
    guesses = convert_to_tensor(y_pred, name="y_pred")
    if not guesses.dtype.is_floating:
        guesses = elementwise.cast(guesses, float32)
    truth = convert_to_tensor(y_true, dtype_hint=guesses.dtype, name="y_true")
    ranks = truth.shape.rank, guesses.shape.rank
    if None not in ranks and 0 not in ranks and ranks[0] != ranks[1]:
        raise value_error(
            "Shapes of y_true and y_pred are incompatible",
            expected=f"y_true of shape {guesses.shape}",
            received=f"{truth.name} {truth.shape}",
            made_at=truth.op.source,
            hint="reshape or squeeze one of them; (batch, 1) and (batch,) are not the same",
        )
    return elementwise.cast(truth, guesses.dtype), guesses


def clip(x: Tensor, low: float, high: float) -> Tensor:
    """`x`, kept within two numbers."""
    return elementwise.clip_by_value(
        x, convert_to_tensor(low, x.dtype), convert_to_tensor(high, x.dtype)
    )


def mean_squared_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of (prediction - label)**2 over the last axis.

    Args:
        y_true: labels `(..., d)`.
        y_pred: predictions `(..., d)`.

    Returns:
        `(...)`, of the dtype of `y_pred`.

    Raises:
        ValueError: the shapes do not match.
    """
    truth, guesses = as_floats(y_true, y_pred)
    return reduce.reduce_mean(elementwise.squared_difference(guesses, truth), -1)


def mean_absolute_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of |prediction - label|; arguments as for `mean_squared_error`."""
    truth, guesses = as_floats(y_true, y_pred)
    return reduce.reduce_mean(elementwise.abs(guesses - truth), -1)


def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Tensor:
    """100 times the mean of |(label - prediction) / label|, where |label| is at least 1e-7."""
    truth, guesses = as_floats(y_true, y_pred)
    size = elementwise.maximum(elementwise.abs(truth), epsilon())
    return 100.0 * reduce.reduce_mean(elementwise.abs((truth - guesses) / size), -1)


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of (log(1 + prediction) - log(1 + label))**2; values below 1e-7 count as 1e-7."""
    truth, guesses = as_floats(y_true, y_pred)
    first = elementwise.log(elementwise.maximum(guesses, epsilon()) + 1.0)
    second = elementwise.log(elementwise.maximum(truth, epsilon()) + 1.0)
    return reduce.reduce_mean(elementwise.squared_difference(first, second), -1)


def log_cosh(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of log(cosh(prediction - label)), computed without overflow."""
    truth, guesses = as_floats(y_true, y_pred)
    error = guesses - truth
    return reduce.reduce_mean(error + nn.softplus(-2.0 * error) - math.log(2.0), -1)


def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> Tensor:
    """The mean of error**2 / 2, continued linearly where |error| > delta.

    Args:
        y_true, y_pred: see `mean_squared_error`.
        delta: the absolute error above which the loss is linear.
    """
    truth, guesses = as_floats(y_true, y_pred)
    error = elementwise.abs(guesses - truth)
    quadratic = elementwise.minimum(error, delta)
    return reduce.reduce_mean(0.5 * quadratic * quadratic + delta * (error - quadratic), -1)


def poisson(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of prediction - label * log(prediction), where predictions are expected counts."""
    truth, guesses = as_floats(y_true, y_pred)
    return reduce.reduce_mean(guesses - truth * elementwise.log(guesses + epsilon()), -1)


def kl_divergence(y_true: Any, y_pred: Any) -> Tensor:
    """The sum of label * log(label / prediction) for distributions along the last axis."""
    truth, guesses = (clip(each, epsilon(), 1.0) for each in as_floats(y_true, y_pred))
    return reduce.reduce_sum(truth * elementwise.log(truth / guesses), -1)


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """The negative cosine similarity of labels and predictions: -1 if their directions agree.

    Args:
        y_true, y_pred: numbers of the same shape.
        axis: the axis of the vectors.
    """
    truth, guesses = (nn.l2_normalize(each, axis) for each in as_floats(y_true, y_pred))
    return elementwise.negative(reduce.reduce_sum(truth * guesses, axis))


def hinge(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of max(0, 1 - label * prediction).

    Args:
        y_true: -1 or 1; if all labels are 0 or 1, they are converted.
        y_pred: numbers of the same shape.
    """
    return reduce.reduce_mean(_margin(y_true, y_pred), -1)


def squared_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of max(0, 1 - label * prediction)**2; arguments as for `hinge`."""
    return reduce.reduce_mean(elementwise.square(_margin(y_true, y_pred)), -1)


def _margin(y_true: Any, y_pred: Any) -> Tensor:
    truth, guesses = as_floats(y_true, y_pred)
    with get_default_graph().name_scope("signs"):
        known = elementwise.logical_or(elementwise.equal(truth, 0.0), elementwise.equal(truth, 1.0))
        are_bits = elementwise.cast(reduce.reduce_all(known), truth.dtype)
        signs = truth + are_bits * (truth - 1.0)  # 2 y - 1 of bits
    return elementwise.maximum(1.0 - signs * guesses, 0.0)


def categorical_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """The multi-class hinge loss: max(0, 1 + largest wrong score - right score).

    Args:
        y_true: `(..., classes)`, 1 for the right class and 0 for the others.
        y_pred: scores `(..., classes)`.
    """
    truth, guesses = as_floats(y_true, y_pred)
    right = reduce.reduce_sum(truth * guesses, -1)
    wrong = reduce.reduce_max((1.0 - truth) * guesses, -1)
    return elementwise.maximum(wrong - right + 1.0, 0.0)
