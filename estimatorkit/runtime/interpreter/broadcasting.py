"""Which broadcasts are folded into the elementwise equations that use them, as NumPy broadcasts.

JAX broadcasts a bias before it is added, and a number before it is compared with each element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimatorkit.runtime.interpreter.rules import is_key

BROADCASTING = frozenset(
    {"add", "add_any", "sub", "mul", "div", "max", "min", "pow", "and", "or", "xor", "select_n"}
    | {"eq", "ne", "lt", "le", "gt", "ge"}
)
"""Primitives whose rules accept operands that NumPy can broadcast to the shape of the result."""


def is_foldable(source: Any) -> bool:
    """Whether an equation is a broadcast by NumPy's rules: it adds leading axes, or repeats axes of
    length 1."""
    if source.primitive.name != "broadcast_in_dim":
        return False
    operand, rank = source.invars[0].aval, len(source.outvars[0].aval.shape)
    dimensions = source.params["broadcast_dimensions"]
    return not is_key(operand) and dimensions == tuple(range(rank - len(dimensions), rank))


def folds_broadcasts(source: Any, flags: Sequence[bool]) -> bool:
    """Whether broadcasts can be folded into an equation: another operand has the result's shape.

    Args:
        source: the equation.
        flags: of each operand, whether it is the result of a broadcast.
    """
    name = source.primitive.name
    if name not in BROADCASTING or not any(flags):
        return False
    shape = source.outvars[0].aval.shape
    whole = [
        not flag and atom.aval.shape == shape
        for flag, atom in zip(flags, source.invars, strict=True)
    ]
    return whole[0] if name == "select_n" else any(whole)
