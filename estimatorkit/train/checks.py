"""Registration of step checks in a graph, or in the step under construction (`step_checks`)."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from numpy.typing import NDArray

from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.runtime.steps.step_checks import STEP_CHECKS, StepCheck, step_checks


def add_step_check(
    tensors: Sequence[Tensor],
    check: Callable[[list[NDArray[Any]]], None],
    of: Tensor | None = None,
) -> StepCheck:
    """Adds a check to the graph of `tensors`; see `StepCheck`."""
    added = StepCheck(tuple(tensors), check, of)
    graph = tensors[0].graph if tensors else get_default_graph()
    graph.add_to_collection(STEP_CHECKS, added)
    return added


_collecting: contextvars.ContextVar[list[StepCheck] | None] = contextvars.ContextVar(
    "estimatorkit_step_checks", default=None
)


@contextmanager
def collecting_step_checks() -> Iterator[list[StepCheck]]:
    """Collects the checks given to `offer_step_check` within the context."""
    found: list[StepCheck] = []
    token = _collecting.set(found)
    try:
        yield found
    finally:
        _collecting.reset(token)


def offer_step_check(
    tensors: Sequence[Tensor], check: Callable[[list[NDArray[Any]]], None]
) -> None:
    """Adds a check to the step under construction, if any.

    Ignored in function bodies, whose values a step cannot fetch.
    """
    found = _collecting.get()
    if found is not None and all(each.graph.outermost is each.graph for each in tensors):
        found.append(StepCheck(tuple(tensors), check))


__all__ = [
    "STEP_CHECKS",
    "StepCheck",
    "add_step_check",
    "collecting_step_checks",
    "offer_step_check",
    "step_checks",
]
