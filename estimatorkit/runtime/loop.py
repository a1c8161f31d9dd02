"""`StepLoop`: runs many steps of a graph, with as few calls of executables as its kind can.

A step is a set of operations and fetches without feeds (`StepSpec`): in training, the update and
the loss. A session's state opens the loop of its kind.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from numpy.typing import NDArray

from estimatorkit.core.tensor import Operation, Tensor


@dataclass(frozen=True)
class Steps:
    """The result of `StepLoop.run`.

    Attributes:
        count: how many steps ran.
        every: the values of the tensors fetched at every step, each `(count, ...)`.
        after: the values of the tensors fetched after the last step.
        ended: whether the input has ended.
        elements: the elements that the steps consumed: columns, first row and number of rows; empty
            if steps ran one by one.
    """

    count: int
    every: list[NDArray[Any]]
    after: list[NDArray[Any]]
    ended: bool
    elements: tuple[tuple[Sequence[Any], int, int], ...] = ()

    def element(self, number: int) -> list[Any] | None:
        """The tensors of the element consumed by step `number`, or None if unknown."""
        for columns, start, count in self.elements:
            if number < count:
                return [column[start + number] for column in columns]
            number -= count
        return None


@dataclass(frozen=True)
class StepSpec:
    """The specification of a loop's steps.

    Attributes:
        every: tensors fetched at every step.
        targets: operations run at every step.
        after: tensors fetched once after the last step of a call; they may depend on variables
            only. The first of them counts the steps of all processes.
        source: maps an operation that takes the next element to its source of elements.
        name: the executable's name in `State.compilations`.
        of_each: those of `every` to return for each replica of this process, concatenated; of the
            others, the first replica's value is returned.
        is_brief: whether there may be so few steps that compiling them takes longer than NumPy.
    """

    every: Sequence[Tensor]
    targets: Sequence[Operation]
    after: Sequence[Tensor]
    source: Callable[[Operation], Any]
    name: str
    of_each: Sequence[Tensor] = ()
    is_brief: bool = False


class StepLoop(ABC):
    """Runs the steps of a `StepSpec`; opened by `State.step_loop`.

    Attributes:
        operations: those of a step.
        runs_singly: whether each step is a call of an executable, as a run of a session is.
        input_failed: whether the input has raised an error; the steps before it were complete.
    """

    operations: Sequence[Operation]
    runs_singly = False
    input_failed = False
    _input_error: Exception | None = None

    @abstractmethod
    def run(self, steps: int, until: float = math.inf) -> Steps:
        """Runs up to `steps` steps, fewer if the input ends.

        If the input raises an error, or a step that runs in one call with others, the steps before
        it are run, and the next call raises it.

        Args:
            steps: the maximum.
            until: stop when the first of `after`, which other processes may also increment, reaches
                this value.

        Raises:
            OutOfRangeError: the input ended before the first step.
            OpError: an operation failed, or another task is unreachable.
        """

    @abstractmethod
    def describe(self) -> str:
        """A description: the plan of a step, and how many steps run in one call."""

    def leave(self, interrupted: bool = False) -> None:  # noqa: B027 (most run alone)
        """Tells other processes that run the same steps that this one stops.

        Args:
            interrupted: whether it stops before the training is complete.
        """

    def _raise_input_error(self) -> NoReturn:
        error, self._input_error = self._input_error, None
        self.input_failed = True
        raise error or RuntimeError("no step was run")
