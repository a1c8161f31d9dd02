"""Rules of windows: pooling, and its gradients.

Loops run over the positions within a window, or over windows where those are fewer.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from estimatorkit.runtime.interpreter.elementwise import chosen_by_bits
from estimatorkit.runtime.interpreter.equations import Equation, Function
from estimatorkit.runtime.interpreter.order import extreme, least, most, of_extremes
from estimatorkit.runtime.interpreter.reductions import COMBINED, combination
from estimatorkit.runtime.interpreter.rules import arithmetic, compiled


class _Axis(NamedTuple):
    """How the windows along an axis are reduced.

    Attributes:
        axis: the axis.
        parts: the numbers at each position of all windows, or of each window at all positions.
        by_window: whether they are of windows.
    """

    axis: int
    parts: list[tuple[slice, ...]]
    by_window: bool


class _Windows:
    """The windows of an equation.

    Args:
        equation: its parameters are the sizes of windows, strides and so on.
        given: the shape of the operand.
        shape: one number for each window.
    """

    def __init__(self, equation: Equation, given: Sequence[int], shape: Sequence[int]) -> None:
        parameters, ones = equation.params, (1,) * len(shape)
        self._given, self.shape = tuple(given), tuple(shape)
        self._sizes = parameters["window_dimensions"]
        self._strides = parameters["window_strides"]
        self._steps = parameters.get("window_dilation", ones)
        padding = [tuple(map(int, each)) for each in parameters["padding"]]
        dilation = parameters.get("base_dilation", ones)
        self._plain = not any(map(any, padding)) and all(each == 1 for each in dilation)
        whole, inner, outer = [], [], []
        for size, (low, high), step in zip(given, padding, dilation, strict=True):
            extent, before = max((size - 1) * step + 1, 0), max(low, 0)
            whole.append(before + extent + max(high, 0))
            inner.append(slice(before, before + extent, step))
            outer.append(slice(max(-low, 0), whole[-1] - max(-high, 0)))
        self._whole, self._inner, self._outer = tuple(whole), tuple(inner), tuple(outer)

    def padded(self, x: Any, value: Any) -> Any:
        """An operand with a value around it, and between elements if it is dilated."""
        if self._plain:
            return x
        made = np.full(self._whole, value, x.dtype)
        made[self._inner] = x
        return made[self._outer]

    def unpadded(self, x: Any) -> Any:
        """The elements of an operand, of what `padded` gave if no padding is negative."""
        return x if self._plain else x[self._inner]

    def positions(self) -> list[tuple[slice, ...]]:
        """The parts of a padded operand that are at the same position of each window, by rows."""
        if not all(self.shape):
            return []
        axes = [
            [self._at(axis, position) for position in range(size)]
            for axis, size in enumerate(self._sizes)
        ]
        return list(itertools.product(*axes))

    def axes(self) -> list[_Axis]:
        """The axes along which windows are reduced; that which leaves the fewest first."""
        found = []
        for axis, (size, count) in enumerate(zip(self._sizes, self.shape, strict=True)):
            before = (slice(None),) * axis
            if count < size:
                stride, step = self._strides[axis], self._steps[axis]
                extent = (size - 1) * step + 1
                starts = range(0, count * stride, stride)
                parts = [(*before, slice(at, at + extent, step)) for at in starts]
            else:
                parts = [(*before, self._at(axis, position)) for position in range(size)]
            if size > 1 or self._strides[axis] > 1:
                found.append(_Axis(axis, parts, count < size))
        return sorted(found, key=lambda each: self.shape[each.axis] / self._given[each.axis])

    def _at(self, axis: int, position: int) -> slice:
        start, stride = position * self._steps[axis], self._strides[axis]
        return slice(start, start + (self.shape[axis] - 1) * stride + 1, stride)


def _reduction(windows: _Windows, ufunc: Any) -> Function:
    """A function of padded operands that combines the numbers of each window, axis by axis."""
    if not all(windows.shape):
        return lambda x: np.empty(windows.shape, x.dtype)
    axes, over = windows.axes(), ufunc.reduce

    def run(x: Any) -> Any:
        for axis, parts, by_window in axes:
            if by_window:
                rows = [over(x[part], axis, x.dtype, None, True) for part in parts]
                x = rows[0] if len(rows) == 1 else np.concatenate(rows, axis)
                continue
            result = x[parts[0]]
            if len(parts) > 1:
                result = ufunc(result, x[parts[1]])
            for part in parts[2:]:
                ufunc(result, x[part], out=result)
            x = result
        return x

    return run


@arithmetic("reduce_window_sum")
def _window_sum(equation: Equation) -> Function:
    result = equation.result
    windows = _Windows(equation, equation.inputs[0].shape, result.shape)
    summed, zero = _reduction(windows, np.add), result.dtype.type(0)
    return lambda x: summed(windows.padded(x, 0)) + zero  # XLA begins with 0: never -0


@arithmetic("reduce_window_max", "reduce_window_min")
def _window_extreme(equation: Equation) -> Function:
    return _extreme_of_windows(equation.name == "reduce_window_max", equation)


def _extreme_of_windows(larger: bool, equation: Equation) -> Function:
    result = equation.outputs[0]
    windows = _Windows(equation, equation.inputs[0].shape, result.shape)
    outside = (least if larger else most)(result.dtype)
    found = _reduction(windows, np.maximum if larger else np.minimum)
    exact = of_extremes(larger, result.dtype, found)
    return lambda x: exact(windows.padded(x, outside))


@arithmetic("reduce_window")
def _reduce_window(equation: Equation) -> Function:
    name = combination(equation.params["jaxpr"])
    if name is None or equation.params["consts"] or len(equation.outputs) > 1:
        return compiled(equation)
    shape, dtype = equation.outputs[0]
    if name in ("max", "min"):
        extremes = _extreme_of_windows(name == "max", equation)
        join = extreme(name == "max", dtype)
        return lambda x, start: [join(extremes(x), start)]
    ufunc, windows = COMBINED[name], _Windows(equation, equation.inputs[0].shape, shape)
    found = _reduction(windows, ufunc)
    neutral = dtype.type({"mul": 1, "and": -1}.get(name, 0)) if dtype != np.bool_ else name == "and"
    return lambda x, start: [ufunc(start, found(windows.padded(x, neutral)))]


def _selection(equation: Equation, dtype: Any) -> tuple[Any, Any]:
    """Which of two numbers is kept, and the number that is around arrays."""
    if equation.params["select_prim"].name == "ge":
        return np.greater_equal, least(dtype)
    return np.less_equal, most(dtype)


@arithmetic("select_and_scatter_add")
def _select_and_scatter_add(equation: Equation) -> Function:
    source, result = equation.inputs[0], equation.result
    if result.dtype.kind not in "fiu":
        return compiled(equation)
    windows = _Windows(equation, result.shape, source.shape)
    keeps, outside = _selection(equation, result.dtype)
    parts = windows.positions()
    counted = np.dtype(np.uint8 if len(parts) <= 256 else np.int32)
    choose, bits = chosen_by_bits(result.dtype), f"i{result.dtype.itemsize}"

    def run(values: Any, x: Any) -> Any:
        x = windows.padded(x, outside)
        total = np.zeros(x.shape, result.dtype)
        if not parts:
            return windows.unpadded(total)
        best, chosen = x[parts[0]], np.zeros(source.shape, counted)
        for at, part in enumerate(parts[1:], 1):
            better = ~keeps(best, x[part])  # as of NaN
            best = choose(better, best, x[part])
            np.maximum(chosen, np.multiply(better, at, dtype=counted), out=chosen)
        given = values.view(bits)
        for at, part in enumerate(parts):
            mask = np.equal(chosen, at).astype(bits)
            np.negative(mask, out=mask)
            mask &= given
            total[part] += mask.view(result.dtype)
        return windows.unpadded(total)

    return run


@arithmetic("select_and_gather_add")
def _select_and_gather_add(equation: Equation) -> Function:
    result = equation.result
    windows = _Windows(equation, equation.inputs[0].shape, result.shape)
    keeps, _ = _selection(equation, result.dtype)
    outside = -np.inf if keeps is np.greater_equal else np.inf
    parts = windows.positions()  # which of equals XLA finds depends on the shape

    def run(tangents: Any, x: Any) -> Any:
        x, tangents = windows.padded(x, outside), windows.padded(tangents, 0)
        best = np.full(result.shape, outside, result.dtype)
        found = np.zeros(result.shape, result.dtype)
        for part in parts:
            better = ~keeps(best, x[part])
            np.copyto(best, x[part], where=better)
            np.copyto(found, tangents[part], where=better)
        return found

    return run
