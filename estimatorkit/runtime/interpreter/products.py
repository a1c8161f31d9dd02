"""Rules of products: `dot_general` as matrix products of BLAS."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.runtime.interpreter.equations import Equation, Function
from estimatorkit.runtime.interpreter.rules import arithmetic


@arithmetic("dot_general")
def _dot_general(equation: Equation) -> Function:
    (contracted, batched) = equation.params["dimension_numbers"]
    left, right = equation.inputs
    shape, dtype = equation.result
    lead = len(batched[0])
    orders = []
    for side, aval in enumerate((left, right)):
        own, batch = contracted[side], batched[side]
        free = [at for at in range(len(aval.shape)) if at not in own and at not in batch]
        order = (*batch, *free, *own) if side == 0 else (*batch, *own, *free)
        sizes = [int(np.prod([aval.shape[at] for at in each])) for each in (own, free)]
        batches = tuple(aval.shape[at] for at in batch)
        matrix = (*batches, *(reversed(sizes) if side == 0 else sizes))
        orders.append((order, matrix))
    (left_order, left_shape), (right_order, right_shape) = orders
    if lead == 0 and len(left.shape) == len(right.shape) == 2:
        if left_order == (0, 1) and right_order == (0, 1) and left.dtype == dtype:
            return np.matmul if left.shape[0] else np.dot

    def run(a: Any, b: Any) -> Any:
        a = np.transpose(a, left_order).reshape(left_shape)
        b = np.transpose(b, right_order).reshape(right_shape)
        if a.dtype != dtype:
            a = a.astype(dtype)
        if b.dtype != dtype:
            b = b.astype(dtype)
        return np.matmul(a, b).reshape(shape)

    return run
