"""Maxima and sums of sliding windows, `(batch, ..., channels)`, and their gradients.

At ties the first maximum of a window, in row-major order, gets the gradient, as in TensorFlow.

With strides s, place s*q + r of the input is offset s*j + r of the windows q - j, for j below
ceil(size / s). A gradient is therefore one expression over (q, r) in which windows are broadcast
over r, and channels stay the innermost loop. That of strided slices, a sum of arrays with zeros
between the windows' values, was neither in vectors nor free of divisions. Milliseconds of the
processor of a maximum and its gradient (Zen 5): 3x3 with strides of 2, 32x48x48x16, 1.4, was 3.8;
2x2 with strides of 2, 128x28x28x32, 3.5, was 4.6; 3x3 with strides of 1, 16x28x28x16, 0.5, was 2.0.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.ops.nn.sliding_windows import check_window, window_pads

_barrier: Any = lax.optimization_barrier


def windows(x: Any, window: Any, strides: Any, padding: Any, fill: Any) -> list[Any]:
    """For each window offset, the elements there, `(batch, ..., channels)`."""
    lengths = x.shape[1:-1]
    check_window(lengths, window, strides, padding, (1,) * len(lengths))
    pads = window_pads(lengths, window, strides, padding)
    padded = jnp.pad(x, [(0, 0), *pads, (0, 0)], constant_values=fill)
    outs = [
        max(0, (length + sum(pad) - size) // stride + 1)
        for length, pad, size, stride in zip(lengths, pads, window, strides, strict=True)
    ]
    if 0 in outs:  # the window exceeds its input by less than its stride
        return [jnp.zeros((x.shape[0], *outs, x.shape[-1]), x.dtype)]
    return [
        lax.slice(
            padded,
            (0, *place, 0),
            (
                x.shape[0],
                *(
                    at + (out - 1) * stride + 1
                    for at, out, stride in zip(place, outs, strides, strict=True)
                ),
                x.shape[-1],
            ),
            (1, *strides, 1),
        )
        for place in np.ndindex(*window)
    ]


def least(dtype: Any) -> Any:
    """The dtype's lower bound: the identity of max."""
    if jnp.issubdtype(dtype, jnp.floating):
        return np.array(-np.inf, dtype)
    return np.iinfo(dtype).min


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2, 3))
def _greatest(x: Any, window: Any, strides: Any, padding: Any) -> Any:
    """The maximum of each window; NaN propagates."""
    places = windows(x, window, strides, padding, least(x.dtype))
    return functools.reduce(
        lambda one, other: jnp.where((one >= other) | (one != one), one, other), places
    )


def _keep_place(x: Any, window: Any, strides: Any, padding: Any) -> tuple[Any, tuple[Any, Any]]:
    # Bytes, as the gradient reads them once for each place of the input.
    number = np.int8 if math.prod(window) <= np.iinfo(np.int8).max else np.int32
    best, *others = windows(x, window, strides, padding, least(x.dtype))
    which = jnp.zeros(best.shape, number)
    for at, place in enumerate(others, 1):
        stays = (best >= place) | (best != best)
        best, which = jnp.where(stays, best, place), jnp.where(stays, which, number(at))
    return best, (x, which)


def _give_to_place(
    window: Any, strides: Any, padding: Any, kept: tuple[Any, Any], dy: Any
) -> tuple[Any]:
    x, which = kept
    # Written once, not once for a bias's gradient, a sum over other dimensions, and once more.
    return (_barrier(_spread(x.shape, window, strides, padding, dy, which)),)


_greatest.defvjp(_keep_place, _give_to_place)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2, 3))
def _total(x: Any, window: Any, strides: Any, padding: Any) -> Any:
    """The sum of each window."""
    return functools.reduce(jnp.add, windows(x, window, strides, padding, 0))


_total.defvjp(
    lambda x, window, strides, padding: (_total(x, window, strides, padding), x),
    lambda window, strides, padding, x, dy: (_spread(x.shape, window, strides, padding, dy),),
)


