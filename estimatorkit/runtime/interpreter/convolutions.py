"""The rule of convolutions: matrix products of BLAS.

An output place `y` and a place `k` of the filter meet at one place `p` of the input, or at none:
`y * stride + k * dilation - padding == p * input dilation`. Padding and the zeros between dilated
elements need no memory. The places of the filter are taken in turn, or those of the output if
there are fewer. Where the input is not dilated, a copy of all windows is faster for few input
channels, and for gradients of filters, which are convolutions with few places of output.

On one core this takes 1 to 4 times as long as XLA's own convolutions, 0.1 to 17 ms for 1e6 to 5e8
operations; XLA compiles each for 30 to 200 ms (jax 0.10).
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from estimatorkit.runtime.interpreter.cost import convolution_seconds
from estimatorkit.runtime.interpreter.equations import Aval, Equation, Function
from estimatorkit.runtime.interpreter.rules import arithmetic, rule

_FEW_CHANNELS = 32
"""Input channels up to which windows are copied."""

_COPIED = 1 << 18
"""Elements of windows that are copied at once, so that they stay in the cache."""


class _Line(NamedTuple):
    """One spatial dimension of a convolution."""

    size: int
    filter: int
    output: int
    stride: int
    before: int
    input_dilation: int
    dilation: int

    def at_filter(self, place: int) -> tuple[slice, slice] | None:
        """The places of output and input that meet at one of the filter."""
        return _meeting(
            (self.output, self.stride),
            (self.size, self.input_dilation),
            place * self.dilation - self.before,
        )

    def at_output(self, place: int) -> tuple[slice, slice] | None:
        """The places of filter and input that meet at one of the output."""
        return _meeting(
            (self.filter, self.dilation),
            (self.size, self.input_dilation),
            place * self.stride - self.before,
        )


def _meeting(
    one: tuple[int, int], other: tuple[int, int], offset: int
) -> tuple[slice, slice] | None:
    """Where `a * step + offset == b * other step`, for numbers a and b below lengths."""
    (length, step), (limit, other_step) = one, other
    common = math.gcd(step, other_step)
    if offset % common:
        return None
    a_step, b_step = other_step // common, step // common
    # The first a >= 0 whose b is an integer and at least 0.
    a = (-offset // common * pow(b_step, -1, a_step)) % a_step if a_step > 1 else 0
    b = (a * step + offset) // other_step
    if b < 0:
        skipped = -(b // b_step)
        a, b = a + skipped * a_step, b + skipped * b_step
    count = min(-((a - length) // a_step), -((b - limit) // b_step))
    if count <= 0:
        return None
    return _slice(a, count, a_step), _slice(b, count, b_step)


def _slice(start: int, count: int, step: int) -> slice:
    return slice(start, start + (count - 1) * step + 1, step)


class _Problem(NamedTuple):
    """A convolution of input `(groups, batch, ..., channels)` with a filter `(groups, ...,
    channels, outputs)`; the result is `(groups, batch, ..., outputs)`."""

    lines: Sequence[_Line]
    groups: int
    batch: int
    channels: int
    outputs: int

    @property
    def filter_places(self) -> int:
        """The number of places of the filter."""
        return math.prod(line.filter for line in self.lines)

    @property
    def output_places(self) -> int:
        """The number of places of the output."""
        return math.prod(line.output for line in self.lines)


class _Layout(NamedTuple):
    """How a convolution's parameters place it: the dimensions of batch (or outputs), channels and
    space in the input, the filter and the output; steps along each spatial dimension; groups."""

    input: Sequence[int]
    filter: Sequence[int]
    output: Sequence[int]
    strides: Sequence[int]
    before: Sequence[int]
    input_dilations: Sequence[int]
    dilations: Sequence[int]
    groups: int
    batches: int = 1


@arithmetic("conv_general_dilated")
def _conv_general_dilated(equation: Equation) -> Function:
    parameters = equation.params
    numbers = parameters["dimension_numbers"]
    layout = _Layout(
        numbers.lhs_spec,
        numbers.rhs_spec,
        numbers.out_spec,
        parameters["window_strides"],
        [int(before) for before, _ in parameters["padding"]],
        parameters["lhs_dilation"],
        parameters["rhs_dilation"],
        parameters["feature_group_count"],
        parameters["batch_group_count"],
    )
    return _convolution(equation.inputs, equation.result, layout)


@rule("onednn_convolution")
def _onednn_convolution(equation: Equation) -> Function:
    """oneDNN's convolutions (`ops.nn.convolution_onednn`), which XLA compiles for 30 ms each."""
    written = json.loads(equation.params["configuration"])["onednn_conv_config"]
    window, filters = written["window"], written["kernel"]["filter"]
    steps = {key: list(map(int, each)) for key, each in window.items()}
    rank = len(steps["size"])
    of_data = (0, rank + 1, *range(1, rank + 1))
    ends = (filters["output_feature_dim"], filters["input_feature_dim"])
    layout = _Layout(
        of_data,
        list(map(int, (*ends, *filters["spatial_dims"]))),
        of_data,
        steps["strides"],
        steps["pad_left"],
        [1] * rank,
        steps["window_dilations"],
        int(written["feature_groups"]),
    )
    convolve = _convolution(equation.inputs, equation.result, layout)

    def run(x: Any, w: Any) -> Any:
        return convolve(x, w)

    run.seconds = convolution_seconds(equation, layout.filter[0])  # type: ignore[attr-defined]
    return run


