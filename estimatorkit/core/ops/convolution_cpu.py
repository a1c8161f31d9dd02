"""Convolutions on a CPU of several cores.

XLA (jax 0.10) runs a two-dimensional convolution there on one core as long as the filter is small,
and the gradient of its filter slowly. `convolve` is the same function for those that are large: the
filter's gradient is a matrix product over columns that stay in the cache, and the rest is done in
pieces of the batch, which XLA can run at the same time. `pays` says for which convolutions;
benchmarks/CONVOLUTIONS.md has the figures.
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
"""XLA runs kernels that do not depend on each other at the same time when more than 8 wait: a
training step of 98 ms with 8 pieces took 80 with 12, 77 with 16, 78 with 32. More pieces take
longer to compile."""

PIECES_CHANNELS = 16
PIECES_FILTER = 80_000
"""Pieces for at least so many channels and at most so many numbers in the filter: 7x7x3x64 in
pieces took 1.2 times as long; a filter of 3x3x128x128 XLA spreads over the cores itself (1.1 times
as long in pieces, 3x3x512x512 1.4 times)."""

LEAST_OPERATIONS = 1e9
LEAST_OPERATIONS_THIN = 1e8
"""For the gradient by columns; thin is an input of at most 4 channels. 0.6e9 operations with 64
channels took 9 ms where XLA took 7; 4.8e9 took 73 for 162; 0.16e9 with 1 channel saved 10 ms of a
training step of 105."""

LARGEST_FILTER = 1_000_000
"""Numbers; at 3x3x512x512 XLA's gradient took 31 ms, columns 34; at 3x3x128x128 100 and 54."""

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
    if x.dtype != jnp.float32 or filters.dtype != jnp.float32:
        return False
    if min(map(min, window.pads)) < 0 or min(_output(x, filters, window)) < 1:
        return False
    if filters.shape[0] * filters.shape[1] == 1:
        return False
    outputs = x.shape[0] * math.prod(_output(x, filters, window))
    size = math.prod(filters.shape)
    least = LEAST_OPERATIONS_THIN if filters.shape[2] <= 4 else LEAST_OPERATIONS
    return bool(2 * outputs * size >= least and size <= LARGEST_FILTER)


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


def _cut(x: Any, filters: Any) -> list[Any]:
    """The pieces of the batch that are worth it with these filters."""
    some = filters.shape[2] >= PIECES_CHANNELS and math.prod(filters.shape) <= PIECES_FILTER
    return list(jnp.array_split(x, PIECES)) if some and len(x) >= PIECES else [x]


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
    return jnp.concatenate([_plain(piece, filters, window) for piece in _cut(x, filters)])


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

    return jnp.concatenate([of(part) for part in _cut(dy, filters)])


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
