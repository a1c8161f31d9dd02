"""Max and average pooling over 1 to 3 dimensions.

Averages at the edges exclude padding; see `pooled_windows` for the gradients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import as_dtype, int64
from estimatorkit.core.errors import UnimplementedError, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array, joining
from estimatorkit.ops.nn.pooled_windows import greatest, least, total, windows
from estimatorkit.ops.nn.sliding_windows import (
    as_padding,
    as_spatial,
    check_channels_last,
    check_known_window,
    is_channels_first,
    output_length,
    window_pads,
)
from estimatorkit.ops.nn.space_blocks import batch_to_space_nd, space_to_batch_nd

_IMAGE = np.sin(np.arange(2 * 5 * 4 * 2, dtype=np.float32) * 2).reshape(2, 5, 4, 2)
_LONG = np.sin(np.arange(2 * 17 * 5 * 2, dtype=np.float32) * 2).reshape(2, 17, 5, 2)


def _channels_last(x: Any, first: bool) -> Any:
    return jnp.moveaxis(x, 1, -1) if first else x


def _channels_back(x: Any, first: bool) -> Any:
    return jnp.moveaxis(x, -1, 1) if first else x


def _max_pool(x: Any, window: Any, strides: Any, padding: Any, channels_first: bool) -> Any:
    x = _channels_last(jnp.asarray(x), channels_first)
    return _channels_back(greatest(x, window, strides, padding), channels_first)


def _avg_pool(x: Any, window: Any, strides: Any, padding: Any, channels_first: bool) -> Any:
    x = _channels_last(jnp.asarray(x), channels_first)
    sums = total(x, window, strides, padding)
    inside = np.ones((1, *x.shape[1:-1], 1), np.float32)
    pads = window_pads(inside.shape[1:-1], window, strides, padding)
    if not any(map(sum, pads)):
        count: Any = int(np.prod(window))
    else:
        count = sum(np.asarray(each) for each in _numpy_windows(inside, window, strides, pads))
    return _channels_back(sums / jnp.asarray(count, x.dtype), channels_first)


def _numpy_windows(x: Any, window: Any, strides: Any, pads: Any) -> list[Any]:
    padded = np.pad(x, [(0, 0), *pads, (0, 0)])
    outs = [(padded.shape[1 + at] - size) // strides[at] + 1 for at, size in enumerate(window)]
    return [
        padded[
            (
                slice(None),
                *(
                    slice(at, at + (out - 1) * stride + 1, stride)
                    for at, out, stride in zip(place, outs, strides, strict=True)
                ),
            )
        ]
        for place in np.ndindex(*window)
    ]


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    x, first, padding = inputs[0], attrs["channels_first"], attrs["padding"]
    rank = len(attrs["window"]) + 2
    if x.shape.rank not in (None, rank):
        raise value_error(
            f"Shape must be rank {rank} but is rank {x.shape.rank}: the input of a pooling",
            received=x,
            made_at=x.op.source,
        )
    if x.shape.dims is None:
        return [Spec(x.dtype, TensorShape([None] * rank))]
    dims = list(x.shape.dims)
    for at, size in enumerate(attrs["window"]):
        place = at + (2 if first else 1)
        own = padding if isinstance(padding, str) else padding[at]
        length = dims[place]
        check_known_window(x, length, size, own)
        dims[place] = output_length(length, size, attrs["strides"][at], own)
    return [Spec(x.dtype, TensorShape(dims))]


def _numpy_pool(reduce: Any) -> Any:
    def pool(x: Any, window: Any, strides: Any, padding: Any, channels_first: bool) -> Any:
        x = np.moveaxis(x, 1, -1) if channels_first else x
        pads = window_pads(x.shape[1:-1], window, strides, padding)
        marked = np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=np.nan)
        places = _numpy_windows(marked, window, strides, [(0, 0)] * len(pads))
        result = reduce(np.stack(places), axis=0).astype(x.dtype)
        return np.moveaxis(result, -1, 1) if channels_first else result

    return pool


def _attrs(**changed: Any) -> dict[str, Any]:
    usual = {"window": (2, 2), "strides": (2, 2), "padding": "SAME", "channels_first": False}
    return {**usual, **changed}


for _type, _kernel, _reduce in (
    ("MaxPool", _max_pool, np.nanmax),
    ("AvgPool", _avg_pool, np.nanmean),
):
    register(
        _type,
        _kernel,
        infer=_infer,
        accepts="fi" if _type == "MaxPool" else "f",
        cases=lambda reduce=_reduce: [
            Case((x,), attrs, _numpy_pool(reduce)(x, **attrs))
            for x, attrs in (
                (_IMAGE, _attrs()),
                (_IMAGE, _attrs(window=(3, 2), strides=(1, 2), padding="VALID")),
                (_IMAGE, _attrs(window=(3, 3), strides=(2, 1))),
                (_LONG, _attrs(window=(17, 2), strides=(1, 2), padding="VALID")),
                (_LONG, _attrs(window=(6, 3), strides=(6, 1))),
                (_LONG, _attrs(window=(9, 2), strides=(2, 3))),
                (np.moveaxis(_IMAGE, -1, 1), _attrs(channels_first=True)),
            )
        ],
    )


def _with_argmax(x: Any, window: Any, strides: Any, padding: Any, dtype: Any, batch: bool) -> Any:
    x = jnp.asarray(x)
    places = windows(x, window, strides, padding, least(x.dtype))
    numbers = jnp.arange(x[0].size, dtype=np.int32).reshape(1, *x.shape[1:])
    if batch:
        numbers = jnp.arange(x.size, dtype=np.int32).reshape(x.shape)
    numbers = jnp.broadcast_to(numbers, x.shape)
    where = windows(numbers, window, strides, padding, -1)
    best, at = places[0], where[0]
    for value, number in zip(places[1:], where[1:], strict=True):
        better = value > best
        best, at = jnp.where(better, value, best), jnp.where(better, number, at)
    return best, at.astype(dtype.numpy_dtype)


register(
    "MaxPoolWithArgmax",
    _with_argmax,
    infer=lambda inputs, attrs: [
        _infer(inputs, {**attrs, "channels_first": False})[0],
        Spec(attrs["dtype"], _infer(inputs, {**attrs, "channels_first": False})[0].shape),
    ],
    accepts="fi",
    cases=lambda: [
        Case(
            (np.array([[[[1.0], [5.0]], [[3.0], [2.0]]]], np.float32),),
            {
                "window": (2, 2),
                "strides": (2, 2),
                "padding": "SAME",
                "dtype": int64,
                "batch": False,
            },
            (np.array([[[[5.0]]]], np.float32), np.array([[[[1]]]], np.int64)),
        )
    ],
)


def _pool(
    op_type: str,
    value: Any,
    rank: int,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None,
    name: str | None,
) -> Tensor:
    first = is_channels_first(data_format)
    attrs = {
        "window": as_spatial(ksize, rank, first, "ksize"),
        "strides": as_spatial(strides, rank, first, "strides"),
        "padding": as_padding(padding, rank, first),
        "channels_first": first,
    }
    return make(op_type, {"value": value}, attrs, name)


def max_pool(
    value: Any = None,
    ksize: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """Max pooling: the maximum of each window.

    Args:
        value: `(batch, height, width, channels)`, or with 'NCHW' the channels second; `input` is
            its newer name.
        ksize: the window's size: a number, two, or four with 1 for batch and channels.
        strides: the distance between windows, in the form of `ksize`.
        padding: 'SAME', 'VALID', or a pair of numbers for each dimension.
        data_format: 'NHWC' or 'NCHW'.

    Raises:
        ValueError: shapes or arguments are invalid.
    """
    x = input if value is None else value
    if np.size(ksize) == 4 and not is_channels_first(data_format) and ksize[3] != 1:
        return _max_pool_of_channels(x, ksize, strides, name)
    return _pool("MaxPool", x, 2, ksize, strides, padding, data_format, name)


def _max_pool_of_channels(value: Any, ksize: Any, strides: Any, name: str | None) -> Tensor:
    """The maximum of each group of adjacent channels.

    Raises:
        UnimplementedError: space is pooled too, or the groups overlap or do not divide the
            channels.
    """
    from estimatorkit.ops.math.reduce import reduce_max

    x = convert_to_tensor(value, name="value")
    size = int(ksize[3])
    steps = [int(each) for each in np.broadcast_to(strides, 4)]
    channels = x.shape[-1] if x.shape.rank else None
    for fits, words in (
        (
            [int(each) for each in ksize[:3]] == [1, 1, 1] and steps[:3] == [1, 1, 1],
            "MaxPooling supports exactly one of pooling across depth or pooling across "
            "width/height.",
        ),
        (steps[3] == size, "Depthwise max pooling requires the depth window to equal the stride."),
        (
            channels is None or channels % size == 0,
            "Depthwise max pooling requires the depth window to evenly divide the input depth.",
        ),
    ):
        if not fits:
            raise UnimplementedError.explained(words, received=x, op=x.op)
    with get_default_graph().name_scope(name or "MaxPool") as scope:
        groups = array.reshape(
            x, joining.concat([array.shape(x)[:-1], [-1, size]], 0), name="groups"
        )
        return reduce_max(groups, -1, name=scope)


def avg_pool(
    value: Any = None,
    ksize: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """Average pooling: the mean of each window; see `max_pool`."""
    x = input if value is None else value
    return _pool("AvgPool", x, 2, ksize, strides, padding, data_format, name)


def max_pool_v2(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Max pooling over one to three dimensions (TensorFlow 2's `max_pool`).

    Args:
        input: `(batch, ..., channels)` of rank 3 to 5, or with a `data_format` that begins with
            'NC' the channels second.
        ksize, strides, padding, name: see `max_pool`.
        data_format: the order of the dimensions; channels last by default.

    Raises:
        ValueError: shapes or arguments are invalid, or the rank of `input` is not known.
    """
    return _pool_of_any_rank("MaxPool", input, ksize, strides, padding, data_format, name)


