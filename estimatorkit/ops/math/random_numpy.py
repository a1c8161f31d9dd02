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
from estimatorkit.runtime.interpreter.special import erf_inv

_BLOCK = 1 << 15
"""Numbers computed at once, which fit into a core's cache."""


def uniform(words: Any, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Draws from the uniform distribution on [0, 1).

    Args:
        words: the state of the random operation, uint32 `(3,)`: seed, seed, number of runs.
        shape: of the result.
    """
    return _in_blocks(_unit, bits(words, shape))


def normal(words: Any, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Draws from the standard normal distribution; arguments as for `uniform`."""
    low = np.nextafter(np.float32(-1), np.float32(0))
    return _in_blocks(lambda bits: _normal(bits, low, np.float32(1)), bits(words, shape))


def truncated_normal(words: Any, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Draws from the standard normal distribution between -2 and 2; arguments as for `uniform`."""
    bound = np.float32(math.erf(2 / math.sqrt(2)))
    most = np.nextafter(np.float32(2), np.float32(0))
    return _in_blocks(
        lambda bits: np.clip(_normal(bits, -bound, bound), -most, most), bits(words, shape)
    )


def bits(words: Any, shape: tuple[int, ...]) -> NDArray[np.uint32]:
    """Random uint32 words; arguments as for `uniform`."""
    if 0 in shape:
        return np.zeros(shape, np.uint32)
    return threefry.bits((words[0], words[1]), int(words[2]) << 32, shape)


def _in_blocks(
    function: Callable[[NDArray[np.uint32]], Any], drawn: NDArray[np.uint32]
) -> NDArray[np.float32]:
    """Applies an elementwise function, a block at a time."""
    flat = np.ascontiguousarray(drawn).reshape(-1)
    result = np.empty(flat.shape, np.float32)
    for start in range(0, len(flat), _BLOCK):
        result[start : start + _BLOCK] = function(flat[start : start + _BLOCK])
    return result.reshape(drawn.shape)


def _unit(bits: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Numbers in [0, 1) whose 23 bits of mantissa are the upper ones of `bits`."""
    return (bits >> np.uint32(9) | np.uint32(0x3F800000)).view(np.float32) - np.float32(1)


def _normal(bits: NDArray[np.uint32], low: np.float32, high: np.float32) -> Any:
    """The normal quantiles of numbers distributed uniformly on the range of erf given."""
    x = np.maximum(_unit(bits) * (high - low) + low, low)
    return erf_inv(x) * np.float32(math.sqrt(2))
