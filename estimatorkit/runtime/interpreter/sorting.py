"""Rules of sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.runtime.interpreter.equations import Equation, Function
from estimatorkit.runtime.interpreter.order import ordered, packed, sort_keys, stable_order
from estimatorkit.runtime.interpreter.rules import arithmetic, compiled, rule


@arithmetic("sort")
def _sort(equation: Equation) -> Function:
    axis, number = equation.params["dimension"], equation.params["num_keys"]
    if len(equation.inputs) == 1:
        return _sort_of_one(equation.inputs[0].dtype, axis)

    def run(*operands: Any) -> list[Any]:
        keys = [key for each in operands[:number] for key in sort_keys(each)]
        order = stable_order(keys[0], axis) if len(keys) == 1 else np.lexsort(keys[::-1], axis)
        return [taken(each, order, axis) for each in operands]

    return run


def taken(x: Any, order: Any, axis: int) -> Any:
    """The elements at positions along an axis."""
    return x[order] if order.ndim == 1 else np.take_along_axis(x, order, axis)


def _sort_of_one(dtype: Any, axis: int) -> Function:
    if dtype.kind == "c":
        return lambda x: [taken(x, np.lexsort(sort_keys(x)[::-1], axis), axis)]
    if dtype.kind != "f":
        return lambda x: [np.sort(x, axis)]
    kind = f"i{dtype.itemsize}"
    negative_zero = np.iinfo(kind).min

    def run(x: Any) -> list[Any]:
        # zeros of both signs are equal and stay in place; the order that needs not be stable is
        # found several times as fast
        stable = (x.view(kind) == negative_zero).any()
        return [np.sort(x, axis, kind="stable" if stable else None)]

    return run


@rule("top_k")
def _top_k(equation: Equation) -> Function:
    return _largest(equation.inputs[0].dtype, equation.params["k"], equation.params["axis"])


def _largest(dtype: Any, count: int, axis: int, smallest: bool = False) -> Function:
    """The largest elements, in the total order of floats, and their positions."""

    def run(x: Any) -> list[Any]:
        key = x if dtype.kind in "iub" else ordered(x)
        # inverted integers are in descending order
        order = _first(key if smallest else ~key, count, axis % x.ndim)
        return [taken(x, order, axis), order.astype(np.int32)]

    return run


def _first(key: Any, count: int, axis: int) -> Any:
    """The positions of the least integers, in order."""
    before = (slice(None),) * axis
    size = key.shape[axis]
    if count == 1:
        return np.argmin(key, axis, keepdims=True)
    if key.dtype.itemsize == 4 and 0 < count < size // 4:
        least = np.partition(packed(key, axis), count - 1, axis)[(*before, slice(count))]
        least.sort(axis)
        return least & 0xFFFFFFFF
    return stable_order(key, axis)[(*before, slice(count))]


@arithmetic("approx_top_k")
def _approx_top_k(equation: Equation) -> Function:
    parameters = equation.params
    if not parameters["aggregate_to_topk"]:
        return compiled(equation)
    axis, number = parameters["reduction_dimension"], parameters["k"]
    return _largest(equation.inputs[0].dtype, number, axis, not parameters["is_max_k"])
