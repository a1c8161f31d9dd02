"""Operators composed of operators: adjoints, inverses, products, Kronecker products, blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array, filling, joining
from estimatorkit.ops.debug.shape_matching import broadcast_dynamic_shape, broadcast_static_shape
from estimatorkit.ops.linalg.products import adjoint as adjoint_of
from estimatorkit.ops.linear_operators.dense import LinearOperatorLowerTriangular
from estimatorkit.ops.linear_operators.diagonal import (
    LinearOperatorDiag,
    LinearOperatorIdentity,
    LinearOperatorScaledIdentity,
    LinearOperatorZeros,
)
from estimatorkit.ops.linear_operators.operator import (
    LinearOperator,
    multiply,
    of_one_batch,
    related,
)
from estimatorkit.ops.math import elementwise

_DIAGONAL = (LinearOperatorDiag, LinearOperatorScaledIdentity)


def product_of(left: LinearOperator, right: LinearOperator) -> LinearOperator:
    """The operator A @ B: of a special kind if the factors allow it, else a composition."""
    if isinstance(left, LinearOperatorIdentity) or isinstance(right, LinearOperatorZeros):
        return right
    if isinstance(right, LinearOperatorIdentity) or isinstance(left, LinearOperatorZeros):
        return left
    both_known = bool(left.is_non_singular and right.is_non_singular) or None
    if isinstance(left, _DIAGONAL) and isinstance(right, _DIAGONAL):
        if isinstance(left, LinearOperatorScaledIdentity) and isinstance(
            right, LinearOperatorScaledIdentity
        ):
            return LinearOperatorScaledIdentity(
                left._rows, left.multiplier * right.multiplier, is_non_singular=both_known
            )
        return LinearOperatorDiag(left._factors() * right._factors(), is_non_singular=both_known)
    triangular = (*_DIAGONAL, LinearOperatorLowerTriangular)
    if isinstance(left, triangular) and isinstance(right, triangular):
        return LinearOperatorLowerTriangular(
            left.matmul(right.to_dense()), is_non_singular=both_known
        )
    return LinearOperatorComposition([left, right])


class _OfOne(LinearOperator):
    """Base class of operators that wrap one operator and inherit its hints."""

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        self.operator = operator
        hints = []
        for what, hint in (
            ("is_non_singular", is_non_singular),
            ("is_self_adjoint", is_self_adjoint),
            ("is_positive_definite", is_positive_definite),
            ("is_square", is_square),
        ):
            known = getattr(operator, what)
            if hint is not None and known is not None and hint != known:
                raise ValueError(
                    f"Operator {operator.name} has {what}={known}, which {hint} contradicts."
                )
            hints.append(known if hint is None else hint)
        super().__init__(
            operator.dtype,
            None,
            hints[0],
            hints[1],
            hints[2],
            hints[3],
            name or f"{operator.name}_{self._suffix}",
            {"operator": operator},
        )

    _suffix = ""

    def _shape(self) -> TensorShape:
        shape = self.operator.shape
        return shape if shape.rank is None else shape[:-2].concatenate([shape[-1], shape[-2]])

    def _shape_tensor(self) -> Tensor:
        shape = self.operator.shape_tensor()
        return joining.concat([shape[:-2], shape[-1:], shape[-2:-1]], 0)


class LinearOperatorAdjoint(_OfOne):
    """The adjoint of an operator.

    Args:
        operator: the operator.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name: see
            `LinearOperator`; by default those of `operator`.

    Raises:
        ValueError: a hint contradicts the operator's.
    """

    _suffix = "adjoint"

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self.operator._matmul(x, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self.operator._solve(rhs, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _to_dense(self) -> Tensor:
        return adjoint_of(self.operator.to_dense())

    def _linop_adjoint(self) -> LinearOperator:
        return self.operator


class LinearOperatorInversion(_OfOne):
    """The inverse of an operator.

    Args:
        operator: the operator; that it is invertible is not verified.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name: see
            `LinearOperator`; by default those of `operator`.

    Raises:
        ValueError: a hint contradicts the operator's, or it is known to be singular.
    """

    _suffix = "inv"

    def __init__(self, operator: LinearOperator, *hints: Any, **more: Any) -> None:
        super().__init__(operator, *hints, **more)
        if self.is_non_singular is False:
            raise ValueError(f"operator {operator.name} is singular: it has no inverse")

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self.operator._solve(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self.operator._matmul(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _log_abs_determinant(self) -> Tensor:
        return -self.operator.log_abs_determinant()

    def _determinant(self) -> Tensor:
        return 1.0 / self.operator.determinant()

    def _linop_inverse(self) -> LinearOperator:
        return self.operator


class _OfSeveral(LinearOperator):
    """Base class of operators composed of several; non-singular if all parts are."""

    _separator = ""

    def __init__(
        self,
        operators: Sequence[LinearOperator],
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        self.operators = list(operators)
        if not self.operators:
            raise ValueError(f"Expected a non-empty list of >=1 operators. Found: {self.operators}")
        dtypes = {each.dtype for each in self.operators}
        if len(dtypes) > 1:
            found = "   ".join(f"{each.name}: {each.dtype.name}" for each in self.operators)
            raise TypeError(f"Expected all operators to have the same dtype.  Found {found}")
        if all(each.is_non_singular for each in self.operators):
            if is_non_singular is False:
                raise ValueError(
                    "The composition of non-singular operators is always non-singular."
                )
            is_non_singular = True
        super().__init__(
            self.operators[0].dtype,
            None,
            is_non_singular,
            self._known("is_self_adjoint", is_self_adjoint),
            self._known("is_positive_definite", is_positive_definite),
            self._known("is_square", is_square),
            name or self._separator.join(each.name for each in self.operators),
            {"operators": operators},
        )

    def _known(self, what: str, hint: bool | None) -> bool | None:
        """The hint, or True if it is None and the property holds for all parts."""
        if hint is None and all(getattr(each, what) for each in self.operators):
            return True
        return hint

    def _batch(self) -> TensorShape:
        batch = TensorShape([])
        for each in self.operators:
            if each.shape.rank is None:
                return TensorShape(None)
            batch = broadcast_static_shape(batch, each.batch_shape)
        return batch

    def _batch_tensor(self) -> Tensor:
        batch = self.operators[0].batch_shape_tensor()
        for each in self.operators[1:]:
            batch = broadcast_dynamic_shape(batch, each.batch_shape_tensor())
        return batch


class LinearOperatorComposition(_OfSeveral):
    """The product of operators, A @ B @ ...

    Args:
        operators: a list of compatible operators of one dtype.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name: see
            `LinearOperator`.

    Raises:
        ValueError: there are no operators, their shapes are incompatible, or a hint is wrong.
        TypeError: the dtypes differ.
    """

    _separator = "_o_"

    def __init__(self, operators: Sequence[LinearOperator], *hints: Any, **more: Any) -> None:
        super().__init__(operators, *hints, **more)
        for left, right in zip(self.operators, self.operators[1:], strict=False):
            left.domain_dimension.assert_is_compatible_with(right.range_dimension)

    def _known(self, what: str, hint: bool | None) -> bool | None:
        if what == "is_square" or len(self.operators) == 1:
            return super()._known(what, hint)
        return hint  # for a product these properties do not follow from those of the factors

    def _shape(self) -> TensorShape:
        rows, columns = self.operators[0].shape, self.operators[-1].shape
        if rows.rank is None or columns.rank is None:
            return TensorShape(None)
        return self._batch().concatenate([rows[-2], columns[-1]])

    def _shape_tensor(self) -> Tensor:
        rows, columns = self.operators[0].shape_tensor(), self.operators[-1].shape_tensor()
        return joining.concat([self._batch_tensor(), rows[-2:-1], columns[-1:]], 0)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        result = adjoint_of(x) if adjoint_arg else x
        for each in self.operators if adjoint else reversed(self.operators):
            result = each.matmul(result, adjoint=adjoint)
        return result

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        result = adjoint_of(rhs) if adjoint_arg else rhs
        for each in reversed(self.operators) if adjoint else self.operators:
            result = each.solve(result, adjoint=adjoint)
        return result

    def _determinant(self) -> Tensor:
        if not all(each.is_square for each in self.operators):
            return super()._determinant()
        result = self.operators[0].determinant()
        for each in self.operators[1:]:
            result = result * each.determinant()
        return result

    def _log_abs_determinant(self) -> Tensor:
        if not all(each.is_square for each in self.operators):
            return super()._log_abs_determinant()
        result = self.operators[0].log_abs_determinant()
        for each in self.operators[1:]:
            result = result + each.log_abs_determinant()
        return result

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorComposition([each.adjoint() for each in reversed(self.operators)])

    def _linop_inverse(self) -> LinearOperator:
        if not all(each.is_square for each in self.operators):
            return super()._linop_inverse()
        return LinearOperatorComposition([each.inverse() for each in reversed(self.operators)])


class LinearOperatorKronecker(_OfSeveral):
    """The Kronecker product of operators; multiplies and solves with the dense matrix.

    Args:
        operators: a list of operators of one dtype.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name: see
            `LinearOperator`; properties that all operators share hold for the product.

    Raises:
        ValueError: there are no operators, or a hint is wrong.
        TypeError: the dtypes differ.
    """

    _separator = "_x_"

    def _shape(self) -> TensorShape:
        sizes: list[int | None] = [1, 1]
        for each in self.operators:
            own = each.shape[-2:].as_list() if each.shape.rank else [None, None]
            sizes = [
                None if known is None or size is None else known * size
                for known, size in zip(sizes, own, strict=True)
            ]
        return self._batch().concatenate(sizes)

    def _shape_tensor(self) -> Tensor:
        sizes = self.operators[0].shape_tensor()[-2:]
        for each in self.operators[1:]:
            sizes = sizes * each.shape_tensor()[-2:]
        return joining.concat([self._batch_tensor(), sizes], 0)

    def _to_dense(self) -> Tensor:
        result = self.operators[0].to_dense()
        for each in self.operators[1:]:
            left, right = result, each.to_dense()
            joined = left[..., :, None, :, None] * right[..., None, :, None, :]
            sizes = array.shape(left)[-2:] * array.shape(right)[-2:]
            batch = array.shape(joined)[:-4]
            result = array.reshape(joined, joining.concat([batch, sizes], 0))
        result.set_shape(self.shape)
        return result

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return multiply(self.to_dense(), x, adjoint, adjoint_arg)

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorKronecker([each.adjoint() for each in self.operators])

    def _linop_inverse(self) -> LinearOperator:
        return LinearOperatorKronecker([each.inverse() for each in self.operators])

    def _linop_cholesky(self) -> LinearOperator:
        if not all(each._is_positive_and_self_adjoint() for each in self.operators):
            return super()._linop_cholesky()
        return LinearOperatorKronecker([each.cholesky() for each in self.operators])


class LinearOperatorBlockDiag(_OfSeveral):
    """A block diagonal operator.

    Args:
        operators: a list of operators of one dtype.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square, name: see
            `LinearOperator`; properties that all blocks share hold for the whole.

    Raises:
        ValueError: there are no operators, or a hint is wrong.
        TypeError: the dtypes differ.
    """

    _separator = "_ds_"

    def _shape(self) -> TensorShape:
        sizes: list[int | None] = [0, 0]
        for each in self.operators:
            own = each.shape[-2:].as_list() if each.shape.rank else [None, None]
            sizes = [
                None if known is None or size is None else known + size
                for known, size in zip(sizes, own, strict=True)
            ]
        return self._batch().concatenate(sizes)

    def _shape_tensor(self) -> Tensor:
        sizes = elementwise.add_n([each.shape_tensor()[-2:] for each in self.operators])
        return joining.concat([self._batch_tensor(), sizes], 0)

    def _by_block(self, x: Any, axis: int, method: str, adjoint: bool) -> Tensor:
        sizes = [each.shape_tensor()[axis] for each in self.operators]
        parts = joining.split(x, joining.stack(sizes), axis=-2)
        results = [
            getattr(each, method)(part, adjoint=adjoint)
            for each, part in zip(self.operators, parts, strict=True)
        ]
        return joining.concat(of_one_batch(*results), -2)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        x = adjoint_of(x) if adjoint_arg else x
        return self._by_block(x, -2 if adjoint else -1, "matmul", adjoint)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        if not all(each.is_square for each in self.operators):
            return super()._solve(rhs, adjoint, adjoint_arg)
        rhs = adjoint_of(rhs) if adjoint_arg else rhs
        return self._by_block(rhs, -1 if adjoint else -2, "solve", adjoint)

    def _to_dense(self) -> Tensor:
        rows, before = [], filling.zeros([], "int32")
        columns = self.shape_tensor()[-1]
        blocks = [each.to_dense() for each in self.operators]
        for block in blocks:
            size = array.shape(block)
            left = filling.zeros(joining.concat([size[:-1], before[None]], 0), self.dtype)
            rest = columns - before - size[-1]
            right = filling.zeros(joining.concat([size[:-1], rest[None]], 0), self.dtype)
            rows.append(joining.concat([left, block, right], -1))
            before = before + size[-1]
        result = joining.concat(of_one_batch(*rows), -2)
        result.set_shape(self.shape)
        return result

    def _determinant(self) -> Tensor:
        if not all(each.is_square for each in self.operators):
            return super()._determinant()
        result = self.operators[0].determinant()
        for each in self.operators[1:]:
            result = result * each.determinant()
        return result

    def _linop_adjoint(self) -> LinearOperator:
        return LinearOperatorBlockDiag([each.adjoint() for each in self.operators])

    def _linop_inverse(self) -> LinearOperator:
        if not all(each.is_square for each in self.operators):
            return super()._linop_inverse()
        return LinearOperatorBlockDiag([each.inverse() for each in self.operators])

    def _linop_cholesky(self) -> LinearOperator:
        if not all(each._is_positive_and_self_adjoint() for each in self.operators):
            return super()._linop_cholesky()
        return LinearOperatorBlockDiag([each.cholesky() for each in self.operators])


related.update(
    adjoint=LinearOperatorAdjoint,
    inversion=LinearOperatorInversion,
    lower_triangular=LinearOperatorLowerTriangular,
    product=product_of,
)
