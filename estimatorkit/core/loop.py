"""`StepLoop`: many steps of a graph in one XLA call.

A step is a set of operations and fetches without feeds: in training, the update and the loss. Where
its plan takes the next elements of one source, does host work that depends on them alone (ids of
words, crosses), and then is one device segment, the steps of a whole block of elements run inside
one executable, a loop over the block; the host work is done for the whole block when it is read.
The executable takes the range of steps, so that it is the same one however many steps are asked
for, and results are equal to the bit for every way of asking. Any other plan (`py_func`, queues)
runs one step a call, by the session.

The source of elements is anything with `block(prepare)` (see `data.cursor.Cursor`): this module
does not know datasets.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NoReturn

import jax
import numpy as np
from jax import lax
from numpy.typing import NDArray

from estimatorkit.core import registry
from estimatorkit.core.block_functions import BlockPlan
from estimatorkit.core.errors import OpError, OutOfRangeError
from estimatorkit.core.executor import PlanRunner, State, large_constants
from estimatorkit.core.graph import Graph
from estimatorkit.core.lower import changed_names, segment_function, state_names
from estimatorkit.core.plan import Plan, Segment, make_plan
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.two_shapes import TwoShapes
from estimatorkit.core.x64 import x64

_STEPS_WITHOUT_INPUT = 1024
"""The block length of steps that take no elements."""


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


class StepLoop:
    """Runs steps, many in one call where the plan allows it.

    Args:
        graph: the graph.
        state: the session's state.
        every: tensors fetched at every step.
        targets: operations run at every step.
        after: tensors fetched once after the last step of a call; they may depend on variables
            only.
        source: gives the object with `block(prepare)` for an `IteratorGetNext` operation.
        name: what the executable is called where compilations are counted.
    """

    def __init__(
        self,
        graph: Graph,
        state: State,
        every: Sequence[Tensor],
        targets: Sequence[Operation],
        after: Sequence[Tensor],
        source: Callable[[Operation], Any],
        name: str,
    ) -> None:
        self._every = list(dict.fromkeys(every))
        self._order = [self._every.index(tensor) for tensor in every]
        self._after = list(after)
        # What depends on the elements' shape is of one shape in a block only.
        self._by_block = not all(tensor.shape.is_fully_defined() for tensor in every)
        may_differ = not self._by_block
        self._input_error: Exception | None = None
        self.input_failed = False
        """Whether the input has raised an error: the steps before it were whole."""
        self.plan = make_plan(graph, self._every, targets, [], state.placer)
        self._after_plan = make_plan(graph, self._after, [], [], state.placer)
        shape = _LoopShape.of(self.plan, self._after_plan)
        self.one_call = shape is not None
        if shape is not None:
            results = self.plan.results, self._after_plan.results
            self._compiled = _CompiledLoop(shape, state, *results, name)
            self._source = None if shape.get_next is None else source
            self._get_next = shape.get_next
            if shape.get_next is not None:
                elements = self._compiled.elements
                self._prepare = _Preparation(graph, shape.get_next, elements, state, may_differ)
        else:
            self._runner = PlanRunner(self.plan, state)
            self._after_runner = PlanRunner(self._after_plan, state)

    def run(self, steps: int) -> Steps:
        """Runs up to `steps` steps, fewer where the input ends.

        Where the input fails, the steps before are run, and the next call raises its error.

        Raises:
            OutOfRangeError: the input has ended before the first of them.
        """
        if self._input_error is not None:
            self._raise_input_error()
        done, every, after, ended, *elements = (
            self._run_blocks(steps) if self.one_call else self._run_singly(steps)
        )
        if not done:
            self._raise_input_error()
        ordered = [every[position] for position in self._order]
        return Steps(done, ordered, after, ended, tuple(elements))

    def _raise_input_error(self) -> NoReturn:
        error, self._input_error = self._input_error, None
        self.input_failed = True
        raise error or RuntimeError("no step was run")

    def _run_blocks(self, steps: int) -> tuple[Any, ...]:
        parts: list[tuple[int, int, list[Any]]] = []
        elements: list[tuple[Sequence[Any], int, int]] = []
        after: list[Any] = []
        done = 0
        ended = False
        while done < steps and not (parts and self._by_block):
            columns: list[Any] = []
            start, available = 0, _STEPS_WITHOUT_INPUT
            block = None
            if self._source is not None:
                try:
                    cursor = self._source(self._get_next)  # type: ignore[arg-type]
                    block = cursor.block(self._prepare)
                except OutOfRangeError:
                    if done == 0:
                        raise
                    ended = True
                    break
                except Exception as error:
                    self._input_error = error
                    break
                columns = self._compiled.columns(block)
                start, available = block.offset, block.count - block.offset
            count = min(steps - done, available)
            two_shapes = None if block is None else block.two_shapes
            kept, after = self._compiled(columns, start, count, two_shapes)
            if block is not None:
                elements.append((block.columns, block.offset, count))
                block.offset += count
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
                if error.op is None or not error.op.type.startswith("IteratorGetNext"):
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


@dataclass(frozen=True)
class _LoopShape:
    """A plan that can run as one call: its parts."""

    get_next: Operation | None
    made: frozenset[Tensor]
    step: Segment
    after: Segment | None

    @staticmethod
    def of(plan: Plan, after: Plan) -> _LoopShape | None:
        """The parts of a step's plan and the one after it; None where one call cannot hold them."""
        *before, step = plan.segments or (None,)
        if step is None or step.place != "device" or step.static_inputs:
            return None
        get_next = None
        made: set[Tensor] = set()
        if before:
            ops = [op for segment in before for op in segment.ops]
            sources = [op for op in ops if op.type == "IteratorGetNext"]
            if any(segment.place != "host" for segment in before) or len(sources) != 1:
                return None
            get_next = sources[0]
            if not all(op is get_next or _may_run_ahead(op) for op in ops):
                return None
            made = {tensor for op in ops for tensor in op.outputs}
            if any(tensor in made and tensor.dtype.on_host for tensor in plan.results):
                return None
        if len(after.segments) > 1:
            return None
        last = after.segments[0] if after.segments else None
        if last is not None and (last.place != "device" or last.inputs or changed_names(last)):
            return None
        return _LoopShape(get_next, frozenset(made), step, last)


