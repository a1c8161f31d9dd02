"""`TensorSlice`: a range of a tensor in a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TensorSlice:
    """A range along one axis of a checkpoint's tensor, or all of it.

    Attributes:
        name: the tensor's.
        axis: the axis.
        start: where the range begins.
        size: its length; None for the whole tensor.
    """

    name: str
    axis: int = 0
    start: int = 0
    size: int | None = None
