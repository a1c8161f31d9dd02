"""Maxima and sums of windows and their gradients, beside loops over the windows."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from estimatorkit.ops.nn.pooled_windows import greatest, total
from estimatorkit.ops.nn.sliding_windows import window_pads
from tests.sweep import sweep

_SHAPES: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], Any]] = [
    ((2, 7, 6, 3), (3, 3), (2, 2), "SAME"),
    ((2, 7, 6, 3), (3, 2), (2, 3), "VALID"),
    ((2, 7, 6, 3), (2, 2), (2, 2), "SAME"),
    ((2, 7, 6, 3), (3, 3), (1, 1), "SAME"),
    ((2, 7, 6, 3), (1, 2), (3, 1), "SAME"),
    ((2, 5, 4, 1), (3, 2), (2, 1), ((2, 1), (0, 1))),
    ((1, 9, 2), (4,), (3,), ((3, 2),)),
    ((2, 4, 5, 3, 2), (2, 3, 2), (1, 2, 2), "SAME"),
    ((2, 9, 8, 2), (6, 5), (2, 5), "SAME"),
    ((1, 140, 1), (130,), (1,), "SAME"),
    ((2, 2, 3, 1), (3, 3), (2, 2), "VALID"),
]


def _by_loops(x: Any, window: Any, strides: Any, padding: Any, weigh: Any, give: Any) -> Any:
    """The windows' results and the gradient of their weighted sum."""
    pads = window_pads(x.shape[1:-1], window, strides, padding)
    marked = np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=np.nan)
    outs = [
        max(0, (length - size) // stride + 1)
        for length, size, stride in zip(marked.shape[1:-1], window, strides, strict=True)
    ]
    shape = (x.shape[0], *outs, x.shape[-1])
    results, weights, gradient = np.zeros(shape, x.dtype), weigh(shape), np.zeros_like(marked)
    for at in np.ndindex(*shape):
        place = [
            slice(own * stride, own * stride + size)
            for own, stride, size in zip(at[1:-1], strides, window, strict=True)
        ]
        cut = (at[0], *place, at[-1])
        results[at], given = give(marked[cut])
        gradient[cut] += given * weights[at]
    inside = [slice(pad[0], pad[0] + n) for pad, n in zip(pads, x.shape[1:-1], strict=True)]
    return results, gradient[(slice(None), *inside)]


def _first_greatest(part: Any) -> tuple[Any, Any]:
    chosen = np.zeros(part.shape)
    chosen.flat[np.nanargmax(part)] = 1
    return np.nanmax(part), chosen


def _weights(shape: tuple[int, ...]) -> Any:
    return np.cos(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)


@pytest.mark.parametrize(("pool", "give"), [(greatest, _first_greatest), (total, None)])
@sweep(("shape", "window", "strides", "padding"), _SHAPES, quick=4)
def test_windows_and_their_gradients(
    pool: Any, give: Any, shape: Any, window: Any, strides: Any, padding: Any
) -> None:
    numbers = np.arange(np.prod(shape), dtype=np.float32)
    x = np.round(3 * np.sin(numbers * 2)).astype(np.float32).reshape(shape)  # with ties
    give = give or (lambda part: (np.nansum(part), 1))

    def run(x: Any) -> Any:
        result, pull = jax.vjp(lambda x: pool(x, window, strides, padding), x)
        return result, *pull(_weights(result.shape))

    results, gradient = _by_loops(x, window, strides, padding, _weights, give)
    given, found = jax.jit(run)(x)
    np.testing.assert_array_equal(given, results)
    np.testing.assert_allclose(found, gradient, atol=1e-5)