def _filled_up(runs: NDArray[np.int32], length: int) -> NDArray[np.int32]:
    """The runs of a block, with empty ones as many as a block of this length may have."""
    missing = length // 2 + 1 - len(runs)
    return np.concatenate([runs, np.zeros((missing, 2, 2), np.int32)])


_LOOKUPS = ("LookupTableFindV2", "LookupTableFindOrHash")
"""They depend on tables, which are filled before training and stay as they are."""


def _may_run_ahead(op: Operation) -> bool:
    """Whether host work may be done when elements are read, for many steps at once."""
    row = registry.lookup(op.type)
    return (row.pure and not row.random and not row.context) or op.type in _LOOKUPS


class _Preparation:
    """The host work of steps, on a block of elements: columns of elements to those that steps take.

    Args:
        graph: the graph.
        get_next: the operation that takes the next element.
        wanted: tensors of the element, or that host work makes of it.
        state: the session's state.
        two_shapes: whether the loop takes elements of two shapes in one block.
    """

    def __init__(
        self,
        graph: Graph,
        get_next: Operation,
        wanted: Sequence[Tensor],
        state: State,
        two_shapes: bool,
    ) -> None:
        self.two_shapes = two_shapes
        self._places = [tensor.value_index if tensor.op is get_next else None for tensor in wanted]
        made = [tensor for tensor in wanted if tensor.op is not get_next]
        plan = make_plan(graph, made, [], get_next.outputs, state.placer)
        self._work = BlockPlan(plan, get_next.outputs, {}, state, "") if made else None

    def __call__(self, columns: Sequence[Any], count: int) -> list[Any]:
        """The columns that steps take.

        Args:
            columns: those of all tensors of `count` elements.
            count: the number of elements.
        """
        made = iter(self._work(columns, count) if self._work is not None else ())
        return [next(made) if place is None else columns[place] for place in self._places]


