"""Convolutions by oneDNN, through a custom call of XLA on x86-64.

XLA (jaxlib 0.10 to 0.12) makes this call only behind an experimental option that also slows down
matrix products. The call is internal to XLA and its configuration is not checked, so it is used
only with the versions of jaxlib it was tested with (`JAXLIBS`); `convolution_cpu` has other rules
for the rest, and for other processors. XLA cannot serialize a program with this call: the
compilation cache does not keep it (`do_not_store`), and portable programs do not contain it.
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
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jaxlib.version import __version__ as jaxlib_version

from estimatorkit.ops.nn.convolution_pieces import zero_at_run_time
from estimatorkit.ops.nn.convolution_problem import (
    Problem,
    Window,
    filter_gradient_of,
    filter_gradient_window,
    padded,
    plain,
    problem_of,
)
from estimatorkit.ops.nn.sliding_windows import window_reach
from estimatorkit.runtime.xla.compilation_cache import do_not_store
from estimatorkit.runtime.xla.platforms import is_portable

JAXLIBS = frozenset({"0.10.0", "0.10.1", "0.10.2", "0.11.0", "0.11.1", "0.11.2", "0.12.0"})
"""The versions with which tests/ops/nn/test_convolution_onednn.py passes."""

LEAST_OPERATIONS = 2e7
"""For smaller convolutions XLA's own kernels are faster."""

PIECE_BYTES = 1 << 19
PIECE_EXAMPLES = 8
"""The gradient of the filter is summed over pieces of the batch, small enough for `dy` to stay in
the cache. Examples are the channels of that convolution, which oneDNN processes in vectors of 8, or
16 with AVX-512, where pieces of 16 take 0.5 to 0.8 of the time of 32 with up to 64 channels."""

_barrier: Any = lax.optimization_barrier

CONVOLUTION: Any = Primitive("onednn_convolution")
"""The custom call: `shape` of the result, `configuration` as XLA reads it."""


def _lowered(context: Any, x: Any, filters: Any, *, shape: Any, configuration: str) -> Any:
    do_not_store()
    call = jax.ffi.ffi_lowering("__onednn$convolution", api_version=2, backend_config=configuration)
    return call(context, x, filters)


CONVOLUTION.def_impl(
    lambda x, filters, **given: jax.jit(functools.partial(CONVOLUTION.bind, **given))(x, filters)
)
CONVOLUTION.def_abstract_eval(lambda x, _, *, shape, **__: ShapedArray(shape, x.dtype))
mlir.register_lowering(CONVOLUTION, _lowered, platform="cpu")


def is_available() -> bool:
    """Whether the program being traced may call oneDNN."""
    on_x86 = sys.platform == "linux" and platform.machine() == "x86_64"
    return on_x86 and jaxlib_version in JAXLIBS and not is_portable()


