"""Rules of scatters.

Updates are applied in the order of their indices, as XLA does on CPUs: the last of several windows
at one place wins, and sums are rounded alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from estimatorkit.runtime.interpreter.equations import Equation, Function
from estimatorkit.runtime.interpreter.places import Windows, bases, of_scatter, slicing, within
from estimatorkit.runtime.interpreter.rules import arithmetic, compiled, rule
from estimatorkit.runtime.interpreter.updates import Target, updating

_ROWS = 1 << 12
"""Elements of updates from which rows are added as a sparse matrix product: 10,000 rows of 64
floats take 0.1 ms, and 0.8 ms one element at a time (`np.add.at`; by rows, 4 ms)."""

_Apply = Callable[[Any, Any, Any], None]
"""Applies updates `(windows, elements)` at numbered rows `(windows,)` of a matrix, in place."""


def _scatter(equation: Equation, ufunc: Any) -> Function:
    """A scatter that combines by a ufunc; None replaces."""
    windows, updates = of_scatter(equation), equation.inputs[2]
    if updates.size == 0:
        return lambda x, *_: x
    if windows.number == 1 and not windows.batches:
        return _one_window(windows, ufunc)
    count, rows = windows.number, windows.is_of_rows()
    whole = math.prod(windows.window)
    find = bases(windows, equation.inputs[1], whole if rows else 1)
    order = windows.order
    moved = order != tuple(range(len(order)))
    apply = _apply(ufunc, equation, whole) if rows else _elementwise(ufunc)
    offsets = None if rows else windows.offsets()

    def making(target: Target) -> Function:
        def run(x: Any, indices: Any, values: Any) -> Any:
            first, inside = find(indices)
            first = first.reshape(-1)
            if moved:
                values = values.transpose(order)
            values = values.reshape(count, whole)
            if inside is not None:
                kept = np.flatnonzero(inside)
                first, values = first[kept], values[kept]
            changed = target(x)
            if offsets is None:
                apply(changed.reshape(-1, whole), first, values)
            else:
                apply(changed.reshape(-1, 1), (first[:, None] + offsets).reshape(-1), values)
            return changed

        return run

    return updating(making)


def _one_window(windows: Windows, ufunc: Any) -> Function:
    cut, sizes = slicing(windows.operand, windows.sizes), windows.sizes
    limits, starts = windows.limits, windows.starts

    def making(target: Target) -> Function:
        def run(x: Any, indices: Any, values: Any) -> Any:
            first = indices.reshape(-1).tolist()
            if not windows.clamp and not within(first, limits):
                return x
            places = [0] * len(sizes)
            for dim, at in zip(starts, first, strict=True):
                places[dim] = at
            index, changed = cut(places), target(x)
            values = values.reshape(sizes)
            changed[index] = values if ufunc is None else ufunc(changed[index], values)
            return changed

        return run

    return updating(making)


def _elementwise(ufunc: Any) -> _Apply:
    def apply(matrix: Any, places: Any, values: Any) -> None:
        flat = matrix.reshape(-1)
        width = matrix.shape[1]
        if width != 1:
            places = (places[:, None] * width + np.arange(width)).reshape(-1)
        if ufunc is None:
            flat[places] = values.reshape(-1)
        else:
            ufunc.at(flat, places, values.reshape(-1))

    return apply


def _apply(ufunc: Any, equation: Equation, width: int) -> _Apply:
    """How whole rows are scattered."""
    if ufunc is None:

        def replace(matrix: Any, places: Any, values: Any) -> None:
            matrix[places] = values

        return replace
    operand, updates = equation.result, equation.inputs[2]
    sums = ufunc in (np.add, np.subtract) and operand.dtype.kind in "fciu"
    if not sums or width == 1 or updates.size < _ROWS or max(operand.size, updates.size) > 2**31:
        return _elementwise(ufunc)
    from scipy.sparse import _sparsetools

    product: Any = _sparsetools.csc_matvecs
    sign = operand.dtype.type(1 if ufunc is np.add else -1)

    def add(matrix: Any, places: Any, values: Any) -> None:
        count = len(places)
        product(
            len(matrix),
            count,
            width,
            np.arange(count + 1, dtype=np.int32),
            places.astype(np.int32),
            np.full(count, sign),
            np.ravel(values),
            matrix.reshape(-1),
        )

    return add


rule("scatter")(lambda equation: _replacing(equation))
arithmetic("scatter_add", "scatter-add")(lambda equation: _scatter(equation, np.add))
arithmetic("scatter_sub", "scatter-sub")(lambda equation: _scatter(equation, np.subtract))
arithmetic("scatter_mul", "scatter-mul")(lambda equation: _scatter(equation, np.multiply))
arithmetic("scatter_min", "scatter-min")(lambda equation: _scatter(equation, np.minimum))
arithmetic("scatter_max", "scatter-max")(lambda equation: _scatter(equation, np.maximum))


def _replacing(equation: Equation) -> Function:
    update = equation.params["update_jaxpr"]
    if update is not None and update.eqns:  # `scatter_apply`
        return compiled(equation)
    return _scatter(equation, None)


__all__: list[str] = []
