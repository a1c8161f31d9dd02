"""Matrix square root, logarithm, rank and pseudo-inverse."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import int32
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.lazy import LazyFunctions
from estimatorkit.ops.array import array, filling, indexing
from estimatorkit.ops.linalg.decompositions import svd
from estimatorkit.ops.linalg.matrix_parts import (
    POSITIVE,
    conjugate_transpose,
    same_dims,
    square_infer,
)
from estimatorkit.ops.math import elementwise, linalg, reduce

scipy_linalg = LazyFunctions("scipy.linalg")


def _of_each(function: Any, *stacks: Any) -> Any:
    """Applies a SciPy function of one matrix to batched matrices, in 64 bits."""
    first = stacks[0]
    wide = np.promote_types(first.dtype, np.float64)
    results = np.empty(first.shape, first.dtype)
    for place in np.ndindex(first.shape[:-2]):
        found = function(*(each[place].astype(wide) for each in stacks))
        # A real matrix may have only complex roots, for which TensorFlow returns NaN.
        is_real = first.dtype.kind != "f" or not np.iscomplexobj(found) or not found.imag.any()
        results[place] = found.astype(first.dtype) if is_real else np.nan
    return results


def _logarithm(matrix: Any) -> Any:
    """The logarithm of a matrix; NaN, as in TensorFlow, where there is none."""
    if not np.isfinite(matrix).all() or np.linalg.matrix_rank(matrix) < len(matrix):
        return np.full_like(matrix, np.nan)
    return scipy_linalg.logm(matrix)


def _solve_for_root(root: Any, gradient: Any, module: Any = jnp) -> Any:
    """Solves the Sylvester equation R* X + X R* = gradient, R* being the adjoint of the root."""
    size = root.shape[-1]
    adjoint = conjugate_transpose(module.asarray(root), module)
    identity = module.eye(size, dtype=adjoint.dtype)
    left = adjoint[..., :, None, :, None] * identity[:, None, :]
    right = identity[:, None, :, None] * module.swapaxes(adjoint, -1, -2)[..., None, :, None, :]
    batch = adjoint.shape[:-2]
    equations = (left + right).reshape(*batch, size**2, size**2)
    vector = module.asarray(gradient).reshape(*batch, size**2, 1)
    return module.linalg.solve(equations, vector).reshape(adjoint.shape)


def _root_gradient(op: Operation, gradient: Tensor) -> list[Any]:
    return [make("MatrixSquareRootGrad", {"root": op.outputs[0], "gradient": gradient})]


_TRIANGLE = np.array([[4.0, 1.0], [0.0, 9.0]], np.float32)

register(
    "MatrixSquareRoot",
    lambda x: _of_each(scipy_linalg.sqrtm, x),
    where="host",
    infer=square_infer(same_dims),
    accepts="dc",
    gradient=_root_gradient,
    cases=lambda: [Case((_TRIANGLE,), {}, np.array([[2.0, 0.2], [0.0, 3.0]], np.float32))],
)
register(
    "MatrixSquareRootGrad",
    _solve_for_root,
    infer=lambda inputs, attrs: [Spec(inputs[0].dtype, inputs[0].shape)],
    numpy_kernel=lambda root, gradient: _solve_for_root(root, gradient, np),
    accepts=("dc", "dc"),
    cases=lambda: [Case((POSITIVE, 2 * POSITIVE))],
)
register(
    "MatrixLogarithm",
    lambda x: _of_each(_logarithm, x),
    where="host",
    infer=square_infer(same_dims),
    accepts="c",
    gradient="undefined",
    cases=lambda: [
        Case((np.diag([1, np.e]).astype(np.complex64),), {}, np.diag([0, 1]).astype(np.complex64))
    ],
)


def sqrtm(input: Any, name: str | None = None) -> Tensor:
    """The principal square roots of square matrices, `(..., n, n)`, on the host (SciPy).

    Args:
        input: matrices without negative real eigenvalues; others yield NaN if the dtype is real.

    Raises:
        ValueError: they are not square.
    """
    return make("MatrixSquareRoot", {"input": input}, name=name)


def logm(input: Any, name: str | None = None) -> Tensor:
    """The principal logarithms of complex square matrices, `(..., n, n)`, on the host (SciPy).

    Raises:
        ValueError: they are not square.
        TypeError: they are not complex.
    """
    return make("MatrixLogarithm", {"input": input}, name=name)


def _float_matrix(a: Any) -> Tensor:
    matrix = convert_to_tensor(a, name="a")
    if not matrix.dtype.is_floating:
        raise TypeError(f"Input `a` must have `float`-like `dtype` (saw {matrix.dtype.name}).")
    if matrix.shape.rank is not None and matrix.shape.rank < 2:
        raise ValueError(f"Input `a` must have at least 2 dimensions (saw: {matrix.shape.rank}).")
    return matrix


def _longest(matrix: Tensor) -> Tensor:
    return elementwise.cast(reduce.reduce_max(array.shape(matrix)[-2:]), matrix.dtype)


def matrix_rank(
    a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The ranks of matrices: the number of singular values greater than `tol`.

    Args:
        a: `(..., m, n)`, floating.
        tol: by default the dtype's epsilon times max(m, n) times the largest singular value.
        validate_args: accepted for compatibility only; static shapes are always checked.

    Returns:
        int32, `(...)`.

    Raises:
        TypeError: the matrices are not floating.
        ValueError: `a` is known to have fewer than 2 dimensions.
    """
    with get_default_graph().name_scope(name or "matrix_rank"):
        matrix = _float_matrix(a)
        values = svd(matrix, compute_uv=False)
        if tol is None:
            epsilon = float(np.finfo(matrix.dtype.numpy_dtype).eps)
            tol = epsilon * _longest(matrix) * reduce.reduce_max(values, axis=-1, keepdims=True)
        return reduce.reduce_sum(elementwise.cast(values > tol, int32), axis=-1)


def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The Moore-Penrose pseudo-inverses of matrices, by singular value decomposition.

    Args:
        a: `(..., m, n)`, floating.
        rcond: singular values up to `rcond` times the largest one count as 0; a scalar or `(...)`.
            By default 10 max(m, n) times the dtype's epsilon.
        validate_args: accepted for compatibility only; static shapes are always checked.

    Returns:
        `(..., n, m)`.

    Raises:
        TypeError: the matrices are not floating.
        ValueError: `a` is known to have fewer than 2 dimensions.
    """
    with get_default_graph().name_scope(name or "pinv"):
        matrix = _float_matrix(a)
        if rcond is None:
            limit = 10.0 * _longest(matrix) * float(np.finfo(matrix.dtype.numpy_dtype).eps)
        else:
            limit = convert_to_tensor(rcond, matrix.dtype, name="rcond")
        values, left, right = svd(matrix)
        cutoff = array.expand_dims(limit * reduce.reduce_max(values, axis=-1), -1)
        # Dividing by infinity gives 0, with a gradient of 0.
        infinite = filling.ones_like(values) * np.inf
        divisors = indexing.where(values > cutoff, values, infinite)
        result = linalg.matmul(right / array.expand_dims(divisors, -2), left, adjoint_b=True)
        if matrix.shape.rank is not None:
            result.set_shape(matrix.shape[:-2].concatenate(list(matrix.shape)[:-3:-1]))
        return result
