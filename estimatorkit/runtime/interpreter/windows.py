"""Rules of windows: pooling, and its gradients.

Loops run over the positions within a window, or over windows where those are fewer.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from estimatorkit.runtime.interpreter.equations import Equation, Function
from estimatorkit.runtime.interpreter.order import extreme, least, most, of_extremes
from estimatorkit.runtime.interpreter.reductions import COMBINED, combination
from estimatorkit.runtime.interpreter.rules import arithmetic, compiled


class _Windows:
    """The windows of an equation.

    Attributes:
        shape: one number for each window.
    """

    def __init__(self, equation: Equation, shape: Sequence[int]) -> None:
        parameters, ones = equation.params, (1,) * len(shape)
        self.shape = tuple(shape)
        self.sizes = parameters["window_dimensions"]
        self.strides = parameters["window_strides"]
        self.steps = parameters.get("window_dilation", ones)
        self._padding = [tuple(map(int, each)) for each in parameters["padding"]]
        self._dilation = parameters.get("base_dilation", ones)
        self._plain = not any(map(any, self._padding)) and all(each == 1 for each in self._dilation)

    def padded(self, x: Any, value: Any) -> Any:
        """An array with a value around it, and between elements if it is dilated."""
        if self._plain:
            return x
        shape, inner, outer = [], [], []
        for size, (low, high), step in zip(x.shape, self._padding, self._dilation, strict=True):
            extent = max((size - 1) * step + 1, 0)
            before, after = max(low, 0), max(high, 0)
            shape.append(before + extent + after)
            inner.append(slice(before, before + extent, step))
            outer.append(slice(max(-low, 0), shape[-1] - max(-high, 0)))
        made = np.full(shape, value, x.dtype)
        made[tuple(inner)] = x
        return made[tuple(outer)]

    def unpadded(self, x: Any, shape: Sequence[int]) -> Any:
        """The elements that `padded` began with; there is no dilation."""
        if self._plain:
            return x
        if any(low < 0 or high < 0 for low, high in self._padding):
            whole = np.zeros(shape, x.dtype)
            to, of = [], []
            for size, (low, high) in zip(shape, self._padding, strict=True):
                to.append(slice(max(-low, 0), size - max(-high, 0)))
                of.append(slice(max(low, 0), max(low, 0) + len(range(size)[to[-1]])))
            whole[tuple(to)] = x[tuple(of)]
            return whole
        starts = [low for low, _ in self._padding]
        return x[tuple(map(slice, starts, map(int.__add__, starts, shape)))]

    def at(self, axis: int, position: int) -> slice:
        """What is at a position of each window, along an axis."""
        start, stride = position * self.steps[axis], self.strides[axis]
        return slice(start, start + (self.shape[axis] - 1) * stride + 1, stride)

    def positions(self) -> list[tuple[slice, ...]]:
        """The parts of an array that are at the same position of each window, by rows."""
        if not all(self.shape):
            return []
        axes = [
            [self.at(axis, position) for position in range(size)]
            for axis, size in enumerate(self.sizes)
        ]
        return list(itertools.product(*axes))


def _reduced(windows: _Windows, x: Any, ufunc: Any) -> Any:
    """The numbers of each window, combined along one axis after the other."""
    if not all(windows.shape):
        return np.empty(windows.shape, x.dtype)
    over = ufunc.reduce
    # what leaves the fewest numbers is first
    axes = sorted(range(x.ndim), key=lambda axis: windows.shape[axis] / max(x.shape[axis], 1))
    for axis in axes:
        size, count = windows.sizes[axis], windows.shape[axis]
        before = (slice(None),) * axis
        if count < size:
            stride, step = windows.strides[axis], windows.steps[axis]
            extent = (size - 1) * step + 1
            rows = [slice(at * stride, at * stride + extent, step) for at in range(count)]
            parts = [over(x[(*before, row)], axis, x.dtype, keepdims=True) for row in rows]
            x = parts[0] if count == 1 else np.concatenate(parts, axis)
            continue
        result = x[(*before, windows.at(axis, 0))]
        for position in range(1, size):
            part = x[(*before, windows.at(axis, position))]
            result = ufunc(result, part) if position == 1 else ufunc(result, part, out=result)
        x = result
    return x


@arithmetic("reduce_window_sum")
def _window_sum(equation: Equation) -> Function:
    windows = _Windows(equation, equation.result.shape)
    zero = equation.result.dtype.type(0)
    return lambda x: _reduced(windows, windows.padded(x, 0), np.add) + zero


@arithmetic("reduce_window_max", "reduce_window_min")
def _window_extreme(equation: Equation) -> Function:
    larger = equation.name == "reduce_window_max"
    return _extreme_of_windows(larger, equation)


def _extreme_of_windows(larger: bool, equation: Equation) -> Function:
    aval = equation.outputs[0]
    windows = _Windows(equation, aval.shape)
    outside, ufunc = (least, np.maximum) if larger else (most, np.minimum)

    def run(x: Any) -> Any:
        return _reduced(windows, windows.padded(x, outside(x.dtype)), ufunc)

    return of_extremes(larger, aval.dtype, run)


@arithmetic("reduce_window")
def _reduce_window(equation: Equation) -> Function:
    name = combination(equation.params["jaxpr"])
    if name is None or equation.params["consts"] or len(equation.outputs) > 1:
        return compiled(equation)
    dtype = equation.outputs[0].dtype
    if name in ("max", "min"):
        found = _extreme_of_windows(name == "max", equation)
        join = extreme(name == "max", dtype)
        return lambda x, start: [join(found(x), start)]
    windows, ufunc = _Windows(equation, equation.outputs[0].shape), COMBINED[name]
    neutral = dtype.type({"mul": 1, "and": -1}.get(name, 0)) if dtype != np.bool_ else name == "and"

    def run(x: Any, start: Any) -> list[Any]:
        return [ufunc(start, _reduced(windows, windows.padded(x, neutral), ufunc))]

    return run


def _selection(equation: Equation, dtype: Any) -> tuple[Any, Any]:
    """Which of two numbers is kept, and the number that is around arrays."""
    if equation.params["select_prim"].name == "ge":
        return np.greater_equal, least(dtype)
    return np.less_equal, most(dtype)


@arithmetic("select_and_scatter_add")
def _select_and_scatter_add(equation: Equation) -> Function:
    source, result = equation.inputs[0], equation.result
    windows = _Windows(equation, source.shape)
    keeps, outside = _selection(equation, result.dtype)
    parts = windows.positions()
    counted = np.uint8 if len(parts) <= 256 else np.int32

    def run(values: Any, x: Any) -> Any:
        x = windows.padded(x, outside)
        total = np.zeros(x.shape, result.dtype)
        if not parts:
            return windows.unpadded(total, result.shape)
        best, chosen = x[parts[0]].copy(), np.zeros(source.shape, counted)
        for at, part in enumerate(parts[1:], 1):
            other = x[part]
            better = ~keeps(best, other)  # as of NaN
            np.copyto(best, other, where=better)
            np.copyto(chosen, at, where=better)
        for at, part in enumerate(parts):
            total[part] += np.where(chosen == at, values, 0)
        return windows.unpadded(total, result.shape)

    return run


@arithmetic("select_and_gather_add")
def _select_and_gather_add(equation: Equation) -> Function:
    result = equation.result
    windows = _Windows(equation, result.shape)
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
