"""`CompiledLoop`: a block of training steps as one XLA executable, or step by step.

On CPUs, XLA (jax 0.10) only uses its fast, multithreaded convolution kernels outside loops: inside,
the training step of a network with two convolutions took three times as long. Steps with operations
whose rows say `unroll_on_cpu` therefore run as separate calls there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import numpy as np
from jax import lax
from numpy.typing import NDArray

from estimatorkit.core import registry
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.registry import Role, role_of
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.x64 import x64
from estimatorkit.runtime.executor import large_constants
from estimatorkit.runtime.lower import (
    changed_names,
    segment_function,
    shapes_within,
    state_names,
)
from estimatorkit.runtime.plan import Plan, Segment
from estimatorkit.runtime.resource_store import Access
from estimatorkit.runtime.state import ProcessState
from estimatorkit.runtime.steps.partial_batch import PartialBatches
from estimatorkit.runtime.xla import memory_errors
from estimatorkit.runtime.xla.aligned_arrays import is_aligned
from estimatorkit.runtime.xla.compiler_options import options_for, updates_apart
from estimatorkit.runtime.xla.faults import Sites, no_fault
from estimatorkit.runtime.xla.host_tuning import release_freed_memory, use_huge_pages

STEPS_WITHOUT_INPUT = 1024
"""The block length of steps that take no elements."""


@dataclass(frozen=True)
class ScannableStep:
    """A plan of which many steps can run in one call.

    Attributes:
        get_next: the operation that takes the step's element; None if it takes none.
        host: the plan of the host preprocessing; its feeds are the element.
        made: the tensors of the element, and those that the host computes from it.
        step: the device segment.
        after: the device segment of what is fetched after the last step, if any.
    """

    get_next: Operation | None
    host: Plan
    made: frozenset[Tensor]
    step: Segment
    after: Segment | None

    @staticmethod
    def of(plan: Plan, after: Plan) -> ScannableStep | None:
        """Analyses a step's plan and the plan after the last step; None if not possible in one
        call.
        """
        *before, step = plan.segments or (None,)
        if step is None or step.place != "device" or step.static_inputs:
            return None
        get_next = None
        ops = [op for segment in before for op in segment.ops]
        made = frozenset(tensor for op in ops for tensor in op.outputs)
        if before:
            sources = [op for op in ops if role_of(op) is Role.ELEMENT]
            if any(segment.place != "host" for segment in before) or len(sources) != 1:
                return None
            get_next = sources[0]
            if not all(op is get_next or _may_run_ahead(op) for op in ops):
                return None
            if any(tensor in made and tensor.dtype.on_host for tensor in plan.results):
                return None
        if len(after.segments) > 1 or any(tensor.dtype.on_host for tensor in after.results):
            return None
        last = after.segments[0] if after.segments else None
        if last is not None and (last.place != "device" or last.inputs or changed_names(last)):
            return None
        host = replace(
            plan,
            feeds=() if get_next is None else get_next.outputs,
            segments=tuple(
                replace(segment, ops=[op for op in segment.ops if op is not get_next])
                for segment in before
            ),
        )
        return ScannableStep(get_next, host, made, step, last)


def _may_run_ahead(op: Operation) -> bool:
    """Whether an operation may run when elements are read, for many steps at once."""
    row = registry.lookup(op.type)
    return (
        row.semantics.pure and not row.semantics.random and not row.placement.context
    ) or row.semantics.role is Role.LOOKUP


def _filled_up(runs: NDArray[np.int32], length: int) -> NDArray[np.int32]:
    """Pads a block's runs with empty ones to the most that a block of this length can have."""
    missing = length // 2 + 1 - len(runs)
    return np.concatenate([runs, np.zeros((missing, 2, 2), np.int32)])


Layout: TypeAlias = Literal["columns", "each", "same", "kept", "changed"]
"""Of an argument or result: a block's columns, a value for each replica, the same for all, or the
variables that the loop keeps or changes."""


