"""Convolutions along one dimension on a CPU, as one product with all places of the filter.

XLA (jax 0.10) computes the gradient of such a filter well, but inside a loop (where many training
steps are one call) by a kernel that takes 50 times as long: 59 words of 128 numbers, 100 filters 4
wide, batch 64: 1300 ms of processor time, outside a loop 26. As a product, all of that convolution,
forward and back, takes 66 in a loop. `pays` says for which convolutions.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

WIDEST = 16
"""The product has a column for each output and place: a wide filter would take much memory."""

LEAST_OPERATIONS = 1e7
"""Smaller ones take less than a millisecond, however they are done."""


def pays(x: Any, filters: Any, stride: int, length: int) -> bool:
    """Whether `convolve` is worth it: float32, steps of 1, a narrow filter, and enough to do.

    Args:
        x: `(batch, length, channels)`.
        filters: `(width, channels, outputs)`, one group.
        stride: how far the filter moves.
        length: of the output.
    """
    if x.dtype != jnp.float32 or filters.dtype != jnp.float32 or stride != 1 or length < 1:
        return False
    width, channels, outputs = filters.shape
    if not 1 < width <= WIDEST or outputs > 4 * channels:
        return False
    return bool(2 * x.shape[0] * length * width * channels * outputs >= LEAST_OPERATIONS)


def convolve(x: Any, filters: Any, pads: tuple[int, int], dilation: int) -> Any:
    """The convolution with steps of 1.

    Args:
        x: `(batch, length, channels)`.
        filters: `(width, channels, outputs)`.
        pads: zeros before and after.
        dilation: how far the places of the filter are apart.
    """
    width, channels, outputs = filters.shape
    x = jnp.pad(x, ((0, 0), pads, (0, 0)))
    batch, length = x.shape[:2]
    columns = jnp.moveaxis(filters, 0, 1).reshape(channels, width * outputs)
    products = (x.reshape(-1, channels) @ columns).reshape(batch, length, width, outputs)
    ends = length - (width - 1) * dilation
    return sum(products[:, at * dilation : at * dilation + ends, at] for at in range(width))
