"""Rules of the logarithm of the gamma function and of its derivative.

Lanczos' approximation, step by step as XLA computes it: errors and special values are the same.
Importing SciPy's functions, which are about as fast, would take longer than compiling this by XLA.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from estimatorkit.runtime.interpreter.equations import Equation, Function
from estimatorkit.runtime.interpreter.rules import arithmetic

_SHIFT = 7.5
_FIRST = 0.99999999999980993227684700473478
_COEFFICIENTS = (
    676.520368121885098567009190444019,
    -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,
    -176.61502916214059906584551354,
    12.507343278686904814458936853,
    -0.13857109526572011689554707,
    9.984369578019570859563e-6,
    1.50563273514931155834e-7,
)


def _logarithm_of(z: Any, number: Any) -> tuple[Any, Any]:
    """`t = z + 7.5`, and its logarithm."""
    shift = number(_SHIFT)
    return z + shift, np.log1p(z / shift) + number(math.log(_SHIFT))


@arithmetic("lgamma")
def _lgamma(equation: Equation) -> Function:
    if equation.result.dtype == np.float32:  # near its zeros, sums of single precision are not
        wide = _lgamma_in(np.float64)
        return lambda x: wide(np.asarray(x, np.float64)).astype(np.float32)
    return _lgamma_in(equation.result.dtype.type)


def _lgamma_in(number: Any) -> Function:
    half, pi = number(0.5), number(math.pi)
    root = number(math.log(math.sqrt(2 * math.pi)))

    def run(x: Any) -> Any:
        reflected = x < half
        z = np.where(reflected, -x, x - 1)
        series = np.full(z.shape, _FIRST, z.dtype)
        for at, coefficient in enumerate(_COEFFICIENTS, 1):
            series += number(coefficient) / (z + number(at))
        t, logarithm = _logarithm_of(z, number)
        result = (z + half - t / logarithm) * logarithm + root + np.log(series)
        if reflected.any():
            size = np.abs(x)
            part = size - np.floor(size)
            sine = np.log(np.sin(pi * np.where(part > half, 1 - part, part)))
            mirrored = np.where(np.isfinite(sine), number(math.log(math.pi)) - sine - result, -sine)
            result = np.where(reflected, mirrored, result)
        return np.where(np.isinf(x), number(np.inf), result)

    return run


@arithmetic("digamma")
def _digamma(equation: Equation) -> Function:
    number = equation.result.dtype.type
    half, pi = number(0.5), number(math.pi)

    def run(x: Any) -> Any:
        reflected = x < half
        z = np.where(reflected, -x, x - 1)
        above, below = np.zeros(z.shape, z.dtype), np.full(z.shape, _FIRST, z.dtype)
        for at, coefficient in enumerate(_COEFFICIENTS, 1):
            place = z + number(at)
            part = number(coefficient) / place
            below += part
            above -= part / place
        t, logarithm = _logarithm_of(z, number)
        result = logarithm + above / below - number(7) / t
        if reflected.any():
            angle = pi * (x + np.abs(np.floor(x + half)))
            mirrored = result - pi * np.cos(angle) / np.sin(angle)
            result = np.where(reflected, mirrored, result)
            result = np.where((x <= 0) & (x == np.floor(x)), number(np.nan), result)
        return result

    return run
