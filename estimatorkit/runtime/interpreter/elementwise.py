"""Rules of elementwise primitives."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.runtime.interpreter.equations import Equation, Function
from estimatorkit.runtime.interpreter.rules import arithmetic, rule, ufuncs


def _logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


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
        "atan2": np.arctan2,
        "atanh": np.arctanh,
        "cbrt": np.cbrt,
        "ceil": np.ceil,
        "conj": np.conj,
        "cos": np.cos,
        "cosh": np.cosh,
        "eq": np.equal,
        "exp": np.exp,
        "exp2": np.exp2,
        "expm1": np.expm1,
        "floor": np.floor,
        "ge": np.greater_equal,
        "gt": np.greater,
        "is_finite": np.isfinite,
        "le": np.less_equal,
        "log": np.log,
        "log1p": np.log1p,
        "logistic": _logistic,
        "lt": np.less,
        "max": np.maximum,
        "min": np.minimum,
        "mul": np.multiply,
        "ne": np.not_equal,
        "neg": np.negative,
        "pow": np.power,
        "rsqrt": _rsqrt,
        "sign": np.sign,
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


@arithmetic("div")
def _div(equation: Equation) -> Function:
    if equation.result.dtype.kind in "fc":
        return np.divide
    raise NotImplementedError


@arithmetic("integer_pow")
def _integer_pow(equation: Equation) -> Function:
    exponent, dtype = equation.params["y"], equation.result.dtype
    if exponent == 2:
        return np.square
    if exponent == -1:
        return np.reciprocal
    return lambda x: np.power(x, np.asarray(exponent, dtype))


@rule("select_n")
def _select(equation: Equation) -> Function:
    if equation.inputs[0].dtype != np.bool_:
        shape = equation.result.shape

        def choose(which: Any, *cases: Any) -> Any:
            return np.choose(np.broadcast_to(which, shape), cases)

        return choose
    return lambda which, no, yes: np.where(which, yes, no)


@arithmetic("clamp")
def _clamp(equation: Equation) -> Function:
    return lambda low, x, high: np.minimum(np.maximum(low, x), high)


@rule("convert_element_type")
def _convert(equation: Equation) -> Function:
    given, wanted = equation.inputs[0].dtype, equation.params["new_dtype"]
    if given == wanted:
        return lambda x: x
    if given.kind == "c" and wanted.kind != "c":
        return lambda x: np.real(x).astype(wanted)
    if wanted == np.bool_:
        return lambda x: x != 0
    return lambda x: x.astype(wanted)