def _convolution(inputs: Sequence[Aval], result: Aval, layout: _Layout) -> Function:
    (left, right), (shape, dtype) = inputs, result
    if math.prod(shape) == 0:
        return lambda *_: np.zeros(shape, dtype)
    x_spec, w_spec, y_spec = layout.input, layout.filter, layout.output
    steps = zip(
        x_spec[2:],
        w_spec[2:],
        y_spec[2:],
        layout.strides,
        layout.before,
        layout.input_dilations,
        layout.dilations,
        strict=True,
    )
    lines = [_Line(left.shape[x], right.shape[w], shape[y], *rest) for x, w, y, *rest in steps]
    count = max(layout.groups, layout.batches)
    batch, channels = (
        left.shape[x_spec[0]] // layout.batches,
        left.shape[x_spec[1]] // layout.groups,
    )
    outputs = right.shape[w_spec[0]] // count
    problem = _Problem(lines, count, batch, channels, outputs)
    compute = _computation(problem, dtype)
    space = tuple(line.size for line in lines)
    # Groups, which follow the batch or precede channels and outputs, become the first dimension.
    if layout.batches > 1:
        x_split, group = (count, batch, *space, channels), 0
    else:
        x_split, group = (batch, *space, count, channels), len(space) + 1
    to_x = _moved((x_spec[0], *x_spec[2:], x_spec[1]), x_split, group)
    w_split = (*(line.filter for line in lines), channels, count, outputs)
    to_w = _moved((*w_spec[2:], w_spec[1], w_spec[0]), w_split, len(space) + 1)
    places = tuple(line.output for line in lines)
    split, whole = (batch, *places, count, outputs), (batch, *places, count * outputs)
    to_y = _moved(range(len(split)), split, len(space) + 1)
    back = tuple(np.argsort((y_spec[0], *y_spec[2:], y_spec[1])).tolist())

    def run(x: Any, w: Any) -> Any:
        if x.dtype != dtype or w.dtype != dtype:
            x, w = x.astype(dtype), w.astype(dtype)
        y = np.zeros(split, dtype)
        compute(to_x(x), to_w(w), to_y(y))
        return y.reshape(whole).transpose(back)

    return run


def _moved(order: Sequence[int], split: tuple[int, ...], group: int) -> Callable[[Any], Any]:
    """The function that reorders dimensions, splits them, and moves one of them to the front."""
    first = (group, *(at for at in range(len(split)) if at != group))
    return lambda x: x.transpose(order).reshape(split).transpose(first)


def _computation(problem: _Problem, dtype: Any) -> Function:
    """The function of input, filter, and the result to which it is added."""
    if problem.channels == 1 and problem.groups > 1:
        return _depthwise(problem)
    many = problem.filter_places > problem.output_places
    few = problem.channels <= _FEW_CHANNELS and problem.filter_places > 1
    if (many or few) and all(line.input_dilation == 1 for line in problem.lines):
        return _by_windows(problem, dtype)
    if many:
        return _by_outputs(problem)
    return _by_filters(problem)