def _spread(
    shape: tuple[Any, ...], window: Any, strides: Any, padding: Any, dy: Any, which: Any = None
) -> Any:
    """The gradient of windows as one of their elements (see the module).

    Args:
        shape: the input's.
        window, strides, padding: of the windows.
        dy: the gradient of each window.
        which: the offset that gets it; None if all do.
    """
    lengths = shape[1:-1]
    before = [pad[0] for pad in window_pads(lengths, window, strides, padding)]
    counts = [
        -(-(length + pad) // stride)
        for length, pad, stride in zip(lengths, before, strides, strict=True)
    ]
    reach = [-(-size // stride) for size, stride in zip(window, strides, strict=True)]
    dy, which = _with_neighbours(dy, which, reach, counts)
    offsets = np.arange(math.prod(window)).reshape(window)
    zero = jnp.zeros((), dy.dtype)
    parts = []
    for steps in np.ndindex(*reach):
        own = _offsets_of(steps, offsets, strides)
        starts = [size - 1 - step for size, step in zip(reach, steps, strict=True)]
        part = _between(dy, starts, counts)
        if which is not None:
            places = _between(which, starts, counts)
            part = jnp.where(places == own.astype(places.dtype), part, zero)
        elif own.min() < 0:
            part = jnp.where(own >= 0, part, zero)
        parts.append(part)
    blocks = list(zip(counts, strides, strict=True))
    split = (shape[0], *(dim for block in blocks for dim in block), shape[-1])
    found = jnp.broadcast_to(functools.reduce(jnp.add, parts), split)
    found = found.reshape(shape[0], *(count * stride for count, stride in blocks), shape[-1])
    limits = [pad + length for pad, length in zip(before, lengths, strict=True)]
    return lax.slice(found, (0, *before, 0), (shape[0], *limits, shape[-1]))


def _with_neighbours(
    dy: Any, which: Any, reach: Sequence[int], counts: Sequence[Any]
) -> tuple[Any, Any]:
    """Gradients and offsets with those of windows that do not exist, 0 and -1, around them."""
    around = [
        (steps - 1, max(0, count - out), 0)
        for steps, count, out in zip(reach, counts, dy.shape[1:-1], strict=True)
    ]
    if not any(sum(each) for each in around):
        return dy, which
    pads = [(0, 0, 0), *around, (0, 0, 0)]
    dy = lax.pad(dy, np.zeros((), dy.dtype), pads)
    if which is not None:
        which = lax.pad(which, np.array(-1, which.dtype), pads)
    return tuple(_barrier((dy, which)))  # within one kernel, padding is a branch for each element


def _between(x: Any, starts: Sequence[Any], counts: Sequence[Any]) -> Any:
    """Windows from `starts` on, each dimension of space followed by one of length 1."""
    limits = [start + count for start, count in zip(starts, counts, strict=True)]
    own = lax.slice(x, (0, *starts, 0), (x.shape[0], *limits, x.shape[-1]))
    return own.reshape(x.shape[0], *(dim for count in counts for dim in (count, 1)), x.shape[-1])


def _offsets_of(steps: Sequence[int], offsets: Any, strides: Sequence[int]) -> Any:
    """The offsets at which the windows `steps` before a block have its places, -2 if they do not
    reach it: `(1, 1, stride, 1, stride, 1)`."""
    own = np.full(strides, -2)
    part = offsets[
        tuple(
            slice(step * stride, (step + 1) * stride)
            for step, stride in zip(steps, strides, strict=True)
        )
    ]
    own[tuple(map(slice, part.shape))] = part
    return own.reshape(1, *(dim for stride in strides for dim in (1, stride)), 1)


@jax.custom_vjp
def _greatest_of_block(x: Any) -> Any:
    """The maximum over the second axis; at ties the gradient goes to the first."""
    return jnp.max(x, 1)


def _keep_index(x: Any) -> tuple[Any, tuple[Any, int]]:
    best, count = jnp.max(x, 1, keepdims=True), x.shape[1]
    places = lax.broadcasted_iota(np.int32, x.shape, 1)
    which = jnp.min(jnp.where((x == best) | (x != x), places, count), 1, keepdims=True)
    return best[:, 0], (which, count)


def _give_to_index(kept: tuple[Any, int], dy: Any) -> tuple[Any]:
    which, count = kept
    shape = (which.shape[0], count, *which.shape[2:])
    is_chosen = lax.broadcasted_iota(np.int32, shape, 1) == which
    return (jnp.where(is_chosen, dy[:, None], jnp.zeros((), dy.dtype)),)


_greatest_of_block.defvjp(_keep_index, _give_to_index)


class _Reduction(NamedTuple):
    """A pooling of windows.

    Attributes:
        fill: the identity, with which the input is padded.
        places: reduces windows: of the input, the window, strides and padding.
        block: reduces the second axis.
    """

    fill: Any
    places: Callable[..., Any]
    block: Callable[[Any], Any]


MOST_PLACES = 16
"""Offsets of a window that are computed one by one. A maximum over 54 words compiled for 20 s."""


def greatest(x: Any, window: Any, strides: Any, padding: Any) -> Any:
    """The maximum of each window; NaN propagates."""
    reduction = _Reduction(least(x.dtype), _greatest, _greatest_of_block)
    return _pooled(x, window, strides, padding, reduction)


def total(x: Any, window: Any, strides: Any, padding: Any) -> Any:
    """The sum of each window, where padding is 0."""
    return _pooled(x, window, strides, padding, _Reduction(0, _total, lambda x: jnp.sum(x, 1)))


def _pooled(x: Any, window: Any, strides: Any, padding: Any, reduction: _Reduction) -> Any:
    """Pools the dimensions of space, one after the other, the last one first, if there are many
    places: so the first maximum of a window is the same as for all places in row-major order.
    """
    lengths = x.shape[1:-1]
    if math.prod(window) <= MOST_PLACES or 0 in x.shape:
        return reduction.places(x, window, strides, padding)
    check_window(lengths, window, strides, padding, (1,) * len(lengths))
    pads = window_pads(lengths, window, strides, padding)
    for at in reversed(range(len(lengths))):
        size, stride, (before, after) = window[at], strides[at], pads[at]
        count = max(0, (lengths[at] + before + after - size) // stride + 1)
        if count == 1 or stride >= size:
            x = _blocks(x, 1 + at, size, max(stride, size), before, count, reduction)
            continue
        alone = [1] * len(lengths)
        own_window, own_strides, own_pads = alone.copy(), alone.copy(), [(0, 0)] * len(lengths)
        own_window[at], own_strides[at], own_pads[at] = size, stride, pads[at]
        x = reduction.places(x, tuple(own_window), tuple(own_strides), tuple(own_pads))
    return x


def _blocks(
    x: Any, axis: int, size: int, stride: int, before: int, count: int, reduction: _Reduction
) -> Any:
    """Pools windows that do not overlap, along an axis."""
    pads = [(0, 0, 0)] * x.ndim
    pads[axis] = (before, count * stride - x.shape[axis] - before, 0)
    x = lax.pad(x, jnp.asarray(reduction.fill, x.dtype), pads)
    shape = x.shape
    x = x.reshape(math.prod(shape[:axis]) * count, stride, *shape[axis + 1 :])[:, :size]
    return reduction.block(x).reshape(*shape[:axis], count, *shape[axis + 1 :])
