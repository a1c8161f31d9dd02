"""Operations for 1- to 3-dimensional convolutions, optionally dilated or grouped.

One registered operation is the convolution, two are its gradients; their public functions are in
`convolution_functions` and `transposed_convolution`. Padding is TensorFlow's: 'SAME' puts the odd
pixel at the end, 'VALID' adds none, or it is given for each side.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.core.registry import (
    Case,
    Spec,
    constant_value_as_shape,
    register,
)
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.sizes import dims_of
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.nn import convolution_cpu
from estimatorkit.ops.nn.convolution_problem import Problem, as_window
from estimatorkit.ops.nn.sliding_windows import (
    check_known_window,
    check_window,
    output_length,
    window_reach,
)
from estimatorkit.runtime.xla.platforms import by_platform

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
    space = x.shape[2:] if channels_first else x.shape[1:-1]
    check_window(space, filters.shape, strides, padding, dilations)
    groups = groups or _groups(x.shape[1 if channels_first else -1], filters.shape)

    def plain(x: Any, filters: Any) -> Any:
        return _plain(x, filters, strides, padding, dilations, channels_first, groups)

    def on_cpu(x: Any, filters: Any, problem: Problem) -> Any:
        y = convolution_cpu.convolve(_last(x, channels_first), filters, problem.window)
        return _first(y, channels_first)

    problem = _problem_for_cpu(x, filters, strides, padding, dilations, channels_first, groups)
    return _by_platform(problem, on_cpu, plain, x, filters)


def _last(x: Any, channels_first: bool) -> Any:
    """Transposes channels to the last dimension."""
    return jnp.moveaxis(x, 1, -1) if channels_first else x


def _first(x: Any, channels_first: bool) -> Any:
    """Transposes channels back to their original dimension."""
    return jnp.moveaxis(x, -1, 1) if channels_first else x


def _by_platform(
    problem: Problem | None,
    on_cpu: Callable[..., Any],
    plain: Callable[..., Any],
    *arrays: Any,
) -> Any:
    """Calls `on_cpu` with the problem on CPU if there is one, else `plain`."""
    if problem is None:
        return plain(*arrays)
    return by_platform(*arrays, cpu=lambda *arrays: on_cpu(*arrays, problem), default=plain)


def _problem_for_cpu(
    x: Any,
    filters: Any,
    strides: Sequence[int],
    padding: Any,
    dilations: Sequence[int],
    channels_first: bool,
    groups: int,
) -> Problem | None:
    """The convolution with its channels last, if `convolution_cpu` has a rule for it."""
    if not all(isinstance(size, int) for size in (*x.shape, *filters.shape)):
        return None  # symbolic dimensions: only the output's shape is needed
    shape = (x.shape[0], *x.shape[2:], x.shape[1]) if channels_first else x.shape
    window = as_window(shape, filters.shape, strides, padding, dilations, groups)
    problem = Problem(shape, filters.shape, window)
    return problem if convolution_cpu.has_rule(problem, x.dtype) else None


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


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    x, filters = inputs
    strides, padding, first = attrs["strides"], attrs["padding"], attrs["channels_first"]
    rank = len(strides) + 2
    for tensor, what in ((x, "input"), (filters, "filter")):
        if tensor.shape.rank not in (None, rank):
            raise value_error(
                f"Shape must be rank {rank} but is rank {tensor.shape.rank}: the {what} of a "
                "convolution",
                received=tensor,
                made_at=tensor.op.source,
            )
    if x.shape.dims is None:
        return [Spec(x.dtype, TensorShape([None] * rank))]
    channels = x.shape.dims[1 if first else -1]
    window = filters.shape.dims or (None,) * rank
    taken = window[-2] * attrs["groups"] if window[-2] and attrs["groups"] else None
    if channels is not None and taken is not None and channels != taken:
        raise value_error(
            f"Dimensions must be equal, but are {channels} and {taken}: the channels of a "
            "convolution's input and those that its filter takes",
            received=f"{x.name} {x.shape}, {filters.name} {filters.shape}",
            made_at=filters.op.source,
        )
    space = x.shape.dims[2:] if first else x.shape.dims[1:-1]
    out = []
    for at, length in enumerate(space):
        own = padding if isinstance(padding, str) else padding[at]
        size, dilation = window[at], attrs["dilations"][at]
        reach = None if size is None else window_reach(size, dilation)
        check_known_window(x, length, reach, own)
        out.append(output_length(length, size, attrs["strides"][at], own, dilation))
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
    """NumPy reference by loops over the window."""
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
    accepts="f int32",
    unroll_on_cpu=True,
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
            ((_IMAGE.astype(np.int32), _FILTER.astype(np.int32)), _attrs()),
        )
    ],
)


def _groups(channels: int, filters: Sequence[int]) -> int:
    """The number of channel groups of an input."""
    taken = filters[-2]
    if not taken or channels % taken:
        problem = f"input depth must be evenly divisible by filter depth: {channels} vs {taken}"
        raise InvalidArgumentError.explained(problem)
    return channels // taken


def _check_backward(
    name: str,
    x: Sequence[int],
    filters: Sequence[int],
    dy: Sequence[int],
    strides: Sequence[int],
    padding: Any,
    dilations: Sequence[int],
    first: bool,
) -> None:
    """Rejects a gradient `dy` whose shape does not match the convolution's output."""
    place = 2 if first else 1
    problem = None
    if x[0] != dy[0]:
        problem = (
            "input and out_backprop must have the same batch size. "
            f"Input batch: {x[0]}, outbackprop batch: {dy[0]}, batch_dim: 0"
        )
    elif filters[-1] != dy[1 if first else -1]:
        problem = "filter and out_backprop must have the same out_depth"
    else:
        for at, (stride, dilation) in enumerate(zip(strides, dilations, strict=True)):
            own = padding if isinstance(padding, str) else padding[at]
            length, size, actual = x[place + at], filters[at], dy[place + at]
            computed = output_length(length, size, stride, own, dilation)
            if computed != actual:
                problem = (
                    f"Size of out_backprop doesn't match computed: actual = {actual}, computed = "
                    f"{computed} spatial_dim: {place + at} input: {length} filter: {size} output: "
                    f"{actual} stride: {stride} dilation: {dilation}"
                )
                break
    if problem:
        received = f"input {tuple(x)}, filter {tuple(filters)}, out_backprop {tuple(dy)}"
        raise InvalidArgumentError.explained(f"{name}: {problem}", received=received)


