"""The random draws of initializers in NumPy, equal to XLA's up to rounding.

The bits are those of XLA's Threefry generator for the same key and counter;
the distributions follow `jax.random`. An initializer runs once, and XLA takes some 0.1 s to compile
each of its draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.runtime.interpreter import threefry

_BLOCK = 1 << 15
"""Numbers computed at once, which fit into a core's cache."""

# erfinv in single precision (Giles 2012), for w = -log(1 - x^2) below 5 and above.
_CENTRAL = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
_TAIL = (
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
)


def uniform(words: Any, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Draws from the uniform distribution on [0, 1).

    Args:
        words: the state of the random operation, uint32 `(3,)`: seed, seed, number of runs.
        shape: of the result.
    """
    return _in_blocks(_unit, _bits(words, shape))


def normal(words: Any, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Draws from the standard normal distribution; arguments as for `uniform`."""
    low = np.nextafter(np.float32(-1), np.float32(0))
    return _in_blocks(lambda bits: _normal(bits, low, np.float32(1)), _bits(words, shape))


def truncated_normal(words: Any, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Draws from the standard normal distribution between -2 and 2; arguments as for `uniform`."""
    bound = np.float32(math.erf(2 / math.sqrt(2)))
    most = np.nextafter(np.float32(2), np.float32(0))
    return _in_blocks(
        lambda bits: np.clip(_normal(bits, -bound, bound), -most, most), _bits(words, shape)
    )


def _bits(words: Any, shape: tuple[int, ...]) -> NDArray[np.uint32]:
    """Random uint32 words."""
    if 0 in shape:
        return np.zeros(shape, np.uint32)
    return threefry.bits((words[0], words[1]), int(words[2]) << 32, shape)


def _in_blocks(
    function: Callable[[NDArray[np.uint32]], Any], bits: NDArray[np.uint32]
) -> NDArray[np.float32]:
    """Applies an elementwise function, a block at a time."""
    flat = np.ascontiguousarray(bits).reshape(-1)
    result = np.empty(flat.shape, np.float32)
    for start in range(0, len(flat), _BLOCK):
        result[start : start + _BLOCK] = function(flat[start : start + _BLOCK])
    return result.reshape(bits.shape)


def _unit(bits: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Numbers in [0, 1) whose 23 bits of mantissa are the upper ones of `bits`."""
    return (bits >> np.uint32(9) | np.uint32(0x3F800000)).view(np.float32) - np.float32(1)


def _normal(bits: NDArray[np.uint32], low: np.float32, high: np.float32) -> Any:
    """The normal quantiles of numbers distributed uniformly on the range of erf given."""
    x = np.maximum(_unit(bits) * (high - low) + low, low)
    w = -np.log1p(-x * x)
    is_tail = w >= 5
    p = _polynomial(w - np.float32(2.5), _CENTRAL)
    if is_tail.any():
        p[is_tail] = _polynomial(np.sqrt(w[is_tail]) - np.float32(3), _TAIL)
    return p * x * np.float32(math.sqrt(2))


def _polynomial(x: NDArray[np.float32], coefficients: tuple[float, ...]) -> NDArray[np.float32]:
    result = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        result *= x
        result += np.float32(coefficient)
    return result
