"""Inverses, determinants and linear systems of batched matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.errors import value_error
from estimatorkit.core.faults import Fault, ResultTest, refused, xp
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.shapes import UNKNOWN, TensorShape, differ
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.linalg.diagonals import matrix_diag_part
from estimatorkit.ops.linalg.matrix_parts import (
    POSITIVE,
    RIGHT,
    SQUARE,
    check_rank,
    conjugate_transpose,
    from_lower,
    in_32_bits,
    same_dims,
    square_infer,
)
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.math.broadcasting import broadcast_shapes
from estimatorkit.ops.math.special import real

# -- inverses, determinants, equations


def _singular(text: str) -> ResultTest:
    """The test that a system has a solution: without one, XLA's is not finite."""

    def test(inputs: Sequence[Any], results: Sequence[Any], _: Any) -> list[Fault]:
        module, axes = xp(results[0]), (-2, -1)
        bad = ~module.isfinite(results[0]).all(axes)
        for right in inputs[1:]:
            bad = bad & xp(right).isfinite(right).all(axes)
        return [refused(0, bad, text)]

    return test


def _or_nan(solve: Any, *arrays: Any) -> Any:
    """NumPy's result, or NaN if it refuses a singular matrix."""
    try:
        return solve(*arrays)
    except np.linalg.LinAlgError:
        return np.full_like(arrays[-1], np.nan)


register(
    "MatrixInverse",
    in_32_bits(lambda x, adjoint: jnp.linalg.inv(conjugate_transpose(x) if adjoint else x)),
    result_fault=_singular("Input is not invertible."),
    infer=square_infer(same_dims),
    accepts="dc float16",
    numpy_kernel=lambda x, adjoint: _or_nan(
        np.linalg.inv, conjugate_transpose(x, np) if adjoint else x
    ),
    cases=lambda: [Case((SQUARE,), {"adjoint": False}), Case((SQUARE,), {"adjoint": True})],
)


