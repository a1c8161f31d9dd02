"""Convolutions of 1, 2 and 3 dimensions: plain, transposed, depthwise, separable, dilated.

One row does them all; the functions put their arguments into TensorFlow's forms. Padding is
TensorFlow's: 'SAME' puts the odd pixel after, 'VALID' none, or it is given for each side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor, make
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.ops import array, convolution_cpu
from estimatorkit.core.registry import (
    Case,
    Spec,
    constant_value_as_shape,
    register,
)
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor

_IMAGE = np.sin(np.arange(2 * 5 * 4 * 2, dtype=np.float32)).reshape(2, 5, 4, 2)
_FILTER = np.cos(np.arange(3 * 2 * 2 * 3, dtype=np.float32)).reshape(3, 2, 2, 3)

_LETTERS = {1: "W", 2: "HW", 3: "DHW"}


def _layout(rank: int, channels_first: bool) -> tuple[str, str, str]:
    space = _LETTERS[rank]
    data = f"NC{space}" if channels_first else f"N{space}C"
    return data, f"{space}IO", data


def _convolve(
    x: Any,
    filters: Any,
    strides: Sequence[int],
    padding: Any,
    dilations: Sequence[int],
    channels_first: bool,
    groups: int,
) -> Any:
    x, filters = jnp.asarray(x), jnp.asarray(filters)

    def plain(x: Any, filters: Any) -> Any:
        return _plain(x, filters, strides, padding, dilations, channels_first, groups)

    window = _window_for_cpu(x, filters, strides, padding, dilations, channels_first, groups)
    if window is None:
        return plain(x, filters)

    def on_cpu(x: Any, filters: Any) -> Any:
        return convolution_cpu.convolve(x, filters, window)

    return lax.platform_dependent(x, filters, cpu=on_cpu, default=plain)


def _window_for_cpu(
    x: Any,
    filters: Any,
    strides: Sequence[int],
    padding: Any,
    dilations: Sequence[int],
    channels_first: bool,
    groups: int,
) -> convolution_cpu.Window | None:
    """The window if `convolution_cpu` is the faster one on a CPU."""
    if len(strides) != 2 or channels_first or groups != 1:
        return None
    if not all(isinstance(size, int) for size in (*x.shape, *filters.shape)):
        return None  # shapes with symbols: only the output's shape is asked for
    window = convolution_cpu.as_window(x, filters, strides, padding, dilations)
    return window if convolution_cpu.pays(x, filters, window) else None


def _plain(
    x: Any,
    filters: Any,
    strides: Sequence[int],
    padding: Any,
    dilations: Sequence[int],
    channels_first: bool,
    groups: int,
) -> Any:
    return lax.conv_general_dilated(
        x,
        filters,
        tuple(strides),
        padding if isinstance(padding, str) else [tuple(pair) for pair in padding],
        rhs_dilation=tuple(dilations),
        dimension_numbers=_layout(len(strides), channels_first),
        feature_group_count=groups,
    )


def output_length(
    length: int | None, window: int | None, stride: int, padding: Any, dilation: int = 1
) -> int | None:
    """The length of a convolution's or a pooling's output along one dimension.

    Args:
        length, window: of the input and the window; None where they are not known.
        stride, dilation: the window's.
        padding: 'SAME', 'VALID', or a pair of numbers.
    """
    if length is None or (window is None and padding != "SAME"):
        return None
    if padding == "SAME":
        return -(-length // stride)
    reach = (int(window or 1) - 1) * dilation + 1
    extra = 0 if padding == "VALID" else sum(padding)
    return max(0, (length + extra - reach) // stride + 1)


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    x, filters = inputs
    strides, padding, first = attrs["strides"], attrs["padding"], attrs["channels_first"]
    rank = len(strides) + 2
    for tensor, what in ((x, "input"), (filters, "filter")):
        if tensor.shape.rank not in (None, rank):
            raise ValueError(
                explain(
                    f"Shape must be rank {rank} but is rank {tensor.shape.rank}: the {what} of a "
                    "convolution",
                    received=tensor,
                    made_at=tensor.op.source,
                )
            )
    if x.shape.dims is None:
        return [Spec(x.dtype, TensorShape([None] * rank))]
    channels = x.shape.dims[1 if first else -1]
    window = filters.shape.dims or (None,) * rank
    taken = None if window[-2] is None else window[-2] * attrs["groups"]
    if channels is not None and taken is not None and channels != taken:
        raise ValueError(
            explain(
                f"Dimensions must be equal, but are {channels} and {taken}: the channels of a "
                "convolution's input and those that its filter takes",
                received=f"{x.name} {x.shape}, {filters.name} {filters.shape}",
                made_at=filters.op.source,
            )
        )
    space = x.shape.dims[2:] if first else x.shape.dims[1:-1]
    out = [
        output_length(
            length,
            window[at],
            strides[at],
            padding if isinstance(padding, str) else padding[at],
            attrs["dilations"][at],
        )
        for at, length in enumerate(space)
    ]
    batch = x.shape.dims[0]
    dims = [batch, window[-1], *out] if first else [batch, *out, window[-1]]
    return [Spec(x.dtype, TensorShape(dims))]


def _attrs(**changed: Any) -> dict[str, Any]:
    usual = {
        "strides": (1, 1),
        "padding": "SAME",
        "dilations": (1, 1),
        "channels_first": False,
        "groups": 1,
    }
    return {**usual, **changed}


def _reference(
    x: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    dilations: Any,
    channels_first: bool,
    groups: int,
) -> Any:
    """The same by loops over the window, in NumPy."""
    if channels_first:
        x = np.moveaxis(x, 1, -1)
    window, rank = filters.shape[:-2], len(strides)
    reach = [(size - 1) * dilation + 1 for size, dilation in zip(window, dilations, strict=True)]
    pads = []
    for at in range(rank):
        if padding == "SAME":
            out = -(-x.shape[1 + at] // strides[at])
            total = max(0, (out - 1) * strides[at] + reach[at] - x.shape[1 + at])
            pads.append((total // 2, total - total // 2))
        else:
            pads.append((0, 0) if padding == "VALID" else tuple(padding[at]))
    x = np.pad(x, [(0, 0), *pads, (0, 0)])
    lengths = [(x.shape[1 + at] - reach[at]) // strides[at] + 1 for at in range(rank)]
    outputs = filters.shape[-1] // groups
    result = np.zeros((len(x), *lengths, filters.shape[-1]), x.dtype)
    for place in np.ndindex(*window):
        part = x[
            (
                slice(None),
                *(
                    slice(
                        place[at] * dilations[at],
                        place[at] * dilations[at] + (lengths[at] - 1) * strides[at] + 1,
                        strides[at],
                    )
                    for at in range(rank)
                ),
            )
        ]
        for group in range(groups):
            taken = filters.shape[-2]
            chosen = part[..., group * taken : (group + 1) * taken]
            result[..., group * outputs : (group + 1) * outputs] += (
                chosen @ filters[place][:, group * outputs : (group + 1) * outputs]
            )
    return np.moveaxis(result, -1, 1) if channels_first else result


register(
    "Convolution",
    _convolve,
    infer=_infer,
    accepts="f",
    cases=lambda: [
        Case(inputs, attrs, _reference(*inputs, **attrs))
        for inputs, attrs in (
            ((_IMAGE, _FILTER), _attrs()),
            ((_IMAGE, _FILTER), _attrs(strides=(2, 1), padding="VALID")),
            ((_IMAGE, _FILTER), _attrs(dilations=(1, 2), padding=((1, 2), (0, 1)))),
            (
                (np.moveaxis(_IMAGE, -1, 1), _FILTER),
                _attrs(strides=(2, 2), channels_first=True),
            ),
            ((_IMAGE, _FILTER[:, :, :1, :2]), _attrs(groups=2)),
        )
    ],
)


def _transposed(
    dy: Any, filters: Any, shape: Any, strides: Any, padding: Any, dilations: Any, first: bool
) -> Any:
    """The gradient of a convolution with respect to its input of a given shape."""

    dy, filters = jnp.asarray(dy), jnp.asarray(filters)
    like = jax.ShapeDtypeStruct(  # type: ignore[no-untyped-call]
        tuple(int(dim) for dim in shape), dy.dtype
    )

    def plain(dy: Any, filters: Any) -> Any:
        def forward(x: Any) -> Any:
            return _plain(x, filters, strides, padding, dilations, first, 1)

        return jax.linear_transpose(forward, like)(dy)[0]

    window = _window_for_cpu(like, filters, strides, padding, dilations, first, 1)
    if window is None:
        return plain(dy, filters)

    def on_cpu(dy: Any, filters: Any) -> Any:
        return convolution_cpu.input_gradient(dy, like.shape, filters, window)

    return lax.platform_dependent(dy, filters, cpu=on_cpu, default=plain)


def _infer_transposed(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    shape = constant_value_as_shape(inputs[2])
    if shape.rank is None:
        shape = TensorShape([None] * (len(attrs["strides"]) + 2))
    return [Spec(inputs[0].dtype, shape)]


def _transposed_cases() -> list[Case]:
    attrs = _attrs(strides=(2, 2))
    del attrs["groups"]
    attrs["first"] = attrs.pop("channels_first")
    filters = np.moveaxis(_FILTER, -1, -2)  # (height, width, out, in) as of the transposed one
    dy = np.cos(np.arange(2 * 3 * 2 * 2, dtype=np.float32)).reshape(2, 3, 2, 2)
    shape = np.array([2, 5, 4, 3], np.int32)
    expected = np.zeros(shape, np.float32)
    for index in np.ndindex(*shape):  # the transposed matrix, element by element
        unit = np.zeros(shape, np.float32)
        unit[index] = 1.0
        expected[index] = np.sum(_reference(unit, filters, (2, 2), "SAME", (1, 1), False, 1) * dy)
    return [Case((dy, filters, shape), attrs, expected)]


register(
    "ConvolutionBackpropInput",
    _transposed,
    infer=_infer_transposed,
    accepts="f",
    static=(2,),
    cases=_transposed_cases,
)


# -- TensorFlow's functions


def _spatial(values: Any, rank: int, first: bool, what: str) -> tuple[int, ...]:
    """The part of strides or dilations that is about space."""
    if values is None:
        return (1,) * rank
    if isinstance(values, (int, np.integer)):
        return (int(values),) * rank
    given = [int(each) for each in values]
    if len(given) == rank:
        return tuple(given)
    if len(given) != rank + 2:
        raise ValueError(
            explain(
                f"a convolution's {what} do not fit",
                expected=f"1, {rank} or {rank + 2} numbers",
                received=given,
            )
        )
    channels = given[1] if first else given[-1]
    if given[0] != 1 or channels != 1:
        raise ValueError(
            explain(
                f"Current implementation does not yet support {what} in the batch and depth "
                "dimensions",
                expected="1 there",
                received=given,
            )
        )
    return tuple(given[2:] if first else given[1:-1])


def as_padding(padding: Any, rank: int, first: bool) -> Any:
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise ValueError(
                explain(
                    "a convolution's padding is none of its values",
                    expected="'SAME', 'VALID' or a pair of numbers for each dimension",
                    received=repr(padding),
                )
            )
        return padding.upper()
    pairs = tuple((int(before), int(after)) for before, after in padding)
    if len(pairs) == rank + 2:
        pairs = pairs[2:] if first else pairs[1:-1]
    return pairs


def is_channels_first(data_format: str | None) -> bool:
    given = data_format or "NHWC"
    if not (given.startswith("NC") or (given.startswith("N") and given.endswith("C"))):
        raise ValueError(
            explain(
                "data_format is none of its values",
                expected="'NHWC' or 'NCHW' (or of other dimensions)",
                received=repr(data_format),
            )
        )
    return given.startswith("NC") and not given.endswith("C")


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
    groups: int = 1,
) -> Tensor:
    first = is_channels_first(data_format)
    x = convert_to_tensor(x, name="input")
    filters = convert_to_tensor(filters, x.dtype, name="filter")
    attrs = {
        "strides": _spatial(strides, rank, first, "strides"),
        "padding": as_padding(padding, rank, first),
        "dilations": _spatial(dilations, rank, first, "dilations"),
        "channels_first": first,
        "groups": groups,
    }
    return make("Convolution", {"input": x, "filter": filters}, attrs, name or default)


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
        input: `(batch, height, width, channels)`, or `(batch, channels, height, width)`.
        filter: `(height, width, channels, outputs)`; `filters` is its newer name.
        strides: a number, two, or four with 1 for batch and channels.
        padding: 'SAME', 'VALID', or a pair of numbers for each dimension.
        use_cudnn_on_gpu: accepted for TensorFlow's signature.
        data_format: 'NHWC' or 'NCHW'.
        dilations: the distance between the filter's elements, as `strides`.
        name: the operation's name.

    Returns:
        `(batch, height, width, outputs)`, or with the outputs second.

    Raises:
        ValueError: shapes or arguments do not fit.
    """
    chosen = filters if filter is None else filter
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
    chosen = filters if filter is None else filter
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
        use_cudnn_on_gpu: accepted for TensorFlow's signature.
        data_format: 'NWC' (also 'NHWC') or 'NCW' (also 'NCHW').
        name: the name scope.
        dilations: a number.
    """
    first = is_channels_first(data_format)
    x = input if value is None else value
    with get_default_graph().name_scope(name or "conv1d") as scope:
        return _conv(
            x, filters, 1, stride, padding, "NCW" if first else "NWC", dilations, scope, "conv1d"
        )


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
    tensor = convert_to_tensor(filters if filter is None else filter, name="filter")
    rank = (tensor.shape.rank or 4) - 2
    rate = dilation_rate if dilations is None else dilations
    return _conv(input, tensor, rank, strides, padding, data_format, rate, name, "convolution")


def atrous_conv2d(
    value: Any, filters: Any, rate: int, padding: str, name: str | None = None
) -> Tensor:
    """`conv2d` with `rate` as the distance between the filter's elements."""
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
    """Each channel convolved with filters of its own.

    Args:
        input: see `conv2d`.
        filter: `(height, width, channels, multiplier)`.
        strides, padding, data_format, name: see `conv2d`.
        rate: dilations; `dilations` is its newer name.

    Returns:
        `(batch, height, width, channels x multiplier)`.
    """
    first = is_channels_first(data_format)
    with get_default_graph().name_scope(name or "depthwise") as scope:
        x = convert_to_tensor(input, name="tensor_in")
        filters = convert_to_tensor(filter, x.dtype, name="filter_in")
        channels = filters.shape[2] if filters.shape.rank == 4 else None
        multiplier = filters.shape[3] if filters.shape.rank == 4 else None
        if channels is None or multiplier is None:
            raise ValueError(
                explain(
                    "depthwise_conv2d: the filter's shape must be known",
                    expected="(height, width, channels, multiplier)",
                    received=filters,
                )
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
            "NCHW" if first else "NHWC",
            rate if dilations is None else dilations,
            scope,
            "depthwise",
            groups=int(channels),
        )


