"""Convolutions on a CPU of several cores.

XLA runs a two-dimensional convolution there on one core only (jax 0.10), and the gradient of its
filter at a third of that core's speed. `convolve` is the same function for large ones: in pieces of
the batch, which XLA runs at the same time, and the filter's gradient as a matrix product over
columns that stay in the cache. `pays` says for which; benchmarks/CONVOLUTIONS.md has the figures.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

PIECES = 16
"""XLA runs kernels that do not depend on each other at the same time when more than 8 wait: 8
pieces of a training step of 98 ms took 98 ms, 12 took 80, 16 took 77, 32 took 78. Each costs time
to compile."""

LEAST_OPERATIONS = 5e8
"""About 3 ms on one core. Below, the pieces' compilation (0.05 s each) is not earned back soon."""

COLUMN_BYTES = 4 << 20
"""The columns that are there at a time. Blocks of 2 to 10 MB took the same time, columns of the
whole batch (80 MB for 128 pictures of 14x14x32 and 5x5) three times as long: new memory each step.
"""


class Window(NamedTuple):
    """How a convolution's filter moves over height and width; `pads` are before and after."""

    strides: tuple[int, int]
    pads: tuple[tuple[int, int], tuple[int, int]]
    dilations: tuple[int, int]


def as_window(
    x: Any, filters: Any, strides: Sequence[int], padding: Any, dilations: Sequence[int]
) -> Window:
    """The window with its padding in numbers."""
    if isinstance(padding, str):
        reach = [
            (size - 1) * step + 1 for size, step in zip(filters.shape, dilations, strict=False)
        ]
        padding = lax.padtype_to_pads(x.shape[1:3], reach, strides, padding)
    (top, bottom), (left, right) = padding
    return Window(
        (int(strides[0]), int(strides[1])),
        ((int(top), int(bottom)), (int(left), int(right))),
        (int(dilations[0]), int(dilations[1])),
    )


def pays(x: Any, filters: Any, window: Window) -> bool:
    """Whether `convolve` is worth it: float32, a window larger than a point, and enough to do.

    Args:
        x: `(batch, height, width, channels)`.
        filters: `(height, width, channels, outputs)`, one group.
        window: no negative padding.
    """
    sizes = (*x.shape, *filters.shape)
    if x.dtype != jnp.float32 or filters.dtype != jnp.float32:
        return False
    if not all(isinstance(size, int) for size in sizes) or min(map(min, window.pads)) < 0:
        return False
    points = filters.shape[0] * filters.shape[1]
    if x.shape[0] < PIECES or points == 1 or min(_output(x, filters, window)) < 1:
        return False
    operations = 2 * x.shape[0] * math.prod(_output(x, filters, window)) * math.prod(filters.shape)
    return bool(operations >= LEAST_OPERATIONS)


def _output(x: Any, filters: Any, window: Window) -> tuple[int, int]:
    def length(at: int) -> int:
        reach = (filters.shape[at] - 1) * window.dilations[at] + 1
        return int((x.shape[1 + at] + sum(window.pads[at]) - reach) // window.strides[at] + 1)

    return length(0), length(1)


def _plain(x: Any, filters: Any, window: Window) -> Any:
    return lax.conv_general_dilated(
        x,
        filters,
        window.strides,
        window.pads,
        rhs_dilation=window.dilations,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def _kept(x: Any) -> Any:
    """The array as it is, computed once: XLA does not make it part of what reads it."""
    return lax.optimization_barrier(x)  # type: ignore[no-untyped-call]


def _cut(x: Any) -> list[Any]:
    return jnp.array_split(x, PIECES)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def convolve(x: Any, filters: Any, window: Window) -> Any:
    """The convolution of `lax.conv_general_dilated`, for what `pays`.

    Args:
        x: float32 `(batch, height, width, channels)`.
        filters: float32 `(height, width, channels, outputs)`.
        window: strides, padding, dilations.

    Returns:
        float32 `(batch, height, width, outputs)`.
    """
    return jnp.concatenate([_plain(piece, filters, window) for piece in _cut(x)])


def _forward(x: Any, filters: Any, window: Window) -> tuple[Any, tuple[Any, Any]]:
    return convolve(x, filters, window), (x, filters)


def _backward(window: Window, kept: tuple[Any, Any], dy: Any) -> tuple[Any, Any]:
    x, filters = kept
    return input_gradient(dy, x.shape, filters, window), filter_gradient(dy, x, filters, window)


convolve.defvjp(_forward, _backward)


def input_gradient(dy: Any, shape: Sequence[int], filters: Any, window: Window) -> Any:
    """The gradient of `convolve` for its input of a given shape."""

    def of(part: Any) -> Any:
        piece = jax.ShapeDtypeStruct((len(part), *shape[1:]), part.dtype)  # type: ignore[no-untyped-call]
        return jax.linear_transpose(lambda x: _plain(x, filters, window), piece)(part)[0]

    return jnp.concatenate([of(part) for part in _cut(dy)])


def filter_gradient(dy: Any, x: Any, filters: Any, window: Window) -> Any:
    """The gradient of `convolve` for its filter.

    A loop over blocks of the batch. Within a block the channels are first and the pictures last,
    so that the columns are copied in long runs and the product needs no transposed operand.
    """
    high, wide, channels, outputs = filters.shape
    rows, places = _output(x, filters, window)
    each = 4 * high * wide * channels * rows * places
    size = max(1, min(len(x), COLUMN_BYTES // each))
    count = -(-len(x) // size)
    lacking = [(0, count * size - len(x)), (0, 0), (0, 0), (0, 0)]
    blocks = tuple(jnp.pad(part, lacking).reshape(count, size, *part.shape[1:]) for part in (x, dy))
    (down, across), (step_down, step_across) = window.strides, window.dilations

    def columns(block: Any) -> Any:
        padded = jnp.pad(block.transpose(3, 1, 2, 0), [(0, 0), *window.pads, (0, 0)])
        padded = _kept(padded)
        parts = [
            lax.slice(
                padded,
                (0, top, left, 0),
                (
                    channels,
                    top + (rows - 1) * down + 1,
                    left + (places - 1) * across + 1,
                    size,
                ),
                (1, down, across, 1),
            )
            for top in range(0, high * step_down, step_down)
            for left in range(0, wide * step_across, step_across)
        ]
        stacked = jnp.stack(parts).reshape(high * wide * channels, rows * places * size)
        return _kept(stacked)

    def add(total: Any, block: Any) -> tuple[Any, None]:
        seen, given = block
        given = _kept(given.transpose(1, 2, 0, 3)).reshape(-1, outputs)
        return total + columns(seen) @ given, None

    start = jnp.zeros((high * wide * channels, outputs), dy.dtype)
    return lax.scan(add, start, blocks)[0].reshape(filters.shape)