def avg_pool_v2(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Average pooling over one to three dimensions; see `max_pool_v2`."""
    return _pool_of_any_rank("AvgPool", input, ksize, strides, padding, data_format, name)


def _pool_of_any_rank(op_type: str, input: Any, *rest: Any) -> Tensor:
    x = convert_to_tensor(input, name="input")
    rank = x.shape.rank
    if rank is None or not 3 <= rank <= 5:
        raise value_error(
            "`input.shape.rank` must be 3, 4 or 5",
            expected="(batch, ..., channels) with one to three dimensions between",
            received=x,
            made_at=x.op.source,
        )
    return _pool(op_type, x, rank - 2, *rest)


def _of_rank(op_type: str, rank: int, layout: str, default: str) -> Any:
    def pooling(
        input: Any = None,
        ksize: Any = None,
        strides: Any = None,
        padding: Any = None,
        data_format: str = layout,
        name: str | None = None,
        value: Any = None,
    ) -> Tensor:
        x = value if input is None else input
        return _pool(op_type, x, rank, ksize, strides, padding, data_format, name or default)

    pooling.__name__ = pooling.__qualname__ = default
    pooling.__doc__ = f"{rank}D pooling (`{op_type}`); see `max_pool` for the arguments."
    return pooling


max_pool1d = _of_rank("MaxPool", 1, "NWC", "max_pool1d")
max_pool2d = _of_rank("MaxPool", 2, "NHWC", "max_pool2d")
max_pool3d = _of_rank("MaxPool", 3, "NDHWC", "MaxPool3D")
avg_pool1d = _of_rank("AvgPool", 1, "NWC", "avg_pool1d")
avg_pool2d = _of_rank("AvgPool", 2, "NHWC", "avg_pool2d")
avg_pool3d = _of_rank("AvgPool", 3, "NDHWC", "AvgPool3D")


def pool(
    input: Any,
    window_shape: Any,
    pooling_type: str,
    padding: Any,
    dilation_rate: Any = None,
    strides: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Pooling over as many dimensions as the window has.

    Args:
        input: `(batch, ..., channels)`.
        window_shape: a number for each dimension.
        pooling_type: 'MAX' or 'AVG'.
        padding, strides, data_format: see `max_pool`; strides are 1 by default.
        dilation_rate: the distance between a window's elements, a number or one for each dimension;
            above 1 with padding 'VALID' and strides of 1 only, as in TensorFlow. `dilations` is its
            newer name.

    Raises:
        ValueError: an argument is invalid, or the arguments are incompatible.
    """
    if pooling_type not in ("MAX", "AVG"):
        raise value_error(
            "pool: pooling_type", expected="'MAX' or 'AVG'", received=repr(pooling_type)
        )
    op_type = "MaxPool" if pooling_type == "MAX" else "AvgPool"
    rank = len(window_shape)
    steps = as_spatial(strides, rank, False, "strides")
    given = dilations if dilation_rate is None else dilation_rate
    rates = _rates(1 if given is None else given, window_shape, padding, steps)
    if max(rates) == 1:
        default = name or "pool"
        return _pool(op_type, input, rank, window_shape, steps, padding, data_format, default)
    first = is_channels_first(data_format)
    with get_default_graph().name_scope(name or "pool") as scope:
        x = convert_to_tensor(input)
        if first:
            x = array.transpose(x, [0, *range(2, rank + 2), 1])
        # Elements whose positions are equal modulo the rate form a part, which is pooled
        # separately.
        lacking = [[0, part] for part in _lacking(x, rates)]
        blocks = space_to_batch_nd(x, rates, lacking)
        pooled = _pool(op_type, blocks, rank, window_shape, 1, padding, None, None)
        if not first:
            return batch_to_space_nd(pooled, rates, lacking, scope)
        whole = batch_to_space_nd(pooled, rates, lacking)
        return array.transpose(whole, [0, rank + 1, *range(1, rank + 1)], name=scope)


def _rates(
    given: Any, window: Sequence[int], padding: Any, steps: Sequence[int]
) -> tuple[int, ...]:
    """The dilation per dimension."""
    rank = len(window)
    rates = (int(given),) * rank if np.ndim(given) == 0 else tuple(int(each) for each in given)
    problem = None
    if len(rates) != rank:
        problem = f"`len(dilation_rate)` should be {rank}"
    elif min(rates) < 1:
        problem = "all values of `dilation_rate` must be positive"
    elif max(rates) > 1 and as_padding(padding, rank, False) != "VALID":
        problem = f"pooling with {padding!r} padding is not implemented for `dilation_rate` > 1"
    elif max(rates) > 1 and max(steps) > 1:
        problem = "`strides > 1` not supported in conjunction with `dilation_rate > 1`"
    elif any(step > size for step, size in zip(steps, window, strict=True)):
        problem = "`strides` > `window_shape` not supported"
    if problem:
        raise value_error(
            problem,
            expected=f"{rank} numbers of at least 1; above 1 with 'VALID' and strides of 1",
            received=f"dilation_rate={given}, padding={padding!r}, strides={steps}, "
            f"window_shape={window}",
        )
    return rates


def _lacking(x: Tensor, rates: Sequence[int]) -> list[Any]:
    """The padding that makes each spatial length a multiple of its rate."""
    lengths = x.shape.as_list()[1:-1] if x.shape.rank else [None] * len(rates)
    sizes = array.shape(x)
    return [
        -(sizes[1 + at] if length is None else length) % rate
        for at, (length, rate) in enumerate(zip(lengths, rates, strict=True))
    ]


class MaxPoolWithArgmax(NamedTuple):
    """The result of `max_pool_with_argmax`."""

    output: Tensor
    argmax: Tensor


def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    Targmax: Any = None,
    name: str | None = None,
    output_dtype: Any = None,
    include_batch_in_index: bool = False,
) -> MaxPoolWithArgmax:
    """The maximum of each window and its index in the flattened example.

    Args:
        input, ksize, strides, padding: see `max_pool` ('NHWC' only).
        data_format: 'NHWC'.
        Targmax: the dtype of the indices, int64 by default; `output_dtype` is its newer name.
        include_batch_in_index: whether to index the flattened batch instead of each example.

    Raises:
        ValueError: shapes or arguments are invalid.
    """
    check_channels_last(data_format)
    wanted = (
        int64
        if Targmax is None and output_dtype is None
        else as_dtype(output_dtype if Targmax is None else Targmax)
    )
    attrs = {
        "window": as_spatial(ksize, 2, False, "ksize"),
        "strides": as_spatial(strides, 2, False, "strides"),
        "padding": as_padding(padding, 2, False),
        "dtype": wanted,
        "batch": include_batch_in_index,
    }
    op = registry.apply("MaxPoolWithArgmax", [convert_to_tensor(input)], attrs, name)
    return MaxPoolWithArgmax(*op.outputs)
