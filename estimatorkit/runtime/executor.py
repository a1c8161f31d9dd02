"""The executor: device segments, and `PlanRunner`.

A device segment is a single call of a `jax.jit` function, with variables as inputs and outputs; the
buffers of updated variables are donated. `State.compilations` counts compilations by name.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, TypeAlias

import jax
import numpy as np

from estimatorkit.core.errors import (
    InvalidArgumentError,
)
from estimatorkit.core.function_graph import may_not_end
from estimatorkit.core.registry import Role, role_of
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.x64 import x64
from estimatorkit.garbage import uncollected
from estimatorkit.runtime.host_segments import HostSegment, InitializerSegment
from estimatorkit.runtime.interpreted import Interpretation, NotInterpretable, SegmentInterpreter
from estimatorkit.runtime.lower import (
    changed_names,
    segment_function,
    shapes_within,
    state_names,
)
from estimatorkit.runtime.plan import Plan, Segment
from estimatorkit.runtime.resource_store import Access, finished
from estimatorkit.runtime.state import ProcessState
from estimatorkit.runtime.xla import memory_errors
from estimatorkit.runtime.xla.aligned_arrays import as_aligned
from estimatorkit.runtime.xla.cancellation import LoopWatch, cancellable
from estimatorkit.runtime.xla.compiler_options import options_for, updates_apart
from estimatorkit.runtime.xla.faults import Sites
from estimatorkit.runtime.xla.host_tuning import release_freed_memory, use_huge_pages
from estimatorkit.runtime.xla.placement import DEFAULT, default_name, device_named, is_cpu
from estimatorkit.runtime.xla.shape_watch import ShapeWatch, VaryingShapes
from estimatorkit.runtime.xla.timeline import Trace


class CompiledSegment:
    """A device segment with its executables: one for each set of static values and shapes.

    Attributes:
        compiles: whether XLA may compile it; if not, `NotInterpretable` is raised instead.
    """

    compiles = True

    def __init__(self, segment: Segment, state: ProcessState, name: str) -> None:
        self.segment = segment
        self._state = state
        self._name = name
        # By static values, shapes and dtypes; in order of use with `state.most_executables`.
        self._executables: OrderedDict[Any, Executor] = OrderedDict()
        self._static = list(segment.static_inputs)
        self._traced = [tensor for tensor in segment.inputs if tensor not in self._static]
        self._watch = ShapeWatch(self._traced, self._static)
        self._sites = Sites()
        self._interpreter = SegmentInterpreter(segment, self._sites)
        self.varying = VaryingShapes(segment)
        changed = changed_names(segment)
        taken = state_names(segment)
        self._options = options_for(segment, few_runs=state.few_runs)
        # XLA needs other buffers.
        apart = {taken[at] for at in self._interpreter.growing}
        apart |= set(changed if updates_apart(self._options) else ())
        # In the order of the results: JAX pairs donated buffers with results of their shape in
        # order, and XLA copies each variable that gets another's buffer.
        donated = [name for name in changed if name in taken and name not in apart]
        kept = [name for name in taken if name not in donated]
        # Where each of `taken` is among the values kept and donated.
        self._places = [(*kept, *donated).index(name) for name in taken]
        self._access = Access.of(kept, donated, changed)
        # A value that is overwritten without being read is kept only while faults are pending.
        self._overwritten = set(changed).difference(taken)
        self._ahead = 0
        self._compiling = threading.RLock()
        self._context: Callable[[], AbstractContextManager[Any]] = (
            x64 if segment.wide else nullcontext
        )
        with self._context():
            self._constants = large_constants(segment)
        self._device = device_named(segment.device)
        self._is_on_cpu = is_cpu(self._device)
        self._is_quick = True
        self._is_soon = True  # the same, for every call
        self._may_not_end = any(map(may_not_end, segment.ops))
        state.several_devices = state.several_devices or segment.device != DEFAULT

    def __call__(self, values: dict[Any, Any]) -> None:
        """Runs the segment: reads its inputs from `values` and adds its outputs.

        Raises:
            InvalidArgumentError: an operation refuses a value.
        """
        self.start(values)
        self.raise_fault(values)

    def start(self, values: dict[Any, Any]) -> None:
        """Like a call, but does not wait for faults (see `raise_fault`)."""
        inputs = [
            values[tensor] if tensor in values else self._constants[tensor]  # feeds win
            for tensor in self._traced
        ]
        static = {}
        key: tuple[Any, ...] = tuple([(each.shape, each.dtype) for each in inputs])
        if self._static:
            static = {tensor: np.asarray(values[tensor]) for tensor in self._static}
            key = (*[(value.tobytes(), value.shape) for value in static.values()], *key)
        executable = self._executables.get(key)
        if executable is None:
            with self._compiling:  # equal shapes wait for one compilation
                results, executor = self._run(self._executables.get(key), inputs, static)
                self._keep(key, executor)
        else:
            results, executor = self._run(executable, inputs, static)
            if executor is not executable or self._state.most_executables is not None:
                self._keep(key, executor)
        outputs, changed, faults = results
        values[self._sites] = faults
        for tensor, value in zip(self.segment.outputs, outputs, strict=True):
            values[tensor] = value
        values[self] = (*outputs, *changed)[-1:]
        self._ahead += 1
        if self._ahead >= MOST_AHEAD:  # several threads may get past it
            self._ahead = 0
            self.wait(values)

    def shapes(self, values: Mapping[Any, Any]) -> memory_errors.Shapes:
        """The shapes of all tensors for these inputs, arrays or their specs; for errors."""
        given = {**self._constants, **values}
        if not all(tensor in given for tensor in self.segment.inputs):
            return {}  # of the host
        static = {tensor: np.asarray(given[tensor]) for tensor in self._static}
        inputs = [given[tensor] for tensor in self._traced]
        with self._context(), self._state.lock:
            state = self._state.take(state_names(self.segment))
            return shapes_within(self.segment, static, inputs, state)

    def _keep(self, key: Any, executable: Executor) -> None:
        """Marks an executable as most recently used, and evicts the least recently used ones."""
        with self._compiling:
            self._executables[key] = executable
            self._executables.move_to_end(key)
            most = self._state.most_executables
            while most is not None and len(self._executables) > most:
                self._executables.popitem(last=False)

    def _run(
        self, executor: Executor | None, inputs: list[Any], static: dict[Tensor, Any]
    ) -> tuple[Any, Executor]:
        """Runs the segment; others use the state meanwhile.

        Args:
            executor: what runs these shapes; None if nothing has.
            inputs, static: the values of its inputs.

        Returns:
            The outputs, the new values of variables, and the vector of faults (see `faults`), if
            there are tests; and what is to run these shapes next time.
        """
        if executor is not None and not isinstance(executor, Interpretation):
            return self._call(executor, inputs, False), executor
        mode = self._state.executor
        known = executor
        if executor is None:
            leaves = self._interpreter.is_long if self._is_brief else self._interpreter.leaves
            if mode == "xla" or not self._is_on_cpu or (mode == "auto" and leaves(inputs)):
                executor = self._compile(static, self._record)
        elif mode == "auto" and not self._is_brief:
            executor = known = self._executable(executor) or executor
        if executor is None or isinstance(executor, Interpretation):
            try:
                return self._interpret(executor, inputs, static)
            except NotInterpretable:
                executor = self._compile(static, self._record)
        return self._call(executor, inputs, executor is not known), executor

    def _call(self, executable: Any, inputs: list[Any], is_new: bool) -> Any:
        """The results of an executable.

        Args:
            executable: what `jax.jit` or a compilation ahead returned.
            inputs: the values of the inputs that are not static.
            is_new: whether it has not run yet.
        """
        state, access = self._state, self._access
        compilations = state.compilations[self._name]
        changed = None
        with self._context():
            kept, donated = state.held.begin(access, state.take, state.raise_if_cancelled)
            try:
                if self._is_on_cpu:
                    inputs = [_in_place(each) for each in inputs]
                given = inputs, kept, donated
                if state.several_devices:
                    given = jax.device_put(given, self._device)
                if is_new:
                    self._lower(executable, *given)
                if self._may_not_end:
                    watch = LoopWatch(state.cancellation.check_of_thread())
                    with watch.running():
                        changed, outputs, faults = executable(*given, watch.number)
                        for result in (*outputs, *changed)[-1:]:
                            watch.wait(result)  # interrupted: the values after the last iteration
                else:
                    changed, outputs, faults = executable(*given)
                if faults and self._overwritten and self._error(faults[0]) is not None:
                    changed = self._without_overwritten(changed)
                if state.compilations[self._name] != compilations:
                    release_freed_memory()
                    use_huge_pages(changed)
            finally:
                state.held.end(access, kept, changed)
        return outputs, changed, faults

    def _interpret(
        self, program: Interpretation | None, inputs: list[Any], static: dict[Tensor, Any]
    ) -> tuple[Any, Interpretation]:
        """Runs the segment in NumPy; returns its results, and the program.

        Raises:
            NotInterpretable: XLA is to run it.
        """
        state, access = self._state, self._access
        changed = None
        begun = state.held.begin(access, state.take, state.raise_if_cancelled, in_numpy=True)
        kept, donated = begun
        try:
            both = (*kept, *donated)
            given = [both[at] for at in self._places]
            watch = LoopWatch(state.cancellation.check_of_thread()) if self._may_not_end else None
            with self._context():
                if program is None or not program.fits(given):
                    program = self._interpreter.interpretation(static, inputs, given)
                    if state.executor == "auto" and not (self._is_brief or program.is_cheap):
                        raise NotInterpretable(_LONGER)
                if self._is_brief and not program.is_brief:
                    raise NotInterpretable(_LONGER)
                with watch.running() if watch else nullcontext():
                    outputs, changed, faults = program(inputs, given, watch)
            if faults and self._overwritten and self._error(faults[0]) is not None:
                changed = self._without_overwritten(changed)
        finally:
            state.held.end(access, kept, changed, in_numpy=True)
        return (outputs, changed, faults), program

    @property
    def _is_brief(self) -> bool:
        """Whether NumPy runs it for longer, without compiling in the background."""
        state = self._state
        return state.executor == "auto" and (state.is_brief or not self.compiles)

    def _without_overwritten(self, changed: Sequence[Any]) -> list[Any]:
        """The new values of variables after a fault."""
        named = zip(self._access.changed, changed, strict=True)
        return [None if name in self._overwritten else value for name, value in named]

    def raise_fault(self, values: dict[Any, Any]) -> None:
        """Waits for the call for `values`, and raises the error if there was a fault.

        It comes after the host's own work, which lasts as long as a small step: waiting before it
        made the steps of a network for Iris longer by a third.
        """
        for vector in values[self._sites]:
            if (error := self._error(vector)) is not None:
                raise error

    def _error(self, vector: Any) -> InvalidArgumentError | None:
        """The error of a call, which is awaited."""
        if isinstance(vector, jax.Array):
            self._is_soon = _wait(vector, self._is_soon) < _QUICK_SECS
        return self._sites.error(vector)

    def wait(self, values: dict[Any, Any]) -> None:
        """Blocks until the call for `values` has finished, and no longer uses fed arrays."""
        for result in values[self]:
            while isinstance(result, jax.Array):
                try:
                    self._is_quick = _wait(result, self._is_quick) < _QUICK_SECS
                    return
                except RuntimeError:
                    if not result.is_deleted():
                        raise
                # A run of another thread has taken the variable: the value it produces follows this
                # call.
                with self._state.lock:
                    result = self._state.values.get(self._access.changed[-1])

    def _executable(self, program: Interpretation) -> Any:
        """The executable that replaces a program from now on, if there is one."""
        found = program.executable(self._compile_ahead)
        if found is None:
            return None
        release_freed_memory()
        executable, shapes = found
        while shapes:  # now rather than when it was compiled, which differs between runs
            self.varying.add(shapes.pop())
        return executable

    def _compile_ahead(
        self, static: dict[Tensor, Any], inputs: Sequence[Any], state: Sequence[Any]
    ) -> tuple[Any, list[Any]]:
        """Compiles before a call, for the types of inputs and state.

        Returns:
            The executable, and what to tell `varying` of it.
        """
        shapes: list[Any] = []
        executable = self._compile(static, lambda values: shapes.append(self.varying.seen(values)))
        named = dict(zip(state_names(self.segment), state, strict=True))
        kept, donated = (
            [named[name] for name in names] for names in (self._access.kept, self._access.donated)
        )
        with self._context():
            self._lower(executable, list(inputs), kept, donated).compile()
        return executable, shapes

    @uncollected()
    def _lower(self, executable: Any, inputs: Any, kept: Any, donated: Any) -> Any:
        """Traces and lowers, which the first call does not repeat; compiles nothing."""
        number = [np.int32(0)] if self._may_not_end else []
        return executable.lower(inputs, kept, donated, *number)

    def _record(self, values: Mapping[Tensor, Any]) -> None:
        """Records the shapes of what is compiled."""
        self.varying.add(self.varying.seen(values))

    def _compile(
        self, static: dict[Tensor, Any], record: Callable[[Mapping[Tensor, Any]], None]
    ) -> Any:
        if not self.compiles:
            raise NotInterpretable(_LONGER)
        function = segment_function(self.segment, static, record, self._sites)
        taken = [*self._access.kept, *self._access.donated]
        names = state_names(self.segment)

        def segment(inputs: Any, kept: Any, donated: Any, number: Any = None) -> Any:
            self._state.compilations[self._name] += 1  # traced once per compilation
            self._watch.add(inputs, list(static.values()))
            values = dict(zip(taken, [*kept, *donated], strict=True))
            with cancellable(number):
                outputs, changed, faults = function(inputs, [values[name] for name in names])
            return changed, outputs, faults

        return jax.jit(segment, donate_argnums=(2,), compiler_options=self._options)


def _in_place(value: Any) -> Any:
    """Aligns a large input, so that XLA runs in the calling thread (`run_in_calling_thread`).

    It copies large arrays in another thread, and if that has not finished also runs the executable
    there.
    """
    is_large = isinstance(value, np.ndarray) and value.nbytes > _COPIED_AT_ONCE
    return as_aligned(value) if is_large else value


def _wait(array: Any, is_quick: bool) -> float:
    """Blocks until an array is ready; returns the seconds it took.

    Args:
        array: the array.
        is_quick: whether it is expected soon: then spin first, because waking a sleeping thread
            takes about 40 us, longer than many steps.
    """
    started = time.perf_counter()
    for _ in range(_SPINS if is_quick else 1):
        if array.is_ready():
            break
    else:
        array.block_until_ready()
    return time.perf_counter() - started


MOST_AHEAD = 4
"""Calls of a segment that may be in flight when nothing is fetched. XLA has 32 places on a device:
a thread that filled them let small runs of others wait for seconds."""

Executor: TypeAlias = "Interpretation | Callable[..., Any]"
"""What runs a segment for one set of shapes: an interpretation, or a compiled executable."""

_LONGER = "XLA compiles it in less time"

_SPINS = 500
"""Of about 0.2 us each."""

_QUICK_SECS = 2e-4
"""What took longer will hardly be there within `_SPINS`: other processes can use the time."""

_COPIED_AT_ONCE = 100 << 10
"""Bytes up to which XLA's CPU client copies arrays in the calling thread."""


