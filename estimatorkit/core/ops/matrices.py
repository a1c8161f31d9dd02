"""Matrix ops beyond products: inverses, determinants, decompositions, diagonals, norms, einsum.

All work on the last two dimensions of stacks of matrices, as TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

from estimatorkit.core import registry
from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import float32, int32
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.ops import array, elementwise, filling, joining, linalg, reduce
from estimatorkit.core.registry import Case, Spec, constant_value, register, same_as_input
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.tensor import Tensor

_SQUARE = np.array([[[4.0, 1.0], [0.5, 3.0]], [[2.0, -1.0], [1.0, 5.0]]], np.float32)
_POSITIVE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.25], [0.5, -0.25, 2.0]], np.float32)
_RIGHT = np.array([[[1.0], [2.0]], [[-1.0], [0.5]]], np.float32)
_TALL = np.array([[1.0, 2.0], [-0.5, 3.0], [2.0, 0.25]], np.float32)


def _batch_and(keep: Callable[[Any, Any], list[Any]]) -> Callable[..., list[Spec]]:
    """Infers one output: the batch dimensions, then what `keep` makes of rows and columns."""

    def infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
        dims = inputs[0].shape.dims
        if dims is None:
            return [Spec(inputs[0].dtype, UNKNOWN)]
        _check_rank(inputs[0])
        return [Spec(inputs[0].dtype, TensorShape([*dims[:-2], *keep(dims[-2], dims[-1])]))]

    return infer


def _check_rank(tensor: Tensor, square: bool = False) -> None:
    dims = tensor.shape.dims
    if dims is None:
        return
    if len(dims) < 2:
        raise ValueError(
            explain(
                f"Shape must be at least rank 2 but is rank {len(dims)}: a matrix is expected",
                received=tensor,
                made_at=tensor.op.source,
            )
        )
    if square and None not in dims[-2:] and dims[-2] != dims[-1]:
        raise ValueError(
            explain(
                f"Dimensions must be equal, but are {dims[-2]} and {dims[-1]}: a square matrix is "
                "expected",
                received=tensor,
                made_at=tensor.op.source,
            )
        )


def _square_infer(keep: Callable[[Any, Any], list[Any]]) -> Callable[..., list[Spec]]:
    inner = _batch_and(keep)

    def infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
        _check_rank(inputs[0], square=True)
        return inner(inputs, attrs)

    return infer


def _same_dims(rows: Any, columns: Any) -> list[Any]:
    return [rows, columns]


def _smaller(rows: int | None, columns: int | None) -> int | None:
    return None if rows is None or columns is None else min(rows, columns)


def _adjoint(x: Any, module: Any = jnp) -> Any:
    return module.conj(module.swapaxes(x, -1, -2))


def _in_32_bits(function: Callable[..., Any]) -> Callable[..., Any]:
    """LAPACK has no 16-bit forms: computed in float32, given back as it came."""

    def call(x: Any, *rest: Any, **attrs: Any) -> Any:
        x = jnp.asarray(x)
        wide = jnp.promote_types(x.dtype, np.float32)
        result = function(x.astype(wide), *(jnp.asarray(r).astype(wide) for r in rest), **attrs)
        if isinstance(result, tuple):
            return tuple(each.astype(x.dtype) for each in result)
        return result.astype(x.dtype)

    return call


# -- inverses, determinants, equations

register(
    "MatrixInverse",
    _in_32_bits(lambda x, adjoint: jnp.linalg.inv(_adjoint(x) if adjoint else x)),
    infer=_square_infer(_same_dims),
    accepts="fc",
    numpy_kernel=lambda x, adjoint: np.linalg.inv(_adjoint(x, np) if adjoint else x),
    cases=lambda: [Case((_SQUARE,), {"adjoint": False}), Case((_SQUARE,), {"adjoint": True})],
)


def matrix_inverse(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverse of square matrices, `(..., n, n)`; of their adjoint if asked for.

    Args:
        input: the matrices. A singular one gives infinities or NaN (XLA cannot raise).
        adjoint: invert the conjugate transpose.
        name: the operation's name.

    Raises:
        ValueError: they are not square.
    """
    return make("MatrixInverse", {"input": input}, {"adjoint": bool(adjoint)}, name)


