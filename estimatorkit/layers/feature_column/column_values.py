"""What columns make of a batch."""

from __future__ import annotations

from typing import NamedTuple

from estimatorkit.core.tensor import Tensor


class Ids(NamedTuple):
    """What a categorical column makes of a batch.

    Attributes:
        ids: int64 `(batch, width)`, `(batch, steps, width)` for sequences. What is below 0 counts
            for nothing (`feature_ids.ABSENT`: there was no value).
        weights: float32 of the same shape; None if all are 1.
    """

    ids: Tensor
    weights: Tensor | None = None


class Sequence(NamedTuple):
    """What a sequence column makes of a batch.

    Attributes:
        dense_tensor: float32 `(batch, steps, *variable_shape)`.
        sequence_length: int64 `(batch,)`, the number of steps of each example.
    """

    dense_tensor: Tensor
    sequence_length: Tensor