depthwise_conv2d_native = depthwise_conv2d


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
    """A depthwise convolution, then one of 1 x 1.

    Args:
        input, strides, padding, rate, data_format: see `depthwise_conv2d`.
        depthwise_filter: `(height, width, channels, multiplier)`.
        pointwise_filter: `(1, 1, channels x multiplier, outputs)`.
        name: the name scope.
    """
    with get_default_graph().name_scope(name or "separable_conv2d") as scope:
        middle = depthwise_conv2d(
            input, depthwise_filter, strides, padding, rate, "depthwise", data_format, dilations
        )
        return _conv(
            middle, pointwise_filter, 2, 1, "VALID", data_format, 1, scope, "separable_conv2d"
        )


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
            raise ValueError(
                explain(
                    "input channels does not match filter's input channels",
                    expected=taken[-1],
                    received=channels,
                    made_at=x.op.source,
                )
            )
        attrs = {
            "strides": _spatial(strides, rank, first, "strides"),
            "padding": as_padding(padding, rank, first),
            "dilations": _spatial(dilations, rank, first, "dilations"),
            "first": first,
        }
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
    """The gradient of `conv2d` with respect to its input, as a layer ("deconvolution").

    Args:
        value: `(batch, height, width, channels)`; `input` is its newer name.
        filter: `(height, width, outputs, channels)`; `filters` is its newer name.
        output_shape: the shape of the output; ints or a tensor.
        strides, padding, data_format, dilations: of the convolution that it transposes.
        name: the name scope.
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
