"""The table of rules: how NumPy computes a primitive of JAX."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import jax
import ml_dtypes
import numpy as np

from estimatorkit.core.x64 import x64
from estimatorkit.runtime.interpreter.equations import Aval, Equation, Function

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
        arithmetic(name)(partial(_always, function))


def _always(function: Function, _: Equation) -> Function:
    return function


def function_of(equation: Equation) -> Function:
    """The function that computes an equation.

    Raises:
        NotInterpretable: only XLA can run it.
    """
    found = _rules.get(equation.name)
    if found is None:
        return compiled(equation)
    if equation.name not in _OF_WORDS and has_keys(equation):
        return _of_elements(found, equation)
    return found(equation)


_OF_WORDS = frozenset(
    {"cond", "guard", "scan", "while", "random_bits", "random_clone", "random_fold_in"}
    | {"random_seed", "random_split"}
)
"""Primitives whose rules get the words of random keys; those of others get each as an element."""


def has_keys(equation: Equation) -> bool:
    """Whether random keys are among the operands or results."""
    source = equation.source
    return any(is_key(each.aval) for each in (*source.invars, *source.outvars))


def is_key(aval: Any) -> bool:
    """Whether an abstract value is one of random keys."""
    dtype = getattr(aval, "dtype", None)
    return not isinstance(dtype, np.dtype) and hasattr(dtype, "_impl")


def _of_elements(function: Rule, equation: Equation) -> Function:
    """A rule that rearranges or compares elements, for random keys."""
    if equation.name == "eq":
        return lambda one, other: (one == other).all(-1)
    if equation.name == "ne":
        return lambda one, other: (one != other).any(-1)

    def seen(given: Aval, aval: Any) -> Aval:
        return Aval(given.shape[:-1], _element(given.shape[-1])) if is_key(aval) else given

    source = equation.source
    avals = [[each.aval for each in side] for side in (source.invars, source.outvars)]
    inputs, outputs = (
        list(map(seen, given, those))
        for given, those in zip((equation.inputs, equation.outputs), avals, strict=True)
    )
    compute = function(equation._replace(inputs=inputs, outputs=outputs))
    several = source.primitive.multiple_results

    def run(*operands: Any) -> Any:
        results = compute(*map(_to_elements, operands, inputs))
        if several:
            return list(map(_to_words, results, outputs))
        return _to_words(results, outputs[0])

    return run


def _element(words: int) -> Any:
    return np.dtype((np.void, 4 * words))


def _to_elements(array: Any, aval: Aval) -> Any:
    if aval.dtype.type is not np.void:
        return array
    return np.ascontiguousarray(array).view(aval.dtype).reshape(aval.shape)


def _to_words(array: Any, aval: Aval) -> Any:
    if aval.dtype.type is not np.void:
        return array
    return np.ascontiguousarray(array).reshape(*aval.shape, 1).view(np.uint32)


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
    impls = [getattr(each.aval.dtype, "_impl", None) for each in equation.source.invars]

    def bind(*operands: Any) -> Any:
        given = [
            operand if impl is None else jax.random.wrap_key_data(operand, impl=impl)
            for operand, impl in zip(operands, impls, strict=True)
        ]
        results = primitive.bind(*given, **bound)
        return jax.tree.map(words_of, results, is_leaf=lambda each: is_key(each))

    call = jax.jit(bind)

    def run(*operands: Any) -> Any:
        with x64():
            results = call(*operands)
        return [np.asarray(each) for each in results] if several else np.asarray(results)

    return run


def words_of(array: Any) -> Any:
    """An array; of random keys, their words."""
    return jax.random.key_data(array) if is_key(array) else array
