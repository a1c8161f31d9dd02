"""The table of rules: how NumPy computes a primitive of JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import ml_dtypes
import numpy as np

from estimatorkit.core.x64 import x64
from estimatorkit.runtime.interpreter.equations import Equation, Function

Rule: TypeAlias = Callable[[Equation], Function]

_rules: dict[str, Rule] = {}

NARROW = frozenset(map(np.dtype, (np.float16, ml_dtypes.bfloat16)))
"""Floats in which NumPy computes slowly, or not at all: rules compute in float32, as XLA does."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """A decorator that registers the rule of primitives."""

    def register(function: Rule) -> Rule:
        _rules.update(dict.fromkeys(names, function))
        return function

    return register


def arithmetic(*names: str) -> Callable[[Rule], Rule]:
    """Like `rule`, for primitives that compute with numbers: 16-bit floats come as float32."""

    def register(function: Rule) -> Rule:
        return rule(*names)(lambda equation: _widened(function, equation))

    return register


def ufuncs(functions: dict[str, Function]) -> None:
    """Registers functions that compute elementwise, for any parameters."""
    for name, function in functions.items():
        arithmetic(name)(lambda _, function=function: function)


def function_of(equation: Equation) -> Function:
    """The function that computes an equation.

    Raises:
        NotInterpretable: only XLA can run it.
    """
    found = _rules.get(equation.name)
    return compiled(equation) if found is None else found(equation)


def has_rule(name: str) -> bool:
    """Whether NumPy computes a primitive; otherwise XLA does, by an executable of its own."""
    return name in _rules


def _widened(function: Rule, equation: Equation) -> Function:
    avals = [*equation.inputs, *equation.outputs]
    if not any(aval.dtype in NARROW for aval in avals):
        return function(equation)
    wide = equation._replace(
        inputs=[_wide(aval) for aval in equation.inputs],
        outputs=[_wide(aval) for aval in equation.outputs],
    )
    compute = function(wide)
    dtypes = [aval.dtype for aval in equation.outputs]
    several = equation.source.primitive.multiple_results

    def run(*operands: Any) -> Any:
        results = compute(*map(widen, operands))
        listed = results if several else [results]
        narrow = [
            np.asarray(each).astype(dtype, copy=False)
            for each, dtype in zip(listed, dtypes, strict=True)
        ]
        return narrow if several else narrow[0]

    return run


def _wide(aval: Any) -> Any:
    return aval._replace(dtype=np.dtype(np.float32)) if aval.dtype in NARROW else aval


def widen(array: Any) -> Any:
    """An array, in float32 if it has 16-bit floats."""
    return np.asarray(array, np.float32) if array.dtype in NARROW else array


def compiled(equation: Equation) -> Function:
    """A primitive without a rule: an executable of its own."""
    primitive, parameters = equation.source.primitive, equation.params
    bound = primitive.get_bind_params(parameters)
    several = primitive.multiple_results
    call = jax.jit(lambda *operands: primitive.bind(*operands, **bound))

    def run(*operands: Any) -> Any:
        with x64():
            results = call(*operands)
        return [np.asarray(each) for each in results] if several else np.asarray(results)

    return run
