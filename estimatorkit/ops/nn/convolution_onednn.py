"""Convolutions by oneDNN's kernels, which XLA has on x86-64.

XLA (jaxlib 0.10) uses them only behind an experimental option that replaces matrix products, too,
with slower ones. The custom call behind that option is internal to XLA, which does not check its
configuration, so it is used with the versions of jaxlib that were tested with it (`JAXLIBS`); with
others, and on other processors, `convolution_cpu` has other rules. XLA cannot serialize a program
with this call: the compilation cache does not keep it, and portable programs do without.
benchmarks/CONVOLUTIONS.md has the figures.
"""

from __future__ import annotations

import functools
import json
import math
import platform
import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.custom_batching
import jax.numpy as jnp
from jax import lax
from jaxlib.version import __version__ as jaxlib_version

from estimatorkit.core.platforms import is_portable
from estimatorkit.ops.nn.convolution_problem import (
    Problem,
    Window,
    filter_gradient_of,
    filter_gradient_window,
    plain,
    problem_of,
)
from estimatorkit.ops.nn.sliding_windows import window_reach

JAXLIBS = frozenset({"0.10.0", "0.10.1", "0.10.2"})
"""Tested: each of tests/ops/nn/test_convolution_onednn.py passes with them."""

LEAST_OPERATIONS = 2e7
"""Below that XLA's own kernels take less time than a call of oneDNN's."""

PIECE_BYTES = 1 << 20
PIECE_EXAMPLES = 8
"""The filter's gradient is summed over pieces of the batch whose `dy` stays in the cache, of at
least so many examples (the kernel's channels, which it has in vectors of 8)."""

_TARGET = "__onednn$convolution"


def is_available() -> bool:
    """Whether this process can call oneDNN, and the program being traced may."""
    on_x86 = sys.platform == "linux" and platform.machine() == "x86_64"
    return on_x86 and jaxlib_version in JAXLIBS and not is_portable()


def _configuration(window: Window, sizes: Sequence[int], channels_first: bool) -> str:
    """The custom call's configuration: where each dimension is, in numbers that are strings.

    The filter has its input channels before its spatial dimensions if `channels_first`.
    """
    rank = len(sizes)

    def text(values: Sequence[int]) -> list[str]:
        return [str(each) for each in values]

    data = {
        "batch_dim": "0",
        "feature_dim": str(rank + 1),
        "spatial_dims": text(range(1, rank + 1)),
    }
    filters = {
        "input_feature_dim": str(0 if channels_first else rank),
        "output_feature_dim": str(rank + 1),
        "spatial_dims": text(range(1, rank + 1) if channels_first else range(rank)),
    }
    dims = str(rank + 2)
    return json.dumps(
        {
            "onednn_conv_config": {
                "dims": dims,
                "feature_groups": str(window.groups),
                "input": {"dims": dims, "data": data},
                "kernel": {"dims": dims, "filter": filters},
                "output": {"dims": dims, "data": data},
                "window": {
                    "size": text(sizes),
                    "strides": text(window.strides),
                    "pad_left": text([before for before, _ in window.pads]),
                    "pad_right": text([after for _, after in window.pads]),
                    "window_dilations": text(window.dilations),
                },
            }
        }
    )


def _call(x: Any, filters: Any, problem: Problem, channels_first: bool = False) -> Any:
    out = (x.shape[0], *problem.outputs, problem.filters[-1])
    # Its kernels read beyond the input where a place of the filter meets nothing but padding.
    inner, outer = [], []
    geometry = zip(problem.window.pads, problem.filters, problem.window.dilations, strict=False)
    for pads, size, dilation in geometry:
        reach = window_reach(size, dilation) - 1
        inner.append((min(pads[0], reach), min(pads[1], reach)))
        outer.append((pads[0] - inner[-1][0], pads[1] - inner[-1][1]))
    if any(map(any, outer)):
        x = jnp.pad(x, [(0, 0), *outer, (0, 0)])
    window = problem.window._replace(pads=tuple(inner))
    sizes = problem.filters[:-2]
    if problem.rank == 1:
        window = Window(
            (1, *window.strides), ((0, 0), *window.pads), (1, *window.dilations), window.groups
        )
        sizes, x = (1, *sizes), x[:, None]
        filters = filters[:, None] if channels_first else filters[None]
    y = jax.ffi.ffi_call(
        _TARGET,
        jax.ShapeDtypeStruct((out[0], *(1,) * (len(sizes) - problem.rank), *out[1:]), x.dtype),  # type: ignore[no-untyped-call]
        custom_call_api_version=2,
        legacy_backend_config=_configuration(window, sizes, channels_first),
    )(x, filters)
    return y.reshape(out)


