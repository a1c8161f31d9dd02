"""Lowerings of convolutions and their gradients on a CPU: `RULES`, by shape.

XLA (jax 0.10) runs many convolutions on one core, some gradients as naive loops, and grouped ones
without vectors. The first rule that applies computes a part (forward, gradient of the input,
gradient of the filter) otherwise: as a matrix product, as another convolution, or in pieces.
benchmarks/CONVOLUTIONS.md has the figures.

`convolve`, `input_gradient` and `filter_gradient` are each other's derivatives, so gradients of any
order have rules too.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.ops.nn.sliding_windows import output_length, window_pads, window_reach

Shape = tuple[int, ...]

_LAYOUTS = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}


class Window(NamedTuple):
    """A filter's movement over 1 to 3 spatial dimensions; `pads` are before and after each."""

    strides: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    dilations: tuple[int, ...]
    groups: int = 1

    def along(self, dimensions: Sequence[int]) -> Window:
        """The window along some of its dimensions."""
        return Window(
            tuple(self.strides[at] for at in dimensions),
            tuple(self.pads[at] for at in dimensions),
            tuple(self.dilations[at] for at in dimensions),
        )


def as_window(
    x: Any,
    filters: Any,
    strides: Sequence[int],
    padding: Any,
    dilations: Sequence[int],
    groups: int = 1,
) -> Window:
    """The window with numeric padding; `x` has its channels last."""
    pads = window_pads(x.shape[1:-1], filters.shape[:-2], strides, padding, dilations)
    return Window(tuple(strides), tuple(pads), tuple(dilations), groups)


class Problem(NamedTuple):
    """A convolution's shapes.

    Attributes:
        x: `(batch, *space, channels)`.
        filters: `(*space, channels of a group, outputs)`.
        window: of the filter.
    """

    x: Shape
    filters: Shape
    window: Window

    @property
    def rank(self) -> int:
        """The number of spatial dimensions."""
        return len(self.window.strides)

    @property
    def outputs(self) -> Shape:
        """The spatial shape of the output."""
        geometry = zip(self.x[1:-1], self.filters[:-2], *self.window[:3], strict=True)
        return tuple(
            output_length(length, size, stride, pads, dilation) or 0
            for length, size, stride, pads, dilation in geometry
        )

    @property
    def operations(self) -> int:
        """Floating-point operations of the product; a multiply-add counts as two."""
        return 2 * self.x[0] * math.prod(self.outputs) * math.prod(self.filters)

    @property
    def is_regular(self) -> bool:
        """Whether no padding is negative and no dimension is empty."""
        pads = itertools.chain(*self.window.pads)
        return min(pads, default=0) >= 0 and min(*self.x, *self.filters, *self.outputs) > 0


class Rule(NamedTuple):
    """A lowering; a part that is None falls through to the next rule.

    Attributes:
        applies: predicate of a problem.
        forward: maps `(x, filters, window)` to the output.
        input_gradient: maps `(dy, filters, problem)` to the gradient of `x`.
        filter_gradient: maps `(x, dy, problem)` to the gradient of the filter.
    """

    applies: Callable[[Problem], bool]
    forward: Callable[[Any, Any, Window], Any] | None = None
    input_gradient: Callable[[Any, Any, Problem], Any] | None = None
    filter_gradient: Callable[[Any, Any, Problem], Any] | None = None


def _input_gradient_of(forward: Callable[..., Any]) -> Callable[[Any, Any, Problem], Any]:
    """The gradient of a function linear in `x`."""

    def gradient(dy: Any, filters: Any, problem: Problem) -> Any:
        x = jnp.zeros(problem.x, dy.dtype)
        return jax.vjp(lambda x: forward(x, filters, problem.window), x)[1](dy)[0]

    return gradient