def _shaped(shape: Any, dtype: Any) -> Any:
    return jax.ShapeDtypeStruct(dims_of(shape), dtype)  # type: ignore[no-untyped-call]


def _transposed(
    dy: Any, filters: Any, shape: Any, strides: Any, padding: Any, dilations: Any, first: bool
) -> Any:
    """The gradient of a convolution with respect to its input of a given shape."""
    dy, filters = jnp.asarray(dy), jnp.asarray(filters)
    like = _shaped(shape, dy.dtype)
    moves = (strides, padding, dilations, first)
    _check_backward("ConvBackpropInput", like.shape, filters.shape, dy.shape, *moves)
    groups = _groups(like.shape[1 if first else -1], filters.shape)

    def plain(dy: Any, filters: Any) -> Any:
        def forward(x: Any) -> Any:
            return _plain(x, filters, strides, padding, dilations, first, groups)

        return jax.linear_transpose(forward, like)(dy)[0]

    def on_cpu(dy: Any, filters: Any, problem: Problem) -> Any:
        return _first(convolution_cpu.input_gradient(_last(dy, first), filters, problem), first)

    problem = _problem_for_cpu(like, filters, strides, padding, dilations, first, groups)
    return _by_platform(problem, on_cpu, plain, dy, filters)


def _of_given_shape(position: int, batch_of: int | None = None) -> Any:
    """Shape inference of a gradient whose shape is an input and whose batch is another input's."""

    def infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
        given = inputs[position]
        shape, rank = constant_value_as_shape(given), len(attrs["strides"]) + 2
        if shape.rank is None:
            shape = TensorShape([None] * rank)
        other = inputs[batch_of].shape if batch_of is not None else shape
        problem = None
        if shape.rank != rank:
            problem = f"A convolution's gradient requires sizes to contain {rank} values"
        elif other.rank and None not in (shape[0], other[0]) and shape[0] != other[0]:
            problem = f"Dimensions must be equal, but are {shape[0]} and {other[0]}: the batch"
        if problem:
            raise value_error(problem, received=f"{shape} for {other}", made_at=given.op.source)
        return [Spec(inputs[0].dtype, shape)]

    return infer


