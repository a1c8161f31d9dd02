"""Operators backed by dense matrices: full, lower triangular, low-rank update."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import type_error
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array
from estimatorkit.ops.debug.shape_matching import broadcast_static_shape
from estimatorkit.ops.linalg import matrices
from estimatorkit.ops.linalg.diagonals import matrix_band_part, matrix_diag_part
from estimatorkit.ops.linalg.products import adjoint as adjoint_of
from estimatorkit.ops.linear_operators.diagonal import assert_not_zero
from estimatorkit.ops.linear_operators.operator import LinearOperator, multiply, of_one_batch
from estimatorkit.ops.math import elementwise, reduce


def _stack(matrix: Any, what: str) -> Tensor:
    tensor = convert_to_tensor(matrix, name=what)
    if not tensor.dtype.is_differentiable:
        raise type_error(
            f"Argument {what} must have dtype in the floating and complex ones",
            received=tensor,
        )
    if tensor.shape.rank is not None and tensor.shape.rank < 2:
        raise ValueError(f"Argument {what} must have at least 2 dimensions.  Found: {tensor}")
    return tensor


class _OfMatrix(LinearOperator):
    """Base class of operators that hold a matrix."""

    _matrix: Tensor

    def _shape(self) -> TensorShape:
        return self._matrix.shape

    def _shape_tensor(self) -> Tensor:
        return array.shape(self._matrix)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return multiply(self._matrix, x, adjoint, adjoint_arg)

    def _to_dense(self) -> Tensor:
        return self._matrix


class LinearOperatorFullMatrix(_OfMatrix):
    """Arbitrary dense matrices.

    Args:
        matrix: `(..., rows, columns)`, floating or complex.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name: see
            `LinearOperator`.

    Raises:
        TypeError: the dtype is neither floating nor complex.
        ValueError: there are fewer than two dimensions.
    """

    def __init__(
        self,
        matrix: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorFullMatrix",
    ) -> None:
        self._matrix = _stack(matrix, "matrix")
        super().__init__(
            self._matrix.dtype,
            None,
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            is_square,
            name,
            {"matrix": matrix},
        )

    @property
    def matrix(self) -> Tensor:
        """The matrices."""
        return self._matrix


class LinearOperatorLowerTriangular(_OfMatrix):
    """Lower triangular matrices.

    Args:
        tril: `(..., n, n)`; elements above the diagonal are ignored.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name: see
            `LinearOperator`.

    Raises:
        ValueError: there are fewer than two dimensions, or `is_square=False`.
    """

    def __init__(
        self,
        tril: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowerTriangular",
    ) -> None:
        if is_square is False:
            raise ValueError("Only square lower triangular operators supported at this time.")
        self.tril = _stack(tril, "tril")
        self._matrix = matrix_band_part(self.tril, -1, 0)
        super().__init__(
            self._matrix.dtype,
            None,
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            True,
            name,
            {"tril": tril},
        )

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        matrix, right = of_one_batch(self._matrix, adjoint_of(rhs) if adjoint_arg else rhs)
        return matrices.matrix_triangular_solve(matrix, right, lower=True, adjoint=adjoint)

    def _determinant(self) -> Tensor:
        return reduce.reduce_prod(matrix_diag_part(self._matrix), -1)

    def _log_abs_determinant(self) -> Tensor:
        diagonal = matrix_diag_part(self._matrix)
        return reduce.reduce_sum(elementwise.log(elementwise.abs(diagonal)), -1)

    def _assert_non_singular(self) -> Any:
        return assert_not_zero(
            matrix_diag_part(self._matrix), "Singular operator:  Diagonal contained zero values."
        )


class LinearOperatorLowRankUpdate(LinearOperator):
    """L + U D V^H with an operator L, diagonal matrices D and thin matrices U, V.

    Linear systems are solved with the dense matrix.

    Args:
        base_operator: L, `(..., m, n)`.
        u: `(..., m, k)`.
        diag_update: the diagonals of D, `(..., k)`; by default D is the identity.
        v: `(..., n, k)`; by default `u`.
        is_diag_update_positive: whether `diag_update` is positive.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name: see
            `LinearOperator`.

    Raises:
        ValueError: the hints contradict each other.
    """

    def __init__(
        self,
        base_operator: LinearOperator,
        u: Any,
        diag_update: Any = None,
        v: Any = None,
        is_diag_update_positive: bool | None = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowRankUpdate",
    ) -> None:
        dtype = base_operator.dtype
        if diag_update is None:
            if is_diag_update_positive is False:
                raise ValueError(
                    "Default diagonal is the identity, which is positive.  However, user set "
                    "'is_diag_update_positive' to False."
                )
            is_diag_update_positive = True
        if base_operator.is_self_adjoint and v is None and not dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError(
                    "A = L + UDU^H, with L self-adjoint and D real diagonal.  Since UDU^H is "
                    "self-adjoint, this must be a self-adjoint operator."
                )
            is_self_adjoint = True
        positive = base_operator.is_positive_definite and base_operator.is_self_adjoint
        if positive and is_diag_update_positive and v is None:
            if False in (is_positive_definite, is_self_adjoint, is_non_singular):
                raise ValueError("Arguments imply this is self-adjoint positive-definite operator.")
            is_positive_definite = is_self_adjoint = True
        self.base_operator = base_operator
        self.u = convert_to_tensor(u, dtype_hint=dtype, name="u")
        self.v = self.u if v is None else convert_to_tensor(v, dtype_hint=dtype, name="v")
        self.diag_update = (
            None
            if diag_update is None
            else convert_to_tensor(diag_update, dtype_hint=dtype, name="diag_update")
        )
        self.is_diag_update_positive = is_diag_update_positive
        super().__init__(
            dtype,
            None,
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            is_square,
            name,
            {"base_operator": base_operator, "u": u, "diag_update": diag_update, "v": v},
        )

    def _shape(self) -> TensorShape:
        own = self.base_operator.shape
        if own.rank is None or self.u.shape.rank is None:
            return TensorShape(None)
        return broadcast_static_shape(own[:-2], self.u.shape[:-2]).concatenate(own[-2:])

    def _shape_tensor(self) -> Tensor:
        return array.shape(self.to_dense())

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        left, right = (self.v, self.u) if adjoint else (self.u, self.v)
        inner = multiply(right, x, True, adjoint_arg)
        if self.diag_update is not None:
            inner = self.diag_update[..., None] * inner
        own = self.base_operator.matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)
        return elementwise.add(own, multiply(left, inner, False, False))

    def _to_dense(self) -> Tensor:
        left = self.u if self.diag_update is None else self.u * self.diag_update[..., None, :]
        return self.base_operator.to_dense() + multiply(left, self.v, False, True)