def _filter_gradient_of(forward: Callable[..., Any]) -> Callable[[Any, Any, Problem], Any]:
    """The gradient of a function linear in the filter."""

    def gradient(x: Any, dy: Any, problem: Problem) -> Any:
        filters = jnp.zeros(problem.filters, dy.dtype)
        return jax.vjp(lambda filters: forward(x, filters, problem.window), filters)[1](dy)[0]

    return gradient


def _rewritten(applies: Callable[[Problem], bool], forward: Callable[..., Any]) -> Rule:
    """A rule whose gradients are derived from the forward part."""
    return Rule(applies, forward, _input_gradient_of(forward), _filter_gradient_of(forward))


# -- XLA's


def _plain(x: Any, filters: Any, window: Window) -> Any:
    return lax.conv_general_dilated(
        x,
        filters,
        window.strides,
        window.pads,
        rhs_dilation=window.dilations,
        dimension_numbers=_LAYOUTS[len(window.strides)],
        feature_group_count=window.groups,
    )


# -- parts of several rules


def _padded(x: Any, window: Window) -> Any:
    return jnp.pad(x, [(0, 0), *window.pads, (0, 0)]) if any(map(any, window.pads)) else x


def _taps(x: Any, problem: Problem) -> Iterator[tuple[Shape, Any]]:
    """For each filter offset, the elements of `x` it multiplies: `(batch, *outputs, channels)`."""
    padded, window = _padded(x, problem.window), problem.window
    for place in np.ndindex(*problem.filters[:-2]):
        cut = [slice(None)]
        geometry = zip(place, problem.outputs, window.strides, window.dilations, strict=True)
        for at, count, stride, dilation in geometry:
            cut.append(slice(at * dilation, at * dilation + (count - 1) * stride + 1, stride))
        yield place, padded[tuple(cut)]


def _problem(x: Any, filters: Any, window: Window) -> Problem:
    return Problem(tuple(x.shape), tuple(filters.shape), window)


# -- 1x1 filters: a matrix product (XLA runs it on one core)


def _is_point(problem: Problem) -> bool:
    points = math.prod(problem.filters[:-2]) == 1
    return points and problem.window.groups == 1 and not any(map(any, problem.window.pads))


def _product(x: Any, filters: Any, window: Window) -> Any:
    strided = x[(slice(None), *(slice(None, None, stride) for stride in window.strides))]
    return jnp.tensordot(strided, filters.reshape(filters.shape[-2:]), 1)


# -- a filter as long as the input: the dimension is one of channels. The gradient of the input
# would else be a convolution over as many zeros before and after as there are places.


def _full(problem: Problem) -> list[int]:
    """The spatial dimensions with a single output and no padding."""
    geometry = zip(problem.x[1:-1], problem.filters[:-2], problem.window.pads, strict=True)
    return [
        at
        for at, (length, size, pads) in enumerate(geometry)
        if length == size and not any(pads) and problem.window.groups == 1
    ]


def _has_full(problem: Problem) -> bool:
    full = _full(problem)
    sizes = [problem.filters[at] for at in full]
    return bool(full) and (problem.rank > 1 or sizes != [1])


def _folded(x: Any, filters: Any, window: Window) -> Any:
    problem = _problem(x, filters, window)
    full, rank = _full(problem), problem.rank
    kept = [at for at in range(rank) if at not in full]
    x = x.transpose(0, *(1 + at for at in (*kept, *full)), 1 + rank)
    filters = filters.transpose(*kept, *full, rank, rank + 1)
    outputs = problem.outputs
    if kept:
        window = window.along(kept)
        space, sizes = x.shape[1 : 1 + len(kept)], filters.shape[: len(kept)]
    else:
        window, space, sizes = Window((1,), ((0, 0),), (1,)), (1,), (1,)
    y = convolve(
        x.reshape(len(x), *space, -1), filters.reshape(*sizes, -1, filters.shape[-1]), window
    )
    return y.reshape(len(x), *outputs, -1)


# -- three dimensions: the places along the first are channels of a convolution over the others