def _backward_attrs() -> dict[str, Any]:
    attrs = _attrs(strides=(2, 2))
    del attrs["groups"]
    attrs["first"] = attrs.pop("channels_first")
    return attrs


def _transposed_of(forward: Any, shape: Any, dy: Any) -> Any:
    """Reference: the transposed matrix of a linear function times `dy`, built column by column."""
    result = np.zeros(shape, np.float32)
    for index in np.ndindex(*shape):
        unit = np.zeros(shape, np.float32)
        unit[index] = 1.0
        result[index] = np.sum(forward(unit) * dy)
    return result


def _backward_reference(x: Any, filters: Any) -> Any:
    """The forward convolution that the test cases transpose."""
    groups = _groups(x.shape[-1], filters.shape)
    return _reference(x, filters, (2, 2), "SAME", (1, 1), False, groups)


_OUTPUT_GRADIENT = np.cos(np.arange(2 * 3 * 2 * 2, dtype=np.float32)).reshape(2, 3, 2, 2)


def _transposed_cases() -> list[Case]:
    cases = []
    for filters, channels in ((np.moveaxis(_FILTER, -1, -2), 3), (_FILTER[:, :, :1, :2], 2)):
        shape, dy = np.array([2, 5, 4, channels], np.int32), _OUTPUT_GRADIENT
        wanted = _transposed_of(functools.partial(_backward_reference, filters=filters), shape, dy)
        cases.append(Case((dy, filters, shape), _backward_attrs(), wanted))
    return cases


register(
    "ConvolutionBackpropInput",
    _transposed,
    infer=_of_given_shape(2, batch_of=0),
    accepts="f",
    static=(2,),
    unroll_on_cpu=True,
    cases=_transposed_cases,
)


def _filter_gradient(
    x: Any, shape: Any, dy: Any, strides: Any, padding: Any, dilations: Any, first: bool
) -> Any:
    """The gradient of a convolution with respect to its filter of a given shape."""
    x = jnp.asarray(x)
    like = _shaped(shape, x.dtype)
    moves = (strides, padding, dilations, first)
    _check_backward("ConvBackpropFilter", x.shape, like.shape, dy.shape, *moves)
    groups = _groups(x.shape[1 if first else -1], like.shape)

    def plain(x: Any, dy: Any) -> Any:
        def forward(filters: Any) -> Any:
            return _plain(x, filters, strides, padding, dilations, first, groups)

        return jax.linear_transpose(forward, like)(dy)[0]

    def on_cpu(x: Any, dy: Any, problem: Problem) -> Any:
        return convolution_cpu.filter_gradient(_last(x, first), _last(dy, first), problem)

    problem = _problem_for_cpu(x, like, strides, padding, dilations, first, groups)
    return _by_platform(problem, on_cpu, plain, x, dy)


def _filter_gradient_cases() -> list[Case]:
    cases = []
    for channels in (2, 1):
        shape, dy = np.array([3, 2, channels, 2], np.int32), _OUTPUT_GRADIENT
        wanted = _transposed_of(functools.partial(_backward_reference, _IMAGE), shape, dy)
        cases.append(Case((_IMAGE, shape, dy), _backward_attrs(), wanted))
    return cases


register(
    "ConvolutionBackpropFilter",
    _filter_gradient,
    infer=_of_given_shape(1),
    accepts="f",
    static=(1,),
    unroll_on_cpu=True,
    cases=_filter_gradient_cases,
)
