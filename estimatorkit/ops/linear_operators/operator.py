"""`LinearOperator`: batched matrices defined by their products.

Subclasses define `_shape`, `_shape_tensor` and `_matmul`; other methods fall back to the dense
matrix unless overridden (`_solve`, `_to_dense`, `_determinant`, ...).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.shapes import UNKNOWN_DIMENSION, TensorShape, as_shape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array, joining, rearrange
from estimatorkit.ops.debug import checks
from estimatorkit.ops.debug.shape_matching import broadcast_dynamic_shape
from estimatorkit.ops.linalg import matrices
from estimatorkit.ops.linalg.decompositions import self_adjoint_eigvals, svd
from estimatorkit.ops.linalg.diagonals import eye, matrix_diag_part
from estimatorkit.ops.linalg.products import adjoint as adjoint_of
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.math.linalg import matmul
from estimatorkit.ops.math.special import real

related: dict[str, Callable[..., LinearOperator]] = {}
"""The operator classes that methods of `LinearOperator` return; filled by the module `related`."""


class LinearOperator:
    """Batched matrices `(..., rows, columns)` with products, solvers and determinants.

    Source: `tf.linalg.LinearOperator`.

    Args:
        dtype: the dtype of the matrices.
        graph_parents: tensors that the operator depends on.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: hints; None if unknown.
            They select the algorithms and are not verified. Positive definite means that the real
            part of x^H A x is positive; the matrix need not be self-adjoint.
        name: the name scope of its operations.
        parameters: the subclass's arguments, for the attribute `parameters`.

    Raises:
        ValueError: the hints contradict each other.
    """

    def __init__(
        self,
        dtype: Any,
        graph_parents: Any = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> None:
        for parent in graph_parents or []:
            if not isinstance(parent, Tensor):
                raise ValueError(f"Graph parent item is not a Tensor; {parent!r}.")
        if is_positive_definite:
            is_non_singular = _implied(
                is_non_singular, "A positive definite matrix is always non-singular."
            )
        if is_non_singular:
            is_square = _implied(is_square, "A non-singular matrix is always square.")
        if is_self_adjoint:
            is_square = _implied(is_square, "A self-adjoint matrix is always square.")
        self.dtype = as_dtype(dtype)
        self.graph_parents = list(graph_parents or [])
        self.is_non_singular = is_non_singular
        self.is_self_adjoint = is_self_adjoint
        self.is_positive_definite = is_positive_definite
        self.name = name or type(self).__name__
        self.parameters = dict(parameters or {})
        self._is_square = is_square

    # -- what subclasses define

    def _shape(self) -> TensorShape:
        raise NotImplementedError("_shape is not implemented.")

    def _shape_tensor(self) -> Tensor:
        raise NotImplementedError("_shape_tensor is not implemented.")

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        raise NotImplementedError("_matmul is not implemented.")

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        rhs = adjoint_of(rhs) if adjoint_arg else rhs
        matrix, right = of_one_batch(self.to_dense(), rhs)
        if self._is_positive_and_self_adjoint():
            return matrices.cholesky_solve(matrices.cholesky(matrix), right)
        return matrices.matrix_solve(matrix, right, adjoint=adjoint)

    def _to_dense(self) -> Tensor:
        shape = self.shape_tensor()
        batch = None if self.batch_shape.rank == 0 else shape[:-2]
        dense: Tensor = self.matmul(eye(shape[-1], batch_shape=batch, dtype=self.dtype))
        return dense

    def _diag_part(self) -> Tensor:
        return matrix_diag_part(self.to_dense())

    def _trace(self) -> Tensor:
        return reduce.reduce_sum(self.diag_part(), -1)

    def _determinant(self) -> Tensor:
        return matrices.matrix_determinant(self.to_dense())

    def _log_abs_determinant(self) -> Tensor:
        if self._is_positive_and_self_adjoint():
            diagonal = matrix_diag_part(matrices.cholesky(self.to_dense()))
            half = reduce.reduce_sum(elementwise.log(elementwise.abs(diagonal)), -1)
            return elementwise.add(half, half)
        return matrices.slogdet(self.to_dense())[1]

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        return elementwise.add(self.to_dense(), x)

    def _eigvals(self) -> Tensor:
        return self_adjoint_eigvals(self.to_dense())

    def _assert_non_singular(self) -> Any:
        if self._is_positive_and_self_adjoint():
            return self.assert_positive_definite()
        epsilon = np.finfo(self.dtype.as_numpy_dtype).eps
        size = elementwise.cast(reduce.reduce_max(self.shape_tensor()[-2:]), self.dtype.real_dtype)
        limit = 1.0 / (epsilon * elementwise.maximum(size, 100.0))
        return checks.assert_less(
            self.cond(), limit, message="Singular matrix up to precision epsilon."
        )

    def _assert_positive_definite(self) -> Any:
        if not self.is_self_adjoint:
            raise NotImplementedError("assert_positive_definite is not implemented.")
        diagonal = real(matrix_diag_part(matrices.cholesky(self.to_dense())))
        return checks.assert_positive(diagonal, message="Matrix was not positive definite.")

    def _assert_self_adjoint(self) -> Any:
        dense = self.to_dense()
        message = "Matrix was not equal to its adjoint."
        return checks.assert_equal(dense, adjoint_of(dense), message=message)

    def _linop_adjoint(self) -> LinearOperator:
        return related["adjoint"](self)

    def _linop_inverse(self) -> LinearOperator:
        return related["inversion"](self)

    def _linop_cholesky(self) -> LinearOperator:
        factor = matrices.cholesky(self.to_dense())
        return related["lower_triangular"](factor, is_non_singular=True, is_self_adjoint=False)

    def _linop_matmul(self, right: LinearOperator) -> LinearOperator:
        return related["product"](self, right)

    def _is_positive_and_self_adjoint(self) -> bool:
        return bool(self.is_self_adjoint and self.is_positive_definite)

    # -- shapes

    @property
    def is_square(self) -> bool | None:
        """Whether the matrices are square, by the hint or their static shape; None if unknown.

        Raises:
            ValueError: the hint is False but the matrices are square.
        """
        rows, columns = self._shape()[-2:].as_list() if self._shape().rank else (None, None)
        found = None if rows is None or columns is None else rows == columns
        if self._is_square is False and found:
            raise ValueError("User set is_square hint to False, but the operator was square.")
        return found if self._is_square is None else self._is_square

    @property
    def shape(self) -> TensorShape:
        """The static shape, batch dimensions first."""
        return self._shape()

    @property
    def batch_shape(self) -> TensorShape:
        """The static shape of the batch dimensions."""
        return TensorShape(None) if self.shape.rank is None else self.shape[:-2]

    @property
    def tensor_rank(self) -> int | None:
        """The number of dimensions, including batch dimensions."""
        return self.shape.rank

    @property
    def domain_dimension(self) -> Any:
        """The number of columns, a `Dimension`."""
        return self._dimension(-1)

    @property
    def range_dimension(self) -> Any:
        """The number of rows, a `Dimension`."""
        return self._dimension(-2)

    def _dimension(self, axis: int) -> Any:
        size = self.shape[axis] if self.shape.rank else None
        return UNKNOWN_DIMENSION if size is None else size

    def shape_tensor(self, name: str = "shape_tensor") -> Tensor:
        """The shape, int32 `(rank,)`."""
        with self._scope(name):
            if self.shape.is_fully_defined():
                return convert_to_tensor(np.array(self.shape.as_list(), np.int32))
            return self._shape_tensor()

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """The shape of the batch dimensions, int32."""
        return self.shape_tensor(name)[:-2]

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Tensor:
        """The number of dimensions, an int32 scalar."""
        return array.size(self.shape_tensor(name))

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Tensor:
        """The number of columns, an int32 scalar."""
        return self.shape_tensor(name)[-1]

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Tensor:
        """The number of rows, an int32 scalar."""
        return self.shape_tensor(name)[-2]

    # -- products and linear systems

    def matmul(
        self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul"
    ) -> Any:
        """Matrix products A @ x.

        Args:
            x: `(..., columns, n)`, whose batch dimensions broadcast, or an operator.
            adjoint: whether to multiply by the adjoint of this operator.
            adjoint_arg: whether to multiply the adjoint of `x`.

        Returns:
            `(..., rows, n)`; an operator if `x` is one.

        Raises:
            ValueError: the shapes are incompatible.
            TypeError: `x` has another dtype.
        """
        if isinstance(x, LinearOperator):
            left, right = self.adjoint() if adjoint else self, x.adjoint() if adjoint_arg else x
            _check_fit(left.domain_dimension, right.range_dimension, left, right)
            return left._linop_matmul(right)
        with self._scope(name):
            x = self._argument(x)
            own = self.range_dimension if adjoint else self.domain_dimension
            _check_fit(own, _size(x, -1 if adjoint_arg else -2), self, x)
            return self._matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Tensor:
        """Matrix-vector products with `(..., columns)`; see `matmul`."""
        with self._scope(name):
            x = self._argument(x)
            own = self.range_dimension if adjoint else self.domain_dimension
            _check_fit(own, _size(x, -1), self, x)
            return array.squeeze(self._matmul(x[..., None], adjoint=adjoint), -1)

    def solve(
        self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve"
    ) -> Any:
        """Solves A @ x = rhs for matrices x.

        Args:
            rhs: `(..., rows, n)`, whose batch dimensions broadcast, or an operator.
            adjoint: whether to solve with the adjoint of this operator.
            adjoint_arg: whether to use the adjoint of `rhs`.

        Raises:
            NotImplementedError: the operator is singular or not square.
            ValueError: the shapes are incompatible.
        """
        if self.is_non_singular is False:
            raise NotImplementedError(
                "Exact solve not implemented for an operator that is expected to be singular."
            )
        if self.is_square is False:
            raise NotImplementedError(
                "Exact solve not implemented for an operator that is expected to not be square."
            )
        if isinstance(rhs, LinearOperator):
            left, right = self.adjoint() if adjoint else self, rhs
            right = right.adjoint() if adjoint_arg else right
            _check_fit(left.range_dimension, right.range_dimension, left, right)
            return left.inverse()._linop_matmul(right)
        with self._scope(name):
            rhs = self._argument(rhs)
            own = self.domain_dimension if adjoint else self.range_dimension
            _check_fit(own, _size(rhs, -1 if adjoint_arg else -2), self, rhs)
            return self._solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Tensor:
        """Solves A @ x = rhs for vectors x, `(..., rows)`; see `solve`."""
        with self._scope(name):
            rhs = self._argument(rhs)
            own = self.domain_dimension if adjoint else self.range_dimension
            _check_fit(own, _size(rhs, -1), self, rhs)
            return array.squeeze(self.solve(rhs[..., None], adjoint=adjoint), -1)

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """The operator of the adjoint matrices; also `H`."""
        with self._scope(name):
            return self if self.is_self_adjoint else self._linop_adjoint()

    H = property(adjoint)

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """The operator of the inverse matrices.

        Raises:
            ValueError: it is known to be singular or not square.
        """
        for known, what in ((self.is_square, "non square"), (self.is_non_singular, "singular")):
            if known is False:
                raise ValueError(
                    f"Cannot take the Inverse: This operator represents a {what} matrix."
                )
        with self._scope(name):
            return self._linop_inverse()

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        """The operator of lower triangular L with A = L L^H.

        Raises:
            ValueError: it is not known to be self-adjoint and positive definite.
        """
        if not self._is_positive_and_self_adjoint():
            raise ValueError(
                "Cannot take the Cholesky decomposition: Not a positive definite self adjoint "
                "matrix."
            )
        with self._scope(name):
            return self._linop_cholesky()

    # -- numbers

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """The matrices, `(..., rows, columns)`."""
        with self._scope(name):
            return self._to_dense()

    def diag_part(self, name: str = "diag_part") -> Tensor:
        """The diagonals, `(..., min(rows, columns))`."""
        with self._scope(name):
            return self._diag_part()

    def trace(self, name: str = "trace") -> Tensor:
        """The sums of the diagonals."""
        with self._scope(name):
            return self._trace()

    def determinant(self, name: str = "det") -> Tensor:
        """The determinants.

        Raises:
            NotImplementedError: it is not square.
        """
        self._check_square("Determinant")
        with self._scope(name):
            return self._determinant()

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        """The logarithms of the absolute values of the determinants.

        Raises:
            NotImplementedError: it is not square.
        """
        self._check_square("Determinant")
        with self._scope(name):
            return self._log_abs_determinant()

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Tensor:
        """The sum of the dense matrices and a tensor."""
        with self._scope(name):
            return self._add_to_tensor(self._argument(x))

    def eigvals(self, name: str = "eigvals") -> Tensor:
        """The eigenvalues, in ascending order.

        Raises:
            NotImplementedError: it is not known to be self-adjoint.
        """
        if not self.is_self_adjoint:
            raise NotImplementedError("Only self-adjoint matrices are supported.")
        with self._scope(name):
            return self._eigvals()

    def cond(self, name: str = "cond") -> Tensor:
        """The condition number: the largest singular value divided by the smallest."""
        with self._scope(name):
            values: Any = svd(self.to_dense(), compute_uv=False)
            return reduce.reduce_max(values, -1) / reduce.reduce_min(values, -1)

    # -- checks

    def assert_non_singular(self, name: str = "assert_non_singular") -> Any:
        """An operation that raises InvalidArgumentError if a matrix is singular."""
        with self._scope(name):
            return self._assert_non_singular()

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> Any:
        """An operation that raises InvalidArgumentError if a matrix is not positive definite.

        Raises:
            NotImplementedError: it is not known to be self-adjoint.
        """
        with self._scope(name):
            return self._assert_positive_definite()

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> Any:
        """An operation that raises InvalidArgumentError if a matrix is not self-adjoint."""
        with self._scope(name):
            return self._assert_self_adjoint()

    # -- helpers

    def _scope(self, name: str) -> Any:
        return get_default_graph().name_scope(f"{self.name}/{name}")

    def _check_square(self, what: str) -> None:
        if self.is_square is False:
            raise NotImplementedError(
                f"{what} not implemented for an operator that is expected to not be square."
            )

    def _argument(self, x: Any) -> Tensor:
        tensor = convert_to_tensor(x, dtype_hint=self.dtype, name="x")
        if tensor.dtype is not self.dtype:
            raise type_error(
                "Input argument is expected to have the dtype of the operator",
                expected=self.dtype.name,
                received=tensor,
            )
        return tensor


def _implied(hint: bool | None, rule: str) -> bool:
    if hint is False:
        raise ValueError(rule)
    return True


def _size(x: Tensor, axis: int) -> Any:
    size = x.shape[axis] if x.shape.rank else None
    return UNKNOWN_DIMENSION if size is None else size


def _check_fit(own: Any, other: Any, operator: LinearOperator, x: Any) -> None:
    if not own.is_compatible_with(other):
        raise value_error(
            f"Dimensions {own} and {other} are not compatible: operators are incompatible",
            expected=f"an operand compatible with the operator of shape {operator.shape}",
            received=x.shape,
        )


def of_one_batch(*tensors: Tensor) -> list[Tensor]:
    """Broadcasts the batch dimensions of matrices to common ones."""
    batches = [as_shape(each.shape)[:-2] for each in tensors if each.shape.rank is not None]
    if len(batches) == len(tensors) and len(set(batches)) == 1 and batches[0].is_fully_defined():
        return list(tensors)
    shapes = [array.shape(each) for each in tensors]
    batch = shapes[0][:-2]
    for shape in shapes[1:]:
        batch = broadcast_dynamic_shape(batch, shape[:-2])
    return [
        rearrange.broadcast_to(each, joining.concat([batch, shape[-2:]], 0))
        for each, shape in zip(tensors, shapes, strict=True)
    ]


def multiply(matrix: Tensor, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
    """The product of dense matrices, with broadcast batch dimensions."""
    return matmul(matrix, x, adjoint_a=adjoint, adjoint_b=adjoint_arg)
