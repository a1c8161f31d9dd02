"""Rules of cumulative sums, products and extremes."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.runtime.interpreter.equations import Equation, Function
from estimatorkit.runtime.interpreter.order import of_extremes
from estimatorkit.runtime.interpreter.rules import arithmetic, compiled

LONG = 128
"""Numbers from which float32 are added in float64: one after the other, the error grows."""


def _along(equation: Equation, function: Function) -> Function:
    """A function along an axis from its start, for an equation which may begin at the end."""
    axis = equation.params["axis"]
    if not equation.params["reverse"]:
        return lambda x: function(x, axis)
    back = (*[slice(None)] * axis, slice(None, None, -1))
    return lambda x: function(x[back], axis)[back]


@arithmetic("cumsum")
def _cumsum(equation: Equation) -> Function:
    shape, dtype = equation.result
    if dtype != np.float32 or shape[equation.params["axis"]] < LONG:
        zero = dtype.type(0)
        return _along(equation, lambda x, axis: np.add.accumulate(x, axis, dtype) + zero)
    summed = _along(equation, lambda x, axis: np.add.accumulate(x, axis, np.float64))
    return lambda x: summed(x).astype(dtype)


@arithmetic("cumprod")
def _cumprod(equation: Equation) -> Function:
    dtype = equation.result.dtype
    return _along(equation, lambda x, axis: np.multiply.accumulate(x, axis, dtype))


@arithmetic("cummax", "cummin")
def _cumulative_extreme(equation: Equation) -> Function:
    larger = equation.name == "cummax"
    function: Any = np.maximum.accumulate if larger else np.minimum.accumulate
    return of_extremes(larger, equation.result.dtype, _along(equation, function))


@arithmetic("cumlogsumexp")
def _cumlogsumexp(equation: Equation) -> Function:
    if equation.result.dtype.kind == "c":
        return compiled(equation)
    return _along(equation, np.logaddexp.accumulate)