class SingleDevice:
    """How a loop's functions are transformed before `jax.jit`, and how its values are laid out.

    This is the identity transformation; `replica_loop.ReplicaMesh` maps functions over a mesh.

    Args:
        state: the session's state.

    Attributes:
        in_order: whether the operations of a loop's steps run one after the other.
        axis: the mesh axis of replicas; None without them.
    """

    in_order = True
    axis: str | None = None

    def __init__(self, state: ProcessState) -> None:
        self.state = state

    def segment(self, segment: Segment, sites: Sites) -> Callable[..., Any]:
        """The step as a function of inputs and state (see `segment_function`)."""
        return segment_function(segment, {}, sites=sites, axis=self.axis)

    def over(
        self,
        function: Callable[..., Any],
        access: Access,
        given: Sequence[Layout],
        made: Sequence[Layout],
    ) -> Callable[..., Any]:
        """Maps a function over all replicas.

        Args:
            function: the function of one replica.
            access: the loop's variables.
            given: the layouts of its first arguments; further arguments are static.
            made: the layouts of its results.
        """
        return function

    def variables(self, names: Sequence[str]) -> list[Any]:
        """The values of variables; the caller holds the state's lock."""
        return self.state.take(names)

    def same(self, value: Any) -> Any:
        """Lays out a constant as 'same'."""
        return value

    def each(self, value: Any) -> Any:
        """Lays out an array or scalar as 'each'."""
        return value


@dataclass
class _Changed:
    """What the steps of a call have made.

    Attributes:
        values: the variables as the last finished step has left them; None before the first.
        progress: see `_none_done`; empty if nothing is tested.
    """

    values: list[Any] | None = None
    progress: Sequence[Any] = ()


class Done(NamedTuple):
    """The result of a call.

    Attributes:
        steps: how many ran.
        every: the values fetched at every step, by row of the block.
        after: those fetched after the last.
        error: why the next step failed, if it did: its variables are those of the last step.
    """

    steps: int
    every: list[Any]
    after: list[Any]
    error: InvalidArgumentError | None


def _none_done() -> list[Any]:
    """The progress before the first step: no fault (see `faults`), and 0 steps."""
    return [no_fault(), np.int32(0)]


