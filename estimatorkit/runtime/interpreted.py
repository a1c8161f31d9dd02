"""Runs of a device segment without XLA, until its executable is worth its compilation.

A set of shapes begins as an `Interpretation`: its jaxpr is traced, and run in NumPy. Each run adds
to an estimate of the time spent (`spent`); from `START` of the estimated time of compilation on, a
thread compiles, and from `ENOUGH` of it on, the executable is used, and waited for if need be.
These are estimates from the equations and sizes, not measurements: two runs of a program change to
XLA at the same step, and give the same bits.
"""

from __future__ import annotations

import atexit
import contextvars
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import jax
import numpy as np

from estimatorkit.core.tensor import Tensor
from estimatorkit.runtime.interpreter.blas import LARGE_PRODUCT, one_thread
from estimatorkit.runtime.interpreter.control import Ask, Faulted, cancellable_by
from estimatorkit.runtime.interpreter.cost import Meter, compilation_seconds, metered
from estimatorkit.runtime.interpreter.equations import NotInterpretable, Sizes
from estimatorkit.runtime.interpreter.table import Program
from estimatorkit.runtime.lower import segment_function, segment_jaxpr
from estimatorkit.runtime.plan import Segment
from estimatorkit.runtime.resource_store import finished
from estimatorkit.runtime.xla.faults import Sites

START = 0.1
"""Of the time of compilation: shapes that occur a few times are never compiled."""

ENOUGH = 1.2
"""Of the time of compilation: about when a thread that began at `START` has finished."""


class Interpretation:
    """A segment for one set of shapes, in NumPy: callable like its executable.

    Args:
        segment: the segment.
        static: the values of its static inputs.
        specs: arrays, or their shapes and dtypes: the other inputs, and the state in the order of
            `state_names`.
        sites: receives the tests.

    Raises:
        NotInterpretable: only XLA can run it.
    """

    def __init__(
        self,
        segment: Segment,
        static: Mapping[Tensor, Any],
        specs: tuple[Sequence[Any], Sequence[Any]],
        sites: Sites,
    ) -> None:
        self._segment, self._static, self._sites = segment, static, sites
        self._specs = jax.tree.map(jax.typeof, specs)
        closed, self._tree = segment_jaxpr(segment, static, *self._specs, sites=sites)
        self._program = Program(closed, Sizes({}))
        self._compiled_in = compilation_seconds(closed.jaxpr)
        self._tested: tuple[Program, Any] | None = None
        self._meter = Meter()
        self._compilation: Future[Callable[..., Any]] | None = None

    @property
    def is_cheap(self) -> bool:
        """Whether a run takes less time than the compilation."""
        return self._program.seconds < ENOUGH * self._compiled_in

    def __call__(
        self, inputs: Sequence[Any], state: Sequence[Any], ask: Ask | None = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Runs the segment.

        Args:
            inputs: the values of its inputs.
            state: those of its state, in the order of `state_names`.
            ask: see `cancellable_by`.

        Returns:
            The outputs, the new state and the faults, as an executable does.
        """
        arguments = [np.asarray(finished(each)) for each in (*inputs, *state)]
        is_large = self._program.largest_product > LARGE_PRODUCT
        threads = nullcontext() if is_large else one_thread()
        with threads, np.errstate(all="ignore"), cancellable_by(ask), metered(self._meter):
            try:
                results = self._program(*arguments)
                outputs, changed = jax.tree.unflatten(self._tree, results)
                faults: list[Any] = []
            except Faulted:
                program, tree = self._with_tests()
                results = program(*arguments)
                outputs, changed, faults = jax.tree.unflatten(tree, results)
        self._meter.add(self._program.seconds)
        own = arguments[: len(inputs)]
        return [_apart(each, own) for each in outputs], [_apart(each, own) for each in changed], faults

    def _with_tests(self) -> tuple[Program, Any]:
        """The program that goes on after a fault, and returns it."""
        if self._tested is None:
            function = segment_function(self._segment, self._static, sites=self._sites)
            closed, shapes = jax.make_jaxpr(function, return_shape=True)(*self._specs)
            self._tested = Program(closed, Sizes({})), jax.tree.structure(shapes)
        return self._tested

    def executable(self, compile_ahead: Callable[[], Callable[..., Any]]) -> Any:
        """The executable, if it is to be used from now on; waits until it is compiled.

        Args:
            compile_ahead: compiles it; called in a thread when it is time.
        """
        seconds = self._meter.seconds
        if self._compilation is None:
            if seconds < START * self._compiled_in:
                return None
            context = contextvars.copy_context()
            self._compilation = _compiler().submit(context.run, compile_ahead)
        return self._compilation.result() if seconds >= ENOUGH * self._compiled_in else None


def interpretation(
    segment: Segment,
    static: Mapping[Tensor, Any],
    inputs: Sequence[Any],
    state: Sequence[Any],
    sites: Sites,
) -> Interpretation | None:
    """The interpretation of a segment for arrays (see `Interpretation`); None if only XLA can."""
    if not all(isinstance(each, _ARRAYS) for each in (*inputs, *state)):
        return None  # of several devices
    try:
        return Interpretation(segment, static, (inputs, state), sites)
    except NotInterpretable:
        return None


_ARRAYS = (np.ndarray, np.generic, jax.Array)


def _apart(value: Any, inputs: Sequence[Any]) -> Any:
    """A result that does not share memory with inputs, which the caller may change."""
    value = np.asarray(value)
    if any(np.may_share_memory(value, each) for each in inputs):
        return value.copy()
    return value if value.flags.c_contiguous else np.ascontiguousarray(value)


_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None


def _compiler() -> ThreadPoolExecutor:
    """The thread that compiles."""
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(1, "estimatorkit-compiler")
            atexit.register(_pool.shutdown, wait=True, cancel_futures=True)
        return _pool


__all__ = ["Interpretation", "NotInterpretable", "interpretation"]
