"""Rules of products: `dot_general` as matrix products of BLAS."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from estimatorkit.runtime.interpreter.equations import Aval, Equation, Function
from estimatorkit.runtime.interpreter.rules import arithmetic

_EXACT = 1 << 21
"""Products of two 16-bit integers whose sum float64 represents exactly."""

_LEAST = 1 << 14
"""Multiplications from which integer matrices are converted to floats: NumPy multiplies 64x64 ones
of int32 in 100 us, of float64 in 10 us."""


@arithmetic("dot_general")
def _dot_general(equation: Equation) -> Function:
    contracted, batched = equation.params["dimension_numbers"]
    left, right = equation.inputs
    shape, dtype = equation.result
    casts = [_cast(aval, dtype) for aval in (left, right)]
    matrices = _matrix_product(left, right, contracted, batched, shape)
    exact = _exact_integers(equation)
    if exact is not None:
        return lambda a, b: exact(matrices(a.astype(np.float64), b.astype(np.float64)))
    if casts == [None, None]:
        return matrices
    cast_left, cast_right = (each or (lambda x: x) for each in casts)
    return lambda a, b: matrices(cast_left(a), cast_right(b))


def _cast(aval: Aval, dtype: Any) -> Callable[[Any], Any] | None:
    """The conversion of an operand; None if it needs none."""
    return None if aval.dtype == dtype else lambda x: x.astype(dtype)


def _exact_integers(equation: Equation) -> Callable[[Any], Any] | None:
    """The conversion of a product in float64 that equals one of integers; None if it may not."""
    left, right = equation.inputs
    dtype = equation.result.dtype
    (own, _), _ = equation.params["dimension_numbers"]
    length = math.prod(left.shape[at] for at in own)
    small = all(each.dtype.kind in "iu" and each.dtype.itemsize <= 2 for each in (left, right))
    if not small or dtype.kind not in "iu" or length > _EXACT:
        return None
    if left.size * right.size < _LEAST:
        return None
    return lambda x: x.astype(np.int64).astype(dtype)


def _matrix_product(
    left: Aval, right: Aval, contracted: Any, batched: Any, shape: tuple[int, ...]
) -> Function:
    """The product of operands of one dtype."""
    (own, other), (batch, its_batch) = contracted, batched
    ranks = len(left.shape), len(right.shape)
    if not batch and len(own) == 1 and max(ranks) <= 2 and min(ranks) >= 1:
        return _of_matrices(ranks, own[0], other[0])
    free = [at for at in range(ranks[0]) if at not in own and at not in batch]
    its_free = [at for at in range(ranks[1]) if at not in other and at not in its_batch]
    lead = tuple(left.shape[at] for at in batch)
    length = math.prod(left.shape[at] for at in own)
    rows, columns = (
        math.prod(aval.shape[at] for at in dims) for aval, dims in ((left, free), (right, its_free))
    )
    to_left = _arranged(left.shape, (*batch, *free, *own), (*lead, rows, length))
    to_right = _arranged(right.shape, (*its_batch, *other, *its_free), (*lead, length, columns))
    if not own:  # BLAS has no advantage, and rounds no differently
        return lambda a, b: np.multiply(to_left(a), to_right(b)).reshape(shape)
    if shape == (*lead, rows, columns):
        return lambda a, b: np.matmul(to_left(a), to_right(b))
    return lambda a, b: np.matmul(to_left(a), to_right(b)).reshape(shape)


def _of_matrices(ranks: tuple[int, int], own: int, other: int) -> Function:
    """The product of vectors and matrices, along dimensions of them."""
    if ranks == (2, 2):
        if (own, other) == (1, 0):
            return np.matmul
        if (own, other) == (0, 0):
            return lambda a, b: np.matmul(a.T, b)
        if (own, other) == (1, 1):
            return lambda a, b: np.matmul(a, b.T)
        return lambda a, b: np.matmul(a.T, b.T)
    if ranks[0] == 2:
        return np.matmul if own == 1 else lambda a, b: np.matmul(a.T, b)
    return np.matmul if other == 0 else lambda a, b: np.matmul(a, b.T)


def _arranged(
    shape: tuple[int, ...], order: tuple[int, ...], wanted: tuple[int, ...]
) -> Callable[[Any], Any]:
    """The function that transposes an array and then reshapes it: mostly a view."""
    transposed = tuple(shape[at] for at in order)
    if order == tuple(range(len(order))):
        return (lambda x: x) if transposed == wanted else lambda x: x.reshape(wanted)
    if transposed == wanted:
        return lambda x: x.transpose(order)
    return lambda x: x.transpose(order).reshape(wanted)


__all__: list[str] = []
