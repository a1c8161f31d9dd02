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
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.ops.nn import convolution_onednn, convolution_pieces
from estimatorkit.ops.nn.convolution_problem import (
    Problem,
    Rule,
    Window,
    input_gradient_of,
    input_gradient_window,
    plain,
    problem_of,
    rewritten,
    taps_of,
)
from estimatorkit.ops.nn.sliding_windows import window_reach

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
    problem = problem_of(x, filters, window)
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
    problem = problem_of(x, filters, window)
    depth, *outputs = problem.outputs
    rows = x.reshape(len(x), x.shape[1], -1)
    shifted = [
        each.reshape(len(x), depth, *x.shape[2:])
        for _, each in taps_of(
            rows, Problem(rows.shape, (filters.shape[0], 1, 1), window.along([0]))
        )
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


def _has_several_outputs(problem: Problem) -> bool:
    several = _is_depthwise(problem) and problem.filters[-1] > problem.x[-1]
    return several and convolution_onednn.applies(problem)


def _depthwise(x: Any, filters: Any, window: Window) -> Any:
    outputs_each = filters.shape[-1] // x.shape[-1]
    taps = list(taps_of(x, problem_of(x, filters, window)))
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
        return input_gradient_of(_depthwise)(dy, filters, problem)
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
    taps = [tap for _, tap in taps_of(x, problem)]
    by_output = dy.reshape(*dy.shape[:-1], channels, -1)

    def gradient(dy: Any) -> Any:
        def rows(tap: Any) -> Any:
            products = [
                jnp.sum(tap[:, at : at + step] * dy[:, at : at + step], 1)
                for at in range(0, high, step)
            ]
            return functools.reduce(jnp.add, products)

        stacked = jnp.stack([rows(tap) for tap in taps], 1)
        return jnp.sum(stacked, (0, *range(2, stacked.ndim - 1)))

    sums = [gradient(by_output[..., at]) for at in range(by_output.shape[-1])]
    return jnp.stack(sums, -1).reshape(problem.filters)


# -- few channels in and out: two neighbours in the last dimension of space are computed as outputs
# of one place, whose filter is one stride longer. XLA's kernel wants many outputs: 3x3x3x32 of
# 128x32x32 took 13.4 ms of processor time and takes 5.6, 5x5x6x16 of 128x28x28 20 and 8.0; 3x3x3x64
# would take 1.2 times as long.

FEW_CHANNELS = 16
FEW_OUTPUTS = 32
FEW_LEAST_OPERATIONS = 1e8


def _has_few(problem: Problem) -> bool:
    window = problem.window
    return (
        window.groups == 1
        and window.dilations[-1] == 1
        and problem.filters[-3] > 1
        and problem.filters[-2] <= FEW_CHANNELS
        and problem.filters[-1] <= FEW_OUTPUTS
        and problem.outputs[-1] > 1
        and problem.operations >= FEW_LEAST_OPERATIONS
    )


def _two_at_once(x: Any, filters: Any, window: Window) -> Any:
    problem = problem_of(x, filters, window)
    stride, (before, _) = window.strides[-1], window.pads[-1]
    size, count = filters.shape[-3], problem.outputs[-1]
    pairs, reach = -(-count // 2), size + stride

    def at(place: int) -> Any:
        pads = [(0, 0)] * (filters.ndim - 3) + [(place, reach - size - place), (0, 0), (0, 0)]
        return jnp.pad(filters, pads)

    after = (2 * (pairs - 1) * stride + reach) - x.shape[-2] - before
    y = plain(
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

BLOCK_STRIDE_BACK = 2
BLOCK_CHANNELS_BACK = 8
"""For the input gradient by oneDNN, whose outputs the channels are, in vectors of 8."""


def _has_blocks(
    problem: Problem, stride: int = BLOCK_STRIDE, channels: int = BLOCK_CHANNELS
) -> bool:
    window = problem.window
    return (
        problem.rank == 2
        and window.groups == 1
        and set(window.dilations) == {1}
        and min(window.strides) >= stride
        and all(size >= by for size, by in zip(problem.filters, window.strides, strict=False))
        and problem.x[-1] < channels
    )


def _has_blocks_back(problem: Problem) -> bool:
    has_blocks = _has_blocks(problem, BLOCK_STRIDE_BACK, BLOCK_CHANNELS_BACK)
    return has_blocks and convolution_onednn.applies(problem)


def _in_blocks(x: Any, filters: Any, window: Window) -> Any:
    problem = problem_of(x, filters, window)
    pads, blocks, sizes = [], [], []
    geometry = zip(x.shape[1:3], filters.shape, problem.outputs, *window[:2], strict=False)
    for length, size, outputs, stride, (before, _) in geometry:
        reach = -(-size // stride)  # in blocks
        blocks.append(outputs + reach - 1)
        sizes.append(reach)
        pads.append((before, blocks[-1] * stride - length - before, 0))
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


# -- few columns: XLA's convolution over the whole image takes 2 to 5 times a matrix product of them
# on processors without AVX-512, and as much on those with it

VERY_FEW_COLUMNS = 20
"""With more, oneDNN is faster than the matrix product."""

FEW_COLUMNS = 64
COLUMNS_LEAST_OPERATIONS = 5e6


def _has_few_columns(problem: Problem, most: int = FEW_COLUMNS) -> bool:
    few = problem.window.groups == 1 and math.prod(problem.filters[:-1]) <= most
    return few and problem.operations >= COLUMNS_LEAST_OPERATIONS


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

    Strides or dilations are 1.
    """
    window, space = problem.window, problem.x[1:-1]
    if max(window.strides) == 1:
        turned = _exchanged(jnp.flip(filters, range(problem.rank)), window.groups)
        unstrided = problem_of(dy, turned, input_gradient_window(problem))
        if unstrided.is_regular:  # without positions that the phases compute and cut off
            return convolve(dy, turned, unstrided.window)
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
        turned = _exchanged(jnp.flip(part, range(problem.rank)), window.groups)
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


def _exchanged(filters: Any, groups: int) -> Any:
    """The filter with the input and output channels of each group exchanged."""
    *sizes, channels, outputs = filters.shape
    by_group = filters.reshape(*sizes, channels, groups, -1)
    return jnp.swapaxes(by_group, -1, -3).reshape(*sizes, outputs // groups, -1)


def _by_columns(x: Any, dy: Any, problem: Problem) -> Any:
    """The gradient of the filter as one matrix product."""
    columns = jnp.concatenate([tap for _, tap in taps_of(x, problem)], -1)
    columns = columns.reshape(-1, columns.shape[-1])
    product = lax.dot_general(columns, dy.reshape(len(columns), -1), (((0,), (0,)), ((), ())))
    return product.reshape(problem.filters)


# -- the table

_PRODUCTS = (
    Rule(_is_point, _product, input_gradient_of(_product), _by_columns),
    rewritten(_has_full, _folded),
)
_ANY = (
    Rule(
        _is_depthwise,
        _depthwise,
        _depthwise_input_gradient,
        _depthwise_filter_gradient,
    ),
    rewritten(lambda problem: problem.rank == 3 and problem.window.groups == 1, _of_volume),
    rewritten(_has_blocks, _in_blocks),
    Rule(_is_large_and_strided, None, _by_phases, None),
    Rule(
        lambda problem: (
            _is_large_and_strided(problem)
            and math.prod(problem.filters) > convolution_pieces.LARGEST_FILTER
        ),
        filter_gradient=_by_columns,
    ),
)
_ONEDNN = (
    Rule(
        lambda problem: _has_few_columns(problem, VERY_FEW_COLUMNS),
        filter_gradient=_by_columns,
    ),
    Rule(_has_blocks_back, input_gradient=input_gradient_of(_in_blocks)),
    Rule(_has_several_outputs, input_gradient=_depthwise_input_gradient),
    Rule(convolution_onednn.applies, convolution_onednn.forward, _by_phases),
    Rule(
        convolution_onednn.applies_to_filter_gradient,
        filter_gradient=convolution_onednn.filter_gradient,
    ),
)
_FLOAT32 = (
    Rule(_has_few, _two_at_once),
    *convolution_pieces.RULES,
)

_ELSE = (Rule(_has_few_columns, filter_gradient=_by_columns),)

RULES = {
    np.dtype(np.float32): _PRODUCTS + _ONEDNN + _ANY + _FLOAT32 + _ELSE,
    np.dtype(np.float64): _PRODUCTS + _ANY + _ELSE,
}
"""The lowerings for each dtype, in order."""

_PLAIN = rewritten(lambda _: True, plain)


def _applicable(problem: Problem, dtype: Any) -> Iterator[Rule]:
    if problem.is_regular:
        yield from (rule for rule in RULES.get(np.dtype(dtype), ()) if rule.applies(problem))


def _chosen(part: str, problem: Problem, dtype: Any) -> Callable[..., Any]:
    """The part of the first applicable rule that has it; XLA's by default."""
    rules = (*_applicable(problem, dtype), _PLAIN)
    found: Callable[..., Any] = next(filter(None, (getattr(rule, part) for rule in rules)))
    return found


def has_rule(problem: Problem, dtype: Any) -> bool:
    """Whether any part of a convolution has a rule other than XLA's."""
    return any(_applicable(problem, dtype))


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
    return _chosen("forward", problem_of(x, filters, window), x.dtype)(x, filters, window)


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
    problem = problem_of(x, filters, window)
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