class _CompiledLoop:
    """The executable of a loop: `jax.jit` adds one for each shape of block."""

    def __init__(
        self,
        shape: _LoopShape,
        state: State,
        every: Sequence[Tensor],
        after: Sequence[Tensor],
        name: str,
    ) -> None:
        self._step = shape.step
        self._after = shape.after
        self._state = state
        self._every = every
        self._after_tensors = after
        self._name = name
        self.elements = list(
            dict.fromkeys(tensor for tensor in (*self._step.inputs, *every) if tensor in shape.made)
        )
        self._changed = changed_names(self._step)
        taken = [*state_names(self._step), *self._changed]
        if self._after is not None:
            taken.extend(state_names(self._after))
        self._kept = [name for name in dict.fromkeys(taken) if name not in self._changed]
        wide = self._step.wide or (self._after is not None and self._after.wide)
        wide = wide or any(tensor.dtype.is_wide for tensor in (*every, *after))
        self._context: Callable[[], AbstractContextManager[Any]] = x64 if wide else nullcontext
        with self._context():
            self._constants = list(large_constants(self._step).values())
        self._block: Any = None
        self._columns: list[Any] = []
        self._call = jax.jit(self._many, static_argnums=(7,), donate_argnums=(5,))

    def columns(self, block: Any) -> list[Any]:
        """The columns of a block that the step takes, on the device; put there once a block."""
        if block is not self._block:
            with self._context():
                # The block is not written to any more, so that on CPU the device may use its memory
                # as it is.
                self._columns = [jax.device_put(column, may_alias=True) for column in block.ready]
            self._block = block
        return self._columns

    def __call__(
        self, columns: list[Any], start: int, count: int, two_shapes: TwoShapes | None = None
    ) -> tuple[list[Any], list[Any]]:
        """Runs steps `start` to `start + count` of a block.

        Args:
            columns: the block's, on the device.
            start, count: which steps.
            two_shapes: which rows are how large, where they are of two shapes.

        Returns:
            The values fetched at each step, in the rows of the block, and those after the last.
        """
        state = self._state
        with state.lock, self._context():
            kept = state.take(self._kept)
            changed = state.take(self._changed)
            shapes: Any = () if two_shapes is None else two_shapes.shapes
            runs: Any = None
            if two_shapes is not None:
                pairs = two_shapes.runs
                runs = _filled_up(pairs, len(columns[0])), np.int32(len(pairs))
            every, after, changed = self._call(
                *(columns, self._constants, np.int32(start), np.int32(count), kept, changed),
                *(runs, shapes),
            )
            state.values.update(zip(self._changed, changed, strict=True))
        return every, after

    def _many(
        self,
        columns: Any,
        constants: Any,
        start: Any,
        count: Any,
        kept: Any,
        changed: Any,
        runs: Any,
        shapes: Any,
    ) -> Any:
        self._state.compilations[self._name] += 1
        function = segment_function(self._step, {})
        steady = dict(zip(self._kept, kept, strict=True))
        names = state_names(self._step)
        length = columns[0].shape[0] if columns else _STEPS_WITHOUT_INPUT
        outputs = self._step.outputs

        def step(
            index: Any, current: Sequence[Any], sizes: Any = None
        ) -> tuple[list[Any], list[Any]]:
            by_tensor = {
                tensor: lax.dynamic_index_in_dim(column, index, 0, False)
                for tensor, column in zip(self.elements, columns, strict=True)
            }
            for tensor, size in zip(self.elements, sizes or (), strict=False):
                by_tensor[tensor] = by_tensor[tensor][tuple(map(slice, size))]
            rest = iter(constants)
            inputs = [
                next(rest) if tensor.op.type == "Const" else by_tensor[tensor]
                for tensor in self._step.inputs
            ]
            values = {**steady, **dict(zip(self._changed, current, strict=True))}
            given, new = function(inputs, [values[name] for name in names])
            by_tensor.update(zip(outputs, given, strict=True))
            return [self._value(tensor, by_tensor) for tensor in self._every], new

        fetched, _ = jax.eval_shape(functools.partial(step, sizes=(*shapes, None)[0]), 0, changed)
        kept_every = [jax.numpy.zeros((length, *each.shape), each.dtype) for each in fetched]

        def body(index: Any, carried: Any, sizes: Any = None) -> Any:
            current, every = carried
            given, new = step(index, current, sizes)
            every = [
                lax.dynamic_update_index_in_dim(buffer, value, index, 0)
                for buffer, value in zip(every, given, strict=True)
            ]
            return new, every

        carried = (list(changed), kept_every)
        if runs is None:
            changed, every = lax.fori_loop(start, start + count, body, carried)
        else:

            def both(pair: Any, carried: Any) -> Any:
                for kind, sizes in enumerate(shapes):
                    first, last = jax.numpy.clip(places[pair, kind], start, start + count)
                    one = functools.partial(body, sizes=sizes)
                    carried = lax.fori_loop(first, last, one, carried)
                return carried

            places, pairs = runs
            changed, every = lax.fori_loop(0, pairs, both, carried)
        return (
            every,
            self._run_after({**steady, **dict(zip(self._changed, changed, strict=True))}),
            changed,
        )

    def _run_after(self, values: dict[str, Any]) -> list[Any]:
        by_tensor: dict[Tensor, Any] = {}
        if self._after is not None:
            function = segment_function(self._after, {})
            given, _ = function([], [values[name] for name in state_names(self._after)])
            by_tensor = dict(zip(self._after.outputs, given, strict=True))
        return [self._value(tensor, by_tensor) for tensor in self._after_tensors]

    def _value(self, tensor: Tensor, computed: dict[Tensor, Any]) -> Any:
        if tensor in computed:
            return computed[tensor]
        after = None if self._after is None else self._after.rewriting.value(tensor)
        known = self._step.rewriting.value(tensor)  # a constant belongs to no segment
        return jax.numpy.asarray(after if known is None else known)
