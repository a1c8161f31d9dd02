"""Rules of bits and of types: shifts, counts, casts, the total order of floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.runtime.interpreter.equations import Equation, Function
from estimatorkit.runtime.interpreter.order import ordered
from estimatorkit.runtime.interpreter.rules import NARROW, arithmetic, rule


def _unsigned(dtype: Any) -> Any:
    return np.dtype(f"u{dtype.itemsize}")


rule("shift_left")(lambda _: np.left_shift)
rule("shift_right_arithmetic")(lambda equation: _shift_right(equation, "i"))
rule("shift_right_logical")(lambda equation: _shift_right(equation, "u"))


def _shift_right(equation: Equation, kind: str) -> Function:
    dtype = equation.result.dtype
    if dtype.kind == kind:
        return np.right_shift
    seen = f"{kind}{dtype.itemsize}"
    return lambda x, count: np.right_shift(x.view(seen), count.view(seen)).view(dtype)


@rule("population_count")
def _population_count(equation: Equation) -> Function:
    dtype, seen = equation.result.dtype, _unsigned(equation.result.dtype)
    return lambda x: np.bitwise_count(x.view(seen)).astype(dtype)


@rule("clz")
def _clz(equation: Equation) -> Function:
    dtype, seen = equation.result.dtype, _unsigned(equation.result.dtype)
    width = dtype.itemsize * 8

    def run(x: Any) -> Any:
        left = x.view(seen)
        shift = 1
        while shift < width:  # ones follow the first one
            left = left | (left >> seen.type(shift))
            shift *= 2
        return (width - np.bitwise_count(left)).astype(dtype)

    return run


@rule("convert_element_type")
def _convert(equation: Equation) -> Function:
    return conversion(equation.inputs[0].dtype, np.dtype(equation.params["new_dtype"]))


def conversion(given: Any, wanted: Any) -> Function:
    """A function that converts arrays of a dtype to another; floats are clipped to integers."""
    if given == wanted:
        return lambda x: x
    if wanted == np.bool_:
        return lambda x: x != 0
    if given.kind == "c" and wanted.kind != "c":
        of_real = conversion(np.dtype(f"f{given.itemsize // 2}"), wanted)
        return lambda x: of_real(x.real)
    if wanted.kind not in "iu" or given.kind in "iub":
        return lambda x: x.astype(wanted)
    wide = np.dtype(np.float32) if given in NARROW else given
    return _clipping(wide, wanted)


def _clipping(given: Any, wanted: Any) -> Function:
    least, most = np.iinfo(wanted).min, np.iinfo(wanted).max
    # floats that are powers of two: exact, the highest not included
    low, high = given.type(least), given.type(float(most) + (1 if wanted.itemsize < 8 else 0))

    def run(x: Any) -> Any:
        x = np.trunc(np.asarray(x, given))
        inside = (x >= low) & (x < high)
        if inside.all():
            return x.astype(wanted)
        converted = np.where(inside, x, 0).astype(wanted)
        converted = np.where(x >= high, wanted.type(most), converted)
        return np.where(x < low, wanted.type(least), converted)

    return run


@rule("bitcast_convert_type")
def _bitcast(equation: Equation) -> Function:
    given, result = equation.inputs[0], equation.result
    shape, dtype = result.shape, np.dtype(equation.params["new_dtype"])
    if given.dtype.itemsize == dtype.itemsize:
        return lambda x: x.view(dtype)
    wider = given.dtype.itemsize < dtype.itemsize

    def run(x: Any) -> Any:
        x = np.ascontiguousarray(x)
        return (x if wider else x.reshape(*given.shape, 1)).view(dtype).reshape(shape)

    return run


@arithmetic("reduce_precision")
def _reduce_precision(equation: Equation) -> Function:
    exponent, mantissa = equation.params["exponent_bits"], equation.params["mantissa_bits"]
    dtype, info = equation.result.dtype, np.finfo(equation.result.dtype)
    if exponent >= info.nexp and mantissa >= info.nmant:
        return lambda x: x
    seen = _unsigned(dtype)
    cut = max(info.nmant - mantissa, 0)
    half = seen.type((1 << cut >> 1) - 1 if cut else 0)
    last, keep = seen.type(cut), np.invert(seen.type((1 << cut) - 1))
    sign = seen.type(1 << (dtype.itemsize * 8 - 1))
    bias, own = (1 << (exponent - 1)) - 1, (1 << (info.nexp - 1)) - 1
    most = seen.type(own + bias) << seen.type(info.nmant)
    least = seen.type(own - bias) << seen.type(info.nmant)
    exponents = seen.type((1 << info.nexp) - 1) << seen.type(info.nmant)
    one = seen.type(1)

    def run(x: Any) -> Any:
        bits = np.asarray(x).view(seen)
        if cut:  # to the nearest, ties to even
            bits = (bits + half + ((bits >> last) & one)) & keep
        if exponent < info.nexp:
            signs, size = bits & sign, bits & exponents
            bits = np.where(size > most, signs | exponents, bits)
            bits = np.where(size <= least, signs, bits)
        return np.where(np.isnan(x), x, bits.view(dtype))

    return run


@rule("eq_to", "lt_to", "le_to")
def _total_order(equation: Equation) -> Function:
    compare = {"eq_to": np.equal, "lt_to": np.less, "le_to": np.less_equal}[equation.name]
    dtype = equation.inputs[0].dtype
    if dtype.kind in "iub":
        return compare
    return lambda a, b: compare(ordered(a), ordered(b))
