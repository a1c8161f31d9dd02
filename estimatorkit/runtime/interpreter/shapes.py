"""Rules of primitives that rearrange elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.runtime.interpreter.equations import Equation, Function
from estimatorkit.runtime.interpreter.rules import rule


@rule("reshape")
def _reshape(equation: Equation) -> Function:
    shape, order = equation.result.shape, equation.params.get("dimensions")
    if order is not None:
        return lambda x: np.transpose(x, order).reshape(shape)
    return lambda x, *_: x.reshape(shape)


@rule("broadcast_in_dim")
def _broadcast_in_dim(equation: Equation) -> Function:
    (shape, dtype), given = equation.result, equation.inputs[0].shape
    between, strides = [1] * len(shape), [0] * len(shape)
    stride = dtype.itemsize
    for at, size in reversed(
        list(zip(equation.params["broadcast_dimensions"], given, strict=True))
    ):
        between[at] = size
        strides[at] = 0 if size == 1 else stride
        stride *= size
    if tuple(between) == shape:
        return lambda x, *_: x.reshape(shape)
    if 0 in shape:
        return lambda *_: np.empty(shape, dtype)

    def run(x: Any, *_: Any) -> Any:
        if x.flags.c_contiguous:  # in a fifth of the time of `broadcast_to`
            return np.ndarray(shape, dtype, x, 0, strides)
        return np.broadcast_to(x.reshape(between), shape)

    return run


@rule("squeeze", "expand_dims")
def _of_shape(equation: Equation) -> Function:
    shape = equation.result.shape
    return lambda x: x.reshape(shape)


@rule("transpose")
def _transpose(equation: Equation) -> Function:
    order = equation.params["permutation"]
    return lambda x: x.transpose(order)


@rule("rev")
def _rev(equation: Equation) -> Function:
    axes = equation.params["dimensions"]
    return lambda x: np.flip(x, axes)


@rule("slice")
def _slice(equation: Equation) -> Function:
    parameters = equation.params
    starts, limits = parameters["start_indices"], parameters["limit_indices"]
    steps = parameters["strides"] or [1] * len(starts)
    index = tuple(map(slice, starts, limits, steps))
    return lambda x: x[index]


@rule("pad")
def _pad(equation: Equation) -> Function:
    result, given = equation.result, equation.inputs[0].shape
    padding = [tuple(map(int, each)) for each in equation.params["padding_config"]]
    to, of = [], []
    for (low, _, inner), size, whole in zip(padding, given, result.shape, strict=True):
        step = inner + 1
        first = max(0, -(low // step)) if low < 0 else 0
        start = low + first * step
        count = max(0, min(size - first, -((start - whole) // step) if whole > start else 0))
        of.append(slice(first, first + count))
        to.append(slice(start, start + count * step, step))
    into, part = tuple(to), tuple(of)

    def run(x: Any, value: Any) -> Any:
        padded = np.full(result.shape, value, result.dtype)
        padded[into] = x[part]
        return padded

    return run


@rule("concatenate")
def _concatenate(equation: Equation) -> Function:
    axis = equation.params["dimension"]
    return lambda *pieces: np.concatenate(pieces, axis)


@rule("tile")
def _tile(equation: Equation) -> Function:
    counts = equation.params["reps"]
    return lambda x: np.tile(x, counts)


@rule("stack")
def _stack(equation: Equation) -> Function:
    axis = equation.params["axis"]
    return lambda *pieces: np.stack(pieces, axis)


@rule("unstack")
def _unstack(equation: Equation) -> Function:
    axis = equation.params["axis"]
    return lambda x: list(np.moveaxis(x, axis, 0))


@rule("split")
def _split(equation: Equation) -> Function:
    axis, sizes = equation.params["axis"], equation.params["sizes"]
    ends = np.cumsum(sizes).tolist()
    before = (slice(None),) * axis
    parts = [(*before, slice(end - size, end)) for size, end in zip(sizes, ends, strict=True)]
    return lambda x: [x[part] for part in parts]


@rule("iota")
def _iota(equation: Equation) -> Function:
    result, axis = equation.result, equation.params["dimension"]
    shape = [1] * len(result.shape)
    shape[axis] = -1
    values = np.arange(result.shape[axis]).astype(result.dtype).reshape(shape)
    return lambda *_: np.broadcast_to(values, result.shape)


@rule("size")
def _size(equation: Equation) -> Function:
    value = np.asarray(equation.params["size"], equation.result.dtype)
    return lambda: value


@rule("empty", "empty2")
def _empty(equation: Equation) -> Function:
    result = equation.result
    return lambda *_: np.zeros(result.shape, result.dtype)