def _of_volume(x: Any, filters: Any, window: Window) -> Any:
    problem = _problem(x, filters, window)
    depth, *outputs = problem.outputs
    rows = x.reshape(len(x), x.shape[1], -1)
    shifted = [
        each.reshape(len(x), depth, *x.shape[2:])
        for _, each in _taps(rows, Problem(rows.shape, (filters.shape[0], 1, 1), window.along([0])))
    ]
    images = jnp.concatenate(shifted, -1)
    images = images.reshape(-1, *images.shape[2:])
    moved = jnp.moveaxis(filters, 0, 2)
    y = convolve(
        images,
        moved.reshape(*moved.shape[:2], -1, moved.shape[-1]),
        window.along([1, 2]),
    )
    return y.reshape(len(x), depth, *outputs, -1)


# -- depthwise: a sum of products with each place of the filter, which XLA fuses into one loop

DEPTHWISE_PLACES = 64
"""More places make a program that is slow to compile."""

DEPTHWISE_TERMS = 512
"""Of the filter's gradient in one loop, for all places."""


def _is_depthwise(problem: Problem) -> bool:
    groups = problem.window.groups
    each_channel = groups > 1 and problem.filters[-2] == 1 and problem.x[-1] == groups
    return each_channel and math.prod(problem.filters[:-2]) <= DEPTHWISE_PLACES


def _depthwise(x: Any, filters: Any, window: Window) -> Any:
    outputs_each = filters.shape[-1] // x.shape[-1]
    taps = list(_taps(x, _problem(x, filters, window)))
    # (*space, channels * outputs of each) to one filter for each output of a channel
    by_output = filters.reshape(*filters.shape[:-2], x.shape[-1], outputs_each)
    sums = [
        functools.reduce(
            jnp.add, [tap * by_output[(*place, slice(None), at)] for place, tap in taps]
        )
        for at in range(outputs_each)
    ]
    if outputs_each == 1:
        return sums[0]
    return jnp.stack(sums, -1).reshape(*sums[0].shape[:-1], -1)


def _depthwise_input_gradient(dy: Any, filters: Any, problem: Problem) -> Any:
    """The sum over a channel's outputs of depthwise convolutions of `dy`.

    The derivative of `_depthwise` itself is a sum of padded products, each of which XLA would
    write to memory if the sum has two users.
    """
    window, channels = problem.window, problem.x[-1]
    if max(window.strides) > 1 < max(window.dilations):
        return _input_gradient_of(_depthwise)(dy, filters, problem)
    each = problem._replace(filters=(*problem.filters[:-1], channels))
    by_output = dy.reshape(*dy.shape[:-1], channels, -1)
    filters = filters.reshape(*filters.shape[:-1], channels, -1)
    parts = [
        _by_phases(by_output[..., at], filters[..., at], each) for at in range(filters.shape[-1])
    ]
    return functools.reduce(jnp.add, parts)


