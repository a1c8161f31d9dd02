"""Whether two computations of a model's output agree up to rounding.

They do if they differ by little beside the spread of the outputs in the batch, or by a few units in
the last place of the largest one; or by no more than the output moves when the numbers that it is
computed from move by a few units: a sum of large terms may be small, but is not more precise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from estimatorkit.runtime.state import State

_OF_SPREAD = 1e-4
_UNITS = 16
_MOVED_UNITS = 8


def is_same(one: NDArray[Any], other: NDArray[Any], rounding: float = 0.0) -> bool:
    """Whether two arrays are equal; those of floats up to rounding.

    Args:
        one, other: outputs of a batch, `(batch, ...)`.
        rounding: by how much more they may differ.
    """
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind not in "fcV":
        return bool((one == other).all())
    unit, wide = _unit(one), "c16" if one.dtype.kind == "c" else "f8"
    one, other = one.astype(wide), other.astype(wide)
    finite = np.isfinite(one)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True):
        return False
    one, other = one[finite], other[finite]
    if not one.size:
        return True
    spread, largest = np.abs(one - one.mean()).max(), np.abs(one).max()
    allowed = _OF_SPREAD * spread + _UNITS * unit * largest + rounding
    return bool(np.abs(one - other).max() <= allowed)


def roundings(
    state: State, run: Callable[..., Sequence[Any]], inputs: Sequence[NDArray[Any]]
) -> list[float]:
    """How far each output moves if the variables and the inputs do; 0 for what is random.

    Args:
        state: holds the variables, which are the same afterwards.
        run: computes the outputs.
        inputs: its arguments.
    """
    kept = dict(state.values)
    names = list(kept)
    drawn = np.random.default_rng(0)
    before, again = run(*inputs), run(*inputs)
    try:
        for name, value in zip(names, state.read(names), strict=True):
            state.put(name, _moved(value, drawn))
        after = run(*(_moved(each, drawn) for each in inputs))
    finally:
        for name, value in kept.items():
            state.put(name, value)
    return [
        float(np.abs(np.subtract(new, old, dtype=float)).max(initial=0.0))
        if np.asarray(old).dtype.kind == "f" and is_same(np.asarray(old), np.asarray(same))
        else 0.0
        for old, same, new in zip(before, again, after, strict=True)
    ]


def _moved(value: NDArray[Any], drawn: np.random.Generator) -> NDArray[Any]:
    """The value, if it is of floats with each number up or down by a few units."""
    if value.dtype.kind not in "fV":
        return value
    signs = drawn.choice([-1.0, 1.0], value.shape)
    return (value * (1 + _MOVED_UNITS * _unit(value) * signs)).astype(value.dtype)


def _unit(value: NDArray[Any]) -> float:
    return float(ml_dtypes.finfo(value.dtype).eps)  # type: ignore[no-untyped-call]


__all__ = ["is_same", "roundings"]
