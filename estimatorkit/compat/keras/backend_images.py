"""`tf.keras.backend`: convolutions, pooling, padding and resizing of images and sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimatorkit.compat.layers.convolutional.locally_connected import local_convolution
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.configured import as_data_format, as_window
from estimatorkit.ops.array import array, filling, joining, rearrange
from estimatorkit.ops.image import resize as image_resize
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.nn.convolution_functions import (
    convolution as _convolution,
    depthwise_conv2d as _depthwise_conv2d,
    separable_conv2d as _separable_conv2d,
)
from estimatorkit.ops.nn.pooling import pool as _pool
from estimatorkit.ops.nn.transposed_convolution import conv2d_transpose as _conv2d_transpose

_LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


def _is_first(data_format: str | None) -> bool:
    return as_data_format(data_format) == "channels_first"


def _layout(rank: int, data_format: str | None) -> str:
    return _LAYOUTS[rank][0 if _is_first(data_format) else 1]


def _along(window: Sequence[int], data_format: str | None) -> tuple[int, ...]:
    """Strides for all axes."""
    return (1, 1, *window) if _is_first(data_format) else (1, *window, 1)


def known_dimensions(kernel: Any) -> list[int]:
    """The dimensions of a kernel.

    Raises:
        ValueError: one is not known.
    """
    shape = convert_to_tensor(kernel).shape
    if not shape.is_fully_defined():
        raise ValueError(f"A kernel must have a known shape, received {shape}.")
    return [int(each) for each in shape.as_list() if each is not None]


def _conv(
    rank: int,
    x: Any,
    kernel: Any,
    strides: Any,
    padding: str,
    data_format: str | None,
    dilation_rate: Any,
) -> Tensor:
    return _convolution(
        x,
        kernel,
        padding.upper(),
        as_window(strides, rank, "strides"),
        as_window(dilation_rate, rank, "dilation_rate"),
        data_format=_layout(rank, data_format),
    )


def conv1d(
    x: Any,
    kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Tensor:
    """A convolution over steps.

    Args:
        x: `(batch, steps, channels)`, or channels first.
        kernel: `(width, channels, filters)`.
        strides, dilation_rate: how far windows, and their elements, are apart.
        padding: 'valid', 'same', or 'causal': no output depends on later steps.
        data_format: `image_data_format()` by default.
    """
    if padding == "causal":
        width = known_dimensions(kernel)[0]
        before = as_window(dilation_rate, 1, "dilation_rate")[0] * (width - 1)
        steps = (before, 0)
        rest = [(0, 0), (0, 0), steps] if _is_first(data_format) else [(0, 0), steps, (0, 0)]
        x, padding = filling.pad(x, rest), "valid"
    return _conv(1, x, kernel, strides, padding, data_format, dilation_rate)


def conv2d(
    x: Any,
    kernel: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = (1, 1),
) -> Tensor:
    """A convolution over images `(batch, rows, columns, channels)`; see `conv1d`."""
    return _conv(2, x, kernel, strides, padding, data_format, dilation_rate)


def conv3d(
    x: Any,
    kernel: Any,
    strides: Any = (1, 1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = (1, 1, 1),
) -> Tensor:
    """A convolution over volumes; see `conv1d`."""
    return _conv(3, x, kernel, strides, padding, data_format, dilation_rate)


def conv2d_transpose(
    x: Any,
    kernel: Any,
    output_shape: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = (1, 1),
) -> Tensor:
    """The gradient of a convolution as a function.

    Args:
        x: images.
        kernel: `(rows, columns, filters, channels of x)`.
        output_shape: the shape of the result; None for the batch takes that of `x`.
        strides, padding, data_format, dilation_rate: see `conv1d`.
    """
    if isinstance(output_shape, (tuple, list)):
        batch = array.shape(x)[0] if output_shape[0] is None else output_shape[0]
        output_shape = joining.stack([batch, *output_shape[1:]])
    return _conv2d_transpose(
        x,
        kernel,
        output_shape,
        _along(as_window(strides, 2, "strides"), data_format),
        padding.upper(),
        _layout(2, data_format),
        dilations=_along(as_window(dilation_rate, 2, "dilation_rate"), data_format),
    )


def depthwise_conv2d(
    x: Any,
    depthwise_kernel: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = (1, 1),
) -> Tensor:
    """A convolution of each channel with its own filters; see `conv1d`."""
    return _depthwise_conv2d(
        x,
        depthwise_kernel,
        _along(as_window(strides, 2, "strides"), data_format),
        padding.upper(),
        as_window(dilation_rate, 2, "dilation_rate"),
        data_format=_layout(2, data_format),
    )


def separable_conv2d(
    x: Any,
    depthwise_kernel: Any,
    pointwise_kernel: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = (1, 1),
) -> Tensor:
    """`depthwise_conv2d`, then a convolution of single places."""
    return _separable_conv2d(
        x,
        depthwise_kernel,
        pointwise_kernel,
        _along(as_window(strides, 2, "strides"), data_format),
        padding.upper(),
        as_window(dilation_rate, 2, "dilation_rate"),
        data_format=_layout(2, data_format),
    )


def _pooled(
    rank: int,
    x: Any,
    pool_size: Any,
    strides: Any,
    padding: str,
    data_format: str | None,
    pool_mode: str,
) -> Tensor:
    if pool_mode not in ("max", "avg"):
        raise ValueError(f"Invalid pooling mode: {pool_mode}. Expected 'max' or 'avg'")
    return _pool(
        x,
        as_window(pool_size, rank, "pool_size"),
        pool_mode.upper(),
        padding.upper(),
        strides=as_window(strides, rank, "strides"),
        data_format=_layout(rank, data_format),
    )


def pool2d(
    x: Any,
    pool_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    pool_mode: str = "max",
) -> Tensor:
    """The largest or the mean value of windows of images.

    Raises:
        ValueError: `pool_mode` is neither 'max' nor 'avg'.
    """
    return _pooled(2, x, pool_size, strides, padding, data_format, pool_mode)


def pool3d(
    x: Any,
    pool_size: Any,
    strides: Any = (1, 1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    pool_mode: str = "max",
) -> Tensor:
    """The largest or the mean value of windows of volumes; see `pool2d`."""
    return _pooled(3, x, pool_size, strides, padding, data_format, pool_mode)


# -- other filters at each place


def local_conv1d(
    inputs: Any, kernel: Any, kernel_size: Any, strides: Any, data_format: str | None = None
) -> Tensor:
    """A convolution over steps with other filters at each place.

    Args:
        inputs: `(batch, steps, channels)`, or channels first.
        kernel: `(places, width x channels, filters)`.
        kernel_size, strides: of the windows.
        data_format: `image_data_format()` by default.
    """
    places = known_dimensions(kernel)[:1]
    size, steps = as_window(kernel_size, 1, "kernel_size"), as_window(strides, 1, "strides")
    return local_convolution(inputs, kernel, size, steps, places, _is_first(data_format))


def local_conv2d(
    inputs: Any,
    kernel: Any,
    kernel_size: Any,
    strides: Any,
    output_shape: Sequence[int],
    data_format: str | None = None,
) -> Tensor:
    """A convolution over images with other filters at each place; see `local_conv1d`.

    Args:
        output_shape: rows and columns of the result.
    """
    size, steps = as_window(kernel_size, 2, "kernel_size"), as_window(strides, 2, "strides")
    first = _is_first(data_format)
    return local_convolution(inputs, kernel, size, steps, tuple(output_shape), first)


# -- padding and sizes


def temporal_padding(x: Any, padding: Sequence[int] = (1, 1)) -> Tensor:
    """Zeros before and behind the steps of `(batch, steps, channels)`."""
    return filling.pad(x, [(0, 0), tuple(padding), (0, 0)])


def _padded(x: Any, padding: Any, data_format: str | None) -> Tensor:
    inner = [tuple(each) for each in padding]
    around = [(0, 0), (0, 0), *inner] if _is_first(data_format) else [(0, 0), *inner, (0, 0)]
    return filling.pad(x, around)


def spatial_2d_padding(
    x: Any, padding: Any = ((1, 1), (1, 1)), data_format: str | None = None
) -> Tensor:
    """Zeros around images."""
    return _padded(x, padding, data_format)


def spatial_3d_padding(
    x: Any, padding: Any = ((1, 1), (1, 1), (1, 1)), data_format: str | None = None
) -> Tensor:
    """Zeros around volumes."""
    return _padded(x, padding, data_format)


def resize_images(
    x: Any,
    height_factor: int,
    width_factor: int,
    data_format: str,
    interpolation: str = "nearest",
) -> Tensor:
    """Images, larger by whole factors.

    Args:
        x: images.
        height_factor, width_factor: the factors.
        data_format: 'channels_last' or 'channels_first'.
        interpolation: a method of `image.resize`: 'nearest', 'bilinear', ...

    Raises:
        ValueError: the method is unknown.
    """
    first = _is_first(data_format)
    images = convert_to_tensor(x)
    if first:
        images = array.transpose(images, [0, 2, 3, 1])
    rows, columns = images.shape[1], images.shape[2]
    factors = [height_factor, width_factor]
    size: Any = array.shape(images)[1:3] * factors
    if rows is not None and columns is not None:
        size = [rows * height_factor, columns * width_factor]
    resized = image_resize.resize_images(images, size, interpolation, half_pixel_centers=True)
    if interpolation == "nearest":
        resized = elementwise.cast(resized, images.dtype)
    return array.transpose(resized, [0, 3, 1, 2]) if first else resized


def resize_volumes(
    x: Any, depth_factor: int, height_factor: int, width_factor: int, data_format: str
) -> Tensor:
    """Volumes, larger by whole factors: values are repeated."""
    at = 2 if _is_first(data_format) else 1
    for axis, factor in enumerate((depth_factor, height_factor, width_factor)):
        x = rearrange.repeat(x, factor, at + axis)
    result: Tensor = x
    return result
