"""Rules of cumulative sums, products and extremes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from estimatorkit.runtime.interpreter.equations import Equation, Function
from estimatorkit.runtime.interpreter.order import of_extremes
from estimatorkit.runtime.interpreter.rules import arithmetic, compiled

LONG = 128
"""Numbers from which float32 are added in float64: one after the other, the error grows."""


ROWS = 64
"""Numbers that follow one of an axis from which rows are combined: NumPy goes along each column."""


def _along(equation: Equation, ufunc: Any, dtype: Any) -> Function:
    """A function that accumulates along an equation's axis, which may begin at the end."""
    axis, shape = equation.params["axis"], equation.result.shape
    before = (slice(None),) * axis
    back = (*before, slice(None, None, -1))
    by_rows = math.prod(shape[axis + 1 :]) >= ROWS
    rows = [(*before, at) for at in range(shape[axis])]

    def rowwise(x: Any) -> Any:
        result = np.array(x, dtype)
        for last, row in itertools.pairwise(rows):
            ufunc(result[last], result[row], out=result[row])
        return result

    def plain(x: Any) -> Any:
        return ufunc.accumulate(x, axis, dtype)

    function = rowwise if by_rows else plain
    if not equation.params["reverse"]:
        return function
    return lambda x: function(x[back])[back]


@arithmetic("cumsum")
def _cumsum(equation: Equation) -> Function:
    shape, dtype = equation.result
    if dtype != np.float32 or shape[equation.params["axis"]] < LONG:
        summed, zero = _along(equation, np.add, dtype), dtype.type(0)
        return lambda x: summed(x) + zero  # XLA begins with 0: never -0
    wide = _along(equation, np.add, np.float64)
    return lambda x: wide(x).astype(dtype) + dtype.type(0)


@arithmetic("cumprod")
def _cumprod(equation: Equation) -> Function:
    return _along(equation, np.multiply, equation.result.dtype)


@arithmetic("cummax", "cummin")
def _cumulative_extreme(equation: Equation) -> Function:
    larger, dtype = equation.name == "cummax", equation.result.dtype
    return of_extremes(larger, dtype, _along(equation, np.maximum if larger else np.minimum, None))


@arithmetic("cumlogsumexp")
def _cumlogsumexp(equation: Equation) -> Function:
    if equation.result.dtype.kind == "c":
        return compiled(equation)
    return _along(equation, np.logaddexp, equation.result.dtype)
