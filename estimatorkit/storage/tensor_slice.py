"""`TensorSlice`: a range of a tensor in a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TensorSlice:
    """A range along one axis of the tensor `name`; the whole tensor if `size` is None."""

    name: str
    axis: int = 0
    start: int = 0
    size: int | None = None