def _configuration(window: Window, sizes: Sequence[int], channels_first: bool) -> str:
    """The backend configuration of the custom call: dimension numbers and the window, as strings.

    With `channels_first`, the input channels of the filter precede its spatial dimensions.
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
    window, sizes = problem.window, problem.filters[:-2]
    out = shape = (x.shape[0], *problem.outputs, problem.filters[-1])
    # The kernels read out of bounds if a filter position meets only padding.
    reaches = [window_reach(*each) - 1 for each in zip(sizes, window.dilations, strict=True)]
    pads = list(zip(window.pads, reaches, strict=True))
    inner = tuple((min(before, reach), min(after, reach)) for (before, after), reach in pads)
    outer = tuple(
        (max(0, before - reach), max(0, after - reach)) for (before, after), reach in pads
    )
    x, window = padded(x, window._replace(pads=outer)), window._replace(pads=inner)
    if problem.rank == 1:
        window = Window(
            (1, *window.strides), ((0, 0), *window.pads), (1, *window.dilations), window.groups
        )
        sizes, shape, x = (1, *sizes), (out[0], 1, *out[1:]), x[:, None]
        filters = filters[:, None] if channels_first else filters[None]
    configuration = _configuration(window, sizes, channels_first)
    y = CONVOLUTION.bind(x, filters, shape=shape, configuration=configuration)
    return y.reshape(out)


def _unless_batched(call: Callable[..., Any], otherwise: Callable[..., Any], *arrays: Any) -> Any:
    """`call(*arrays)`, or `otherwise(*arrays)` under `jax.vmap`.

    The custom call has no batching rule.
    """
    function = jax.custom_batching.custom_vmap(call)

    @function.def_vmap
    def _batched(size: int, batched: Sequence[bool], *arrays: Any) -> tuple[Any, bool]:
        axes = [0 if each else None for each in batched]
        return jax.vmap(otherwise, axes, axis_size=size)(*arrays), True

    return function(*arrays)


def applies(problem: Problem) -> bool:
    """Whether oneDNN computes a convolution and the gradient of its input."""
    window = problem.window
    phases = max(window.strides) == 1 or max(window.dilations) == 1
    # The kernels for groups write out of bounds in one dimension, and with dilations.
    groups = window.groups == 1 or (problem.rank == 2 and max(window.dilations) == 1)
    return phases and groups and problem.operations >= LEAST_OPERATIONS and is_available()


def forward(x: Any, filters: Any, window: Window) -> Any:
    """The convolution, as `plain` computes it."""

    def call(x: Any, filters: Any) -> Any:
        return _call(x, filters, problem_of(x, filters, window))

    return _unless_batched(call, functools.partial(plain, window=window), x, filters)


def applies_to_filter_gradient(problem: Problem) -> bool:
    """Whether oneDNN computes the gradient of the filter."""
    groups, examples = problem.window.groups, problem.x[0]
    return groups == 1 and examples >= PIECE_EXAMPLES and applies(problem)


def _piece(problem: Problem) -> int:
    """Examples in a piece: enough that adding up the pieces takes less time than computing them."""
    example = 4 * math.prod(problem.outputs) * problem.filters[-1]
    least = max(2 * PIECE_EXAMPLES, 4 * math.prod(problem.filters) // example)
    return max(least, PIECE_BYTES // example) // PIECE_EXAMPLES * PIECE_EXAMPLES


def _scaled(window: Window, by: int) -> Window:
    """The window for inputs whose last spatial dimension is `by` times as long."""
    *pads, (before, after) = window.pads
    *dilations, dilation = window.dilations
    return window._replace(
        pads=(*pads, (before * by, after * by)), dilations=(*dilations, dilation * by)
    )


def filter_gradient(x: Any, dy: Any, problem: Problem) -> Any:
    """The gradient of the filter, by convolutions whose channels are the examples and whose filter
    is `dy`.

    The channels of `x` are neighbours in the last dimension of space, in which `dy` is dilated by
    their number, so that a row of outputs is that of all channels. With the channels as the batch,
    a row had as many outputs as the filter has columns: too few to keep the processor's units busy
    for each number of `dy` that was read (3x3x16x16 of 64x32x32 took 5.2 ms of all cores, now 2.3;
    3x3x64x64 of 64x8x8 1.8, now 1.3).
    """
    window = filter_gradient_window(problem)
    # Negative padding crops elements that no filter position reaches; the custom call cannot crop.
    used = [slice(None, min(after, 0) or None) for _, after in window.pads]
    pads = tuple((before, max(after, 0)) for before, after in window.pads)
    window = window._replace(pads=pads)
    # With dilations, the outputs of a row would not be next to each other.
    in_row = problem.x[-1] if window.strides[-1] == 1 else 1
    window = _scaled(window, in_row)
    step = _piece(problem)

    def of(x: Any, dy: Any) -> Any:
        x = x[(slice(None), *used)]
        *space, width, channels = x.shape[1:]
        x = x.reshape(len(x), *space, width * in_row, channels // in_row)
        # Without the barrier XLA fuses the transposition with slices of x, into a scalar loop.
        x = _barrier(jnp.swapaxes(x, 0, -1))
        filters = (*dy.shape[1:-1], dy.shape[0], dy.shape[-1])
        return _call(x, dy, Problem(x.shape, filters, window), channels_first=True)

    def summed(x: Any, dy: Any, size: int) -> Any:
        """The sum over pieces of `size` examples, in a loop, or a branch if there is one piece.

        Unlike barriers, these keep XLA from fusing the copies with the producer of x (32 of 143 ms
        of a residual network's step were such copies, with several layers in each). The body of the
        loop is compiled once.
        """
        zero = zero_at_run_time([dy])
        shape = jax.eval_shape(of, x[:size], dy[:size])
        nothing = jnp.zeros(shape.shape, shape.dtype)
        if len(x) == size:
            return lax.cond(zero != 0, lambda *_: nothing, of, x, dy)

        def add(at: Any, total: Any) -> Any:
            pieces = [lax.dynamic_slice_in_dim(each, at * size, size) for each in (x, dy)]
            return total + of(*pieces)

        return lax.fori_loop(0, len(x) // size + zero, add, nothing)

    def call(x: Any, dy: Any) -> Any:
        whole = len(x) // step * step
        parts = [(x[:whole], dy[:whole], step), (x[whole:], dy[whole:], len(x) - whole)]
        total = sum(summed(*part) for part in parts if len(part[0]))
        return jnp.moveaxis(total, 0, problem.rank).reshape(problem.filters)

    return _unless_batched(call, lambda x, dy: filter_gradient_of(plain)(x, dy, problem), x, dy)
