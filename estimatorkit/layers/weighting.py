"""How labels, predictions and weights are brought to shapes that fit: shared by losses and metrics.

Ranks that differ by one are reconciled by a last dimension of length 1; weights must then be a
scalar, or have in each dimension the length of the values or 1 (`tf.losses.compute_weighted_loss`).
Nothing else is broadcast: labels `(batch, 1)` against predictions `(batch,)` would otherwise
silently become a `(batch, batch)` matrix.
"""

from __future__ import annotations

from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import explain
from estimatorkit.core.ops import array, elementwise, filling
from estimatorkit.core.tensor import Tensor


def remove_squeezable_dimensions(
    labels: Any, predictions: Any, expected_rank_difference: int = 0
) -> tuple[Tensor, Tensor]:
    """Labels and predictions, the one with a superfluous last dimension of length 1 without it.

    Args:
        labels, predictions: tensors.
        expected_rank_difference: predictions' rank minus labels' rank, once they fit.
    """
    truth = convert_to_tensor(labels, name="labels")
    guesses = convert_to_tensor(predictions, name="predictions")
    if truth.shape.rank is None or guesses.shape.rank is None:
        return truth, guesses
    surplus = guesses.shape.rank - truth.shape.rank - expected_rank_difference
    if surplus == 1 and guesses.shape[-1] in (1, None):
        guesses = array.squeeze(guesses, [-1])
    elif surplus == -1 and truth.shape[-1] in (1, None):
        truth = array.squeeze(truth, [-1])
    return truth, guesses


def aligned(weights: Any, values: Tensor) -> Tensor:
    """`weights` as a floating tensor that broadcasts to `values`.

    Args:
        weights: numbers: a scalar, or of the rank of `values` or one more or less.
        values: what they will be multiplied with.

    Returns:
        A scalar, or a tensor of the rank of `values`; of the dtype of `values` where that is
        floating, else float32.

    Raises:
        ValueError: the shapes do not fit.
    """
    dtype = values.dtype if values.dtype.is_floating else float32
    given = convert_to_tensor(weights, dtype_hint=dtype, name="weights")
    tensor = elementwise.cast(given, dtype)
    rank, wanted = tensor.shape.rank, values.shape.rank
    if rank in (0, None) or wanted is None:
        return tensor
    if rank == wanted + 1 and tensor.shape[-1] == 1:
        tensor = array.squeeze(tensor, [-1])
    elif rank == wanted - 1:
        tensor = array.expand_dims(tensor, -1)
    if tensor.shape.rank != wanted or any(
        weight not in (1, None, value) and value is not None
        for weight, value in zip(tensor.shape, values.shape, strict=True)
    ):
        raise ValueError(
            explain(
                "weights can not be broadcast to values",
                expected=f"a scalar, or shape {values.shape} with 1 in any place",
                received=f"{given.name} {given.shape}",
                made_at=given.op.source,
                hint="give one weight an example, of shape (batch,) or (batch, 1)",
            )
        )
    return tensor


def broadcast(weights: Any, values: Tensor) -> Tensor:
    """`weights` in the full shape of `values` (see `aligned`)."""
    tensor = aligned(weights, values)
    return filling.ones_like(values, tensor.dtype) * tensor


def match_ranks(labels: Any, predictions: Any) -> tuple[Tensor, Tensor]:
    """Labels and predictions, the one that lacks a last dimension of length 1 with it.

    As `remove_squeezable_dimensions`, but nothing is lost: what is computed along the last axis
    then gives one value an example, which a weight an example fits.

    Args:
        labels, predictions: tensors.
    """
    truth = convert_to_tensor(labels, name="labels")
    guesses = convert_to_tensor(predictions, name="predictions")
    if truth.shape.rank is not None and guesses.shape.rank is not None:
        surplus = guesses.shape.rank - truth.shape.rank
        if surplus == 1 and guesses.shape[-1] == 1:
            truth = array.expand_dims(truth, -1)
        elif surplus == -1 and truth.shape[-1] == 1:
            guesses = array.expand_dims(guesses, -1)
    return truth, guesses
