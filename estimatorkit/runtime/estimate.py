"""How long a segment runs in NumPy, in proportion to its compilation: an estimate without a trace.

It is a count from the operations and their static shapes (the figures are those of
`interpreter.cost`), since a trace would be thrown away if XLA has the segment from its first run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from estimatorkit.core.function_graph import functions_held
from estimatorkit.core.registry import Role, lookup, role_of
from estimatorkit.core.shapes import TensorShape, as_shape
from estimatorkit.core.sizes import LEAST
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.runtime.interpreter.cost import (
    CONVOLUTION,
    PRODUCT,
    compiled_in,
    elementwise_seconds,
)
from estimatorkit.runtime.plan import Segment

_EQUATIONS = 4
"""Equations per operation: 2 to 7 in the programs of `benchmarks/cold.py`; their results are about
as large as those of the operation."""

_PRODUCTS = ("MatMul", "Tensordot", "Einsum")

_FREE = (Role.READ, Role.VARIABLE, Role.CONSTANT, Role.NO_OP)


def unknown_dimensions(tensors: Sequence[Tensor], values: Sequence[Any]) -> list[tuple[int, int]]:
    """The dimensions that are unknown before a run, as pairs of the axis and the number.

    Args:
        tensors: the tensors.
        values: their values in a run.
    """
    return [
        (axis, number)
        for tensor, value in zip(tensors, values, strict=True)
        if tensor.shape.dims is not None
        for axis, (dim, number) in enumerate(zip(tensor.shape.dims, np.shape(value), strict=True))
        if dim is None and number >= LEAST
    ]


def share_of_compilation(segment: Segment, number: int) -> float:
    """The estimated time of a run in NumPy, divided by that of the compilation.

    Updated variables count as other results. Matrix products count as their results, and a loop
    whose length is unknown as one iteration: a run is rather longer.

    Args:
        segment: the segment.
        number: what unknown dimensions are taken for.
    """
    counted = [each for op in segment.ops for each in _counted(op, number)]
    variable = segment.ops[0].graph.get_operation_by_name
    updated = (as_shape(variable(name).attrs["shape"]) for name in segment.writes)
    steps = sum(times for times, _ in counted) * _EQUATIONS
    elements = sum(times * elements for times, elements in counted) * _EQUATIONS
    elements += sum(_count(shape, number) for shape in updated)
    return elementwise_seconds(steps, elements) / compiled_in(len(counted) * _EQUATIONS)


def share_of_products(segment: Segment, number: int) -> float:
    """The estimated time of a run's matrix products and convolutions, divided by that of the
    compilation. Those in functions do not count.

    Args:
        segment: the segment.
        number: what unknown dimensions are taken for.
    """
    seconds = sum(_seconds_of_product(op, number) for op in segment.ops)
    return seconds / compiled_in(len(segment.ops) * _EQUATIONS)


def _seconds_of_product(op: Operation, number: int) -> float:
    if len(op.inputs) < 2 or not op.outputs:
        return 0.0
    left, right, result = (_count(each.shape, number) for each in (*op.inputs[:2], *op.outputs[:1]))
    if op.type in _PRODUCTS:  # of m x k and k x n: m * k * n multiplications
        return math.isqrt(left * right * result) * PRODUCT
    if lookup(op.type).batching.unroll_on_cpu:
        channels = (op.inputs[1].shape.dims or (1,))[-1] or 1
        return result * right / channels * CONVOLUTION
    return 0.0


def _counted(op: Operation, number: int, times: int = 1) -> Iterator[tuple[int, int]]:
    """How often an operation and those in its functions run, and the elements of their results."""
    if role_of(op) not in _FREE:
        yield times, sum(_count(tensor.shape, number) for tensor in op.outputs)
    times *= _iterations(op)
    for function in functions_held(op.attrs):
        for inner in function.graph.get_operations():
            yield from _counted(inner, number, times)


def _iterations(op: Operation) -> int:
    """How often an operation runs its functions, as far as that is known."""
    attrs = op.attrs.get("forward_attrs", op.attrs)  # a gradient's: its operation's
    if not {"carried", "leading", "length"} <= attrs.keys():  # no scan
        return 1
    columns = [each.shape.dims for each in op.inputs[attrs["carried"] : attrs["leading"]]]
    return next((dims[0] for dims in columns if dims and dims[0]), attrs["length"] or 1)


def _count(shape: TensorShape, number: int) -> int:
    dims = shape.dims
    return 0 if dims is None else math.prod(number if dim is None else dim for dim in dims)
