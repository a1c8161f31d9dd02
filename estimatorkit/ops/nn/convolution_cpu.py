"""Convolutions on a CPU of several cores.

XLA (jax 0.10) runs a two-dimensional convolution there on one core as long as the filter is small,
and the gradient of its filter slowly. `convolve` is the same function for those that are large, in
pieces of the batch, which XLA can run at the same time and of which it computes the gradients by a
better product. `pays` says for which convolutions; benchmarks/CONVOLUTIONS.md has the figures.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from estimatorkit.ops.nn.sliding_windows import output_length, window_pads, window_reach

PIECES = 16
"""A training step of 98 ms with 8 pieces took 80 with 12, 77 with 16, 78 with 32 (`_in_pieces` says
why); more pieces take longer to compile."""

PIECES_CHANNELS = 16
PIECES_FILTER = 80_000
PIECES_FILTER_BACK = 160_000
"""Products over at least so many channels (backwards: outputs) with filters of at most so many
numbers are done in pieces. Over 6 channels they took 1.6 times as long, over 3 as long; larger
filters XLA spreads over the cores itself: 3x3x128x128 took 34 ms in pieces and 30 at once, its
gradient of the input 33 and 32, with strides of 2 60 and 113."""

LEAST_OPERATIONS = 1e8
LEAST_OPERATIONS_OF_ONE_CHANNEL = 1e7
LARGEST_FILTER = 1_000_000
"""Numbers; the filter's gradient took 2.0 ms in pieces and 5.1 at once with 0.16e9 operations and 1
channel (0.4 and 0.7 with 0.014e9, 1.3 and 4.2 with 0.058e9), 50 and 194 with 7.4e9 and 64 channels,
at 3x3x256x256 two thirds of the processor's time, at 3x3x512x512 2.3 times; with 3 to 32 channels
and 0.05e9 it was slower in pieces."""


class Window(NamedTuple):
    """How a convolution's filter moves over height and width; `pads` are before and after."""

    strides: tuple[int, int]
    pads: tuple[tuple[int, int], tuple[int, int]]
    dilations: tuple[int, int]


def as_window(
    x: Any, filters: Any, strides: Sequence[int], padding: Any, dilations: Sequence[int]
) -> Window:
    """The window with its padding in numbers."""
    rows, columns = window_pads(x.shape[1:3], filters.shape[:2], strides, padding, dilations)
    return Window((strides[0], strides[1]), (rows, columns), (dilations[0], dilations[1]))


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
    one_channel = filters.shape[2] == 1
    least = LEAST_OPERATIONS_OF_ONE_CHANNEL if one_channel else LEAST_OPERATIONS
    return bool(2 * outputs * size >= least and size <= LARGEST_FILTER)


def _output(x: Any, filters: Any, window: Window) -> tuple[int, int]:
    def length(at: int) -> int:
        of_window = (window.strides[at], window.pads[at], window.dilations[at])
        return output_length(x.shape[1 + at], filters.shape[at], *of_window) or 0

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


def _zero_at_run_time(arrays: Sequence[Any]) -> Any:
    """An int32 0 that XLA computes from the arrays and cannot know before: a sign bit, shifted."""
    signs = [lax.bitcast_convert_type(x[(0,) * x.ndim], jnp.uint32) >> 31 for x in arrays]
    return (functools.reduce(jnp.bitwise_or, signs) + 1 >> 2).astype(jnp.int32)


def _needs(value: Any, arrays: Sequence[Any]) -> Any:
    """The value, by a program that reads the arrays too, as far as XLA knows."""
    return lax.cond(
        _zero_at_run_time([value]) != 0,
        lambda value, arrays: value + sum(x[(0,) * x.ndim] for x in arrays),
        lambda value, arrays: value,
        value,
        tuple(arrays),
    )


def _cut(x: Any) -> Any:
    """`(pieces, batch of a piece, ...)`, with zeros after the last of the batch."""
    size = -(-len(x) // PIECES)
    count = -(-len(x) // size)
    lacking = [(0, count * size - len(x))] + [(0, 0)] * (x.ndim - 1)
    return jnp.pad(x, lacking).reshape(count, size, *x.shape[1:])


def _in_pieces(compute: Callable[..., Any], *arrays: Any) -> list[Any]:
    """The results of a function for each of the pieces that are along the arrays' first axis.

    XLA gives a thread that has more than 8 kernels ready to run half of them away, if another is
    free. So that this happens, and to kernels that are a piece's from its copy to its product:

    * All copies get ready at the same time, by an index that a kernel computes.
    * A piece's copy stays in memory until the last product is there. Else another product is
      written over it, and has to wait for those that read it.

    The three products of 5x5x32x64 at 128x14x14 took 12, 20 and 19 ms without the two, most of the
    time on one core, and 10 each with them.
    """
    zero = _zero_at_run_time(arrays)
    parts = [
        [lax.dynamic_index_in_dim(x, at + zero, keepdims=False) for x in arrays]
        for at in range(len(arrays[0]))
    ]
    results = [compute(*part) for part in parts]
    results[-1] = _needs(results[-1], [*itertools.chain(*parts), *results[:-1]])
    return results


def _cut_pays(channels: int, filters: Any, largest: int) -> bool:
    """Whether pieces are worth it for products over so many channels with these filters."""
    return bool(channels >= PIECES_CHANNELS and math.prod(filters.shape) <= largest)


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
    if not _cut_pays(filters.shape[2], filters, PIECES_FILTER):
        return _plain(x, filters, window)
    return jnp.concatenate(_in_pieces(lambda x: _plain(x, filters, window), _cut(x)))[: len(x)]


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

    if not _cut_pays(filters.shape[3], filters, PIECES_FILTER_BACK):
        return of(dy)
    return jnp.concatenate(_in_pieces(of, _cut(dy)))[: len(dy)]


def filter_gradient(dy: Any, x: Any, filters: Any, window: Window) -> Any:
    """The gradient of `convolve` for its filter: the sum of those of the pieces of the batch.

    Each is a convolution itself: its batch are the channels, its channels the batch.
    """

    sizes = zip(
        x.shape[1:3],
        filters.shape[:2],
        dy.shape[1:3],
        window.pads,
        window.strides,
        window.dilations,
        strict=True,
    )
    top, left = (
        (before, (places - 1) * stride + window_reach(size, step) - length - before)
        for length, size, places, (before, _), stride, step in sizes
    )
    turned = Window(window.dilations, (top, left), window.strides)

    def of(x: Any, dy: Any) -> Any:  # (channels, ..., batch), (..., batch, outputs)
        return _plain(x, dy, turned)

    parts = _in_pieces(of, _cut(x).transpose(0, 4, 2, 3, 1), _cut(dy).transpose(0, 2, 3, 1, 4))
    return functools.reduce(jnp.add, parts).transpose(1, 2, 0, 3)
