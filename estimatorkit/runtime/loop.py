"""`StepLoop`: runs many steps of a graph; `LocalStepLoop` runs those of one process in one XLA
call.

A step is a set of operations and fetches without feeds: in training, the update and the loss. Where
its plan takes the next elements of one source, does host work that depends on them alone (ids of
words, crosses), and then is one device segment, the steps of a whole block of elements run inside
one executable, a loop over the block; the host work is done for the whole block when it is read.
The executable takes the range of steps, so that it is the same one however many steps are asked
for, and results are equal to the bit for every way of asking (`compiled_loop`). Any other plan
(`py_func`, queues) runs one step a call, by the session.

The source of elements is anything with `block(prepare)` and a `lock` (see
`data.execution.cursor.Cursor`): this module does not know datasets.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import OpError, OutOfRangeError
from estimatorkit.core.registry import takes_element
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.runtime import compiled_loop
from estimatorkit.runtime.batched_executor import BatchedExecutor
from estimatorkit.runtime.compiled_loop import CompiledLoop, ScannableStep, SingleDevice
from estimatorkit.runtime.executor import PlanRunner, State
from estimatorkit.runtime.indexed_columns import IndexedColumn, MemoizedRowTransform, materialize
from estimatorkit.runtime.plan import make_plan


@dataclass(frozen=True)
class Steps:
    """What a call of `StepLoop.run` did.

    Attributes:
        count: how many steps ran.
        every: for each tensor fetched at every step its values, `(count, ...)`.
        after: the values of the tensors fetched after the last step.
        ended: whether the input has ended.
        elements: where the elements are that the steps took: columns, the row of the first, and how
            many; none where steps ran one by one.
    """

    count: int
    every: list[NDArray[Any]]
    after: list[NDArray[Any]]
    ended: bool
    elements: tuple[tuple[Sequence[Any], int, int], ...] = ()

    def element(self, number: int) -> list[Any] | None:
        """The tensors of the element that a step took, by its number; None where not known."""
        for columns, start, count in self.elements:
            if number < count:
                return [column[start + number] for column in columns]
            number -= count
        return None


@dataclass(frozen=True)
class StepSpec:
    """What the steps of a loop are.

    Attributes:
        every: tensors fetched at every step.
        targets: operations run at every step.
        after: tensors fetched once after the last step of a call; they may depend on variables
            only. The first of them counts the steps of all processes.
        source: gives the object with `block(prepare)` and `lock` for an operation that takes the
            next element.
        name: what the executable is called where compilations are counted.
        of_each: those of `every` that are wanted of each replica of this process, as if these had
            taken one step after the other; of the others, the first replica's.
    """

    every: Sequence[Tensor]
    targets: Sequence[Operation]
    after: Sequence[Tensor]
    source: Callable[[Operation], Any]
    name: str
    of_each: Sequence[Tensor] = ()


class StepLoop(ABC):
    """Runs the steps of a `StepSpec`; a session's state makes its kind (`State.step_loop`).

    Attributes:
        operations: those of a step.
        input_failed: whether the input has raised an error: the steps before it were whole.
    """

    operations: Sequence[Operation]
    input_failed = False
    _input_error: Exception | None = None

    @abstractmethod
    def run(self, steps: int, until: float = math.inf) -> Steps:
        """Runs up to `steps` steps, fewer where the input ends.

        Where the input fails, the steps before are run, and the next call raises its error.

        Args:
            steps: how many at most.
            until: the value of the first of `after` at which there is enough, where other processes
                move it, too.

        Raises:
            OutOfRangeError: the input has ended before the first of them.
            OpError: an operation refuses its inputs, or another task cannot be reached.
        """

    @abstractmethod
    def describe(self) -> str:
        """How the steps run, as text: the plan of one, and how many are one call."""

    def leave(self, interrupted: bool = False) -> None:  # noqa: B027 (most have nobody to tell)
        """Says, where other processes run the same steps, that this one takes no further step.

        Args:
            interrupted: whether it is to end before the steps are done.
        """

    def _raise_input_error(self) -> NoReturn:
        error, self._input_error = self._input_error, None
        self.input_failed = True
        raise error or RuntimeError("no step was run")


class LocalStepLoop(StepLoop):
    """Steps of this process alone, many in one call where the plan allows it.

    Attributes:
        one_call: whether it does.
    """

    def __init__(self, state: State, spec: StepSpec) -> None:
        graph, every, after = state.graph, spec.every, spec.after
        self._every = list(dict.fromkeys(every))
        self._order = [self._every.index(tensor) for tensor in every]
        self._after = list(after)
        # What depends on the elements' shape is of one shape in a block only.
        self._by_block = not all(tensor.shape.is_fully_defined() for tensor in every)
        may_differ = not self._by_block
        self.plan = make_plan(graph, self._every, spec.targets, [], state.placer)
        self._after_plan = make_plan(graph, self._after, [], [], state.placer)
        self.operations = [op for segment in self.plan.segments for op in segment.ops]
        shape = ScannableStep.of(self.plan, self._after_plan)
        self.one_call = shape is not None
        if shape is not None:
            results = self.plan.results, self._after_plan.results
            self._compiled = CompiledLoop(shape, SingleDevice(state), *results, spec.name)
            self._source = None if shape.get_next is None else spec.source
            self._get_next = shape.get_next
            if shape.get_next is not None:
                elements = self._compiled.elements
                self._prepare = HostPreprocessing(shape, elements, state, may_differ)
        else:
            self._runner = PlanRunner(self.plan, state)
            self._after_runner = PlanRunner(self._after_plan, state)

    def describe(self) -> str:
        """How the steps run, as text."""
        calls = (
            "the steps of a block of elements run in one XLA call; the host prepares whole blocks"
            if self.one_call
            else "each step is a run of its own"
        )
        return f"loop of steps: {calls}\n{self.plan.describe()}"

    def run(self, steps: int, until: float = math.inf) -> Steps:
        """Runs up to `steps` steps (see `StepLoop.run`)."""
        if self._input_error is not None:
            self._raise_input_error()
        done, every, after, ended, *elements = (
            self._run_blocks(steps) if self.one_call else self._run_singly(steps)
        )
        if not done:
            self._raise_input_error()
        ordered = [every[position] for position in self._order]
        return Steps(done, ordered, after, ended, tuple(elements))

    def _run_blocks(self, steps: int) -> tuple[Any, ...]:
        parts: list[tuple[int, int, list[Any]]] = []
        elements: list[tuple[Sequence[Any], int, int]] = []
        after: list[Any] = []
        done = 0
        ended = False
        while done < steps and not (parts and self._by_block):
            columns: list[Any] = []
            start, available = 0, compiled_loop.STEPS_WITHOUT_INPUT
            block = None
            if self._source is not None:
                cursor = self._source(self._get_next)  # type: ignore[arg-type]
                try:
                    with cursor.lock:
                        block = cursor.block(self._prepare)
                        start = block.offset
                        available = min(steps - done, block.count - start)
                        block.offset += available
                except OutOfRangeError:
                    if done == 0:
                        raise
                    ended = True
                    break
                except Exception as error:
                    self._input_error = error
                    break
                columns = self._compiled.columns(block)
                elements.append((block.columns, start, available))
            count = min(steps - done, available)
            two_shapes = None if block is None else block.two_shapes
            kept, after = self._compiled(columns, start, count, two_shapes)
            parts.append((start, count, kept))
            done += count
        if not done:
            return 0, [], [], ended
        every: list[Any] = [
            np.concatenate(
                [np.asarray(kept[position])[start : start + count] for start, count, kept in parts]
            )
            for position in range(len(self._every))
        ]
        return done, every, [np.array(value) for value in after], ended, *elements

    def _run_singly(self, steps: int) -> tuple[Any, ...]:
        rows: list[list[Any]] = []
        ended = False
        while len(rows) < steps:
            try:
                rows.append(self._runner.run([]))
            except OutOfRangeError:
                if not rows:
                    raise
                ended = True
                break
            except OpError as error:
                if not takes_element(error.op):
                    raise
                self._input_error = error
                break
        if not rows:
            return 0, [], [], ended
        every = [
            np.stack([np.asarray(row[position]) for row in rows])
            for position in range(len(self._every))
        ]
        after = [np.asarray(value) for value in self._after_runner.run([])]
        return len(rows), every, after, ended


class HostPreprocessing:
    """The host work of steps, on a block of elements: columns of elements to those that steps take.

    Args:
        shape: the step.
        wanted: tensors of the element, or that host work makes of it.
        state: the session's state.
        two_shapes: whether the loop takes elements of two shapes in one block.

    Attributes:
        together: how many elements each step takes, one after the other.
    """

    def __init__(
        self,
        shape: ScannableStep,
        wanted: Sequence[Tensor],
        state: State,
        two_shapes: bool,
    ) -> None:
        self.two_shapes = two_shapes
        self.together = 1
        element = shape.host.feeds
        self._places = [tensor.value_index if tensor in element else None for tensor in wanted]
        made = [tensor for tensor in wanted if tensor not in element]
        plan = replace(shape.host, fetches=tuple(made))
        resolve = plan.rewriting.resolve
        taken = {resolve(each) for part in plan.segments for op in part.ops for each in op.inputs}
        feeds = [tensor for tensor in element if tensor in taken]
        self._feeds = [tensor.value_index for tensor in feeds]
        self._work = BatchedExecutor(plan, feeds, {}, state, "") if made else None
        self._row_work = (
            MemoizedRowTransform(self._work) if self._work and self._work.is_by_row else None
        )

    def __call__(self, columns: Sequence[Any], count: int) -> list[Any]:
        """The columns that steps take.

        Args:
            columns: those of all tensors of `count` elements.
            count: the number of elements.
        """
        made = iter(self._made([columns[place] for place in self._feeds], count))
        return [
            next(made) if place is None else materialize(columns[place]) for place in self._places
        ]

    def _made(self, columns: Sequence[Any], count: int) -> Sequence[Any]:
        """The columns that host work makes."""
        if self._work is None:
            return ()
        if self._row_work is not None and all(
            isinstance(column, IndexedColumn) for column in columns
        ):
            made = self._row_work(columns)
            if made is not None:
                return made
        return self._work([materialize(column) for column in columns], count)
