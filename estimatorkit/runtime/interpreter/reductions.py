"""Rules of reductions."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from estimatorkit.runtime.interpreter.equations import Equation, Function
from estimatorkit.runtime.interpreter.order import extreme, least, most, of_extremes
from estimatorkit.runtime.interpreter.rules import arithmetic, compiled, rule

LONG = 2048
"""Numbers from which NumPy's sum over an axis that is not the last is of parts: it adds them one
by one, and the error of a million float32 is 2e-5 instead of 7e-7."""


@arithmetic("reduce_sum")
def _reduce_sum(equation: Equation) -> Function:
    return summed(tuple(equation.params["axes"]), equation.inputs[0].shape, equation.result.dtype)


def summed(axes: tuple[int, ...], shape: Sequence[int], dtype: Any) -> Function:
    """A function that adds elements of arrays of a shape, over axes."""
    if not axes:
        return lambda x: x
    reduce: Any = np.add.reduce
    kind = None if dtype.kind in "fc" else dtype

    def add(x: Any) -> Any:
        return reduce(x, axes, kind, None, False, 0)  # XLA begins with 0: never -0

    if dtype.kind in "iu":
        return add
    count = math.prod(shape[axis] for axis in axes)
    first, last = min(axes), max(axes)
    neighbours = last - first + 1 == len(axes)
    if count < LONG or last == len(shape) - 1 or not neighbours:
        return add
    part = 1 << (count.bit_length() // 2)
    whole = count // part
    merged = (*shape[:first], count, *shape[last + 1 :])
    before = (slice(None),) * first
    head, tail = (*before, slice(whole * part)), (*before, slice(whole * part, None))
    split = (*shape[:first], whole, part, *shape[last + 1 :])

    def in_parts(x: Any) -> Any:
        rows = x.reshape(merged)
        sums = reduce(rows[head].reshape(split), first + 1)
        total = reduce(sums, first, None, None, False, 0)
        if whole * part < count:
            total += reduce(rows[tail], first)
        return total

    return in_parts


@arithmetic("reduce_prod")
def _reduce_prod(equation: Equation) -> Function:
    axes, dtype = tuple(equation.params["axes"]), equation.result.dtype
    return lambda x: np.multiply.reduce(x, axis=axes, dtype=dtype)


@arithmetic("reduce_max", "reduce_min")
def _reduce_extreme(equation: Equation) -> Function:
    axes = tuple(equation.params["axes"])
    return _extremes(equation.name == "reduce_max", axes, equation)


def _extremes(larger: bool, axes: tuple[int, ...], equation: Equation) -> Function:
    result = equation.outputs[0]
    if not math.prod(equation.inputs[0].shape[axis] for axis in axes):
        value = (least if larger else most)(result.dtype)
        return lambda x: np.full(result.shape, value, result.dtype)
    function = np.maximum.reduce if larger else np.minimum.reduce
    return of_extremes(larger, result.dtype, functools.partial(function, axis=axes))


def _bitwise(ufunc: Any, logical: Any) -> None:
    @rule(f"reduce_{ufunc.__name__.removeprefix('bitwise_')}")
    def made(equation: Equation) -> Function:
        axes = tuple(equation.params["axes"])
        function = logical if equation.result.dtype == np.bool_ else ufunc
        return functools.partial(function.reduce, axis=axes)


_bitwise(np.bitwise_and, np.logical_and)
_bitwise(np.bitwise_or, np.logical_or)
_bitwise(np.bitwise_xor, np.logical_xor)


@arithmetic("argmax", "argmin")
def _arg(equation: Equation) -> Function:
    (axis,) = equation.params["axes"]
    dtype = equation.params["index_dtype"]
    if equation.name == "argmax":
        return lambda x: x.argmax(axis).astype(dtype)
    return lambda x: x.argmin(axis).astype(dtype)


COMBINED = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
"""What combines two numbers in a reduction, by the name of the primitive."""


def combination(jaxpr: Any) -> str | None:
    """The primitive that a function of two numbers consists of; None if it is not one of those."""
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    if len(jaxpr.eqns) != 1 or len(jaxpr.invars) != 2 or jaxpr.constvars:
        return None
    (only,) = jaxpr.eqns
    name: str = only.primitive.name
    if name not in COMBINED or only.outvars != jaxpr.outvars:
        return None
    return name if only.invars in (jaxpr.invars, jaxpr.invars[::-1]) else None


@arithmetic("reduce")
def _reduce(equation: Equation) -> Function:
    name = combination(equation.params["jaxpr"])
    if name is None:
        return compiled(equation)
    axes, dtype = tuple(equation.params["dimensions"]), equation.outputs[0].dtype
    if name in ("max", "min"):
        larger = name == "max"
        found, join = _extremes(larger, axes, equation), extreme(larger, dtype)
        return lambda x, start: [join(found(x), start)]
    if name == "add":
        total = summed(axes, equation.inputs[0].shape, dtype)
        return lambda x, start: [start + total(x)]
    ufunc = COMBINED[name]
    return lambda x, start: [ufunc(start, ufunc.reduce(x, axis=axes, dtype=dtype))]