def matrix_inverse(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverses of square matrices, `(..., n, n)`, or of their adjoints.

    Args:
        input: the matrices.
        adjoint: whether to invert the conjugate transpose.

    Raises:
        ValueError: they are not square.
        InvalidArgumentError: (when run) one of them is singular.
    """
    return make("MatrixInverse", {"input": input}, {"adjoint": bool(adjoint)}, name)


register(
    "MatrixDeterminant",
    in_32_bits(jnp.linalg.det),
    infer=square_infer(lambda rows, columns: []),
    accepts="dc float16",
    numpy_kernel=np.linalg.det,
    cases=lambda: [Case((SQUARE,)), Case((POSITIVE,))],
)


def matrix_determinant(input: Any, name: str | None = None) -> Tensor:
    """The determinant of square matrices, `(..., n, n)`."""
    return make("MatrixDeterminant", {"input": input}, name=name)


def _infer_log_determinant(inputs: Any, attrs: Any) -> list[Spec]:
    (spec,) = square_infer(lambda rows, columns: [])(inputs, attrs)
    return [spec, spec]


register(
    "LogMatrixDeterminant",
    in_32_bits(lambda x: tuple(jnp.linalg.slogdet(x))),
    infer=_infer_log_determinant,
    accepts="dc float16",
    numpy_kernel=lambda x: tuple(np.linalg.slogdet(x)),
    cases=lambda: [Case((SQUARE,))],
)


def slogdet(input: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The sign of the determinant, and the logarithm of its absolute value."""
    op = registry.apply("LogMatrixDeterminant", [convert_to_tensor(input)], name=name)
    return op.outputs[0], op.outputs[1]


def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """The logarithm of the determinant of Hermitian positive definite matrices, which is real."""
    with get_default_graph().name_scope(name or "logdet"):
        diagonal = elementwise.log(real(matrix_diag_part(cholesky(matrix))))
        return 2.0 * reduce.reduce_sum(diagonal, [-1])


def _unequal(one: Any, other: Any) -> Exception:
    return value_error(f"Dimensions must be equal, but are {one} and {other}")


def _infer_solution(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    matrix, right = inputs
    check_rank(matrix, square=True)
    if matrix.shape.dims is None or right.shape.dims is None:
        return [Spec(right.dtype, UNKNOWN)]
    check_rank(right)
    *batch, _, rows = matrix.shape.dims
    if differ((rows,), right.shape.dims[-2:-1]):
        raise _unequal(rows, right.shape.dims[-2])
    whole = broadcast_shapes(TensorShape(batch), TensorShape(right.shape.dims[:-2]), _unequal)
    rest = TensorShape([right.shape.dims[-2] or rows, right.shape.dims[-1]])
    return [Spec(right.dtype, whole.concatenate(rest))]


register(
    "MatrixSolve",
    in_32_bits(lambda a, b, adjoint: jnp.linalg.solve(conjugate_transpose(a) if adjoint else a, b)),
    result_fault=_singular("Input matrix is not invertible."),
    infer=_infer_solution,
    accepts="dc float16",
    numpy_kernel=lambda a, b, adjoint: _or_nan(
        np.linalg.solve, conjugate_transpose(a, np) if adjoint else a, b
    ),
    cases=lambda: [
        Case((SQUARE, RIGHT), {"adjoint": False}),
        Case((SQUARE, RIGHT), {"adjoint": True}),
    ],
)


def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Solves matrix @ x = rhs.

    Args:
        matrix: `(..., n, n)`.
        rhs: `(..., n, k)`.
        adjoint: whether to solve with the conjugate transpose.

    Raises:
        InvalidArgumentError: (when run) a matrix is singular.
    """
    inputs = {"matrix": matrix, "rhs": rhs}
    return make("MatrixSolve", inputs, {"adjoint": bool(adjoint)}, name, same_dtype=True)


def _triangular(a: Any, b: Any, lower: bool, adjoint: bool) -> Any:
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])  # JAX would treat b as vectors
    a, b = (jnp.broadcast_to(each, (*batch, *each.shape[-2:])) for each in (a, b))
    # `lower` describes the matrix as stored, before `trans` applies.
    return jax.scipy.linalg.solve_triangular(a, b, trans=2 if adjoint else 0, lower=lower)


def _numpy_triangular(a: Any, b: Any, lower: bool, adjoint: bool) -> Any:
    whole = np.tril(a) if lower else np.triu(a)
    return np.linalg.solve(conjugate_transpose(whole, np) if adjoint else whole, b)


register(
    "MatrixTriangularSolve",
    in_32_bits(_triangular),
    infer=_infer_solution,
    accepts="fc",
    numpy_kernel=_numpy_triangular,
    cases=lambda: [
        Case((SQUARE, RIGHT), {"lower": True, "adjoint": False}),
        Case((SQUARE, RIGHT), {"lower": False, "adjoint": True}),
    ],
)


def matrix_triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Solves matrix @ x = rhs, using only one triangle of the matrix.

    Args:
        matrix: `(..., n, n)`.
        rhs: `(..., n, k)`.
        lower: whether to use the lower triangle.
        adjoint: whether to solve with the conjugate transpose.
    """
    attrs = {"lower": bool(lower), "adjoint": bool(adjoint)}
    inputs = {"matrix": matrix, "rhs": rhs}
    return make("MatrixTriangularSolve", inputs, attrs, name, same_dtype=True)


register(
    "Cholesky",
    in_32_bits(lambda x: jnp.linalg.cholesky(from_lower(x), symmetrize_input=False)),
    infer=square_infer(same_dims),
    accepts="dc float16",
    numpy_kernel=np.linalg.cholesky,
    cases=lambda: [Case((POSITIVE,))],
)


def cholesky(input: Any, name: str | None = None) -> Tensor:
    """The lower triangular L with L L^T = input, for symmetric positive definite matrices.

    Only the lower triangle of `input` is read.
    """
    return make("Cholesky", {"input": input}, name=name)


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """Solves A @ x = rhs, given the Cholesky factor `chol` of A; rhs is `(..., n, k)`."""
    with get_default_graph().name_scope(name or "cholesky_solve"):
        half = matrix_triangular_solve(chol, rhs, lower=True)
        return matrix_triangular_solve(chol, half, lower=True, adjoint=True)


def _least_squares(a: Any, b: Any, l2_regularizer: float, fast: bool) -> Any:
    if not fast:
        return jnp.linalg.pinv(a) @ b
    wide = a.shape[-2] < a.shape[-1]
    adjoint = conjugate_transpose(a)
    gram = a @ adjoint if wide else adjoint @ a
    gram = gram + l2_regularizer * jnp.eye(gram.shape[-1], dtype=a.dtype)
    lower = jnp.linalg.cholesky(from_lower(gram), symmetrize_input=False)
    half = _triangular(lower, b if wide else adjoint @ b, lower=True, adjoint=False)
    found = _triangular(lower, half, lower=True, adjoint=True)
    return adjoint @ found if wide else found


def _infer_least_squares(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    matrix, right = inputs
    if matrix.shape.dims is None or right.shape.dims is None:
        return [Spec(right.dtype, UNKNOWN)]
    check_rank(matrix)
    check_rank(right)
    *_, rows, columns = matrix.shape.dims
    *batch, others, width = right.shape.dims
    if differ((rows,), (others,)):
        raise _unequal(rows, others)
    return [Spec(right.dtype, TensorShape([*batch, columns, width]))]


register(
    "MatrixSolveLs",
    in_32_bits(_least_squares),
    result_fault=_singular(
        "Cholesky decomposition was not successful. The input might not be valid."
    ),
    infer=_infer_least_squares,
    accepts="dc",
    cases=lambda: [
        Case(
            (SQUARE[:, :1], RIGHT[:, :1]),
            {"l2_regularizer": 0.5, "fast": True},
            np.swapaxes(SQUARE[:, :1], 1, 2)
            * (RIGHT[:, :1] / ((SQUARE[:, :1] ** 2).sum(-1, keepdims=True) + np.float32(0.5))),
        ),
        *(
            Case(
                (SQUARE, RIGHT),
                {"l2_regularizer": 0.0, "fast": fast},
                np.linalg.solve(SQUARE, RIGHT),
            )
            for fast in (True, False)
        ),
    ],
)


def matrix_solve_ls(
    matrix: Any,
    rhs: Any,
    l2_regularizer: float = 0.0,
    fast: bool = True,
    name: str | None = None,
) -> Tensor:
    """The least-squares solution of matrix @ x = rhs.

    Args:
        matrix: `(..., m, n)`.
        rhs: `(..., m, k)`.
        l2_regularizer: the weight of the squared norm of x that is added to the objective.
        fast: whether to solve the normal equations, which takes matrices of full rank; otherwise
            x is the shortest solution, and `l2_regularizer` is ignored.
    """
    attrs = {"l2_regularizer": float(l2_regularizer), "fast": bool(fast)}
    inputs = {"matrix": matrix, "rhs": rhs}
    return make("MatrixSolveLs", inputs, attrs, name or "matrix_solve_ls", same_dtype=True)