def large_constants(segment: Segment) -> dict[Tensor, Any]:
    """The constants that are arguments of a segment's executable, on the device."""
    return {
        tensor: jax.device_put(tensor.op.attrs["value"])
        for tensor in segment.inputs
        if role_of(tensor.op) is Role.CONSTANT
    }


class PlanRunner:
    """Runs a plan."""

    def __init__(self, plan: Plan, state: ProcessState) -> None:
        self.plan = plan
        self._feeds = plan.feeds
        self._fetches = plan.results
        self._constants = plan.constants
        for segment in plan.segments:
            _check_memory(segment, state)
        self._steps = [_step(segment, state) for segment in plan.segments]
        levels: dict[int, list[Step]] = {}
        for segment, step in zip(plan.segments, self._steps, strict=True):
            levels.setdefault(segment.level, []).append(step)
        self._levels = list(levels.values())
        self._state = state
        self._next: PlanRunner | None = None
        self._compiled = [step for step in self._steps if isinstance(step, CompiledSegment)]
        last = self._levels[-1] if self._levels else []
        self._last = last[0] if len(last) == 1 and isinstance(last[0], CompiledSegment) else None
        # JAX may read a fed array in place: the caller must not get it back meanwhile.
        self._waits = [
            step.wait for step in self._compiled if set(step.segment.inputs) & set(plan.feeds)
        ]

    def run(self, feeds: Sequence[Any], trace: Trace | None = None) -> list[Any]:
        """The values of the plan's fetches, as NumPy arrays (scalars for 0-d).

        Args:
            feeds: the values of the plan's feeds, in order.
            trace: measures each segment.

        Raises:
            ResourceExhaustedError: there is not enough memory.
        """
        values = self.compute(feeds, trace)
        try:
            return [
                to_numpy(value, tensor) for value, tensor in zip(values, self._fetches, strict=True)
            ]
        except memory_errors.ERRORS as error:
            raise self._explained(error, feeds) from error

    def compute(
        self,
        feeds: Sequence[Any],
        trace: Trace | None = None,
        waits: list[Callable[[], None]] | None = None,
    ) -> list[Any]:
        """Like `run`, but device arrays are not transferred.

        Args:
            feeds, trace: see `run`.
            waits: receives functions that block until the feeds are no longer in use; by default
                this function blocks.
        """
        if self._next is not None:
            return self._next.compute(feeds, trace, waits)
        values: dict[Any, Any] = dict(zip(self._feeds, feeds, strict=True))
        if self._constants:
            values.update(self._constants)
        try:
            self._run_steps(values, trace)
            if waits is None:
                for wait in self._waits:
                    wait(values)
            else:
                waits += [partial(wait, values) for wait in self._waits]
            if self._last is not None:
                self._last.raise_fault(values)
        except memory_errors.ERRORS as error:
            raise self._explained(error, feeds) from error
        for step in self._compiled:
            if for_host := step.varying.for_host():
                self._next = PlanRunner(self.plan.with_on_host(for_host), self._state)
        return [values[tensor] for tensor in self._fetches]

    def _explained(self, error: Exception, feeds: Sequence[Any]) -> Exception:
        """What to raise for an error of XLA or NumPy."""
        known = {**self._constants, **dict(zip(self._feeds, feeds, strict=True))}
        shapes = partial(memory_errors.shapes_of, self._compiled, known)
        return memory_errors.explained(error, self.plan.operations, shapes)

    def _run_steps(self, values: dict[Any, Any], trace: Trace | None) -> None:
        if trace is None:
            for steps in self._levels:
                if len(steps) == 1:
                    (step,) = steps
                    (step.start if step is self._last else step)(values)
                else:
                    self._run_together(steps, values)
        else:
            if not self.plan.segments:  # only constants and feeds
                trace.add("constants", default_name(), "", time.time_ns())
            for segment, step in zip(self.plan.segments, self._steps, strict=True):
                where = "host" if segment.place == "host" else segment.device or default_name()
                types = Counter(op.type for op in segment.ops)
                label = ", ".join(f"{count} {kind}" for kind, count in types.most_common())
                with trace.span(segment_name(segment), where, label, values):
                    step(values)

    def _run_together(self, steps: Sequence[Step], values: dict[Tensor, Any]) -> None:
        """Runs independent segments, those on devices concurrently."""
        compiled = [step for step in steps if isinstance(step, CompiledSegment)]
        if len(compiled) > 1:
            with ThreadPoolExecutor(len(compiled)) as pool:
                for done in [pool.submit(step, values) for step in compiled]:
                    done.result()
            steps = [step for step in steps if not isinstance(step, CompiledSegment)]
        for step in steps:
            step(values)


