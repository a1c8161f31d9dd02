"""Equations of a loop's body, for all iterations at once: along a first axis of their operands.

Other than by `jax.vmap` nothing is traced: a rule gets the equation with longer shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from estimatorkit.runtime.interpreter.equations import (
    Aval,
    Equation,
    Function,
    Numbers,
    equation_at,
    has_sizes,
)
from estimatorkit.runtime.interpreter.program import Placed
from estimatorkit.runtime.interpreter.rules import function_of, is_key

Flags: TypeAlias = Sequence[bool]
"""Of each operand, whether it has the axis."""

_ELEMENTWISE = frozenset(
    {"abs", "add", "add_any", "and", "ceil", "cos", "div", "eq", "exp", "expm1", "floor", "ge"}
    | {"gt", "integer_pow", "is_finite", "le", "log", "log1p", "logistic", "lt", "max", "min"}
    | {"mul", "ne", "neg", "not", "or", "pow", "rem", "rsqrt", "sign", "sin", "sqrt", "square"}
    | {"sub", "tan", "tanh", "xor", "convert_element_type"}
)


def batches(source: Any, flags: Flags) -> bool:
    """Whether an equation can be computed for all iterations at once.

    Args:
        source: the equation, without effects.
        flags: at least one is set.
    """
    if any(is_key(each.aval) for each in (*source.invars, *source.outvars)):
        return False
    name = source.primitive.name
    if name in _ELEMENTWISE:
        return True
    if name == "select_n":
        return len(source.invars) == 3 and source.invars[0].aval.dtype == np.bool_
    if name == "reshape":
        return len(flags) == 1 and source.params["dimensions"] is None
    if name == "concatenate":
        return all(flags)
    if name == "dot_general":
        _, (batch, _) = source.params["dimension_numbers"]
        return flags[0] and (flags[1] or not batch)
    return name in _CHANGES and len(flags) == 1


def _plus(key: str) -> Callable[[Equation, Flags, int], dict[str, Any]]:
    """A parameter of axes, each moved behind the new leading axis."""

    def change(equation: Equation, flags: Flags, length: int) -> dict[str, Any]:
        given = equation.params[key]
        return {key: given + 1 if isinstance(given, int) else tuple(each + 1 for each in given)}

    return change


def _led(key: str) -> Callable[[Equation, Flags, int], dict[str, Any]]:
    """The same, with the new leading axis among them."""
    plus = _plus(key)
    return lambda *given: {key: (0, *plus(*given)[key])}


def _sliced(equation: Equation, flags: Flags, length: int) -> dict[str, Any]:
    parameters = equation.params
    steps = parameters["strides"]
    return {
        "start_indices": (0, *parameters["start_indices"]),
        "limit_indices": (length, *parameters["limit_indices"]),
        "strides": None if steps is None else (1, *steps),
    }


def _multiplied(equation: Equation, flags: Flags, length: int) -> dict[str, Any]:
    (own, other), (batch, its_batch) = equation.params["dimension_numbers"]
    own = tuple(each + 1 for each in own)
    if flags[1]:
        other = tuple(each + 1 for each in other)
        batch, its_batch = ((0, *(each + 1 for each in dims)) for dims in (batch, its_batch))
    return {"dimension_numbers": ((own, other), (batch, its_batch))}


_CHANGES: dict[str, Callable[[Equation, Flags, int], dict[str, Any]]] = {
    "broadcast_in_dim": _led("broadcast_dimensions"),
    "concatenate": _plus("dimension"),
    "dot_general": _multiplied,
    "expand_dims": lambda *_: {},
    "reduce_max": _plus("axes"),
    "reduce_min": _plus("axes"),
    "reduce_sum": _plus("axes"),
    "reshape": lambda *_: {},
    "rev": _plus("dimensions"),
    "slice": _sliced,
    "split": _plus("axis"),
    "squeeze": lambda *_: {},
    "transpose": _led("permutation"),
}
"""The parameters that change."""


class Batched(Placed):
    """An equation for all iterations of a loop.

    Args:
        placed: the equation; see `batches`.
        flags: of each operand, whether it has the axis.
        length: the iterations.
        takes, gives, to: see `Placed`.
    """

    is_single = False

    def __init__(
        self,
        placed: Placed,
        flags: Flags,
        length: Any,
        takes: Sequence[int],
        gives: Sequence[int],
        to: int,
    ) -> None:
        super().__init__(placed.source, takes, gives, to)
        self._flags = flags
        self._length = length
        self.has_sizes = self.has_sizes or has_sizes(length)

    def _computed(self, numbers: Numbers) -> tuple[Equation, Function]:
        length, flags = numbers.within(self._length), self._flags
        one = equation_at(self.source, numbers)
        change = _CHANGES.get(one.name)
        equation = one._replace(
            params={**one.params, **(change(one, flags, length) if change else {})},
            inputs=[
                _longer(each, length) if flag else each
                for each, flag in zip(one.inputs, flags, strict=True)
            ],
            outputs=[_longer(each, length) for each in one.outputs],
        )
        if change is not None:
            return equation, function_of(equation)
        rank = len(one.result.shape)
        shapes = [_aligned(each, flag, rank) for each, flag in zip(one.inputs, flags, strict=True)]
        function = _chosen(equation)
        if not any(shapes):
            return equation, function

        def run(*operands: Any) -> Any:
            return function(
                *(
                    each if shape is None else each.reshape(shape)
                    for each, shape in zip(operands, shapes, strict=True)
                )
            )

        return equation, run


def _longer(aval: Aval, length: int) -> Aval:
    return Aval((length, *aval.shape), aval.dtype)


def _aligned(aval: Aval, flag: bool, rank: int) -> tuple[int, ...] | None:
    """What a number of each iteration is reshaped to if the others are arrays."""
    return (-1, *[1] * rank) if flag and rank and not aval.shape else None


def _chosen(equation: Equation) -> Function:
    same = all(each.shape == equation.result.shape for each in equation.inputs)
    if equation.name == "select_n" and not same:
        return lambda which, no, yes: np.where(which, yes, no)
    return function_of(equation)


__all__ = ["Batched", "Flags", "batches"]
