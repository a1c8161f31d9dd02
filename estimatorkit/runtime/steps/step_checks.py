"""Step checks: assertions on values of a step, tested on the host after each call of the loop.

XLA cannot raise errors. A check consists of small tensors of the step (a minimum, a count), which
the loop fetches for every step, and a function of their values that raises. It is called before
results are used and checkpoints are written. A plain run of a session does the same for the checks
on what it computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from estimatorkit.core.graph import Graph
from estimatorkit.core.tensor import Operation, Tensor

STEP_CHECKS = "step_checks"
"""The collection; it holds Python functions, so no file can hold it."""


@dataclass(frozen=True)
class StepCheck:
    """An assertion on a step.

    Attributes:
        tensors: small device tensors of the step.
        check: called with their values, each with a leading axis of steps; raises if the assertion
            fails.
        of: the checked tensor: plain runs that consume it test the check, too. If None, only loops
            do.
    """

    tensors: tuple[Tensor, ...]
    check: Callable[[list[NDArray[Any]]], None]
    of: Tensor | None = None


def step_checks(graph: Graph) -> list[StepCheck]:
    """The checks of a graph."""
    return graph.get_collection(STEP_CHECKS)


def checks_of_run(
    graph: Graph,
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[Tensor],
) -> list[StepCheck]:
    """The checks that a plain run tests.

    Args:
        graph: the graph.
        fetches, targets: those of the run. Checks whose tensors are fetched are left to the caller.
        feeds: those of the run.
    """
    given = [each for each in step_checks(graph) if each.of is not None]
    if not given:
        return []
    pending = [*(tensor.op for tensor in fetches if tensor not in feeds), *targets]
    run: set[Operation] = set()
    consumed: set[Tensor | None] = set()
    while pending:
        op = pending.pop()
        if op not in run:
            run.add(op)
            consumed.update(op.inputs)
            pending.extend(tensor.op for tensor in op.inputs if tensor not in feeds)
            pending.extend(op.control_inputs)
    return [each for each in given if each.of in consumed and not set(each.tensors) & set(fetches)]