def _barrier(x: Any) -> Any:
    return lax.optimization_barrier(x)  # type: ignore[no-untyped-call]


def _unless_batched(call: Callable[..., Any], plain: Callable[..., Any], *arrays: Any) -> Any:
    """`call(*arrays)`; under `jax.vmap`, which the custom call has no rule for, `plain`."""
    function = jax.custom_batching.custom_vmap(call)

    @function.def_vmap
    def _batched(size: int, batched: Sequence[bool], *arrays: Any) -> tuple[Any, bool]:
        axes = [0 if each else None for each in batched]
        return jax.vmap(plain, axes, axis_size=size)(*arrays), True

    return function(*arrays)


def applies(problem: Problem) -> bool:
    """Whether a convolution and the gradient of its input are computed by oneDNN."""
    window = problem.window
    phases = max(window.strides) == 1 or max(window.dilations) == 1
    # Its kernels of groups have written beyond the output with dilations.
    groups = window.groups == 1 or (problem.rank == 2 and max(window.dilations) == 1)
    return phases and groups and problem.operations >= LEAST_OPERATIONS and is_available()


def forward(x: Any, filters: Any, window: Window) -> Any:
    """The convolution."""

    def call(x: Any, filters: Any) -> Any:
        return _call(x, filters, problem_of(x, filters, window))

    return _unless_batched(call, functools.partial(plain, window=window), x, filters)


def sums_pieces(problem: Problem) -> bool:
    """Whether the gradient of a filter is computed by oneDNN."""
    groups, examples = problem.window.groups, problem.x[0]
    return groups == 1 and examples >= PIECE_EXAMPLES and applies(problem)


def _piece(problem: Problem) -> int:
    """How many examples a piece has; the sum of the pieces must not take longer than they do."""
    example = 4 * math.prod(problem.outputs) * problem.filters[-1]
    least = max(PIECE_EXAMPLES, 4 * math.prod(problem.filters) // example)
    return max(least, PIECE_BYTES // example) // PIECE_EXAMPLES * PIECE_EXAMPLES


def filter_gradient(x: Any, dy: Any, problem: Problem) -> Any:
    """The gradient of the filter: a convolution with batch and channels exchanged."""
    window = filter_gradient_window(problem)
    # Without the rows and columns that no place of the filter reaches: padding of less than none.
    used = [slice(None, min(after, 0) or None) for _, after in window.pads]
    pads = tuple((before, max(after, 0)) for before, after in window.pads)
    window = window._replace(pads=pads)
    step = _piece(problem)

    def of(x: Any, dy: Any) -> Any:
        # Without barriers XLA fuses the exchange with what computed x, as a loop without vectors.
        x = _barrier(jnp.swapaxes(_barrier(x)[(slice(None), *used)], 0, -1))
        filters = (*dy.shape[1:-1], dy.shape[0], dy.shape[-1])
        return _call(x, dy, Problem(x.shape, filters, window), channels_first=True)

    def call(x: Any, dy: Any) -> Any:
        starts = range(0, len(x), step)
        parts = [of(x[at : at + step], dy[at : at + step]) for at in starts]
        return jnp.moveaxis(functools.reduce(jnp.add, parts), 0, problem.rank)

    def otherwise(x: Any, dy: Any) -> Any:
        return filter_gradient_of(plain)(x, dy, problem)

    return _unless_batched(call, otherwise, x, dy)
