"""Estimates of the time that programs take: from equations and sizes, the same in every run.

The figures are of one core of a 2020s server; they decide when XLA takes over (`interpreted`), and
need not be exact.
"""

from __future__ import annotations

import math
from contextvars import ContextVar
from typing import Any

from estimatorkit.runtime.interpreter.equations import Equation, inner_jaxprs

_CALL = 1.5e-6
"""Seconds of a step of a program: NumPy's call and the interpreter's."""

RUN = 5e-5
"""Seconds of a run besides its steps: feeds, state and results."""

_ELEMENT = 4e-10
"""Seconds per element of a result."""

_ELEMENTS = {
    **dict.fromkeys(("exp", "log", "tanh", "logistic", "sin", "cos", "log1p", "expm1"), 1.5e-9),
    **dict.fromkeys(("pow", "erf_inv", "erf", "sort", "top_k", "random_bits", "scatter_add"), 4e-9),
    **dict.fromkeys(("lgamma", "digamma", "threefry2x32", "scatter"), 1e-8),
}
PRODUCT = 2e-11
"""Seconds per multiplication and addition of a matrix product."""

CONVOLUTION = 1e-10
"""The same of a convolution."""

_EQUATION_OF_XLA = 1.1e-3
"""Seconds to trace, lower and compile an equation on two cores while NumPy runs: 0.6 to 1.2 ms with
20 to 900 equations."""

_EXECUTABLE_OF_XLA = 0.07


class Meter:
    """Adds up estimated time."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Adds time."""
        self.seconds += seconds


_meter: ContextVar[Meter | None] = ContextVar("meter", default=None)


class metered:
    """A context manager in which what is not known before a run is added to a meter: the bodies of
    `while` loops and the branches taken."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def __enter__(self) -> None:
        self._token = _meter.set(self._meter)

    def __exit__(self, *_: object) -> None:
        _meter.reset(self._token)


def spend(seconds: float) -> None:
    """Adds time to the meter of the run."""
    meter = _meter.get()
    if meter is not None:
        meter.add(seconds)


def multiplications(equation: Equation) -> int:
    """Those of a matrix product; 0 for other equations."""
    if equation.name != "dot_general":
        return 0
    (own, _), _ = equation.params["dimension_numbers"]
    depth: int = math.prod(equation.inputs[0].shape[at] for at in own)
    return equation.result.size * depth


def seconds_of(equation: Equation) -> float:
    """The estimated time of an equation without inner programs."""
    size = sum(aval.size for aval in equation.outputs)
    if equation.name == "dot_general":
        return _CALL + multiplications(equation) * PRODUCT
    if equation.name == "conv_general_dilated":
        return convolution_seconds(equation, equation.params["dimension_numbers"].rhs_spec[0])
    if equation.name.startswith(("reduce", "cum", "arg")):
        size = equation.inputs[0].size
    return _CALL + size * _ELEMENTS.get(equation.name, _ELEMENT)


def convolution_seconds(equation: Equation, outputs: int) -> float:
    """The estimated time of a convolution.

    Args:
        equation: of input and filter.
        outputs: the dimension of the filter that counts output channels.
    """
    kernel = equation.inputs[1]
    products = equation.result.size * kernel.size / max(kernel.shape[outputs], 1)
    return 20 * _CALL + products * CONVOLUTION


def elementwise_seconds(steps: int, elements: int) -> float:
    """The estimated time of steps whose results have so many elements together."""
    return steps * _CALL + elements * _ELEMENT


def compilation_seconds(jaxpr: Any) -> float:
    """Estimates the seconds that XLA takes to compile a jaxpr."""
    return compiled_in(_count(jaxpr))


def compiled_in(equations: int) -> float:
    """Estimates the seconds that XLA takes for so many equations."""
    return _EXECUTABLE_OF_XLA + _EQUATION_OF_XLA * equations


def _count(jaxpr: Any) -> int:
    return sum(1 + sum(map(_count, inner_jaxprs(each))) for each in jaxpr.eqns)
