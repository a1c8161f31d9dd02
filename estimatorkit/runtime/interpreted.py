"""Runs of a device segment without XLA, until its executable is worth its compilation.

A set of shapes begins as an `Interpretation`: the segment is traced, once for many sets of shapes
(`symbolic`), and its jaxpr run in NumPy. Each run adds to an estimate of the time spent; from
`START` of the estimated time of compilation on, or `START_OF_FEW`, a thread compiles, and from
`ENOUGH` of it on, or `ENOUGH_OF_FEW`, the executable is used, and waited for if need be. The
estimates are from equations and sizes, not measured: two runs of a program change to XLA at the
same step, and give the same bits. A run that wants an executable which the thread has not begun
compiles it itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import Future
from contextlib import nullcontext
from typing import Any, cast

import jax
import numpy as np

from estimatorkit.core.tensor import Tensor
from estimatorkit.logger import logger
from estimatorkit.runtime.estimate import (
    share_of_compilation,
    share_of_products,
    unknown_dimensions,
)
from estimatorkit.runtime.interpreter.control import Faulted, cancellable_by
from estimatorkit.runtime.interpreter.cost import RUN, Meter, compilation_seconds, metered
from estimatorkit.runtime.interpreter.equations import NotInterpretable, has_sizes
from estimatorkit.runtime.interpreter.settings import numpy_settings
from estimatorkit.runtime.interpreter.table import Program, Template, program_of
from estimatorkit.runtime.lower import segment_function
from estimatorkit.runtime.plan import Segment
from estimatorkit.runtime.resource_store import finished
from estimatorkit.runtime.symbolic import SymbolicTrace, symbolic_trace
from estimatorkit.runtime.xla import compiler_thread
from estimatorkit.runtime.xla.cancellation import LoopWatch
from estimatorkit.runtime.xla.faults import Sites

START = 0.2
"""Of the time of compilation: shapes that occur a few times are never compiled."""

START_OF_FEW = 1.0
"""The same of shapes that may run a few times only: those after the first, such as the last batch
of an evaluation, and all where no variable changes."""

ENOUGH = 0.6
"""Share of the compilation time from which the executable is used. The thread that began at `START`
is still compiling then, and finishes sooner if NumPy does not run beside it: a CRF tagger's program
takes 0.8 of the time that it takes with 2.0."""

ENOUGH_OF_FEW = 2.0
"""The same for shapes that start at `START_OF_FEW`."""

LONGEST = 1.0
"""Of the time of compilation: longer runs of other shapes than the first are left to XLA at
once."""

CHEAP = 0.007
"""Of the time of compilation: longer runs of the first shapes are left to XLA at once, which takes
a quarter of NumPy's time for a transformer's step, and is not waited for much longer than if NumPy
ran beside it."""

CHEAP_OF_FEW = 0.25
"""The same for segments that will mostly see other shapes next, as dimensions besides the first are
unknown, and for segments that change no variable: a translator's greedy decoder takes XLA 1.0 s,
and NumPy 0.1 for its only run."""

PRODUCTS = 0.05
"""Of the time of compilation: a few runs with longer matrix products and convolutions are left to
XLA at once, since their compilation takes little in comparison. The batches of a network of 12
layers of 1,024 units take 0.03, those of tables 0.003."""

_ARRAYS = (np.ndarray, np.generic, jax.Array)


class SegmentInterpreter:
    """A segment's traces, each for many sets of shapes.

    Args:
        segment: the segment.
        sites: receives the tests of what runs after a fault.
    """

    def __init__(self, segment: Segment, sites: Sites) -> None:
        self.segment = segment
        self.sites = sites
        self.shapes = 0
        self._traced = [each for each in segment.inputs if each not in segment.static_inputs]
        self._traces: dict[Any, list[_Trace]] = {}  # by the values of static inputs
        variable = segment.ops[0].graph.get_operation_by_name
        shapes = [variable(name).attrs["shape"] for name in segment.reads]
        self.growing = [at for at, each in enumerate(shapes) if not each.is_fully_defined()]
        """The variables whose shapes may change between runs, by their places in the state."""

    def leaves(self, inputs: Sequence[Any]) -> bool:
        """Whether the first shapes are left to XLA for sure, which is known without a trace: runs
        are longer than `CHEAP` by an estimate that is too low if anything.

        Args:
            inputs: the values of the inputs that are not static.
        """
        if self.shapes:
            return False
        unknown = unknown_dimensions(self._traced, inputs)
        cheap = _cheap(self.segment, any(axis for axis, _ in unknown))
        least = min((number for _, number in unknown), default=1)
        found = share_of_compilation(self.segment, least) >= cheap
        self.shapes += found
        return found

    def is_long(self, inputs: Sequence[Any]) -> bool:
        """Whether even a few runs would take NumPy too long, estimated without tracing.

        Args:
            inputs: as for `leaves`.
        """
        numbers = [number for _, number in unknown_dimensions(self._traced, inputs)]
        number = max(numbers, default=1)
        return (
            share_of_products(self.segment, number) >= PRODUCTS
            or share_of_compilation(self.segment, number) >= LONGEST
        )

    def interpretation(
        self, static: Mapping[Tensor, Any], inputs: Sequence[Any], state: Sequence[Any]
    ) -> Interpretation:
        """Interprets the segment for one set of shapes.

        Args:
            static: the values of its static inputs.
            inputs: those of the others.
            state: the values of its state, in the order of `state_names`.

        Raises:
            NotInterpretable: only XLA can run it.
        """
        if not all(isinstance(each, _ARRAYS) for each in (*inputs, *state)):
            raise NotInterpretable("values of several devices")
        avals = tuple([jax.typeof(each) for each in values] for values in (inputs, state))
        key = tuple((value.tobytes(), value.shape) for value in static.values())
        traces = self._traces.setdefault(key, [])
        for trace in traces:
            if (program := trace.program(avals)) is not None:
                return Interpretation(self, trace, program, static, avals)
        trace = _Trace(self.segment, static, avals)
        traces.append(trace)
        program = trace.program(avals)
        if program is None:
            raise NotInterpretable("a trace that is not valid for its own shapes")
        return Interpretation(self, trace, program, static, avals)


def _cheap(segment: Segment, has_lengths: bool) -> float:
    return CHEAP_OF_FEW if has_lengths or not segment.writes else CHEAP


class _Trace:
    """A trace of a segment, and its template."""

    def __init__(
        self, segment: Segment, static: Mapping[Tensor, Any], avals: Sequence[Any]
    ) -> None:
        inputs, state = avals
        found = symbolic_trace(segment, static, inputs, state)
        if isinstance(found, str):
            logger.debug("%s is traced for each shape: %s", segment.ops[-1].name, found)
            found = symbolic_trace(segment, static, inputs, state, known=True)
        self._trace = cast(SymbolicTrace, found)
        self._template = Template(self._trace.jaxpr)
        self.results = self._trace.results
        self.compiled_in = compilation_seconds(self._trace.jaxpr.jaxpr)
        lengths = any(has_sizes(shape[1:]) for shape in self._trace.shapes)
        self.cheap = _cheap(segment, lengths)

    def program(self, avals: Sequence[Any]) -> Program | None:
        """The program for a set of shapes; None if the trace is not valid for them."""
        values = self._trace.values([each.shape for own in avals for each in own])
        return None if values is None else self._template.program(values)


class Interpretation:
    """A segment for one set of shapes, in NumPy."""

    def __init__(
        self,
        interpreter: SegmentInterpreter,
        trace: _Trace,
        program: Program,
        static: Mapping[Tensor, Any],
        avals: Sequence[Any],
    ) -> None:
        self._interpreter = interpreter
        interpreter.shapes += 1
        is_first = interpreter.shapes == 1
        self._most = trace.cheap if is_first else LONGEST
        self._is_of_few = not is_first or not interpreter.segment.writes
        self._program, self._tree = program, trace.results
        self._compiled_in = trace.compiled_in
        self._static, self._avals = static, avals
        self._tested: tuple[Program, Any] | None = None
        self._meter = Meter()
        self._compilation: Future[Any] | None = None
        self._lock = threading.Lock()

    def fits(self, state: Sequence[Any]) -> bool:
        """Whether variables still have the shapes that the program is for."""
        _, avals = self._avals
        growing = self._interpreter.growing
        return all([np.shape(state[at]) == avals[at].shape for at in growing])

    @property
    def is_cheap(self) -> bool:
        """Whether to interpret it at all: a run takes less time than the compilation, and of the
        first shapes, which are mostly the only ones, far less."""
        return self._program.seconds < self._most * self._compiled_in

    @property
    def is_brief(self) -> bool:
        """Whether its runs and the next one take less than `START` of the compilation's time."""
        return self._meter.seconds + self._program.seconds < START * self._compiled_in

    def __call__(
        self, inputs: Sequence[Any], state: Sequence[Any], watch: LoopWatch | None = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Runs the segment.

        Args:
            inputs: the values of its inputs.
            state: those of its state, in the order of `state_names`.
            watch: ends its loops.

        Returns:
            The outputs, the new state and the faults, as an executable does.
        """
        arguments = [
            each if type(each) is np.ndarray else np.asarray(finished(each))
            for each in (*inputs, *state)
        ]
        watched = cancellable_by(watch) if watch else nullcontext()
        with numpy_settings(), watched, metered(self._meter):
            try:
                results = self._program(*arguments)
                outputs, changed = self._tree.unflatten(results)
                faults: list[Any] = []
            except Faulted:
                program, tree = self._with_tests()
                outputs, changed, faults = tree.unflatten(program(*arguments))
        self._meter.add(RUN + self._program.seconds)
        given = arguments[: len(inputs)]
        # Views of a device's arrays would change when another segment's call takes their memory.
        given += [
            array
            for array, value in zip(arguments[len(inputs) :], state, strict=True)
            if array is not value
        ]
        seen = set(map(id, given))
        return (
            [_apart(each, given, seen) for each in outputs],
            [_apart(each, given, seen) for each in changed],
            faults,
        )

    def _with_tests(self) -> tuple[Program, Any]:
        """The program that goes on after a fault, and returns it."""
        if self._tested is None:
            segment, sites = self._interpreter.segment, self._interpreter.sites
            function = segment_function(segment, self._static, sites=sites)
            closed, shapes = jax.make_jaxpr(function, return_shape=True)(*self._avals)
            self._tested = program_of(closed), jax.tree.structure(shapes)
        return self._tested

    def executable(self, compile_ahead: Callable[..., Any]) -> Any:
        """The executable, if it is to be used from now on; waits until it is compiled.

        Args:
            compile_ahead: compiles it, given the values of static inputs and the types of the other
                inputs and of the state; called in a thread when it is time.

        Returns:
            What `compile_ahead` returned; None before that is to be used.

        Raises:
            Exception: `compile_ahead` raised it.
        """
        seconds = self._meter.seconds
        few, takes = self._is_of_few, self._compiled_in
        if seconds < (START_OF_FEW if few else START) * takes:
            return None
        with self._lock:
            if self._compilation is None:
                self._compilation = compiler_thread.submit(
                    compile_ahead, self._static, *self._avals
                )
            if seconds < (ENOUGH_OF_FEW if few else ENOUGH) * takes:
                return None
            if self._compilation.cancel():  # not begun: the thread has other work, or has ended
                self._compilation = Future()
                self._compilation.set_result(compile_ahead(self._static, *self._avals))
            return self._compilation.result()


def _apart(value: Any, inputs: Sequence[Any], seen: Set[int]) -> Any:
    """A result that does not share memory with arrays that others may change.

    Args:
        value: the result.
        inputs: the arrays: what was fed, and views of a device's.
        seen: their identities.
    """
    value = np.asarray(value)
    flags = value.flags
    if flags.owndata and flags.c_contiguous and id(value) not in seen:  # no view
        return value
    if any(np.may_share_memory(value, each) for each in inputs):
        return value.copy()
    return value if value.flags.c_contiguous else np.ascontiguousarray(value)


__all__ = ["Interpretation", "NotInterpretable", "SegmentInterpreter"]
