"""`ReplicaContext`: tells layers and optimizers about replicas while a model is built.

Under a strategy, `model_fn` is called once and several replicas run the graph, each on its own
batch. Updates of shared state must be equal in all: gradients and metrics are summed over replicas,
moving averages averaged. With a single replica, the functions here have no effect.
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
    """The replicas that a model is being built for.

    Attributes:
        count: the number of replicas.
        all_reduce: sums or averages a list of tensors over the replicas.
        all_gather: concatenates each tensor of a list over the replicas.
        loss_reduction: the batch reduction of the most recently built loss.
        is_loss_divided: whether an optimizer divided the loss by the number of replicas.
    """

    count: int
    all_reduce: Callable[..., list[Tensor]]
    all_gather: Callable[..., list[Tensor]]
    loss_reduction: str | None = None
    is_loss_divided: bool = False


_current: ContextVar[ReplicaContext | None] = ContextVar("replica_context", default=None)


@contextmanager
def building_for(context: ReplicaContext | None) -> Iterator[None]:
    """A context manager that sets the replica context."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


def replica_context() -> ReplicaContext | None:
    """The current replica context; None unless there are several replicas."""
    context = _current.get()
    return context if context is not None and context.count > 1 else None


def note_loss_reduction(reduction: str) -> None:
    """Records the batch reduction of a loss."""
    context = replica_context()
    if context is not None:
        context.loss_reduction = reduction


def divided_loss(loss: Tensor) -> Tensor:
    """Divides a loss by the number of replicas, unless losses are sums (see
    `note_loss_reduction`), so that summed gradients are those of one large batch.
    """
    context = replica_context()
    if context is None or context.loss_reduction == SUM:
        return loss
    context.is_loss_divided = True
    return loss * (1.0 / context.count)


def over_replicas(value: Any, mean: bool = False) -> Any:
    """The sum or mean of a tensor over all replicas."""
    context = replica_context()
    return value if context is None else context.all_reduce([value], mean)[0]


def summed_gradients(gradients: Sequence[Any]) -> list[Any]:
    """Sums gradients over all replicas; the rows of `IndexedSlices` are concatenated."""
    context = replica_context()
    if context is None or not gradients:
        return list(gradients)
    slices = [each for each in gradients if isinstance(each, IndexedSlices)]
    dense = [each for each in gradients if not isinstance(each, IndexedSlices)]
    sums = iter(context.all_reduce(dense) if dense else ())
    parts = [part for each in slices for part in (each.all_values, each.all_indices)]
    rows = iter(context.all_gather(parts) if parts else ())
    return [
        IndexedSlices(next(rows), next(rows), each.dense_shape)
        if isinstance(each, IndexedSlices)
        else next(sums)
        for each in gradients
    ]


__all__ = [
    "ReplicaContext",
    "building_for",
    "divided_loss",
    "note_loss_reduction",
    "over_replicas",
    "replica_context",
    "summed_gradients",
]
