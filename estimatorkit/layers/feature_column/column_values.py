"""What columns make of a batch."""

from __future__ import annotations

from typing import NamedTuple

from estimatorkit.core.tensor import Tensor


class Ids(NamedTuple):
    """The ids of a batch, from a categorical column.

    Attributes:
        ids: int64 `(batch, width)`, or `(batch, steps, width)` for sequences. Negative ids are
            ignored (`feature_ids.ABSENT` marks a missing value).
        weights: float32 of the same shape; None if all are 1.
    """

    ids: Tensor
    weights: Tensor | None = None


class Sequence(NamedTuple):
    """The sequences of a batch, from a sequence column.

    Attributes:
        dense_tensor: float32 `(batch, steps, *variable_shape)`.
        sequence_length: int64 `(batch,)`, the number of steps of each example.
    """

    dense_tensor: Tensor
    sequence_length: Tensor
