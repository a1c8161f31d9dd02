"""Grayscale morphology: dilation and erosion of images by structuring elements.

Positions outside the image are ignored; at ties the first maximum gets the gradient, as in
TensorFlow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array.rearrange import reverse
from estimatorkit.ops.math.elementwise import negative
from estimatorkit.ops.nn.sliding_windows import (
    as_padding,
    as_spatial,
    check_channels_last,
    check_window,
    output_length,
    too_large,
    window_pads,
)

_IMAGE = np.sin(np.arange(2 * 5 * 4 * 2, dtype=np.float32) * 2).reshape(2, 5, 4, 2)
_ELEMENT = np.cos(np.arange(3 * 2 * 2, dtype=np.float32)).reshape(3, 2, 2)


def _dilate(x: Any, filters: Any, strides: Any, rates: Any, padding: str) -> Any:
    x, filters = jnp.asarray(x), jnp.asarray(filters)
    lengths, sizes = x.shape[1:3], filters.shape[:2]
    check_window(lengths, sizes, strides, padding, rates)
    pads = window_pads(lengths, sizes, strides, padding, rates)
    down, across = (
        output_length(length, size, stride, padding, rate) or 0
        for length, size, stride, rate in zip(lengths, sizes, strides, rates, strict=True)
    )
    padded = jnp.pad(x, [(0, 0), *pads, (0, 0)])
    inside = np.pad(np.ones(lengths, bool), pads)
    info: Any = jnp.finfo if jnp.issubdtype(x.dtype, jnp.floating) else jnp.iinfo
    best = jnp.full((len(x), down, across, x.shape[3]), info(x.dtype).min, x.dtype)
    for place in np.ndindex(*sizes):
        rows, columns = (
            slice(at * rate, at * rate + max(0, count - 1) * stride + 1, stride)
            for at, rate, count, stride in zip(place, rates, (down, across), strides, strict=True)
        )
        seen = padded[:, rows, columns][:, :down, :across] + filters[place]
        here = inside[rows, columns][:down, :across, None]
        best = jnp.where(here & (seen > best), seen, best)
    return best


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    x, filters = inputs
    for tensor, rank, what in ((x, 4, "input"), (filters, 3, "filter")):
        if tensor.shape.rank not in (None, rank):
            raise value_error(
                f"Shape must be rank {rank} but is rank {tensor.shape.rank}: the {what} of a "
                "dilation",
                received=tensor,
                made_at=tensor.op.source,
            )
    batch, *space, channels = x.shape.dims or [None] * 4
    *sizes, depth = filters.shape.dims or [None] * 3
    if channels is not None and depth is not None and channels != depth:
        raise value_error(
            f"Dimensions must be equal, but are {channels} and {depth}: the channels of a "
            "dilation's input and those of its filter",
            received=f"{x.name} {x.shape}, {filters.name} {filters.shape}",
            made_at=filters.op.source,
        )
    out = []
    padding = attrs["padding"]
    for length, size, stride, rate in zip(
        space, sizes, attrs["strides"], attrs["rates"], strict=True
    ):
        if length is not None and size is not None:
            problem = too_large(length, size, stride, padding, rate)
            if problem:
                raise ValueError(problem)
        out.append(output_length(length, size, stride, padding, rate))
    return [Spec(x.dtype, TensorShape([batch, *out, depth if channels is None else channels]))]


def _attrs(**changed: Any) -> dict[str, Any]:
    return {"strides": (1, 1), "rates": (1, 1), "padding": "SAME", **changed}


def _reference(x: Any, filters: Any, strides: Any, rates: Any, padding: str) -> Any:
    """Reference that computes one output at a time."""
    (_, *lengths, _), sizes = x.shape, filters.shape[:2]
    pads = window_pads(lengths, sizes, strides, padding, rates)
    counts = [
        output_length(length, size, stride, padding, rate) or 0
        for length, size, stride, rate in zip(lengths, sizes, strides, rates, strict=True)
    ]
    result = np.empty((len(x), *counts, x.shape[3]), x.dtype)
    for out in np.ndindex(*counts):
        values = []
        for place in np.ndindex(*sizes):
            row, column = (
                out[at] * strides[at] - pads[at][0] + place[at] * rates[at] for at in range(2)
            )
            if 0 <= row < lengths[0] and 0 <= column < lengths[1]:
                values.append(x[:, row, column] + filters[place])
        result[:, out[0], out[1]] = np.max(values, 0)
    return result


register(
    "Dilation2D",
    _dilate,
    infer=_infer,
    accepts="fi",
    cases=lambda: [
        Case((_IMAGE, _ELEMENT), attrs, _reference(_IMAGE, _ELEMENT, **attrs))
        for attrs in (
            _attrs(),
            _attrs(strides=(2, 1), padding="VALID"),
            _attrs(strides=(1, 2), rates=(2, 1)),
        )
    ],
)


def dilation2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: str | None = None,
    name: str | None = None,
    filters: Any = None,
    dilations: Any = None,
    data_format: str = "NHWC",
) -> Tensor:
    """The maximum of image plus structuring element over each window.

    output[b, y, x, c] = max over dy, dx of
        input[b, strides * y + rates * dy, strides * x + rates * dx, c] + filter[dy, dx, c]

    Args:
        input: `(batch, height, width, channels)`, floats or ints.
        filter: the structuring element, `(height, width, channels)`; `filters` is its newer name.
        strides: a number, two, or four with 1 for batch and channels.
        rates: the distance between the filter's elements, in the form of `strides`; 1 by default;
            `dilations` is its newer name.
        padding: 'SAME' or 'VALID'.
        data_format: 'NHWC'.

    Raises:
        ValueError: shapes or arguments are invalid.
    """
    check_channels_last(data_format)
    x = convert_to_tensor(input, name="input")
    chosen = filters if filter is None else filter
    attrs = {
        "strides": as_spatial(strides, 2, False, "strides"),
        "rates": as_spatial(dilations if rates is None else rates, 2, False, "rates"),
        "padding": as_padding(padding, 2, False),
    }
    inputs = {"input": x, "filter": convert_to_tensor(chosen, x.dtype, name="filter")}
    return make("Dilation2D", inputs, attrs, name)


def erosion2d(
    value: Any,
    kernel: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: str | None = None,
    name: str | None = None,
    filters: Any = None,
    dilations: Any = None,
    data_format: str = "NHWC",
) -> Tensor:
    """The minimum of image minus structuring element over each window.

    It is the dual of `dilation2d`: -dilation2d(-value, kernel turned by 180 degrees).

    Args:
        value: `(batch, height, width, channels)`, floats or ints.
        kernel: the structuring element, `(height, width, channels)`; `filters` is its newer name.
        strides, rates, padding, dilations, data_format: see `dilation2d`.
    """
    with get_default_graph().name_scope(name or "erosion2d") as scope:
        x = convert_to_tensor(value, name="value")
        element = convert_to_tensor(filters if kernel is None else kernel, x.dtype, name="kernel")
        turned = reverse(element, [0, 1])
        dilated = dilation2d(
            negative(x), turned, strides, rates, padding, None, None, dilations, data_format
        )
        return negative(dilated, name=scope)