register(
    "MatrixDeterminant",
    _in_32_bits(jnp.linalg.det),
    infer=_square_infer(lambda rows, columns: []),
    accepts="fc",
    numpy_kernel=np.linalg.det,
    cases=lambda: [Case((_SQUARE,)), Case((_POSITIVE,))],
)


def matrix_determinant(input: Any, name: str | None = None) -> Tensor:
    """The determinant of square matrices, `(..., n, n)`."""
    return make("MatrixDeterminant", {"input": input}, name=name)


def _infer_log_determinant(inputs: Any, attrs: Any) -> list[Spec]:
    (spec,) = _square_infer(lambda rows, columns: [])(inputs, attrs)
    return [spec, spec]


register(
    "LogMatrixDeterminant",
    _in_32_bits(lambda x: tuple(jnp.linalg.slogdet(x))),
    infer=_infer_log_determinant,
    accepts="fc",
    numpy_kernel=lambda x: tuple(np.linalg.slogdet(x)),
    cases=lambda: [Case((_SQUARE,))],
)


def slogdet(input: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The sign of the determinant, and the logarithm of its absolute value."""
    op = registry.apply("LogMatrixDeterminant", [convert_to_tensor(input)], name=name)
    return op.outputs[0], op.outputs[1]


def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """The logarithm of the determinant of positive definite matrices."""
    with get_default_graph().name_scope(name or "logdet"):
        diagonal = elementwise.log(matrix_diag_part(cholesky(matrix)))
        return 2.0 * reduce.reduce_sum(diagonal, [-1])


def _infer_solution(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    matrix, right = inputs
    _check_rank(matrix, square=True)
    if right.shape.dims is None:
        return [Spec(right.dtype, UNKNOWN)]
    _check_rank(right)
    return [Spec(right.dtype, right.shape)]


register(
    "MatrixSolve",
    _in_32_bits(lambda a, b, adjoint: jnp.linalg.solve(_adjoint(a) if adjoint else a, b)),
    infer=_infer_solution,
    accepts="fc",
    numpy_kernel=lambda a, b, adjoint: np.linalg.solve(_adjoint(a, np) if adjoint else a, b),
    cases=lambda: [
        Case((_SQUARE, _RIGHT), {"adjoint": False}),
        Case((_SQUARE, _RIGHT), {"adjoint": True}),
    ],
)


def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """x with matrix x = rhs.

    Args:
        matrix: `(..., n, n)`.
        rhs: `(..., n, k)`.
        adjoint: solve with the conjugate transpose.
        name: the operation's name.
    """
    inputs = {"matrix": matrix, "rhs": rhs}
    return make("MatrixSolve", inputs, {"adjoint": bool(adjoint)}, name, same_dtype=True)


def _triangular(a: Any, b: Any, lower: bool, adjoint: bool) -> Any:
    # `trans` counts in the triangle as it is stored.
    return jax.scipy.linalg.solve_triangular(a, b, trans=2 if adjoint else 0, lower=lower)


def _numpy_triangular(a: Any, b: Any, lower: bool, adjoint: bool) -> Any:
    whole = np.tril(a) if lower else np.triu(a)
    return np.linalg.solve(_adjoint(whole, np) if adjoint else whole, b)


register(
    "MatrixTriangularSolve",
    _in_32_bits(_triangular),
    infer=_infer_solution,
    accepts="fc",
    numpy_kernel=_numpy_triangular,
    cases=lambda: [
        Case((_SQUARE, _RIGHT), {"lower": True, "adjoint": False}),
        Case((_SQUARE, _RIGHT), {"lower": False, "adjoint": True}),
    ],
)


def matrix_triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """x with matrix x = rhs, where only one triangle of the matrix counts.

    Args:
        matrix: `(..., n, n)`.
        rhs: `(..., n, k)`.
        lower: whether it is the lower triangle.
        adjoint: solve with the conjugate transpose.
        name: the operation's name.
    """
    attrs = {"lower": bool(lower), "adjoint": bool(adjoint)}
    inputs = {"matrix": matrix, "rhs": rhs}
    return make("MatrixTriangularSolve", inputs, attrs, name, same_dtype=True)


register(
    "Cholesky",
    # Only the symmetric part counts, so that the derivative is symmetric, as TensorFlow's.
    _in_32_bits(lambda x: jnp.linalg.cholesky(x, symmetrize_input=True)),
    infer=_square_infer(_same_dims),
    accepts="fc",
    numpy_kernel=lambda x: np.linalg.cholesky((x + _adjoint(x, np)) / 2),
    cases=lambda: [Case((_POSITIVE,))],
)


def cholesky(input: Any, name: str | None = None) -> Tensor:
    """The lower triangular L with L L^T = input, of symmetric positive definite matrices."""
    return make("Cholesky", {"input": input}, name=name)


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """x with A x = rhs, of the Cholesky factor of A."""
    with get_default_graph().name_scope(name or "cholesky_solve"):
        half = matrix_triangular_solve(chol, rhs, lower=True)
        return matrix_triangular_solve(chol, half, lower=True, adjoint=True)


def matrix_solve_ls(
    matrix: Any,
    rhs: Any,
    l2_regularizer: float = 0.0,
    fast: bool = True,
    name: str | None = None,
) -> Tensor:
    """The least-squares solution of matrix x = rhs.

    Args:
        matrix: `(..., m, n)`.
        rhs: `(..., m, k)`.
        l2_regularizer: a multiple of the squared length of x that is minimized with it.
        fast: accepted for TensorFlow's signature: the normal equations are solved.
        name: the name scope.
    """
    with get_default_graph().name_scope(name or "matrix_solve_ls"):
        a = convert_to_tensor(matrix)
        b = convert_to_tensor(rhs, a.dtype)
        rows, columns = a.shape[-2], a.shape[-1]
        wide = rows is not None and columns is not None and rows < columns
        count = rows if wide else columns
        if count is None:
            raise ValueError("matrix_solve_ls: the matrix's size must be known.")
        gram = linalg.matmul(a, a, transpose_a=not wide, transpose_b=wide)
        gram = gram + l2_regularizer * eye(count, dtype=a.dtype)
        if wide:
            return linalg.matmul(a, cholesky_solve(cholesky(gram), b), transpose_a=True)
        return cholesky_solve(cholesky(gram), linalg.matmul(a, b, transpose_a=True))


# -- decompositions


def _qr(x: Any, full: bool) -> Any:
    return tuple(jnp.linalg.qr(x, "complete" if full else "reduced"))


def _infer_qr(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    x = inputs[0]
    if x.shape.dims is None:
        return [Spec(x.dtype, UNKNOWN)] * 2
    _check_rank(x)
    *batch, rows, columns = x.shape.dims
    inner = _smaller(rows, columns)
    if attrs["full"]:
        inner = rows
    return [
        Spec(x.dtype, TensorShape([*batch, rows, inner])),
        Spec(x.dtype, TensorShape([*batch, inner, columns])),
    ]


register(
    "Qr",
    _in_32_bits(_qr),
    infer=_infer_qr,
    accepts="fc",
    numpy_kernel=lambda x, full: tuple(np.linalg.qr(x, "complete" if full else "reduced")),
    cases=lambda: [Case((_TALL,), {"full": False})],
)


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> tuple[Tensor, Tensor]:
    """q with orthonormal columns and upper triangular r with q r = input.

    Args:
        input: `(..., m, n)`.
        full_matrices: q with m columns rather than min(m, n). Without a derivative then.
        name: the operation's name.
    """
    attrs = {"full": bool(full_matrices)}
    op = registry.apply("Qr", [convert_to_tensor(input)], attrs, name)
    return op.outputs[0], op.outputs[1]


def _svd(x: Any, full: bool, vectors: bool) -> Any:
    if not vectors:
        return (jnp.linalg.svd(x, compute_uv=False),)
    u, s, v = jnp.linalg.svd(x, full_matrices=full)
    return s, u, _adjoint(v)


def _infer_svd(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    x = inputs[0]
    if x.shape.dims is None:
        return [Spec(x.dtype, UNKNOWN)] * (3 if attrs["vectors"] else 1)
    _check_rank(x)
    *batch, rows, columns = x.shape.dims
    inner = _smaller(rows, columns)
    values = Spec(x.dtype, TensorShape([*batch, inner]))
    if not attrs["vectors"]:
        return [values]
    return [
        values,
        Spec(x.dtype, TensorShape([*batch, rows, rows if attrs["full"] else inner])),
        Spec(x.dtype, TensorShape([*batch, columns, columns if attrs["full"] else inner])),
    ]


register(
    "Svd",
    _in_32_bits(_svd),
    infer=_infer_svd,
    accepts="f",
    cases=lambda: [
        Case(
            (_TALL,),
            {"full": False, "vectors": False},
            (np.linalg.svd(_TALL, compute_uv=False),),
        )
    ],
)


def svd(
    tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None
) -> Any:
    """Singular values, and vectors: tensor = u diag(s) v^T.

    Args:
        tensor: `(..., m, n)`.
        full_matrices: u and v square. Without a derivative then.
        compute_uv: give the vectors too.
        name: the operation's name.

    Returns:
        s in falling order, or `(s, u, v)`.
    """
    attrs = {"full": bool(full_matrices), "vectors": bool(compute_uv)}
    op = registry.apply("Svd", [convert_to_tensor(tensor)], attrs, name)
    return tuple(op.outputs) if compute_uv else op.outputs[0]


def _infer_eigen(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    x = inputs[0]
    _check_rank(x, square=True)
    values = UNKNOWN if x.shape.dims is None else TensorShape(x.shape.dims[:-1])
    return [Spec(x.dtype, values), Spec(x.dtype, x.shape)]


def _positive_first(values: Any, vectors: Any) -> tuple[Any, Any]:
    """Vectors whose first element is not negative, so that they are determined."""
    sign = jnp.where(vectors[..., :1, :] < 0, -1, 1).astype(vectors.dtype)
    return values, vectors * jax.lax.stop_gradient(sign)


def _numpy_eigen(x: Any) -> Any:
    values, vectors = np.linalg.eigh(x)
    return values, vectors * np.where(vectors[..., :1, :] < 0, -1, 1).astype(x.dtype)


register(
    "SelfAdjointEigV2",
    _in_32_bits(lambda x: _positive_first(*jnp.linalg.eigh(x))),
    infer=_infer_eigen,
    accepts="f",
    numpy_kernel=_numpy_eigen,
    cases=lambda: [Case((_POSITIVE,))],
)


def self_adjoint_eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues in rising order, and eigenvectors as columns, of symmetric matrices.

    The first element of each vector is not negative (TensorFlow leaves the sign open).
    """
    with get_default_graph().name_scope(name or "self_adjoint_eig"):
        x = convert_to_tensor(tensor)
        symmetric = (x + matrix_transpose(x)) / 2.0
        op = registry.apply("SelfAdjointEigV2", [symmetric])
        return op.outputs[0], op.outputs[1]


def self_adjoint_eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """The eigenvalues of symmetric matrices, in rising order."""
    return self_adjoint_eig(tensor, name)[0]


register(
    "MatrixExponential",
    _in_32_bits(jax.scipy.linalg.expm),
    infer=_square_infer(_same_dims),
    accepts="f",
    cases=lambda: [Case((_POSITIVE / 4,), {}, scipy.linalg.expm(_POSITIVE / 4))],
)


def expm(input: Any, name: str | None = None) -> Tensor:
    """The matrix exponential, `(..., n, n)`."""
    return make("MatrixExponential", {"input": input}, name=name)


# -- diagonals and triangles


def _matrix_diag(x: Any, module: Any = jnp) -> Any:
    return x[..., None] * module.eye(x.shape[-1], dtype=x.dtype)


register(
    "MatrixDiag",
    lambda x: _matrix_diag(jnp.asarray(x)),
    accepts="fic",
    numpy_kernel=lambda x: _matrix_diag(x, np),
    cases=lambda: [Case((_TALL,))],
)
register(
    "MatrixDiagPart",
    lambda x: jnp.diagonal(jnp.asarray(x), axis1=-2, axis2=-1),
    infer=_batch_and(lambda rows, columns: [_smaller(rows, columns)]),
    numpy_kernel=lambda x: np.diagonal(x, axis1=-2, axis2=-1),
    cases=lambda: [Case((_SQUARE,)), Case((_TALL,))],
)


def matrix_diag(diagonal: Any, name: str | None = None) -> Tensor:
    """Matrices with given diagonals, `(..., n)` to `(..., n, n)`."""
    return make("MatrixDiag", {"diagonal": diagonal}, name=name)


def matrix_diag_part(input: Any, name: str | None = None) -> Tensor:
    """The diagonals of matrices, `(..., m, n)` to `(..., min(m, n))`."""
    return make("MatrixDiagPart", {"input": input}, name=name)


def _set_diag(x: Any, diagonal: Any, module: Any = jnp) -> Any:
    rows, columns = x.shape[-2:]
    on = module.arange(rows)[:, None] == module.arange(columns)
    width = max(columns, diagonal.shape[-1])
    row = module.concatenate(
        [
            diagonal,
            module.zeros((*diagonal.shape[:-1], width - diagonal.shape[-1]), diagonal.dtype),
        ],
        -1,
    )[..., :columns]
    return module.where(on, row[..., None, :], x)


register(
    "MatrixSetDiag",
    lambda x, diagonal: _set_diag(jnp.asarray(x), jnp.asarray(diagonal)),
    infer=same_as_input(),
    numpy_kernel=lambda x, diagonal: _set_diag(x, diagonal, np),
    cases=lambda: [Case((_TALL, np.array([9.0, 8.0], np.float32)))],
)


def matrix_set_diag(input: Any, diagonal: Any, name: str | None = None) -> Tensor:
    """The matrices with other diagonals."""
    inputs = {"input": input, "diagonal": diagonal}
    return make("MatrixSetDiag", inputs, name=name, same_dtype=True)


def _band_part(x: Any, lower: Any, upper: Any, module: Any = jnp) -> Any:
    rows, columns = x.shape[-2:]
    distance = module.arange(rows)[:, None] - module.arange(columns)
    inside = ((lower < 0) | (distance <= lower)) & ((upper < 0) | (-distance <= upper))
    return module.where(inside, x, module.zeros((), x.dtype))


register(
    "MatrixBandPart",
    lambda x, lower, upper: _band_part(jnp.asarray(x), lower, upper),
    infer=same_as_input(),
    numpy_kernel=lambda x, lower, upper: _band_part(x, lower, upper, np),
    accepts="fic",
    cases=lambda: [
        Case((_POSITIVE, np.int32(1), np.int32(0))),
        Case((_POSITIVE, np.int32(-1), np.int32(1))),
    ],
)


def matrix_band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """The matrices with everything outside a central band set to zero.

    Args:
        input: `(..., m, n)`.
        num_lower, num_upper: how many diagonals below and above are kept; all where negative.
        name: the operation's name.
    """
    inputs = {"input": input, "num_lower": num_lower, "num_upper": num_upper}
    return make("MatrixBandPart", inputs, name=name)


def matrix_transpose(a: Any, name: str | None = None, conjugate: bool = False) -> Tensor:
    """The matrices with rows and columns exchanged."""
    x = convert_to_tensor(a, name="a")
    rank = x.shape.rank
    if rank is None:
        raise ValueError("matrix_transpose: the rank must be known.")
    _check_rank(x)
    order = [*range(rank - 2), rank - 1, rank - 2]
    return array.transpose(x, order, name or "matrix_transpose")


def trace(x: Any, name: str | None = None) -> Tensor:
    """The sum of the diagonal of each matrix."""
    with get_default_graph().name_scope(name or "Trace"):
        return reduce.reduce_sum(matrix_diag_part(x), [-1])


def diag(diagonal: Any, name: str | None = None) -> Tensor:
    """A tensor of twice the rank with the given values where both halves of the index agree."""
    with get_default_graph().name_scope(name or "Diag") as scope:
        x = convert_to_tensor(diagonal, name="diagonal")
        if x.shape.rank == 1:
            return make("MatrixDiag", {"diagonal": x}, name=scope)
        whole = matrix_diag(array.reshape(x, [-1]))
        dims = array.shape(x)
        return array.reshape(whole, joining.concat([dims, dims], 0), name=scope)


def diag_part(input: Any, name: str | None = None) -> Tensor:
    """The values of a tensor of even rank where both halves of the index agree."""
    with get_default_graph().name_scope(name or "DiagPart") as scope:
        x = convert_to_tensor(input, name="input")
        rank = x.shape.rank
        if rank is None or rank % 2 or rank == 0:
            raise ValueError(explain("diag_part: the rank must be even and not 0", received=x))
        if rank == 2:
            return make("MatrixDiagPart", {"input": x}, name=scope)
        dims = array.shape(x)[: rank // 2]
        count = reduce.reduce_prod(dims)
        square = array.reshape(x, joining.stack([count, count]))
        return array.reshape(matrix_diag_part(square), dims, name=scope)


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = float32,
    name: str | None = None,
) -> Tensor:
    """Identity matrices.

    Args:
        num_rows, num_columns: ints or scalar tensors; square by default.
        batch_shape: the shape of a stack of them.
        dtype: the dtype.
        name: the name scope.
    """
    with get_default_graph().name_scope(name or "eye"):
        rows = convert_to_tensor(num_rows, int32, "num_rows")
        columns = rows if num_columns is None else convert_to_tensor(num_columns, int32)
        batch = convert_to_tensor([] if batch_shape is None else batch_shape, int32)
        smaller = elementwise.minimum(rows, columns)
        ones = filling.ones(joining.concat([batch, [smaller]], 0), dtype)
        if num_columns is None:
            return matrix_diag(ones, "diag")
        zeros = filling.zeros(joining.concat([batch, [rows], [columns]], 0), dtype)
        return matrix_set_diag(zeros, ones)


# -- norms and general products


def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The norm of vectors, matrices or of a whole tensor.

    Args:
        tensor: floats.
        ord: 'euclidean' (of matrices 'fro'), 1, 2, infinity, or for vectors any positive number.
        axis: None for the whole tensor as a vector, an int for vectors, two ints for matrices.
        keepdims, keep_dims: keep the axes with length 1.
        name: the name scope.

    Raises:
        ValueError: ord is none of its values.
    """
    keep = bool(keep_dims if keepdims is None else keepdims)
    matrix = isinstance(axis, (list, tuple)) and len(axis) == 2
    allowed = ("fro", "euclidean", 1, 2, np.inf) if matrix else ("euclidean", 1, 2, np.inf)
    number = isinstance(ord, (int, float)) and not matrix and ord > 0
    if ord not in allowed and not number:
        raise ValueError(
            explain("norm: ord is none of its values", expected=list(allowed), received=ord)
        )
    with get_default_graph().name_scope(name or "norm"):
        x = convert_to_tensor(tensor)
        if ord in ("fro", "euclidean") or (ord == 2 and not matrix):
            squares = reduce.reduce_sum(elementwise.square(elementwise.abs(x)), axis, True)
            result = elementwise.sqrt(squares)
        else:
            size = elementwise.abs(x)
            if not matrix:
                result = _vector_norm(size, ord, axis)
            elif ord == 2:
                rank = x.shape.rank or 2
                rows, columns = (int(a) % rank for a in axis)
                rest = [a for a in range(rank) if a not in (rows, columns)]
                moved = array.transpose(x, [*rest, rows, columns])
                result = reduce.reduce_max(svd(moved, compute_uv=False), -1)
                for a in sorted((rows, columns)):
                    result = array.expand_dims(result, a)
            else:
                along, across = (axis[1], axis[0]) if ord == np.inf else (axis[0], axis[1])
                result = reduce.reduce_max(reduce.reduce_sum(size, along, True), across, True)
        if keep:
            return result
        axes = None if axis is None else [int(a) for a in np.atleast_1d(axis)]
        if axes is None:
            axes = list(range(x.shape.rank or 0))
        return array.squeeze(result, axes) if axes else result


def _vector_norm(size: Tensor, ord: Any, axis: Any) -> Tensor:
    if ord == np.inf:
        return reduce.reduce_max(size, axis, True)
    if ord == 1:
        return reduce.reduce_sum(size, axis, True)
    powers = reduce.reduce_sum(elementwise.pow(size, float(ord)), axis, True)
    return elementwise.pow(powers, 1.0 / float(ord))


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """The product of two tensors, summed over pairs of axes.

    Args:
        a, b: tensors of one dtype.
        axes: an int: so many last axes of a with as many first axes of b; or a pair of lists.
        name: the name scope.

    Raises:
        ValueError: the axes do not fit.
    """
    with get_default_graph().name_scope(name or "Tensordot"):
        x = convert_to_tensor(a, name="a")
        y = convert_to_tensor(b, x.dtype, name="b")
        if x.shape.rank is None or y.shape.rank is None:
            raise ValueError("tensordot: the ranks must be known.")
        of_x, of_y = _tensordot_axes(axes, x, y)
        letters = [chr(97 + at) for at in range(x.shape.rank + y.shape.rank)]
        left = letters[: x.shape.rank]
        right = letters[x.shape.rank :]
        for one, other in zip(of_x, of_y, strict=True):
            right[other] = left[one]
        summed = {left[one] for one in of_x}
        out = [each for each in (*left, *right) if each not in summed]
        equation = f"{''.join(left)},{''.join(right)}->{''.join(out)}"
        return make("Einsum", {"a": x, "b": y}, {"equation": equation}, "MatMul")


def _tensordot_axes(axes: Any, x: Tensor, y: Tensor) -> tuple[list[int], list[int]]:
    if isinstance(axes, Tensor):
        axes = constant_value(axes)
        if axes is None:
            raise ValueError("tensordot: the axes must be known when the graph is built.")
    rank_x, rank_y = x.shape.rank or 0, y.shape.rank or 0
    if np.ndim(axes) == 0:
        count = int(axes)
        if not 0 <= count <= min(rank_x, rank_y):
            raise ValueError(
                explain(
                    "tensordot: axes does not fit",
                    expected=f"0 to {min(rank_x, rank_y)}",
                    received=count,
                )
            )
        return list(range(rank_x - count, rank_x)), list(range(count))
    one, other = ([int(a) for a in np.atleast_1d(each)] for each in axes)
    if len(one) != len(other):
        raise ValueError(
            f"Different number of contraction axes 'a' and 'b', {len(one)} != {len(other)}."
        )
    return [a % rank_x for a in one], [a % rank_y for a in other]


register(
    "Einsum",
    lambda *operands, equation: jnp.einsum(equation, *map(jnp.asarray, operands)),
    accepts="fic",
    numpy_kernel=lambda *operands, equation: np.einsum(equation, *operands),
    cases=lambda: [
        Case((_TALL, _TALL), {"equation": "ij,kj->ik"}),
        Case((_SQUARE,), {"equation": "bij->bji"}),
        Case((_SQUARE, _RIGHT), {"equation": "...ij,...jk->...ik"}),
    ],
)


def einsum(equation: str, *inputs: Any, name: str | None = None, optimize: Any = None) -> Tensor:
    """Products and sums written as in NumPy's `einsum`.

    Args:
        equation: for example 'ij,jk->ik'; ellipses stand for further dimensions.
        *inputs: tensors of one dtype.
        name: the operation's name.
        optimize: accepted for TensorFlow's signature.

    Raises:
        ValueError: the equation does not fit the inputs.
    """
    if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
        inputs = tuple(inputs[0])
    equation = equation.replace(" ", "")
    if equation.split("->")[0].count(",") + 1 != len(inputs):
        raise ValueError(
            explain(
                f"einsum: the equation {equation!r} does not fit the inputs",
                expected=f"{equation.split('->')[0].count(',') + 1} inputs",
                received=len(inputs),
            )
        )
    with get_default_graph().name_scope(name or "einsum"):
        first = convert_to_tensor(inputs[0])
        tensors = [first, *(convert_to_tensor(each, first.dtype) for each in inputs[1:])]
        registry.check_same_dtype("Einsum", tensors, name)
        return registry.output("Einsum", tensors, {"equation": equation}, "Einsum")


def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """The cross product of vectors of 3 elements, in the last dimension."""
    return make("Cross", {"a": a, "b": b}, name=name, same_dtype=True)


register(
    "Cross",
    lambda a, b: jnp.cross(jnp.asarray(a), jnp.asarray(b)),
    infer=same_as_input(),
    accepts="fi",
    numpy_kernel=np.cross,
    cases=lambda: [
        Case((_POSITIVE, np.array([[1.0, 0.5, 2.0], [0.0, 1.0, -1.0], [3.0, 2.0, 1.0]], "f")))
    ],
)


def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """The transpose, conjugated where complex."""
    return matrix_transpose(matrix, name or "adjoint", conjugate=True)
