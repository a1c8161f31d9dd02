"""Diagonal operators: diagonal, identity, scaled identity, zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import as_dtype, float32
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.registry import constant_value, constant_value_as_shape
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array, filling, joining
from estimatorkit.ops.debug import checks
from estimatorkit.ops.debug.shape_matching import broadcast_dynamic_shape
from estimatorkit.ops.linalg.diagonals import matrix_diag
from estimatorkit.ops.linalg.products import adjoint as adjoint_of
from estimatorkit.ops.linear_operators.operator import LinearOperator
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.math.special import conj, imag, real


def assert_not_zero(x: Tensor, message: str) -> Any:
    """An operation that raises InvalidArgumentError if an element is 0."""
    size = elementwise.abs(x)
    return checks.assert_less(filling.zeros_like(size[..., :1]), size, message=message)


class _Diagonal(LinearOperator):
    """Base class of operators that scale each row."""

    def _factors(self) -> Tensor:
        """The factors of the rows, `(..., n)` or `(..., 1)`."""
        raise NotImplementedError

    def _each_row(self, adjoint: bool) -> Tensor:
        factors = self._factors()
        return (conj(factors) if adjoint else factors)[..., None]

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return elementwise.multiply(self._each_row(adjoint), adjoint_of(x) if adjoint_arg else x)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return elementwise.divide(adjoint_of(rhs) if adjoint_arg else rhs, self._each_row(adjoint))

    def _diag_part(self) -> Tensor:
        factors = self._factors()
        return factors * filling.ones(self.shape_tensor()[:-1], factors.dtype)

    def _to_dense(self) -> Tensor:
        return matrix_diag(self.diag_part())

    def _determinant(self) -> Tensor:
        return reduce.reduce_prod(self.diag_part(), -1)

    def _log_abs_determinant(self) -> Tensor:
        return reduce.reduce_sum(elementwise.log(elementwise.abs(self.diag_part())), -1)

    def _eigvals(self) -> Tensor:
        return self.diag_part()

    def _assert_non_singular(self) -> Any:
        return assert_not_zero(
            self._factors(), "Singular operator:  Diagonal contained zero values."
        )

    def _assert_positive_definite(self) -> Any:
        kind = "non-positive real" if self.dtype.is_complex else "non-positive"
        return checks.assert_positive(
            real(self._factors()),
            message=f"Diagonal operator had diagonal entries with {kind} values, thus was not "
            "positive definite.",
        )

    def _assert_self_adjoint(self) -> Any:
        parts = imag(self._factors())
        return checks.assert_equal(
            parts,
            filling.zeros_like(parts),
            message="This diagonal operator contained non-zero imaginary values.  Thus it was not "
            "self-adjoint.",
        )


class LinearOperatorDiag(_Diagonal):
    """Diagonal matrices.

    Args:
        diag: `(..., n)`, floating or complex.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name: see
            `LinearOperator`; real ones are self-adjoint.

    Raises:
        ValueError: `diag` is a scalar, or a hint contradicts that the matrices are diagonal.
    """

    def __init__(
        self,
        diag: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorDiag",
    ) -> None:
        self.diag = convert_to_tensor(diag, name="diag")
        if self.diag.shape.rank == 0:
            raise ValueError(f"Argument diag must have at least 1 dimension.  Found: {self.diag}")
        if is_square is False:
            raise ValueError("Only square diagonal operators currently supported.")
        super().__init__(
            self.diag.dtype,
            None,
            is_non_singular,
            _self_adjoint_if_real(self.diag, is_self_adjoint),
            is_positive_definite,
            True,
            name,
            {"diag": diag},
        )

    def _factors(self) -> Tensor:
        return self.diag

    def _shape(self) -> TensorShape:
        shape = self.diag.shape
        return TensorShape(None) if shape.rank is None else shape.concatenate(shape[-1:])

    def _shape_tensor(self) -> Tensor:
        shape = array.shape(self.diag)
        return joining.concat([shape, shape[-1:]], 0)

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorDiag(conj(self.diag), is_non_singular=self.is_non_singular)

    def _linop_inverse(self) -> LinearOperator:
        return LinearOperatorDiag(1.0 / self.diag, is_non_singular=True)

    def _linop_cholesky(self) -> LinearOperator:
        return LinearOperatorDiag(elementwise.sqrt(self.diag), is_non_singular=True)


def _self_adjoint_if_real(values: Tensor, hint: bool | None) -> bool | None:
    if values.dtype.is_complex:
        return hint
    if hint is False:
        raise ValueError("A real diagonal operator is always self adjoint.")
    return True


class _OfRows(LinearOperator):
    """Base class of operators defined by their number of rows, and of columns unless square."""

    _rows: Tensor
    _columns: Tensor
    _batch: Tensor | None

    def _set_sizes(self, rows: Any, columns: Any, batch_shape: Any) -> None:
        self._rows = _count(rows, "num_rows")
        self._columns = self._rows if columns is None else _count(columns, "num_columns")
        self._batch = None
        if batch_shape is not None:
            self._batch = convert_to_tensor(batch_shape, dtype_hint="int32", name="batch_shape")
            _check_counts(self._batch, "batch_shape", 1)

    def _own_batch(self) -> TensorShape:
        return TensorShape([]) if self._batch is None else constant_value_as_shape(self._batch)

    def _shape(self) -> TensorShape:
        sizes = (constant_value(self._rows), constant_value(self._columns))
        return self._own_batch().concatenate([None if n is None else int(n) for n in sizes])

    def _shape_tensor(self) -> Tensor:
        sizes = [elementwise.cast(each[None], "int32") for each in (self._rows, self._columns)]
        batch = [] if self._batch is None else [elementwise.cast(self._batch, "int32")]
        return joining.concat([*batch, *sizes], 0)


def _count(value: Any, what: str) -> Tensor:
    tensor = convert_to_tensor(value, name=what)
    _check_counts(tensor, what, 0)
    return tensor


def _check_counts(tensor: Tensor, what: str, rank: int) -> None:
    if not tensor.dtype.is_integer:
        raise TypeError(f"Argument {what} must be integer type.  Found: {tensor}")
    if tensor.shape.rank not in (None, rank):
        raise ValueError(f"Argument {what} must be a {rank}-D Tensor.  Found: {tensor}")
    known = constant_value(tensor)
    if known is not None and np.any(known < 0):
        raise ValueError(f"Argument {what} must be non-negative.  Found: {known}")


class LinearOperatorIdentity(_OfRows, _Diagonal):
    """Identity matrices.

    Args:
        num_rows: n, an integer.
        batch_shape: the batch dimensions; none by default.
        dtype: of the matrices.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name: see
            `LinearOperator`; all True.
        assert_proper_shapes: accepted for compatibility only; known sizes are always checked.

    Raises:
        ValueError: a hint is False, or a size is negative or has the wrong rank.
        TypeError: a size is not an integer.
    """

    def __init__(
        self,
        num_rows: Any,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = True,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = True,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorIdentity",
    ) -> None:
        for hint, what in (
            (is_self_adjoint, "self adjoint"),
            (is_non_singular, "non-singular"),
            (is_positive_definite, "positive-definite"),
            (is_square, "square"),
        ):
            if not hint:
                raise ValueError(f"An identity operator is always {what}.")
        self._set_sizes(num_rows, None, batch_shape)
        super().__init__(
            as_dtype(dtype or float32), None, True, True, True, True, name, {"num_rows": num_rows}
        )

    def _factors(self) -> Tensor:
        return filling.ones([1], self.dtype)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        result: Tensor = adjoint_of(x) if adjoint_arg else x
        if self._batch is None:
            return result
        ones = filling.ones(joining.concat([self._batch, [1, 1]], 0), self.dtype)
        return elementwise.multiply(result, ones)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._matmul(rhs, adjoint_arg=adjoint_arg)

    def _assert_non_singular(self) -> Any:
        return checks.assert_positive(1, name="assert_non_singular")

    _assert_positive_definite = _assert_self_adjoint = _assert_non_singular

    def _linop_inverse(self) -> LinearOperator:
        return self

    _linop_cholesky = _linop_inverse


class LinearOperatorScaledIdentity(_OfRows, _Diagonal):
    """Scaled identity matrices.

    Args:
        num_rows: n, an integer.
        multiplier: the factors, `(...)`.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name: see
            `LinearOperator`; real ones are self-adjoint.
        assert_proper_shapes: accepted for compatibility only; known sizes are always checked.

    Raises:
        ValueError: a hint is wrong, or a size is negative or has the wrong rank.
        TypeError: `num_rows` is not an integer.
    """

    def __init__(
        self,
        num_rows: Any,
        multiplier: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:
        self.multiplier = convert_to_tensor(multiplier, name="multiplier")
        if not is_square:
            raise ValueError("A ScaledIdentity operator is always square.")
        self._set_sizes(num_rows, None, None)
        super().__init__(
            self.multiplier.dtype,
            None,
            is_non_singular,
            _self_adjoint_if_real(self.multiplier, is_self_adjoint),
            is_positive_definite,
            True,
            name,
            {"num_rows": num_rows, "multiplier": multiplier},
        )

    def _factors(self) -> Tensor:
        return self.multiplier[..., None]

    def _own_batch(self) -> TensorShape:
        return self.multiplier.shape

    def _shape_tensor(self) -> Tensor:
        return joining.concat([array.shape(self.multiplier), super()._shape_tensor()], 0)

    def _assert_non_singular(self) -> Any:
        return assert_not_zero(self._factors(), "LinearOperator was singular")

    def _assert_positive_definite(self) -> Any:
        return checks.assert_positive(
            real(self.multiplier), message="LinearOperator was not positive definite."
        )

    def _assert_self_adjoint(self) -> Any:
        parts = imag(self.multiplier)
        return checks.assert_equal(
            parts, filling.zeros_like(parts), message="LinearOperator was not self-adjoint"
        )

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._rows, conj(self.multiplier))

    def _linop_inverse(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._rows, 1.0 / self.multiplier)

    def _linop_cholesky(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._rows, elementwise.sqrt(self.multiplier))


class LinearOperatorZeros(_OfRows):
    """Zero matrices.

    Args:
        num_rows, num_columns: integers; square by default. Other matrices also need the hints
            `is_square=False` and `is_self_adjoint=False`.
        batch_shape: the batch dimensions; none by default.
        dtype: of the matrices.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name: see
            `LinearOperator`; the operator is singular and not positive definite.
        assert_proper_shapes: accepted for compatibility only; known sizes are always checked.

    Raises:
        ValueError: a hint is wrong, or a size is negative or has the wrong rank.
        TypeError: a size is not an integer.
    """

    def __init__(
        self,
        num_rows: Any,
        num_columns: Any = None,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = False,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = False,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorZeros",
    ) -> None:
        if is_non_singular:
            raise ValueError("A zero operator is always singular.")
        if is_positive_definite:
            raise ValueError("A zero operator is always not positive-definite.")
        self._set_sizes(num_rows, num_columns, batch_shape)
        sizes = (constant_value(self._rows), constant_value(self._columns))
        if is_square and None not in sizes and sizes[0] != sizes[1]:
            raise ValueError(
                "LinearOperatorZeros initialized as is_square=True, but got num_rows != num_columns"
            )
        super().__init__(
            as_dtype(dtype or float32),
            None,
            False,
            is_self_adjoint,
            False,
            is_square,
            name,
            {"num_rows": num_rows, "num_columns": num_columns},
        )

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x = adjoint_of(x) if adjoint_arg else x
        own, given = self.shape_tensor(), array.shape(x)
        batch = broadcast_dynamic_shape(own[:-2], given[:-2])
        rows = own[-1:] if adjoint else own[-2:-1]
        made = filling.zeros(joining.concat([batch, rows, given[-1:]], 0), self.dtype)
        return made

    def _to_dense(self) -> Tensor:
        return filling.zeros(self.shape_tensor(), self.dtype)

    def _determinant(self) -> Tensor:
        return filling.zeros(self.batch_shape_tensor(), self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        return elementwise.log(filling.zeros(self.batch_shape_tensor(), self.dtype))

    def _assert_non_singular(self) -> Any:
        raise InvalidArgumentError(None, None, "Zero operators are always non-invertible.")

    def _assert_positive_definite(self) -> Any:
        raise InvalidArgumentError(None, None, "Zero operators are always non-positive definite.")

    def _assert_self_adjoint(self) -> Any:
        return checks.assert_equal(self._rows, self._columns)
