"""Transposed convolutions as layers, and the gradients of `conv2d` as functions.

A transposed convolution ("deconvolution") is a convolution's gradient with respect to its input.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor, make
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array, joining
from estimatorkit.ops.nn.sliding_windows import as_window_attrs, is_channels_first


def _conv_transpose(
    value: Any,
    filters: Any,
    output_shape: Any,
    rank: int,
    strides: Any,
    padding: Any,
    data_format: str | None,
    dilations: Any,
    name: str,
) -> Tensor:
    first = is_channels_first(data_format)
    with get_default_graph().name_scope(name) as scope:
        x = convert_to_tensor(value, name="value")
        kernel = convert_to_tensor(filters, x.dtype, name="filter")
        given, taken = x.shape, kernel.shape
        channels = None if given.rank is None else given[1 if first else -1]
        if None not in (channels, taken[-1] if taken.rank else None) and channels != taken[-1]:
            raise value_error(
                "input channels does not match filter's input channels",
                expected=taken[-1],
                received=channels,
                made_at=x.op.source,
            )
        attrs = {**as_window_attrs(strides, padding, dilations, rank, first), "first": first}
        shape = as_index_tensor(output_shape, "output_shape")
        inputs = {"out_backprop": x, "filter": kernel, "input_sizes": shape}
        return make("ConvolutionBackpropInput", inputs, attrs, scope)


def conv2d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose of `conv2d`, its gradient with respect to the input ("deconvolution").

    Args:
        value: `(batch, height, width, channels)`; `input` is its newer name.
        filter: `(height, width, outputs, channels)`; `filters` is its newer name.
        output_shape: the shape of the output; ints or a tensor.
        strides, padding, data_format, dilations: those of the convolution to transpose.

    Raises:
        ValueError: shapes or arguments are invalid.
        InvalidArgumentError: (when run) a convolution of `output_shape` does not give the shape of
            `value`.
    """
    return _conv_transpose(
        input if value is None else value,
        filters if filter is None else filter,
        output_shape,
        2,
        strides,
        padding,
        data_format,
        dilations,
        name or "conv2d_transpose",
    )


def conv3d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str = "NDHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The gradient of `conv3d` with respect to its input; see `conv2d_transpose`."""
    return _conv_transpose(
        input if value is None else value,
        filters if filter is None else filter,
        output_shape,
        3,
        strides,
        padding,
        data_format,
        dilations,
        name or "conv3d_transpose",
    )


def conv1d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The gradient of `conv1d` with respect to its input; see `conv2d_transpose`."""
    return _conv_transpose(
        input,
        filters,
        output_shape,
        1,
        strides,
        padding,
        data_format,
        dilations,
        name or "conv1d_transpose",
    )


def conv_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """`conv1d_transpose`, `conv2d_transpose` or `conv3d_transpose`, by the number of dimensions.

    Args:
        input, filters, strides, padding, dilations, name: see `conv2d_transpose`.
        output_shape: 3 to 5 ints, or a vector of known length.
        data_format: channels come last unless it begins with 'NC'.

    Raises:
        ValueError: `output_shape` has another length, or its length is not known.
    """
    if not isinstance(output_shape, (Tensor, Sized)):
        raise ValueError(
            "`output_shape` must be a tensor or sized collection. "
            f"Received: output_shape={output_shape}"
        )
    length = output_shape.shape[0] if isinstance(output_shape, Tensor) else len(output_shape)
    if length is None or not 3 <= length <= 5:
        raise value_error(
            "`output_shape` must be of length 3, 4 or 5",
            expected="(batch, ..., channels) with one to three dimensions between",
            received=output_shape,
        )
    return _conv_transpose(
        input,
        filters,
        output_shape,
        length - 2,
        strides,
        padding,
        data_format,
        dilations,
        name or "conv_transpose",
    )


def atrous_conv2d_transpose(
    value: Any,
    filters: Any,
    output_shape: Any,
    rate: int,
    padding: Any,
    name: str | None = None,
) -> Tensor:
    """The transpose of `atrous_conv2d`, its gradient with respect to the input.

    Args:
        value, filters, output_shape, padding, name: see `conv2d_transpose`.
        rate: the distance between the filter's elements.
    """
    default = "atrous_conv2d_transpose"
    return _conv_transpose(
        value, filters, output_shape, 2, 1, padding, "NHWC", rate, name or default
    )


def conv2d_backprop_input(
    input_sizes: Any,
    filter: Any = None,
    out_backprop: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `conv2d` with respect to its input of shape `input_sizes`."""
    return _conv_transpose(
        out_backprop,
        filter,
        input_sizes,
        2,
        strides,
        padding,
        data_format,
        dilations,
        name or "Conv2DBackpropInput",
    )


def conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `conv2d` with respect to its filter of shape `filter_sizes`.

    Args:
        input: the convolution's input.
        filter_sizes: `(height, width, channels, outputs)`; ints or a tensor.
        out_backprop: the gradient of the convolution's output.
        strides, padding, use_cudnn_on_gpu, data_format, dilations, name: see `conv2d`.
    """
    rest = (strides, padding, data_format, dilations, name or "Conv2DBackpropFilter")
    return _backprop_filter(input, filter_sizes, out_backprop, 2, *rest)


def depthwise_conv2d_backprop_input(
    input_sizes: Any,
    filter: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `depthwise_conv2d` with respect to its input.

    Args:
        input_sizes: the input's shape; ints or a tensor.
        filter: `(height, width, channels, multiplier)`.
        out_backprop: the gradient of the convolution's output.
        strides, padding, data_format, dilations, name: see `depthwise_conv2d`.

    Raises:
        ValueError: shapes or arguments are invalid.
        InvalidArgumentError: (when run) `out_backprop` does not have the shape of the output.
    """
    with get_default_graph().name_scope(name or "DepthwiseConv2dNativeBackpropInput") as scope:
        kernel = convert_to_tensor(filter, name="filter")
        kernel.shape.with_rank(4)
        flat = array.reshape(kernel, _one_group_each(array.shape(kernel)))
        rest = (input_sizes, 2, strides, padding, data_format, dilations, scope)
        return _conv_transpose(out_backprop, flat, *rest)


def depthwise_conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `depthwise_conv2d` with respect to its filter.

    Args:
        input: the convolution's input.
        filter_sizes: `(height, width, channels, multiplier)`; ints or a tensor.
        out_backprop, strides, padding, data_format, dilations, name: see
            `depthwise_conv2d_backprop_input`.

    Raises:
        ValueError, InvalidArgumentError: see `depthwise_conv2d_backprop_input`.
    """
    with get_default_graph().name_scope(name or "DepthwiseConv2dNativeBackpropFilter") as scope:
        sizes = as_index_tensor(filter_sizes, "filter_sizes")
        rest = (out_backprop, 2, strides, padding, data_format, dilations, None)
        flat = _backprop_filter(input, _one_group_each(sizes), *rest)
        return array.reshape(flat, sizes, scope)


def _one_group_each(sizes: Tensor) -> Tensor:
    """The shape of a depthwise filter as one of a convolution in as many groups as channels."""
    return joining.concat([sizes[:2], [1], [sizes[2] * sizes[3]]], 0)


def conv3d_backprop_filter_v2(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `conv3d` with respect to its filter; see `conv2d_backprop_filter`."""
    rest = (strides, padding, data_format, dilations, name or "Conv3DBackpropFilterV2")
    return _backprop_filter(input, filter_sizes, out_backprop, 3, *rest)


def _backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    rank: int,
    strides: Any,
    padding: Any,
    data_format: str,
    dilations: Any,
    name: str | None,
) -> Tensor:
    first = is_channels_first(data_format)
    x = convert_to_tensor(input, name="input")
    attrs = {**as_window_attrs(strides, padding, dilations, rank, first), "first": first}
    inputs = {
        "input": x,
        "filter_sizes": as_index_tensor(filter_sizes, "filter_sizes"),
        "out_backprop": convert_to_tensor(out_backprop, x.dtype, name="out_backprop"),
    }
    return make("ConvolutionBackpropFilter", inputs, attrs, name)
