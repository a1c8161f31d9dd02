"""`LocalStepLoop`: runs the steps of one process, a block of elements in one XLA call.

If a step's plan reads one source of elements, preprocesses them on the host (ids of words,
crosses), and is otherwise a single device segment, then the steps of a whole block of elements run
in one executable, a loop over the block (`compiled_loop`); the host preprocessing runs on the whole
block when it is read. The range of steps is an argument of the executable, so there is a single
one, and results are bitwise identical however the steps are divided into calls. Any other plan
(`py_func`, queues) runs one step per call.

A source of elements has `block(prepare)` and a `lock`, as `data.execution.cursor.Cursor`; this
module does not depend on datasets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from estimatorkit.core.errors import OpError, OutOfRangeError
from estimatorkit.core.registry import takes_element
from estimatorkit.core.tensor import Tensor
from estimatorkit.runtime.executor import PlanRunner
from estimatorkit.runtime.loop import StepLoop, Steps, StepSpec
from estimatorkit.runtime.plan import make_plan
from estimatorkit.runtime.state import ProcessState
from estimatorkit.runtime.steps import compiled_loop
from estimatorkit.runtime.steps.batched_executor import BatchedExecutor
from estimatorkit.runtime.steps.compiled_loop import (
    CompiledLoop,
    Done,
    ScannableStep,
    SingleDevice,
)
from estimatorkit.runtime.steps.indexed_columns import (
    IndexedColumn,
    MemoizedRowTransform,
    materialize,
)
from estimatorkit.runtime.steps.single_steps import SingleSteps
from estimatorkit.runtime.xla import memory_errors


class LocalStepLoop(StepLoop):
    """Steps of a single process, many in one call if the plan allows it.

    Attributes:
        one_call: whether it does.
    """

    _failed: tuple[OpError, Any] | None = None

    def __init__(self, state: ProcessState, spec: StepSpec) -> None:
        graph, every, after = state.graph, spec.every, spec.after
        self._every = list(dict.fromkeys(every))
        self._order = [self._every.index(tensor) for tensor in every]
        self._after = list(after)
        # What depends on the elements' shape is of one shape in a block only.
        self._by_block = not all(tensor.shape.is_fully_defined() for tensor in every)
        may_differ = not self._by_block
        self.plan = make_plan(graph, self._every, spec.targets, [], state.placer)
        self._after_plan = make_plan(graph, self._after, [], [], state.placer)
        self.operations = self.plan.operations
        shape = ScannableStep.of(self.plan, self._after_plan)
        self.one_call = shape is not None
        if shape is not None:
            results = self.plan.results, self._after_plan.results
            self._compiled = CompiledLoop(shape, SingleDevice(state), *results, spec.name)
            self.runs_singly = self._compiled.singly
            self._source = None if shape.get_next is None else spec.source
            self._get_next = shape.get_next
            if shape.get_next is not None:
                elements = self._compiled.elements
                self._single = SingleSteps(
                    shape, state, elements, *results, spec.name, spec.is_brief
                )
                self._prepare = HostPreprocessing(shape, elements, state, may_differ)
                if self._compiled.sends_ahead:
                    self._prepare.send = self._compiled.send
        else:
            self._runner = PlanRunner(self.plan, state)
            self._after_runner = PlanRunner(self._after_plan, state)

    def describe(self) -> str:
        """A description (see `StepLoop.describe`)."""
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
        if self._failed is not None:
            self._raise_failed()
        if self.one_call:
            try:
                done, every, after, ended, *elements = self._run_blocks(steps)
            except memory_errors.ERRORS as error:
                raise memory_errors.explained(
                    error, self.operations, self._compiled.shapes
                ) from error
        else:
            done, every, after, ended, *elements = self._run_singly(steps)
        if not done:
            self._raise_input_error() if self._failed is None else self._raise_failed()
        ordered = [every[position] for position in self._order]
        return Steps(done, ordered, after, ended, tuple(elements))

    def _raise_failed(self) -> NoReturn:
        """Raises the error of the step that failed, and skips its element."""
        if self._failed is None:
            raise RuntimeError("no step failed")
        error, block = self._failed
        self._failed = None
        if block is not None:
            block.offset += 1
        raise error

    def _run_blocks(self, steps: int) -> tuple[Any, ...]:
        parts: list[tuple[int, int, list[Any]]] = []
        elements: list[tuple[Sequence[Any], int, int]] = []
        after: list[Any] = []
        done = 0
        ended = False
        while done < steps and not (parts and self._by_block):
            start, available = 0, compiled_loop.STEPS_WITHOUT_INPUT
            block = None
            if self._source is not None:
                cursor = self._source(self._get_next)  # type: ignore[arg-type]
                try:
                    with cursor.lock:
                        block = cursor.block(self._prepare)
                        start = block.offset
                        most = min(steps - done, block.count - start)
                        available = self._single.stretch(start, most, block.two_shapes)
                        block.offset += available
                except OutOfRangeError:
                    if done == 0:
                        raise
                    ended = True
                    break
                except Exception as error:
                    self._input_error = error
                    break
                elements.append((block.columns, start, available))
            made = self._run_block(block, start, min(steps - done, available))
            after = made.after
            if made.steps:
                parts.append((start, made.steps, made.every))
            done += made.steps
            if block is not None and made.steps < available:
                block.offset = start + made.steps
                elements[-1] = (block.columns, start, made.steps)
            if made.error is not None:
                self._failed = made.error, block
                break
        if not done:
            return 0, [], [], ended
        every: list[Any] = [
            np.concatenate(
                [np.asarray(kept[position])[start : start + count] for start, count, kept in parts]
            )
            for position in range(len(self._every))
        ]
        return done, every, [np.array(value) for value in after], ended, *elements

    def _run_block(self, block: Any, start: int, count: int) -> Done:
        """Runs up to `count` steps of a block of elements; None: of steps that take none."""
        if block is None:
            return self._compiled([], start, count)
        made = self._single.brief(block.ready, start, count, block.two_shapes)
        if made is not None:
            return made
        if self._single.takes(block.ready, block.count, block.two_shapes):
            return self._single(block.ready, start, count, block.two_shapes)
        return self._compiled(self._compiled.columns(block), start, count, block.two_shapes)

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
    """Maps a block of elements to the columns that the step's device segment takes.

    Args:
        shape: the step.
        wanted: tensors of the element, or computed from it on the host.
        state: the session's state.
        two_shapes: whether the loop supports elements of two shapes in one block.

    Attributes:
        together: the number of consecutive elements that each step takes.
        send: transfers the columns of a block to the device when it is read; None if the loop does
            when it takes the block.
    """

    send: Callable[[Sequence[Any]], list[Any]] | None = None

    def __init__(
        self,
        shape: ScannableStep,
        wanted: Sequence[Tensor],
        state: ProcessState,
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
        """The columns for the device segment.

        Args:
            columns: the columns of all tensors of `count` elements.
            count: the number of elements.
        """
        made = iter(self._made([columns[place] for place in self._feeds], count))
        return [
            next(made) if place is None else materialize(columns[place]) for place in self._places
        ]

    def _made(self, columns: Sequence[Any], count: int) -> Sequence[Any]:
        """The columns computed on the host."""
        if self._work is None:
            return ()
        if self._row_work is not None and all(
            isinstance(column, IndexedColumn) for column in columns
        ):
            made = self._row_work(columns)
            if made is not None:
                return made
        return self._work([materialize(column) for column in columns], count)
