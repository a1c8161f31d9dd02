"""Rules of gathers and slices at computed places."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from estimatorkit.runtime.interpreter.equations import Equation, Function
from estimatorkit.runtime.interpreter.places import (
    Windows,
    bases,
    integers,
    inverse,
    of_gather,
    slicing,
    within,
)
from estimatorkit.runtime.interpreter.rules import rule
from estimatorkit.runtime.interpreter.updates import Target, updating


@rule("gather")
def _gather(equation: Equation) -> Function:
    windows, shape = of_gather(equation), equation.result.shape
    if math.prod(shape) == 0:
        return lambda *_: np.empty(shape, equation.result.dtype)
    fill = _fill(equation)
    if windows.number == 1 and not windows.batches:
        return _one_window(windows, equation, fill)
    axis = _only_axis(windows)
    if axis is not None:
        return _taken(windows, equation, fill, axis)
    between, order = (*windows.indices, *windows.window), inverse(windows.order)
    if windows.is_of_rows():
        rows, offsets = (-1, *windows.operand[windows.leading :]), None
        find = bases(windows, equation.inputs[1], math.prod(rows[1:]))
    else:
        rows, offsets = (-1,), windows.offsets()
        find = bases(windows, equation.inputs[1])
    same = order == tuple(range(len(order)))

    def run(x: Any, indices: Any) -> Any:
        first, inside = find(indices)
        places = first if offsets is None else first[..., None] + offsets
        found = x.reshape(rows).take(places, 0)
        if inside is not None:
            found[~inside] = fill
        found = found.reshape(between)
        return found if same else found.transpose(order)

    return run


def _fill(equation: Equation) -> Any:
    """What a window outside the operand holds; None if there is none."""
    dtype, value = equation.result.dtype, equation.params["fill_value"]
    if value is not None and dtype.type is np.void:  # random keys, whose words all have the value
        return np.full(dtype.itemsize // 4, value, np.uint32).view(dtype).reshape(())
    return None if value is None else np.asarray(value).astype(dtype)


def _only_axis(windows: Windows) -> int | None:
    """The only dimension that is indexed; the others are whole, and in the result it is gone."""
    if len(windows.starts) != 1 or windows.batches or len(windows.kept) == len(windows.operand):
        return None
    (axis,) = windows.starts
    others = [at for at in range(len(windows.operand)) if at != axis]
    whole = all(windows.sizes[at] == windows.operand[at] for at in others)
    return axis if whole and list(windows.kept) == others else None


def _taken(windows: Windows, equation: Equation, fill: Any, axis: int) -> Function:
    """Takes along an axis."""
    lead, rank = len(windows.indices), len(equation.result.shape)
    natural = (*range(axis, axis + lead), *range(axis), *range(axis + lead, rank))
    order = tuple(natural[at] for at in inverse(windows.order))
    same = order == tuple(range(rank))
    if windows.clamp and same:  # NumPy clamps in a third of the time
        whole = integers(windows, equation.inputs[1].dtype)
        return lambda x, indices: x.take(whole(indices[..., 0]), axis, mode="clip")
    find = bases(windows, equation.inputs[1], math.prod(windows.operand[axis + 1 :]))
    mask_shape = (*[1] * axis, *windows.indices, *[1] * (rank - lead - axis))

    def run(x: Any, indices: Any) -> Any:
        first, inside = find(indices)
        found = x.take(first, axis)
        if inside is not None:
            found = np.where(inside.reshape(mask_shape), found, fill)
        return found if same else found.transpose(order)

    return run


def _one_window(windows: Windows, equation: Equation, fill: Any) -> Function:
    """A single window, which is a slice."""
    shape, dtype = equation.result
    cut = slicing(windows.operand, windows.sizes)
    limits, starts = windows.limits, windows.starts
    wraps = windows.wraps and equation.inputs[1].dtype.itemsize >= 4
    if fill is None and len(starts) == 1 and not wraps:
        (axis,), (limit,) = starts, limits
        size, index = windows.sizes[axis], [slice(each) for each in windows.sizes]
        before, after = index[:axis], index[axis + 1 :]

        def cut_one(x: Any, indices: Any) -> Any:
            at = min(max(indices.item(), 0), limit)
            return x[(*before, slice(at, at + size), *after)].reshape(shape)

        return cut_one

    def run(x: Any, indices: Any) -> Any:
        given = indices.astype(np.int32) if wraps else indices
        first = given.reshape(-1).tolist()
        if fill is not None and not within(first, limits):
            return np.full(shape, fill, dtype)
        places = [0] * len(windows.operand)
        for dim, at in zip(starts, first, strict=True):
            places[dim] = at
        return x[cut(places)].reshape(shape)

    return run


@rule("dynamic_slice")
def _dynamic_slice(equation: Equation) -> Function:
    cut = slicing(equation.inputs[0].shape, equation.result.shape)
    return lambda x, *starts: x[cut(starts)]


@rule("dynamic_update_slice")
def _dynamic_update_slice(equation: Equation) -> Function:
    operand, update = equation.inputs[:2]
    cut = slicing(operand.shape, update.shape)

    def making(target: Target) -> Function:
        def run(x: Any, update: Any, *starts: Any) -> Any:
            changed = target(x)
            changed[cut(starts)] = update
            return changed

        return run

    return updating(making)


__all__: list[str] = []
