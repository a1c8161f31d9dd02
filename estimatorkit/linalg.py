"""`tf.linalg`: matrices."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_OPS = "estimatorkit.ops"
_OPERATORS = "estimatorkit.ops.linear_operators"

_PLACES = {
    **names(
        f"{_OPS}.linalg.matrices",
        "cholesky cholesky_solve logdet slogdet det=matrix_determinant inv=matrix_inverse",
        "lstsq=matrix_solve_ls solve=matrix_solve triangular_solve=matrix_triangular_solve",
    ),
    **names(
        f"{_OPS}.linalg.decompositions",
        "expm qr svd eigh=self_adjoint_eig eigvalsh=self_adjoint_eigvals",
    ),
    **names(f"{_OPS}.linalg.lu", "lu lu_matrix_inverse lu_reconstruct lu_solve"),
    **names(f"{_OPS}.linalg.matrix_functions", "logm matrix_rank pinv sqrtm"),
    **names(f"{_OPS}.linalg.tridiagonal", "tridiagonal_matmul tridiagonal_solve"),
    **names(
        f"{_OPS}.linalg.diagonals",
        "eye trace band_part=matrix_band_part diag=matrix_diag diag_part=matrix_diag_part",
        "set_diag=matrix_set_diag tensor_diag=diag tensor_diag_part=diag_part",
        "matrix_transpose=matrix_transpose transpose=matrix_transpose",
    ),
    **names(f"{_OPS}.linalg.products", "adjoint cross einsum matvec norm normalize tensordot"),
    **names(f"{_OPS}.math.linalg", "matmul"),
    **names(f"{_OPS}.nn.nn", "l2_normalize"),
    **names("estimatorkit.train.optimizers.clip", "global_norm"),
    **names(f"{_OPERATORS}.operator", "LinearOperator"),
    **names(
        f"{_OPERATORS}.dense",
        "LinearOperatorFullMatrix LinearOperatorLowRankUpdate LinearOperatorLowerTriangular",
    ),
    **names(
        f"{_OPERATORS}.diagonal",
        "LinearOperatorDiag LinearOperatorIdentity LinearOperatorScaledIdentity",
        "LinearOperatorZeros",
    ),
    **names(
        f"{_OPERATORS}.related",
        "LinearOperatorAdjoint LinearOperatorBlockDiag LinearOperatorComposition",
        "LinearOperatorInversion LinearOperatorKronecker",
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
