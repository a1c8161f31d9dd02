"""`ReplicaContext`: what layers and optimizers know of replicas while a model is built.

Under a strategy a `model_fn` is called once, and several replicas run the graph that it builds,
each on its own batch. What they all change has to be the same for all: gradients are summed before
an optimizer applies them, sums of metrics are summed, moving averages averaged. Where nobody builds
for replicas, or for one, the functions here change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.tensor import Tensor

SUM = "weighted_sum"
"""The reduction of losses that is not divided by a batch's size (`losses.Reduction.SUM`)."""


@dataclass(eq=False)
class ReplicaContext:
    """A model that is being built for replicas.

    Attributes:
        count: how many replicas run it.
        all_reduce: sums a list of tensors over the replicas, or takes their means.
        all_gather: concatenates the rows of all replicas, for each tensor of a list.
        loss_reduction: how the loss that was made last was reduced over its batch.
        is_loss_divided: whether an optimizer took the loss as this replica's part of a mean.
    """

    count: int
    all_reduce: Callable[..., list[Tensor]]
    all_gather: Callable[..., list[Tensor]]
    loss_reduction: str | None = None
    is_loss_divided: bool = False


_current: ContextVar[ReplicaContext | None] = ContextVar("replica_context", default=None)


@contextmanager
def building_for(context: ReplicaContext | None) -> Iterator[None]:
    """Inside, a model is built for replicas."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


def replica_context() -> ReplicaContext | None:
    """The model that is being built for several replicas; None where there is none."""
    context = _current.get()
    return context if context is not None and context.count > 1 else None


def note_loss_reduction(reduction: str) -> None:
    """Says how a loss was reduced over its batch."""
    context = replica_context()
    if context is not None:
        context.loss_reduction = reduction


def divided_loss(loss: Tensor) -> Tensor:
    """A replica's loss as its part of the mean over all, unless losses are sums (see
    `note_loss_reduction`): the sum of the gradients is then that of one batch of all examples.
    """
    context = replica_context()
    if context is None or context.loss_reduction == SUM:
        return loss
    context.is_loss_divided = True
    return loss * (1.0 / context.count)


def over_replicas(value: Any, mean: bool = False) -> Any:
    """A tensor's sum over all replicas, or its mean."""
    context = replica_context()
    return value if context is None else context.all_reduce([value], mean)[0]


def summed_gradients(gradients: Sequence[Any]) -> list[Any]:
    """Gradients summed over all replicas: tensors, and `IndexedSlices`, whose rows are those of all
    replicas one after the other.
    """
    context = replica_context()
    if context is None or not gradients:
        return list(gradients)
    slices = [each for each in gradients if isinstance(each, IndexedSlices)]
    dense = [each for each in gradients if not isinstance(each, IndexedSlices)]
    sums = iter(context.all_reduce(dense) if dense else ())
    parts = [part for each in slices for part in (each.values, each.indices)]
    rows = iter(context.all_gather(parts) if parts else ())
    return [
        IndexedSlices(next(rows), next(rows), each.dense_shape)
        if isinstance(each, IndexedSlices)
        else next(sums)
        for each in gradients
    ]


__all__ = [
    *("ReplicaContext", "building_for", "divided_loss", "note_loss_reduction", "over_replicas"),
    *("replica_context", "summed_gradients"),
]
