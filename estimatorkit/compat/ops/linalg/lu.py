"""LU decomposition with partial pivoting, and solvers based on its factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import as_dtype, int32
from estimatorkit.core.faults import Fault, refused
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.lazy import LazyFunctions
from estimatorkit.ops.array import array
from estimatorkit.ops.array.filling import ones
from estimatorkit.ops.array.indexing import gather
from estimatorkit.ops.array.selection import argsort
from estimatorkit.ops.linalg.diagonals import eye, matrix_band_part, matrix_set_diag
from estimatorkit.ops.linalg.matrices import matrix_triangular_solve
from estimatorkit.ops.linalg.matrix_parts import check_rank
from estimatorkit.ops.math import linalg

scipy_linalg = LazyFunctions("scipy.linalg")

_PIVOTED = np.array([[0.0, 2.0, 1.0], [4.0, 5.0, 6.0], [2.0, 8.0, 1.0]], np.float32)


def _lu(x: Any, dtype: Any) -> Any:
    packed, _, permutation = jax.lax.linalg.lu(jnp.asarray(x))
    return packed, permutation.astype(dtype.numpy_dtype)


def _numpy_lu(x: Any, dtype: Any) -> Any:
    packed = np.empty_like(x)
    permutation = np.empty(x.shape[:-1], dtype.numpy_dtype)
    for place in np.ndindex(x.shape[:-2]):
        packed[place], pivots = scipy_linalg.lu_factor(x[place])
        rows = np.arange(x.shape[-1])
        for row, other in enumerate(pivots):
            rows[[row, other]] = rows[[other, row]]
        permutation[place] = rows
    return packed, permutation


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    (x,) = inputs
    check_rank(x, square=True)
    rows = UNKNOWN if x.shape.dims is None else TensorShape(x.shape.dims[:-1])
    return [Spec(x.dtype, x.shape), Spec(attrs["dtype"], rows)]


def _lu_fault(inputs: Any, results: Sequence[Any], attrs: Any) -> list[Fault]:
    pivots = abs(results[0].diagonal(0, -2, -1))
    return [refused(0, ~(pivots > 0).all(-1), "Input is not invertible.")]


register(
    "Lu",
    _lu,
    result_fault=_lu_fault,
    infer=_infer,
    accepts="dc",
    numpy_kernel=_numpy_lu,
    cases=lambda: [Case((_PIVOTED,), {"dtype": int32})],
)


def lu(input: Any, output_idx_type: Any = int32, name: str | None = None) -> tuple[Tensor, Tensor]:
    """LU decomposition of square matrices, with partial pivoting.

    Args:
        input: `(..., n, n)` of float32, float64 or complex.
        output_idx_type: the dtype of the permutation, int32 or int64.

    Returns:
        L (without its unit diagonal) and U packed in one matrix, `(..., n, n)`, and the permutation
        p, `(..., n)`: row i of L U is row p[i] of the input.

    Raises:
        ValueError: the matrices are known not to be square.
    """
    attrs = {"dtype": as_dtype(output_idx_type)}
    op = registry.apply("Lu", [convert_to_tensor(input)], attrs, name)
    return op.outputs[0], op.outputs[1]


def _check(packed: Tensor, perm: Tensor, rhs: Tensor | None = None) -> None:
    """Raises ValueError if the static shapes are incompatible."""
    check_rank(packed, square=True)
    if packed.shape.rank is None:
        return
    if perm.shape.rank not in (None, packed.shape.rank - 1):
        raise ValueError(
            "`rank(lower_upper)` must equal `rank(perm) + 1`, got shapes "
            f"{packed.shape} and {perm.shape}."
        )
    if rhs is None or rhs.shape.rank is None:
        return
    if rhs.shape.rank < 2:
        raise ValueError(f"Input `rhs` must have at least 2 dimensions, got {rhs.shape}.")
    columns, rows = packed.shape.as_list()[-1], rhs.shape.as_list()[-2]
    if None not in (columns, rows) and columns != rows:
        raise ValueError(
            "`lower_upper.shape[-1]` must equal `rhs.shape[-2]`, got shapes "
            f"{packed.shape} and {rhs.shape}."
        )


def _parts(packed: Tensor) -> tuple[Tensor, Tensor]:
    diagonal = ones(array.shape(packed)[:-1], packed.dtype)
    lower = matrix_set_diag(matrix_band_part(packed, -1, 0), diagonal)
    return lower, matrix_band_part(packed, 0, -1)


def _rows(x: Tensor, numbers: Tensor) -> Tensor:
    return gather(x, numbers, axis=-2, batch_dims=-1)


def lu_reconstruct(
    lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The matrices of an LU decomposition.

    Args:
        lower_upper, perm: the result of `lu`.
        validate_args: accepted for compatibility only; static shapes are always checked.

    Raises:
        ValueError: the static shapes are incompatible.
    """
    with get_default_graph().name_scope(name or "lu_reconstruct"):
        packed = convert_to_tensor(lower_upper, name="lower_upper")
        numbers = convert_to_tensor(perm, int32, name="perm")
        _check(packed, numbers)
        return _rows(linalg.matmul(*_parts(packed)), argsort(numbers))


def lu_solve(
    lower_upper: Any, perm: Any, rhs: Any, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Solves A X = rhs, given the LU decomposition of A.

    Args:
        lower_upper, perm: `lu(A)`, `(..., n, n)` and `(..., n)`.
        rhs: `(..., n, k)`.
        validate_args: accepted for compatibility only; static shapes are always checked.

    Raises:
        ValueError: the static shapes are incompatible.
    """
    with get_default_graph().name_scope(name or "lu_solve"):
        packed = convert_to_tensor(lower_upper, name="lower_upper")
        numbers = convert_to_tensor(perm, int32, name="perm")
        right = convert_to_tensor(rhs, packed.dtype, name="rhs")
        _check(packed, numbers, right)
        lower, upper = _parts(packed)
        half = matrix_triangular_solve(lower, _rows(right, numbers))
        return matrix_triangular_solve(upper, half, lower=False)


def lu_matrix_inverse(
    lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The inverses of matrices, given their LU decomposition.

    Args:
        lower_upper, perm: the result of `lu`.
        validate_args: accepted for compatibility only; static shapes are always checked.

    Raises:
        ValueError: the static shapes are incompatible.
    """
    with get_default_graph().name_scope(name or "lu_matrix_inverse"):
        packed = convert_to_tensor(lower_upper, name="lower_upper")
        size = array.shape(packed)
        identity = eye(size[-1], batch_shape=size[:-2], dtype=packed.dtype)
        return lu_solve(packed, perm, identity)