class CompiledLoop:
    """The executable of a loop: `jax.jit` adds one for each shape of block."""

    def __init__(
        self,
        shape: ScannableStep,
        devices: SingleDevice,
        every: Sequence[Tensor],
        after: Sequence[Tensor],
        name: str,
    ) -> None:
        self._step = shape.step
        self._after = shape.after
        self._devices = devices
        self._state = devices.state
        self._every = every
        self._after_tensors = after
        self._name = name
        self.elements = list(
            dict.fromkeys(tensor for tensor in (*self._step.inputs, *every) if tensor in shape.made)
        )
        changed = changed_names(self._step)
        taken = state_names(self._step)
        if self._after is not None:
            taken = [*taken, *state_names(self._after)]
        kept = [name for name in dict.fromkeys(taken) if name not in changed]
        self._access = Access.of(kept, changed, changed)
        wide = self._step.wide or (self._after is not None and self._after.wide)
        wide = wide or any(tensor.dtype.is_wide for tensor in (*every, *after))
        self._context: Callable[[], AbstractContextManager[Any]] = x64 if wide else nullcontext
        with self._context():
            self._constants = [*map(devices.same, large_constants(self._step).values())]
        self._block: Any = None
        self._columns: list[Any] = []
        self._fetched: dict[Any, list[Any]] = {}
        self._on_cpu = jax.default_backend() == "cpu"
        self.singly = self._on_cpu and runs_alone(self._step.ops)
        """Whether each step is a call of its own."""
        self._sites = Sites()
        # Traced once per row shape, however often the functions below call it.
        self._segment = jax.jit(devices.segment(self._step, self._sites), inline=True)
        self._many = jax.jit(
            devices.over(
                self._block_of_steps,
                self._access,
                ("columns", "same", "each", "same", "kept", "changed", "same", "same"),
                ("each", "same", "changed", "same"),
            ),
            static_argnums=(8,),
            donate_argnums=(5,),
            compiler_options=options_for(self._step, in_order=devices.in_order, in_place=True),
        )
        options = options_for(self._step)
        step: tuple[Layout, ...] = ("columns", "same", "kept", "each", "changed")
        self._one = jax.jit(
            devices.over(
                self._step_alone,
                self._access,
                (*step, "each", "same"),
                ("changed", "each", "same"),
            ),
            static_argnums=(7,),
            donate_argnums=(5,) if updates_apart(options) else (4, 5),
            compiler_options=options,
        )
        self._fetch = devices.over(self._run_step, self._access, step, ("same", "changed", "same"))
        self._run_last = None if self._after is None else devices.segment(self._after, Sites())
        self._last = jax.jit(
            devices.over(self._after_steps, self._access, ("kept", "changed"), ("same",))
        )

    def columns(self, block: Any) -> list[Any]:
        """The columns of a block on the device; transferred once per block."""
        if block is not self._block:
            self._columns = block.sent or self.send(block.ready)
            self._block = block
        return self._columns

    @property
    def sends_ahead(self) -> bool:
        """Whether blocks are sent to the device as they are read, while steps run there."""
        return not self._on_cpu

    def send(self, columns: Sequence[Any]) -> list[Any]:
        """Transfers the columns of a block, which is not written to any more, to the device."""
        with self._context():
            # A device that is the CPU may use the block's memory as it is; the call itself sees to
            # that at once, `device_put` in 150 us.
            return [
                column
                if self._on_cpu and not self.singly and is_aligned(column)
                else jax.device_put(column, may_alias=True)
                for column in columns
            ]

    def __call__(
        self, columns: list[Any], start: int, count: int, two_shapes: PartialBatches | None = None
    ) -> Done:
        """Runs steps `start` to `start + count` of a block, up to the first that fails.

        Args:
            columns: the block's columns, on the device.
            start, count: the range of steps.
            two_shapes: the shapes of rows, if the block has rows of two shapes.

        """
        state, run = self._state, self._run_singly if self.singly else self._run_at_once
        with self._context():
            compilations = state.compilations[self._name]
            kept, donated = state.held.begin(
                self._access, self._devices.variables, state.raise_if_cancelled
            )
            changed = _Changed()
            try:
                every, after = run(columns, start, count, two_shapes, kept, donated, changed)
                if state.compilations[self._name] != compilations:
                    release_freed_memory()
                    use_huge_pages(changed.values or ())
            finally:
                state.held.end(self._access, kept, changed.values)
        if not changed.progress:  # there are no checks
            return Done(count, every, after, None)
        vector, done = changed.progress
        return Done(int(np.asarray(done)), every, after, self._sites.error(vector))

    def shapes(self) -> memory_errors.Shapes:
        """The shapes of all tensors of a step of the last block, for an error."""
        rows = [
            jax.ShapeDtypeStruct(each.shape[1:], each.dtype)  # type: ignore[no-untyped-call]
            for each in self._columns
        ]
        by_tensor = dict(zip(self.elements, rows, strict=True))
        inputs = [
            tensor.op.attrs["value"] if role_of(tensor.op) is Role.CONSTANT else by_tensor[tensor]
            for tensor in self._step.inputs
        ]
        with self._context(), self._state.lock:
            return shapes_within(self._step, {}, inputs, self._state.take(state_names(self._step)))

    def _run_at_once(
        self,
        columns: list[Any],
        start: int,
        count: int,
        two_shapes: PartialBatches | None,
        kept: Any,
        donated: Any,
        made: _Changed,
    ) -> tuple[list[Any], list[Any]]:
        pieces: Iterable[tuple[int, int, Any]] = [(start, start + count, ())]
        runs: Any = None
        if two_shapes is not None and two_shapes.is_in_long_runs:
            # Full batches run in the executable of blocks that have no others.
            pieces = [
                (first, end, () if sizes == two_shapes.full else (sizes,))
                for first, end, sizes in two_shapes.pieces(start, start + count)
            ]
        elif two_shapes is not None:
            pieces = [(start, start + count, two_shapes.shapes)]
            pairs = two_shapes.runs
            runs = _filled_up(pairs, len(columns[0])), np.int32(len(pairs))
        changed, progress, parts = donated, _none_done(), []
        for first, end, shapes in pieces:
            every, after, changed, tested = self._many(
                columns,
                self._constants,
                self._devices.each(np.int32(first)),
                np.int32(end - first),
                kept,
                changed,
                runs,
                progress,
                shapes,
            )
            made.values, made.progress = changed, tested
            progress = tested or progress
            parts.append((first, end, every))
        return _joined(parts), after

    def _run_singly(
        self,
        columns: list[Any],
        start: int,
        count: int,
        two_shapes: PartialBatches | None,
        kept: Any,
        donated: Any,
        made: _Changed,
    ) -> tuple[list[Any], list[Any]]:
        changed, progress = donated, _none_done()
        given = columns, self._constants, kept
        every = self._buffers(given, changed, None if two_shapes is None else two_shapes.shapes[0])
        for index in range(start, start + count):
            sizes = None if two_shapes is None else two_shapes.of(index)
            row = self._devices.each(np.int32(index))
            changed, every, tested = self._one(*given, row, changed, every, progress, sizes)
            progress = tested or progress
            # After every step: an interrupted loop leaves the variables as of its last step.
            made.values, made.progress = changed, tested
        return every, self._last(kept, changed)[0]

    def _buffers(self, given: tuple[Any, ...], changed: Any, sizes: Any) -> list[Any]:
        """Zero-filled buffers for the values that a block's steps fetch."""
        columns = given[0]
        key = tuple(column.shape for column in columns), sizes
        if key not in self._fetched:
            row = self._devices.each(np.int32(0))
            self._fetched[key] = jax.eval_shape(
                lambda *arguments: self._fetch(*arguments, sizes)[0], *given, row, changed
            )
        length = len(columns[0]) if columns else STEPS_WITHOUT_INPUT
        return [
            jax.device_put(self._devices.each(np.zeros((length, *each.shape), each.dtype)))
            for each in self._fetched[key]
        ]

    def _with(self, kept: Any, changed: Any) -> dict[str, Any]:
        """The variables by name."""
        access = self._access
        return dict(zip((*access.kept, *access.changed), (*kept, *changed), strict=True))

    def _run_step(
        self,
        columns: Any,
        constants: Any,
        kept: Any,
        index: Any,
        current: Any,
        sizes: Any = None,
        before: Any = None,
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """One step: the fetched values, the new values of the variables that it updates, and its
        faults (see `segment_function`)."""
        by_tensor = {
            tensor: lax.dynamic_index_in_dim(column, index, 0, False)
            for tensor, column in zip(self.elements, columns, strict=True)
        }
        for tensor, size in zip(self.elements, sizes or (), strict=False):
            by_tensor[tensor] = by_tensor[tensor][tuple(map(slice, size))]
        rest = iter(constants)
        inputs = [
            next(rest) if role_of(tensor.op) is Role.CONSTANT else by_tensor[tensor]
            for tensor in self._step.inputs
        ]
        values = self._with(kept, current)
        taken = [values[name] for name in state_names(self._step)]
        given, new, faults = self._segment(inputs, taken, before)
        by_tensor.update(zip(self._step.outputs, given, strict=True))
        return [self._value(tensor, by_tensor) for tensor in self._every], new, faults

    def _step_alone(
        self,
        columns: Any,
        constants: Any,
        kept: Any,
        index: Any,
        changed: Any,
        every: Any,
        progress: Any,
        sizes: Any,
    ) -> Any:
        self._state.compilations[self._name] += 1
        given, new, faults = self._run_step(
            columns, constants, kept, index, changed, sizes, progress[0]
        )
        return new, _with_row(every, given, index), _after_step(progress, faults)

    def _block_of_steps(
        self,
        columns: Any,
        constants: Any,
        start: Any,
        count: Any,
        kept: Any,
        changed: Any,
        runs: Any,
        progress: Any,
        shapes: Any,
    ) -> Any:
        self._state.compilations[self._name] += 1
        length = columns[0].shape[0] if columns else STEPS_WITHOUT_INPUT
        step = functools.partial(self._run_step, columns, constants, kept)
        sizes = (*shapes, None)[0]
        like, _, tests = jax.eval_shape(functools.partial(step, sizes=sizes), 0, changed)
        every = [jax.numpy.zeros((length, *each.shape), each.dtype) for each in like]

        def body(index: Any, carried: Any, sizes: Any = None) -> Any:
            current, every, progress = carried
            given, new, faults = step(index, current, sizes)
            return new, _with_row(every, given, index), _after_step(progress, faults)

        carried = (list(changed), every, progress if tests else [])
        if runs is None:
            one = functools.partial(body, sizes=sizes)
            changed, every, progress = _loop(start, start + count, one, carried)
        else:

            def both(pair: Any, carried: Any) -> Any:
                for kind, sizes in enumerate(shapes):
                    first, last = jax.numpy.clip(places[pair, kind], start, start + count)
                    one = functools.partial(body, sizes=sizes)
                    carried = _loop(first, last, one, carried)
                return carried

            places, pairs = runs
            changed, every, progress = lax.fori_loop(0, pairs, both, carried)
        return every, *self._after_steps(kept, changed), changed, progress

    def _after_steps(self, kept: Any, changed: Any) -> tuple[list[Any]]:
        """The values that are fetched after the last step."""
        values = self._with(kept, changed)
        by_tensor: dict[Tensor, Any] = {}
        if self._after is not None and self._run_last is not None:
            given, *_ = self._run_last([], [values[name] for name in state_names(self._after)])
            by_tensor = dict(zip(self._after.outputs, given, strict=True))
        return ([self._value(tensor, by_tensor) for tensor in self._after_tensors],)

    def _value(self, tensor: Tensor, computed: dict[Tensor, Any]) -> Any:
        if tensor in computed:
            return computed[tensor]
        after = None if self._after is None else self._after.rewriting.value(tensor)
        known = self._step.rewriting.value(tensor)  # constants belong to no segment
        return jax.numpy.asarray(after if known is None else known)


def runs_alone(ops: Iterable[Operation]) -> bool:
    """Whether any operation is slow inside XLA's loops on CPUs, as convolutions are."""
    return any(registry.lookup(op.type).batching.unroll_on_cpu for op in ops)


def _after_step(progress: Any, faults: Sequence[Any]) -> list[Any]:
    """The progress after a step; empty if nothing is tested."""
    if not faults:
        return []
    (vector,) = faults
    return [vector, progress[1] + (vector[0] == 0).astype(np.int32)]


def _loop(first: Any, last: Any, body: Callable[[Any, Any], Any], carried: Any) -> Any:
    """`lax.fori_loop`, which ends after a step that fails."""
    if not carried[2]:
        return lax.fori_loop(first, last, body, carried)

    def go_on(state: Any) -> Any:
        index, (_, _, (vector, _)) = state
        return (index < last) & (vector[0] == 0)

    start = jax.numpy.asarray(first, jax.numpy.int32), carried
    return lax.while_loop(go_on, lambda state: (state[0] + 1, body(*state)), start)[1]


def _joined(parts: Sequence[tuple[int, int, Sequence[Any]]]) -> list[Any]:
    """Merges the buffers of consecutive calls, each of which has filled its own rows."""
    (_, _, first), *rest = parts
    if not rest:
        return list(first)
    joined = [np.array(buffer) for buffer in first]
    for begin, end, every in rest:
        for into, buffer in zip(joined, every, strict=True):
            into[begin:end] = np.asarray(buffer)[begin:end]
    return joined


def _with_row(every: Sequence[Any], given: Sequence[Any], index: Any) -> list[Any]:
    """Writes a step's values into its row of the buffers."""
    return [
        lax.dynamic_update_index_in_dim(buffer, value, index, 0)
        for buffer, value in zip(every, given, strict=True)
    ]
