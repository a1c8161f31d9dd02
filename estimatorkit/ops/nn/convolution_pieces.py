"""Convolutions in pieces of the batch, which XLA runs concurrently on the cores of a CPU.

XLA (jax 0.10) runs a convolution with a small filter on one core, and the gradient of its filter
slowly. benchmarks/CONVOLUTIONS.md has the figures.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from estimatorkit.ops.nn.convolution_problem import (
    Problem,
    Rule,
    Window,
    filter_gradient_window,
    input_gradient_of,
    plain,
)

PIECES = 16
"""A training step of 98 ms with 8 pieces took 80 with 12, 77 with 16, 78 with 32 (`_in_pieces` says
why); more pieces take longer to compile."""

PIECES_CHANNELS = 16
PIECES_FILTER = 120_000
PIECES_FILTER_BACK = 160_000
"""Products over at least so many channels (backwards: outputs) with filters of at most so many
numbers are done in pieces. Over 6 channels they took 1.6 times as long, over 3 as long; larger
filters XLA spreads over the cores itself: 3x3x128x128 took 34 ms in pieces and 30 at once, its
gradient of the input 33 and 32, with strides of 2 60 and 113; 5x5x64x64 took 24 and 39."""

LEAST_OPERATIONS = 1e9
LEAST_OPERATIONS_OF_FILTER_GRADIENT = 5e8
LEAST_OPERATIONS_OF_ONE_CHANNEL = 1e8
"""Pieces take 0.3 to 0.6 s to compile, which must be saved within some hundred steps: a network of
18 convolutions of 0.15e9 operations each took 27 s to compile with pieces, and takes 3.6."""

LARGEST_FILTER = 1_000_000
"""Numbers; the filter's gradient took 2.0 ms in pieces and 5.1 at once with 0.16e9 operations and 1
channel (0.4 and 0.7 with 0.014e9, 1.3 and 4.2 with 0.058e9), 50 and 194 with 7.4e9 and 64 channels,
at 3x3x256x256 two thirds of the processor's time, at 3x3x512x512 2.3 times; with 3 to 32 channels
and 0.05e9 it was slower in pieces."""


def _has_pieces(problem: Problem, least: float) -> bool:
    """Whether there is enough work, with a window larger than one element."""
    if problem.rank > 2 or problem.window.groups > 1 or math.prod(problem.filters[:-2]) == 1:
        return False
    if problem.filters[-2] == 1:
        least = LEAST_OPERATIONS_OF_ONE_CHANNEL
    return problem.operations >= least and math.prod(problem.filters) <= LARGEST_FILTER


def zero_at_run_time(arrays: Sequence[Any]) -> Any:
    """An int32 0 computed from the arrays (a shifted sign bit), which XLA cannot fold."""
    signs = [lax.bitcast_convert_type(x[(0,) * x.ndim], jnp.uint32) >> 31 for x in arrays]
    return (functools.reduce(jnp.bitwise_or, signs) + 1 >> 2).astype(jnp.int32)


def _needs(value: Any, arrays: Sequence[Any]) -> Any:
    """The value, with an artificial dependency on the arrays that XLA cannot remove."""
    return lax.cond(
        zero_at_run_time([value]) != 0,
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
    zero = zero_at_run_time(arrays)
    parts = [
        [lax.dynamic_index_in_dim(x, at + zero, keepdims=False) for x in arrays]
        for at in range(len(arrays[0]))
    ]
    results = [compute(*part) for part in parts]
    results[-1] = _needs(results[-1], [*itertools.chain(*parts), *results[:-1]])
    return results


def _forward_has_pieces(problem: Problem) -> bool:
    few = math.prod(problem.filters) <= PIECES_FILTER and problem.filters[-2] >= PIECES_CHANNELS
    return few and _has_pieces(problem, LEAST_OPERATIONS)


def _forward_in_pieces(x: Any, filters: Any, window: Window) -> Any:
    parts = _in_pieces(lambda x: plain(x, filters, window), _cut(x))
    return jnp.concatenate(parts)[: len(x)]


def _input_gradient_has_pieces(problem: Problem) -> bool:
    size = math.prod(problem.filters)
    few = size <= PIECES_FILTER_BACK and problem.filters[-1] >= PIECES_CHANNELS
    return few and _has_pieces(problem, LEAST_OPERATIONS)


def _input_gradient_in_pieces(dy: Any, filters: Any, problem: Problem) -> Any:
    def of(part: Any) -> Any:
        piece = problem._replace(x=(len(part), *problem.x[1:]))
        return input_gradient_of(plain)(part, filters, piece)

    return jnp.concatenate(_in_pieces(of, _cut(dy)))[: len(dy)]


def _filter_gradient_has_pieces(problem: Problem) -> bool:
    return _has_pieces(problem, LEAST_OPERATIONS_OF_FILTER_GRADIENT)


def _filter_gradient_in_pieces(x: Any, dy: Any, problem: Problem) -> Any:
    """The filter's gradient, summed over pieces of the batch.

    Each is a convolution with batch and channels exchanged.
    """
    turned = filter_gradient_window(problem)

    def of(x: Any, dy: Any) -> Any:  # (channels, ..., batch), (..., batch, outputs)
        return plain(x, dy, turned)

    parts = _in_pieces(of, jnp.swapaxes(_cut(x), 1, -1), jnp.moveaxis(_cut(dy), 1, -2))
    return jnp.moveaxis(functools.reduce(jnp.add, parts), 0, problem.rank)


RULES = (
    Rule(_forward_has_pieces, _forward_in_pieces),
    Rule(_input_gradient_has_pieces, input_gradient=_input_gradient_in_pieces),
    Rule(_filter_gradient_has_pieces, filter_gradient=_filter_gradient_in_pieces),
)
