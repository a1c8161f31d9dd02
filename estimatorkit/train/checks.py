"""How step checks come into a graph, or to the step that is being built; see `step_checks`."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from numpy.typing import NDArray

from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.runtime.step_checks import STEP_CHECKS, StepCheck, step_checks


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
    """Inside, what `offer_step_check` is given is put into the list: for what builds a step."""
    found: list[StepCheck] = []
    token = _collecting.set(found)
    try:
        yield found
    finally:
        _collecting.reset(token)


def offer_step_check(
    tensors: Sequence[Tensor], check: Callable[[list[NDArray[Any]]], None]
) -> None:
    """Gives a check to the step that is being built; does nothing where none is, or in the body of
    a function, whose values no step can fetch.
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
