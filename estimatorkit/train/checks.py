"""Step checks: conditions on values inside a step, looked at on the host after each loop call.

XLA cannot raise. A check names small tensors of the step (a minimum, a count); the loop fetches
them for every step and gives them to a function that raises. Until it has, results are not used and
no checkpoint is written.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.tensor import Tensor

STEP_CHECKS = "step_checks"
"""The collection; it holds Python functions, so no file can hold it."""


@dataclass(frozen=True)
class StepCheck:
    """A condition on a step.

    Attributes:
        tensors: small device tensors of the step.
        check: called with their values, each with a leading axis of steps; raises where the
            condition fails.
    """

    tensors: tuple[Tensor, ...]
    check: Callable[[list[NDArray[Any]]], None]


def add_step_check(
    tensors: Sequence[Tensor], check: Callable[[list[NDArray[Any]]], None]
) -> StepCheck:
    """Adds a check to the graph of `tensors`."""
    added = StepCheck(tuple(tensors), check)
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


def step_checks(graph: Graph) -> list[StepCheck]:
    """The checks of a graph."""
    return graph.get_collection(STEP_CHECKS)
