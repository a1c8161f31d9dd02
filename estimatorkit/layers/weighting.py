"""Shape alignment of labels, predictions and weights for losses and metrics.

Ranks that differ by one are reconciled by a last dimension of length 1; weights must then be a
scalar, or have in each dimension the length of the values or 1 (`tf.losses.compute_weighted_loss`).
Nothing else is broadcast: labels `(batch, 1)` against predictions `(batch,)` would otherwise
silently become a `(batch, batch)` matrix.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.array import filling
from estimatorkit.ops.debug.shape_matching import broadcastable, match_rank
from estimatorkit.ops.math import elementwise


def remove_squeezable_dimensions(
    labels: Any, predictions: Any, expected_rank_diff: int = 0, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Squeezes a superfluous last dimension of labels or predictions.

    Args:
        labels, predictions: tensors.
        expected_rank_diff: predictions' rank minus labels' rank, once they fit.
        name: the name scope.
    """
    with get_default_graph().name_scope(name) if name else nullcontext():
        truth = convert_to_tensor(labels, name="labels")
        guesses = convert_to_tensor(predictions, name="predictions")
        return (
            match_rank(truth, guesses, -expected_rank_diff),
            match_rank(guesses, truth, expected_rank_diff),
        )


def same_shapes(labels: Any, predictions: Any) -> tuple[Tensor, Tensor]:
    """Applies `remove_squeezable_dimensions`, and checks that the shapes are compatible.

    Raises:
        ValueError: the shapes are known to differ.
    """
    truth, guesses = remove_squeezable_dimensions(labels, predictions)
    guesses.shape.assert_is_compatible_with(truth.shape)
    return truth, guesses


def aligned(weights: Any, values: Tensor, adjust: bool = True) -> Tensor:
    """`weights` as a floating tensor that broadcasts to `values`.

    Args:
        weights: numbers: a scalar, or with the length of `values` or 1 in each dimension.
        values: the values they will be multiplied with.
        adjust: whether a last dimension of 1 may be missing, or be too many.

    Returns:
        A scalar, or a tensor of the rank of `values`; of the dtype of `values` where that is
        floating, else float32.

    Raises:
        ValueError: the shapes are known not to fit.
        InvalidArgumentError: when run: they do not fit.
    """
    dtype = values.dtype if values.dtype.is_floating else float32
    given = convert_to_tensor(weights, dtype_hint=dtype, name="weights")
    tensor = elementwise.cast(given, dtype)
    if adjust and given.shape.rank != 0:
        tensor = match_rank(tensor, values, adjust="either")
    return broadcastable(tensor, values)


def broadcast(weights: Any, values: Tensor, adjust: bool = True) -> Tensor:
    """Broadcasts `weights` to the shape of `values` (see `aligned`)."""
    tensor = aligned(weights, values, adjust)
    return filling.ones_like(values, tensor.dtype) * tensor


def assert_broadcastable(weights: Any, values: Any) -> Operation:
    """An operation that fails where `weights` do not fit `values` (see `broadcastable`).

    Raises:
        ValueError: the shapes are known not to fit.
    """
    given = convert_to_tensor(weights, name="weights")
    checked = broadcastable(given, convert_to_tensor(values, name="values"))
    done: Operation = builtin_ops.no_op() if checked is given else checked.op
    return done


def broadcast_weights(weights: Any, values: Any) -> Tensor:
    """`weights`, which must fit `values` (see `broadcastable`), in their full shape and dtype."""
    full = convert_to_tensor(values, name="values")
    given = convert_to_tensor(weights, full.dtype, name="weights")
    return broadcastable(given, full) * filling.ones_like(full)


def match_ranks(labels: Any, predictions: Any) -> tuple[Tensor, Tensor]:
    """Adds a last dimension of 1 to labels or predictions to match the other's rank.

    As `remove_squeezable_dimensions`, but nothing is lost: what is computed along the last axis
    then gives one value per example, which a weight per example fits.

    Args:
        labels, predictions: tensors.
    """
    truth = convert_to_tensor(labels, name="labels")
    guesses = convert_to_tensor(predictions, name="predictions")
    return match_rank(truth, guesses, adjust="column"), match_rank(guesses, truth, adjust="column")
