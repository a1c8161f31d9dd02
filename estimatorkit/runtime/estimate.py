"""How long a segment runs in NumPy, in proportion to its compilation: an estimate without a trace.

It is a count from the operations and their static shapes (the figures are those of
`interpreter.cost`), since a trace would be thrown away if XLA has the segment from its first run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from estimatorkit.core.function_graph import operations_within
from estimatorkit.core.registry import Role, role_of
from estimatorkit.core.sizes import LEAST
from estimatorkit.core.tensor import Tensor
from estimatorkit.runtime.interpreter.cost import compiled_in, elementwise_seconds
from estimatorkit.runtime.plan import Segment

_EQUATIONS = 4
"""Of an operation: 2 to 7 in the programs of `benchmarks/cold.py`, whose results are about as large
as those of the operation."""

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
        for axis, (dim, number) in enumerate(zip(tensor.shape.dims or (), np.shape(value)))
        if dim is None and number >= LEAST
    ]


def share_of_compilation(segment: Segment, number: int) -> float:
    """The estimated time of a run in NumPy, divided by that of the compilation.

    Matrix products count as their results, and a loop as one iteration: a run is rather longer.

    Args:
        segment: the segment.
        number: what unknown dimensions are taken for.
    """
    operations = [each for op in segment.ops for each in (op, *operations_within(op))]
    operations = [op for op in operations if role_of(op) not in _FREE]
    elements = sum(_elements(tensor, number) for op in operations for tensor in op.outputs)
    run = elementwise_seconds(len(operations), elements) * _EQUATIONS
    return run / compiled_in(len(operations) * _EQUATIONS)


def _elements(tensor: Tensor, number: int) -> int:
    dims = tensor.shape.dims
    return 0 if dims is None else math.prod(number if dim is None else dim for dim in dims)