def _at_filters(problem: _Problem) -> Iterator[tuple[Any, Any, Any]]:
    """The positions of the filter, each with the slices of output and input that it connects."""
    lines = [
        [(place, line.at_filter(place)) for place in range(line.filter)] for line in problem.lines
    ]
    for combination in itertools.product(*lines):
        meetings = [meeting for _, meeting in combination if meeting is not None]
        if len(meetings) == len(lines):
            of_output = tuple(output for output, _ in meetings)
            of_input = tuple(given for _, given in meetings)
            yield tuple(place for place, _ in combination), of_output, of_input


_ALL = slice(None)


def _by_filters(problem: _Problem) -> Function:
    steps = [
        ((_ALL, *place), (_ALL, _ALL, *to), (_ALL, _ALL, *of))
        for place, to, of in _at_filters(problem)
    ]
    flat = (problem.groups, -1, problem.channels)

    def compute(x: Any, w: Any, y: Any) -> None:
        for place, to, of in steps:
            part = y[to]
            part += np.matmul(x[of].reshape(flat), w[place]).reshape(part.shape)

    return compute


def _depthwise(problem: _Problem) -> Function:
    steps = [
        ((_ALL, *place), (_ALL, _ALL, *to), (_ALL, _ALL, *of))
        for place, to, of in _at_filters(problem)
    ]
    between = (problem.groups, *[1] * (1 + len(problem.lines)), problem.outputs)

    def compute(x: Any, w: Any, y: Any) -> None:
        for place, to, of in steps:
            part = y[to]
            part += x[of] * w[place].reshape(between)

    return compute


def _by_outputs(problem: _Problem) -> Function:
    lines = [
        [(place, line.at_output(place)) for place in range(line.output)] for line in problem.lines
    ]
    steps = []
    for combination in itertools.product(*lines):
        meetings = [meeting for _, meeting in combination if meeting is not None]
        if len(meetings) == len(lines):
            place = (_ALL, _ALL, *(place for place, _ in combination))
            filters = (_ALL, *(of_filter for of_filter, _ in meetings))
            steps.append((place, filters, (_ALL, _ALL, *(given for _, given in meetings))))
    rows, columns = (problem.groups, problem.batch, -1), (problem.groups, -1, problem.outputs)

    def compute(x: Any, w: Any, y: Any) -> None:
        for place, filters, of in steps:
            y[place] = np.matmul(x[of].reshape(rows), w[filters].reshape(columns))

    return compute


def _by_windows(problem: _Problem, dtype: Any) -> Function:
    lines, channels = problem.lines, problem.channels
    reaches = [
        (line.output - 1) * line.stride + (line.filter - 1) * line.dilation + 1 for line in lines
    ]
    filled, taken = [], []
    for line, reach in zip(lines, reaches, strict=True):
        start = max(line.before, 0)
        stop = max(start, min(line.size + line.before, reach))
        filled.append(slice(start, stop))
        taken.append(slice(start - line.before, stop - line.before))
    to, of = (_ALL, _ALL, *filled), (_ALL, _ALL, *taken)
    is_padded = any(
        (part.start, part.stop) != (0, reach) for part, reach in zip(filled, reaches, strict=True)
    )
    width = problem.filter_places * channels
    step = max(1, _COPIED // (problem.groups * problem.output_places * width))
    outputs = tuple(line.output for line in lines)
    window = (*outputs, *(line.filter for line in lines), channels)

    def compute(x: Any, w: Any, y: Any) -> None:
        x = x[of]
        w = w.reshape(problem.groups, width, problem.outputs)
        if is_padded:
            padded = np.zeros((problem.groups, problem.batch, *reaches, channels), dtype)
            padded[to] = x
            x = padded
        group, example, *steps, last = x.strides
        strides = (
            group,
            example,
            *(by * line.stride for by, line in zip(steps, lines, strict=True)),
            *(by * line.dilation for by, line in zip(steps, lines, strict=True)),
            last,
        )
        for start in range(0, problem.batch, step):
            piece = x[:, start : start + step]
            count = piece.shape[1]
            shape = (problem.groups, count, *window)
            windows = np.lib.stride_tricks.as_strided(piece, shape, strides, writeable=False)
            found = np.matmul(windows.reshape(problem.groups, -1, width), w)
            y[:, start : start + step] = found.reshape(problem.groups, count, *outputs, -1)

    return compute


__all__: list[str] = []
