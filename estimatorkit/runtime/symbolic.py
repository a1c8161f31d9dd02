"""Traces of device segments for all sizes of their unknown dimensions.

A dimension that is None in a tensor's static shape is a `Size` (`core.sizes`) while the segment is
traced. Kernels see the values that follow from it as known, like those of constant shapes. What
they ask of sizes is recorded, and answered by the numbers of the current run: the trace is used for
runs with the same answers.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, jaxprs_in_params

from estimatorkit.core.errors import OpError
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.sizes import LEAST, Size, Sizes
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.x64 import x64
from estimatorkit.runtime.lower import segment_jaxpr, state_names, traced_function
from estimatorkit.runtime.plan import Segment
from estimatorkit.runtime.xla.faults import Sites
from estimatorkit.runtime.xla.platforms import general


@dataclass(frozen=True)
class SymbolicTrace:
    """A segment that was traced for many sizes.

    Attributes:
        jaxpr: the segment's function of the leaves of (inputs, state), before `optimized`; its
            shapes and parameters contain sizes.
        results: the structure of (outputs, new state).
        shapes: the shapes of the leaves, of numbers and symbols.
        sizes: the sizes, and what was asked of them.
        sites: the tests of values that the jaxpr marks, whose shapes contain sizes.
    """

    jaxpr: ClosedJaxpr
    results: Any
    shapes: tuple[tuple[Any, ...], ...]
    sizes: Sizes
    sites: Sites

    @property
    def symbols(self) -> list[Size]:
        """The sizes that stand for any number."""
        return list(_numbers(self.shapes, self.shapes) or ())

    def values(self, shapes: Sequence[tuple[int, ...]]) -> list[int] | None:
        """What the sizes are made of in a run (`Sizes.values`); None if the trace is not valid for
        it.

        Args:
            shapes: the shapes of the leaves of (inputs, state).
        """
        numbers = _numbers(self.shapes, shapes)
        if numbers is None:
            return None
        found = self.sizes.values(list(numbers.values()))
        return found if found is not None and self.sizes.holds(found) else None


def symbolic_trace(
    segment: Segment,
    static_values: Mapping[Tensor, Any],
    inputs: Sequence[Any],
    state: Sequence[Any],
    known: bool = False,
) -> SymbolicTrace | str:
    """Traces a device segment for all sizes of its unknown dimensions.

    Dimensions that have less than 2 elements in this run stay numbers: they broadcast. Those that
    are equal in this run are one symbol: most are the batch, and JAX must know that they are.

    Args:
        segment: the segment.
        static_values: the values of its static inputs.
        inputs: its traced inputs in order, or their shapes and dtypes.
        state: the values of `state_names(segment)`, or their shapes and dtypes.
        known: whether to trace for the shapes of this run only.

    Returns:
        The trace; or the reason why a kernel or JAX cannot trace such dimensions. The segment is
        then traced for each shape.

    Raises:
        Exception: `known` is set, and a kernel or JAX refuses the inputs.
    """
    sizes = Sizes()
    symbols: dict[int, Size] = {}
    operation = segment.ops[0].graph.get_operation_by_name
    traced = [tensor for tensor in segment.inputs if tensor not in static_values]
    spec = partial(_spec, sizes=sizes, symbols=symbols)
    given = [
        spec(value, None if known else tensor.shape)
        for value, tensor in zip(inputs, traced, strict=True)
    ]
    names = [] if known else state_names(segment)
    shapes = [operation(name).attrs.get("shape") for name in names] or [None] * len(state)
    variables = [
        jax.tree.map(partial(spec, static=shape), value)
        for value, shape in zip(state, shapes, strict=True)
    ]
    sites = Sites()
    try:
        with x64() if segment.wide else nullcontext(), _tracing():
            closed, results = segment_jaxpr(segment, static_values, given, variables, sites=sites)
            _check_reshapes(closed)
    except Exception as error:
        if known or not is_refusal(error):
            raise
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    leaves = tuple(tuple(each.shape) for each in jax.tree.leaves((given, variables)))
    return SymbolicTrace(closed, results, leaves, sizes, sites)


@contextmanager
def _tracing() -> Iterator[None]:
    """A context manager for tracing sizes: of general kernels, without warnings about
    sizes as indices, which are 32 bits wide."""
    with general(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Explicitly requested dtype", UserWarning)
        yield


_REFUSALS = (
    OpError,
    jax.errors.InconclusiveDimensionOperation,
    TypeError,
    ValueError,
    NotImplementedError,
    IndexError,
    AttributeError,
    OverflowError,
    ZeroDivisionError,
)


def is_refusal(error: Exception) -> bool:
    """Whether an exception says that a kernel or JAX needs a number for a symbolic dimension.

    JAX's tracer has exceptions of its own that are not public (`UnexpectedDimVar`).
    """
    return isinstance(error, _REFUSALS) or type(error).__module__.startswith("jax.")


def polymorphic_function(segment: Segment) -> Callable[[Sequence[Any]], list[Any]]:
    """A stateless segment as a function of its inputs and the variables it reads, which JAX also
    traces with its own symbolic dimensions."""
    function = traced_function(segment, {})

    def run(taken: Sequence[Any]) -> list[Any]:
        count = len(segment.inputs)
        return function(taken[:count], taken[count:])[0]

    return run


def _spec(value: Any, static: Any, sizes: Sizes, symbols: dict[int, Size]) -> jax.ShapeDtypeStruct:
    shape = list(np.shape(value))
    dims = static.dims if isinstance(static, TensorShape) else None
    for axis, (dim, number) in enumerate(zip(dims or (), shape, strict=dims is not None)):
        if dim is None and number >= LEAST:
            if number not in symbols:
                symbols[number] = sizes.symbol(number)
            shape[axis] = symbols[number]
    return jax.ShapeDtypeStruct(shape, value.dtype)  # type: ignore[no-untyped-call]


def _check_reshapes(closed: ClosedJaxpr) -> None:
    """Asks whether arrays have the sizes of their new shapes, which JAX does of numbers only."""
    pending, seen = [closed.jaxpr], {closed.jaxpr}
    while pending:
        jaxpr = pending.pop()
        for equation in jaxpr.eqns:
            if equation.primitive is lax.reshape_p:
                before, after = equation.invars[0].aval, equation.outvars[0].aval
                if math.prod(before.shape) != math.prod(after.shape):
                    raise ValueError(f"cannot reshape {before.shape} to {after.shape}")
            inner = set(jaxprs_in_params(equation.params)) - seen
            seen |= inner
            pending += inner


def _numbers(
    shapes: Sequence[tuple[Any, ...]], given: Sequence[tuple[Any, ...]]
) -> dict[Size, Any] | None:
    """The numbers of symbols, in order; None if the shapes are not those of the trace."""
    if len(shapes) != len(given):
        return None
    found: dict[Size, Any] = {}
    for shape, numbers in zip(shapes, given, strict=True):
        if len(shape) != len(numbers):
            return None
        for dim, number in zip(shape, numbers, strict=True):
            if isinstance(dim, Size):
                if number < LEAST or found.setdefault(dim, number) != number:
                    return None
            elif dim != number:
                return None
    return found


__all__ = ["SymbolicTrace", "is_refusal", "polymorphic_function", "symbolic_trace"]