Step: TypeAlias = CompiledSegment | HostSegment | InitializerSegment


def _step(segment: Segment, state: ProcessState) -> Step:
    if InitializerSegment.accepts(segment, state.largest_interpreted):
        return InitializerSegment(segment, state)
    if segment.place == "host" or all(map(_only_reads, segment.ops)):
        return HostSegment(segment, state)
    return CompiledSegment(segment, state, segment_name(segment))


def _check_memory(segment: Segment, state: ProcessState) -> None:
    """Compares the variables that a segment will make in the host's memory with what is free.

    Raises ResourceExhaustedError if they do not fit.
    """
    new = set(segment.writes) - state.values.keys() - state.sharded.keys()
    if not new or not is_cpu(device_named(segment.device)):
        return
    used = dict.fromkeys(tensor.op for op in segment.ops for tensor in op.inputs)
    made = [op for op in used if op.name in new]
    variables = [(op, op.attrs["dtype"], op.attrs["shape"]) for op in made if "shape" in op.attrs]
    memory_errors.check_variables(
        (op, dtype, tuple(shape)) for op, dtype, shape in variables if shape.is_fully_defined()
    )


def _only_reads(op: Operation) -> bool:
    """Whether there is nothing to compute: an executable would take longer to make, and to call."""
    return role_of(op) in (Role.READ, Role.NO_OP)


def to_numpy(value: Any, tensor: Tensor) -> Any:
    """Copies a tensor's value to a NumPy array, or a scalar if it is 0-d."""
    array = np.array(finished(value), tensor.dtype.numpy_dtype)
    return array if array.ndim else array[()]


def segment_name(segment: Segment) -> str:
    """The name of a segment in `State.compilations`: that of its last operation."""
    return segment.ops[-1].name
