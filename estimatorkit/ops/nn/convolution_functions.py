"""Public convolutions over 1 to 3 dimensions: plain, dilated, depthwise, separable."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array, joining
from estimatorkit.ops.nn.sliding_windows import as_window_attrs, is_channels_first


def _conv(
    x: Any,
    filters: Any,
    rank: int,
    strides: Any,
    padding: Any,
    data_format: str | None,
    dilations: Any,
    name: str | None,
    default: str,
    groups: int | None = None,
) -> Tensor:
    first = is_channels_first(data_format)
    x = convert_to_tensor(x, name="input")
    filters = convert_to_tensor(filters, x.dtype, name="filter")
    attrs = {**as_window_attrs(strides, padding, dilations, rank, first), "channels_first": first}
    further = (x.shape.rank or 0) - (rank + 2)
    if further <= 0 or rank == 3 or groups is not None:
        attrs["groups"] = _groups(x, filters, rank, first) if groups is None else groups
        return make("Convolution", {"input": x, "filter": filters}, attrs, name or default)
    with get_default_graph().name_scope(name or default) as scope:
        sizes = array.shape(x)
        flat = array.reshape(x, joining.concat([[-1], sizes[further + 1 :]], 0))
        attrs["groups"] = _groups(flat, filters, rank, first) if groups is None else groups
        made = make("Convolution", {"input": flat, "filter": filters}, attrs)
        shape = joining.concat([sizes[: further + 1], array.shape(made)[1:]], 0)
        return array.reshape(made, shape, scope)


def _groups(x: Tensor, filters: Tensor, rank: int, first: bool) -> int:
    """The number of channel groups implied by the filter; 0 if known only at run time."""
    if x.shape.rank != rank + 2 or filters.shape.rank != rank + 2:
        return 0
    channels, taken, outputs = x.shape[1 if first else -1], filters.shape[-2], filters.shape[-1]
    if not channels or not taken:
        return 0
    problem = None
    if channels % taken:
        problem = (
            f"Depth of input ({channels}) is not a multiple of input depth of filter ({taken})"
        )
    elif outputs is not None and outputs % (channels // taken):
        count = channels // taken
        problem = f"Depth of output ({outputs}) is not a multiple of the number of groups ({count})"
    if problem:
        raise value_error(
            problem,
            received=f"{x.name} {x.shape}, {filters.name} {filters.shape}",
            made_at=filters.op.source,
        )
    return channels // taken


def _filters_of(filter: Any, filters: Any) -> Any:
    if filter is not None and filters is not None:
        raise ValueError("Cannot specify both 'filter' and 'filters'.")
    return filters if filter is None else filter


def conv2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """A convolution over height and width.

    Args:
        input: `(batch, height, width, channels)`, or `(batch, channels, height, width)`; there may
            be several batch dimensions.
        filter: `(height, width, channels, outputs)`; `filters` is its newer name. With
            channels / n channels in the filter, it is a grouped convolution of n groups.
        strides: a number, two, or four with 1 for batch and channels.
        padding: 'SAME', 'VALID', or a pair of numbers for each dimension.
        use_cudnn_on_gpu: accepted for compatibility only.
        data_format: 'NHWC' or 'NCHW'.
        dilations: the dilation rates, in the form of `strides`.

    Returns:
        `(batch, height, width, outputs)`, or with the outputs second.

    Raises:
        ValueError: shapes or arguments are invalid.
    """
    chosen = _filters_of(filter, filters)
    return _conv(input, chosen, 2, strides, padding, data_format, dilations, name, "Conv2D")


def conv3d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """A convolution over depth, height and width; see `conv2d`."""
    chosen = _filters_of(filter, filters)
    return _conv(input, chosen, 3, strides, padding, data_format, dilations, name, "Conv3D")


def conv1d(
    value: Any = None,
    filters: Any = None,
    stride: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: Any = None,
    data_format: str | None = None,
    name: str | None = None,
    input: Any = None,
    dilations: Any = None,
) -> Tensor:
    """A convolution over one dimension.

    Args:
        value: `(batch, width, channels)`, or with 'NCW' the channels second; `input` is its newer
            name.
        filters: `(width, channels, outputs)`.
        stride: a number.
        padding: 'SAME' or 'VALID'.
        use_cudnn_on_gpu: accepted for compatibility only.
        data_format: 'NWC' (also 'NHWC') or 'NCW' (also 'NCHW').
        dilations: a number.
    """
    x = input if value is None else value
    with get_default_graph().name_scope(name or "conv1d") as scope:
        return _conv(x, filters, 1, stride, padding, data_format, dilations, scope, "conv1d")


def convolution(
    input: Any,
    filter: Any = None,
    padding: Any = None,
    strides: Any = None,
    dilation_rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """A convolution over as many dimensions as the filter has; see `conv2d`."""
    tensor = convert_to_tensor(_filters_of(filter, filters), name="filter")
    rank = (tensor.shape.rank or 4) - 2
    rate = dilation_rate if dilations is None else dilations
    if np.max(1 if rate is None else rate) > 1 and np.max(1 if strides is None else strides) > 1:
        raise value_error(
            "`strides > 1` not supported in conjunction with `dilation_rate > 1`",
            received=f"strides={strides}, dilation_rate={rate}",
        )
    return _conv(input, tensor, rank, strides, padding, data_format, rate, name, "convolution")


def atrous_conv2d(
    value: Any, filters: Any, rate: int, padding: str, name: str | None = None
) -> Tensor:
    """`conv2d` with a dilated filter: `rate` is the distance between its elements."""
    return _conv(value, filters, 2, 1, padding, "NHWC", rate, name, "convolution")


def depthwise_conv2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Convolves each channel with its own filters.

    Args:
        input: see `conv2d`.
        filter: `(height, width, channels, multiplier)`.
        strides, padding, data_format, name: see `conv2d`.
        rate: the dilation rates; `dilations` is its newer name.

    Returns:
        `(batch, height, width, channels x multiplier)`.
    """
    with get_default_graph().name_scope(name or "depthwise") as scope:
        x = convert_to_tensor(input, name="tensor_in")
        filters = convert_to_tensor(filter, x.dtype, name="filter_in")
        channels = filters.shape[2] if filters.shape.rank == 4 else None
        multiplier = filters.shape[3] if filters.shape.rank == 4 else None
        if channels is None or multiplier is None:
            raise value_error(
                "depthwise_conv2d: the filter's shape must be known",
                expected="(height, width, channels, multiplier)",
                received=filters,
            )
        height, width = filters.shape.as_list()[:2]
        flat = array.reshape(
            filters,
            [-1 if height is None else height, width or -1, 1, channels * multiplier],
        )
        return _conv(
            x,
            flat,
            2,
            strides,
            padding,
            data_format,
            rate if dilations is None else dilations,
            scope,
            "depthwise",
            groups=int(channels),
        )


def depthwise_conv2d_native(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """`depthwise_conv2d` with its arguments in another order."""
    scope = name or "DepthwiseConv2dNative"
    return depthwise_conv2d(
        input, filter, strides, padding, name=scope, data_format=data_format, dilations=dilations
    )


def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """A depthwise convolution followed by a 1 x 1 convolution.

    Args:
        input, strides, padding, rate, data_format: see `depthwise_conv2d`.
        depthwise_filter: `(height, width, channels, multiplier)`.
        pointwise_filter: `(1, 1, channels x multiplier, outputs)`.
    """
    with get_default_graph().name_scope(name or "separable_conv2d") as scope:
        point = convert_to_tensor(pointwise_filter, name="pointwise_filter")
        if not point.shape.is_compatible_with([1, 1, None, None]):
            raise value_error(
                "separable_conv2d: dimensions are not compatible",
                expected="a pointwise_filter of shape (1, 1, channels x multiplier, outputs)",
                received=point,
                made_at=point.op.source,
            )
        middle = depthwise_conv2d(
            input, depthwise_filter, strides, padding, rate, "depthwise", data_format, dilations
        )
        return _conv(middle, point, 2, 1, "VALID", data_format, 1, scope, "separable_conv2d")