def _depthwise_filter_gradient(x: Any, dy: Any, problem: Problem) -> Any:
    """Sums over the first dimension of space by additions of rows, which XLA runs with vectors and
    for all places of the filter while the rows are in the cache, then over the rest.
    """
    high, channels = problem.outputs[0], x.shape[-1]
    step = max(1, high * math.prod(problem.filters[:-2]) // DEPTHWISE_TERMS)
    taps = [tap for _, tap in _taps(x, problem)]
    by_output = dy.reshape(*dy.shape[:-1], channels, -1)

    def gradient(dy: Any) -> Any:
        def rows(tap: Any) -> Any:
            products = [
                tap[:, at] * dy[:, at] if step == 1 else _sum_of_rows(tap, dy, at, step)
                for at in range(0, high, step)
            ]
            return functools.reduce(jnp.add, products)

        stacked = jnp.stack([rows(tap) for tap in taps], 1)
        return jnp.sum(stacked, (0, *range(2, stacked.ndim - 1)))

    sums = [gradient(by_output[..., at]) for at in range(by_output.shape[-1])]
    return jnp.stack(sums, -1).reshape(problem.filters)


def _sum_of_rows(tap: Any, dy: Any, at: int, count: int) -> Any:
    return jnp.sum(tap[:, at : at + count] * dy[:, at : at + count], 1)


# -- few channels in and out: two neighbours in the last dimension of space are computed as outputs
# of one place, whose filter is one stride longer. XLA's kernel wants many outputs: 3x3x3x32 of
# 128x32x32 took 13.4 ms of processor time and takes 5.6, 5x5x6x16 of 128x28x28 20 and 8.0; 3x3x3x64
# would take 1.2 times as long.

FEW_CHANNELS = 16
FEW_OUTPUTS = 32


def _has_few(problem: Problem) -> bool:
    window = problem.window
    return (
        window.groups == 1
        and window.dilations[-1] == 1
        and problem.filters[-3] > 1
        and problem.filters[-2] <= FEW_CHANNELS
        and problem.filters[-1] <= FEW_OUTPUTS
        and problem.outputs[-1] > 1
        and problem.operations >= LEAST_OPERATIONS
    )


def _two_at_once(x: Any, filters: Any, window: Window) -> Any:
    problem = _problem(x, filters, window)
    stride, (before, _) = window.strides[-1], window.pads[-1]
    size, count = filters.shape[-3], problem.outputs[-1]
    pairs, reach = -(-count // 2), size + stride

    def at(place: int) -> Any:
        pads = [(0, 0)] * (filters.ndim - 3) + [(place, reach - size - place), (0, 0), (0, 0)]
        return jnp.pad(filters, pads)

    after = (2 * (pairs - 1) * stride + reach) - x.shape[-2] - before
    y = _plain(
        lax.pad(x, jnp.zeros((), x.dtype), _last_pads(x.ndim, before, after)),
        jnp.concatenate([at(0), at(stride)], -1),
        window._replace(
            strides=(*window.strides[:-1], 2 * stride), pads=(*window.pads[:-1], (0, 0))
        ),
    )
    return y.reshape(*y.shape[:-2], 2 * pairs, -1)[..., :count, :]


def _last_pads(rank: int, before: int, after: int) -> list[tuple[int, int, int]]:
    """The padding, or cut where it is negative, of the dimension before the channels."""
    return [(0, 0, 0)] * (rank - 2) + [(before, after, 0), (0, 0, 0)]


# -- large strides: blocks of the input are places, their numbers channels

BLOCK_STRIDE = 4
BLOCK_CHANNELS = 16


def _has_blocks(problem: Problem) -> bool:
    window = problem.window
    return (
        problem.rank == 2
        and window.groups == 1
        and set(window.dilations) == {1}
        and min(window.strides) >= BLOCK_STRIDE
        and all(size >= by for size, by in zip(problem.filters, window.strides, strict=False))
        and problem.x[-1] < BLOCK_CHANNELS
    )


def _in_blocks(x: Any, filters: Any, window: Window) -> Any:
    problem = _problem(x, filters, window)
    pads, blocks, sizes = [], [], []
    geometry = zip(x.shape[1:3], filters.shape, problem.outputs, *window[:2], strict=False)
    for length, size, outputs, stride, (before, _) in geometry:
        reach = -(-size // stride)  # in blocks
        blocks.append(outputs + reach - 1)
        sizes.append(reach)
        pads.append((before, (outputs + reach - 1) * stride - length - before, 0))
    high, wide = window.strides
    zero = jnp.zeros((), x.dtype)
    x = lax.pad(x, zero, [(0, 0, 0), *pads, (0, 0, 0)])
    x = x.reshape(len(x), blocks[0], high, blocks[1], wide, -1).transpose(0, 1, 3, 2, 4, 5)
    taken = [
        (0, reach * by - size)
        for reach, by, size in zip(sizes, window.strides, filters.shape, strict=False)
    ]
    filters = jnp.pad(filters, [*taken, (0, 0), (0, 0)])
    filters = filters.reshape(sizes[0], high, sizes[1], wide, *filters.shape[2:])
    filters = filters.transpose(0, 2, 1, 3, 4, 5)
    return convolve(
        x.reshape(*x.shape[:3], -1),
        filters.reshape(*sizes, -1, filters.shape[-1]),
        Window((1, 1), ((0, 0), (0, 0)), (1, 1)),
    )


# -- gradients of large strided filters, which XLA runs as naive loops

STRIDED_FILTER = 160_000
"""Numbers in the filter; smaller ones go in pieces."""


def _is_large_and_strided(problem: Problem) -> bool:
    window = problem.window
    return (
        max(window.strides) > 1
        and window.groups == 1
        and set(window.dilations) == {1}
        and math.prod(problem.filters) > STRIDED_FILTER
    )


def _by_phases(dy: Any, filters: Any, problem: Problem) -> Any:
    """The gradient of the input by one unstrided convolution per phase (position modulo the
    strides), interleaved afterwards.

    Strides or dilations are 1, and there is one group or one for each channel and output.
    """
    window, space = problem.window, problem.x[1:-1]
    befores = [before for before, _ in window.pads]
    blocks = [
        max(-(-(length + before) // stride), outputs)
        for length, before, stride, outputs in zip(
            space, befores, window.strides, problem.outputs, strict=True
        )
    ]
    ones = (1,) * problem.rank
    phases = []
    for phase in np.ndindex(*window.strides):
        of_phase = tuple(slice(at, None, by) for at, by in zip(phase, window.strides, strict=True))
        part = filters[of_phase]
        if part.size == 0:
            phases.append(jnp.zeros((len(dy), *blocks, problem.x[-1]), dy.dtype))
            continue
        turned = jnp.flip(part, range(problem.rank))
        if window.groups == 1:
            turned = jnp.swapaxes(turned, -1, -2)
        pads = tuple(
            (window_reach(size, dilation) - 1, block - outputs)
            for size, dilation, block, outputs in zip(
                part.shape, window.dilations, blocks, problem.outputs, strict=False
            )
        )
        phases.append(convolve(dy, turned, Window(ones, pads, window.dilations, window.groups)))
    x = jnp.stack(phases, 1 + problem.rank)
    x = x.reshape(len(dy), *blocks, *window.strides, problem.x[-1])
    rank = problem.rank
    order = itertools.chain(*((1 + at, 1 + rank + at) for at in range(rank)))
    x = x.transpose(0, *order, 1 + 2 * rank)
    lengths = [block * by for block, by in zip(blocks, window.strides, strict=True)]
    x = x.reshape(len(dy), *lengths, problem.x[-1])
    kept = [slice(before, before + length) for before, length in zip(befores, space, strict=True)]
    missing = [
        (0, max(0, before + length - have))
        for before, length, have in zip(befores, space, lengths, strict=True)
    ]
    return jnp.pad(x, [(0, 0), *missing, (0, 0)])[(slice(None), *kept)]


def _by_columns(x: Any, dy: Any, problem: Problem) -> Any:
    """The gradient of the filter as one matrix product."""
    columns = jnp.concatenate([tap for _, tap in _taps(x, problem)], -1)
    columns = columns.reshape(-1, columns.shape[-1])
    product = lax.dot_general(columns, dy.reshape(len(columns), -1), (((0,), (0,)), ((), ())))
    return product.reshape(problem.filters)


# -- batch pieces, which XLA can run concurrently

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


def _has_pieces(problem: Problem) -> bool:
    """Whether there is enough work, with a window larger than one element."""
    if problem.rank > 2 or problem.window.groups > 1 or math.prod(problem.filters[:-2]) == 1:
        return False
    one_channel = problem.filters[-2] == 1
    least = LEAST_OPERATIONS_OF_ONE_CHANNEL if one_channel else LEAST_OPERATIONS
    return problem.operations >= least and math.prod(problem.filters) <= LARGEST_FILTER


def _zero_at_run_time(arrays: Sequence[Any]) -> Any:
    """An int32 0 computed from the arrays (a shifted sign bit), which XLA cannot fold."""
    signs = [lax.bitcast_convert_type(x[(0,) * x.ndim], jnp.uint32) >> 31 for x in arrays]
    return (functools.reduce(jnp.bitwise_or, signs) + 1 >> 2).astype(jnp.int32)


def _needs(value: Any, arrays: Sequence[Any]) -> Any:
    """The value, with an artificial dependency on the arrays that XLA cannot remove."""
    return lax.cond(
        _zero_at_run_time([value]) != 0,
        lambda value, arrays: value + sum(x[(0,) * x.ndim] for x in arrays),
        lambda value, arrays: value,
        value,
        tuple(arrays),
    )


def _cut(x: Any) -> Any:
    """Splits the batch: `(pieces, batch of a piece, ...)`, padded with zeros."""
    size = -(-len(x) // PIECES)
    count = -(-len(x) // size)
    lacking = [(0, count * size - len(x))] + [(0, 0)] * (x.ndim - 1)
    return jnp.pad(x, lacking).reshape(count, size, *x.shape[1:])


def _in_pieces(compute: Callable[..., Any], *arrays: Any) -> list[Any]:
    """Applies a function to each of the pieces along the arrays' first axis.

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


def _forward_has_pieces(problem: Problem) -> bool:
    few = math.prod(problem.filters) <= PIECES_FILTER and problem.filters[-2] >= PIECES_CHANNELS
    return few and _has_pieces(problem)


def _forward_in_pieces(x: Any, filters: Any, window: Window) -> Any:
    parts = _in_pieces(lambda x: _plain(x, filters, window), _cut(x))
    return jnp.concatenate(parts)[: len(x)]


def _input_gradient_has_pieces(problem: Problem) -> bool:
    size = math.prod(problem.filters)
    few = size <= PIECES_FILTER_BACK and problem.filters[-1] >= PIECES_CHANNELS
    return few and _has_pieces(problem)


def _input_gradient_in_pieces(dy: Any, filters: Any, problem: Problem) -> Any:
    def of(part: Any) -> Any:
        piece = problem._replace(x=(len(part), *problem.x[1:]))
        return _input_gradient_of(_plain)(part, filters, piece)

    return jnp.concatenate(_in_pieces(of, _cut(dy)))[: len(dy)]


def _filter_gradient_in_pieces(x: Any, dy: Any, problem: Problem) -> Any:
    """The filter's gradient, summed over pieces of the batch.

    Each is a convolution with batch and channels exchanged.
    """
    window, rank = problem.window, problem.rank
    geometry = zip(x.shape[1:-1], problem.filters, problem.outputs, *window[:3], strict=False)
    pads = tuple(
        (before, (places - 1) * stride + window_reach(size, step) - length - before)
        for length, size, places, stride, (before, _), step in geometry
    )
    turned = Window(window.dilations, pads, window.strides)

    def of(x: Any, dy: Any) -> Any:  # (channels, ..., batch), (..., batch, outputs)
        return _plain(x, dy, turned)

    parts = _in_pieces(of, jnp.swapaxes(_cut(x), 1, -1), jnp.moveaxis(_cut(dy), 1, -2))
    return jnp.moveaxis(functools.reduce(jnp.add, parts), 0, rank)


# -- the table

_ANY = (
    Rule(_is_point, _product, _input_gradient_of(_product), _by_columns),
    _rewritten(_has_full, _folded),
    Rule(
        _is_depthwise,
        _depthwise,
        _depthwise_input_gradient,
        _depthwise_filter_gradient,
    ),
    _rewritten(lambda problem: problem.rank == 3 and problem.window.groups == 1, _of_volume),
    _rewritten(_has_blocks, _in_blocks),
    Rule(_is_large_and_strided, None, _by_phases, None),
    Rule(
        lambda problem: (
            _is_large_and_strided(problem) and math.prod(problem.filters) > LARGEST_FILTER
        ),
        filter_gradient=_by_columns,
    ),
)
_FLOAT32 = (
    Rule(_has_few, _two_at_once),
    Rule(_forward_has_pieces, _forward_in_pieces),
    Rule(_input_gradient_has_pieces, input_gradient=_input_gradient_in_pieces),
    Rule(_has_pieces, filter_gradient=_filter_gradient_in_pieces),
)

RULES = {np.dtype(np.float32): _ANY + _FLOAT32, np.dtype(np.float64): _ANY}
"""The lowerings for each dtype, in order."""

_PLAIN = _rewritten(Problem.is_regular.fget, _plain)  # type: ignore[attr-defined]


def _chosen(part: str, problem: Problem, dtype: Any) -> Callable[..., Any]:
    """The part of the first applicable rule that has it; XLA's by default."""
    for rule in RULES.get(np.dtype(dtype), ()) if problem.is_regular else ():
        found: Callable[..., Any] | None = getattr(rule, part)
        if found is not None and rule.applies(problem):
            return found
    plain: Callable[..., Any] = getattr(_PLAIN, part)
    return plain


def has_rule(x: Any, filters: Any, window: Window) -> bool:
    """Whether any part of a convolution has a rule other than XLA's."""
    problem = _problem(x, filters, window)
    return problem.is_regular and any(
        rule.applies(problem) for rule in RULES.get(np.dtype(x.dtype), ())
    )


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def convolve(x: Any, filters: Any, window: Window) -> Any:
    """The convolution of `lax.conv_general_dilated`.

    Args:
        x: `(batch, *space, channels)`.
        filters: `(*space, channels of a group, outputs)`.
        window: strides, padding, dilations, groups.

    Returns:
        `(batch, *outputs, outputs)`.
    """
    return _chosen("forward", _problem(x, filters, window), x.dtype)(x, filters, window)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def input_gradient(dy: Any, filters: Any, problem: Problem) -> Any:
    """The gradient of `convolve` with respect to its input."""
    return _chosen("input_gradient", problem, dy.dtype)(dy, filters, problem)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def filter_gradient(x: Any, dy: Any, problem: Problem) -> Any:
    """The gradient of `convolve` with respect to its filter."""
    return _chosen("filter_gradient", problem, x.dtype)(x, dy, problem)


def _keep(function: Callable[..., Any]) -> Callable[..., Any]:
    def forward(one: Any, other: Any, geometry: Any) -> tuple[Any, tuple[Any, Any]]:
        return function(one, other, geometry), (one, other)

    return forward


def _convolve_backward(window: Window, kept: tuple[Any, Any], dy: Any) -> tuple[Any, Any]:
    x, filters = kept
    problem = _problem(x, filters, window)
    return input_gradient(dy, filters, problem), filter_gradient(x, dy, problem)


def _input_backward(problem: Problem, kept: tuple[Any, Any], dx: Any) -> tuple[Any, Any]:
    dy, filters = kept
    return convolve(dx, filters, problem.window), filter_gradient(dx, dy, problem)


def _filter_backward(problem: Problem, kept: tuple[Any, Any], df: Any) -> tuple[Any, Any]:
    x, dy = kept
    return input_gradient(dy, df, problem), convolve(x, df, problem.window)


convolve.defvjp(_keep(convolve), _convolve_backward)
input_gradient.defvjp(_keep(input_gradient), _input_backward)
filter_gradient.defvjp(_keep(filter_gradient), _filter_backward)
