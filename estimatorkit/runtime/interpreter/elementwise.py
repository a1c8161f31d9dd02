"""Rules of elementwise functions that NumPy has, of comparisons, and of choices."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.runtime.interpreter.equations import Equation, Function
from estimatorkit.runtime.interpreter.rules import NARROW, arithmetic, compiled, rule, ufuncs

ufuncs(
    {
        "abs": np.abs,
        "acos": np.arccos,
        "acosh": np.arccosh,
        "add": np.add,
        "add_any": np.add,
        "add_jaxvals": np.add,
        "asin": np.arcsin,
        "asinh": np.arcsinh,
        "atan": np.arctan,
        "atanh": np.arctanh,
        "cbrt": np.cbrt,
        "ceil": np.ceil,
        "cos": np.cos,
        "cosh": np.cosh,
        "eq": np.equal,
        "exp": np.exp,
        "expm1": np.expm1,
        "floor": np.floor,
        "ge": np.greater_equal,
        "gt": np.greater,
        "is_finite": np.isfinite,
        "le": np.less_equal,
        "log": np.log,
        "log1p": np.log1p,
        "lt": np.less,
        "mul": np.multiply,
        "ne": np.not_equal,
        "neg": np.negative,
        "sin": np.sin,
        "sinh": np.sinh,
        "sqrt": np.sqrt,
        "square": np.square,
        "sub": np.subtract,
        "tan": np.tan,
        "tanh": np.tanh,
    }
)
rule("and")(lambda _: np.bitwise_and)
rule("or")(lambda _: np.bitwise_or)
rule("xor")(lambda _: np.bitwise_xor)
rule("not")(lambda _: np.invert)
rule("real")(lambda _: np.real)
rule("imag")(lambda _: np.imag)


@rule("conj")
def _conj(equation: Equation) -> Function:
    wanted = equation.result.dtype
    return lambda x: np.conj(x).astype(wanted, copy=False)


@rule("complex")
def _complex(equation: Equation) -> Function:
    result = equation.result

    def run(real: Any, imag: Any) -> Any:
        made = np.empty(result.shape, result.dtype)
        made.real, made.imag = real, imag
        return made

    return run


@arithmetic("exp2")
def _exp2(equation: Equation) -> Function:
    if equation.result.dtype.kind == "c":
        logarithm = np.log(np.asarray(2, equation.result.dtype))
        return lambda x: np.exp(x * logarithm)
    return np.exp2


@arithmetic("atan2")
def _atan2(equation: Equation) -> Function:
    return compiled(equation) if equation.result.dtype.kind == "c" else np.arctan2


@arithmetic("logistic")
def _logistic(equation: Equation) -> Function:
    if equation.result.shape == () or equation.result.dtype.kind == "c":
        return lambda x: 1 / (1 + np.exp(-x))
    one = np.ones((), equation.result.dtype)  # saves NumPy a conversion: 0.2 us

    def run(x: Any) -> Any:
        value = np.negative(x)
        np.exp(value, value)
        np.add(value, one, value)
        return np.reciprocal(value, value)

    return run


@arithmetic("rsqrt")
def _rsqrt(equation: Equation) -> Function:
    one = equation.result.dtype.type(1)
    return lambda x: one / np.sqrt(x)


@rule("nextafter")
def _nextafter(equation: Equation) -> Function:
    if equation.result.dtype.itemsize > 2:
        return np.nextafter
    return lambda x, y: np.where(x == y, y, np.nextafter(x, y))  # of zeros, the second


MANY = 1 << 12
"""Elements from which numbers are chosen by operations of their bits: NumPy's `where` branches, and
takes 10 times as long for half a million where neither case prevails."""


def chosen_by_bits(dtype: Any) -> Function:
    """A function like `select_n`, of booleans and two arrays of numbers, which are of the booleans'
    shape or are broadcast to it."""
    kind = f"i{dtype.itemsize}"

    def run(which: Any, no: Any, yes: Any) -> Any:
        if not any(which.strides):  # one boolean
            return np.broadcast_to(yes if which.item(0) else no, which.shape).copy()
        mask = which.astype(kind)
        np.negative(mask, mask)
        first = no.view(kind)
        mask &= first ^ yes.view(kind)
        mask ^= first
        return mask.view(dtype)

    return run


@rule("select_n")
def _select(equation: Equation) -> Function:
    given, shape = equation.inputs[0], equation.result.shape
    cases = len(equation.inputs) - 1
    if cases == 1:
        return lambda _, only: only
    if not given.shape:
        # a copy: `ownership` counts on memory of its own
        return lambda which, *operands: operands[min(max(int(which), 0), cases - 1)].copy()
    if given.dtype == np.bool_:
        dtype = equation.result.dtype
        is_number = dtype.kind in "fiub" or dtype in NARROW
        if is_number and given.shape == shape and equation.result.size >= MANY:
            return chosen_by_bits(dtype)
        return lambda which, no, yes: np.where(which, yes, no)

    def choose(which: Any, *operands: Any) -> Any:
        chosen = np.array(np.broadcast_to(operands[0], shape))
        for at, case in enumerate(operands[1:], 1):
            mask = which >= at if at == cases - 1 else which == at  # beyond the last is the last
            np.copyto(chosen, case, where=mask)
        return chosen

    return choose
