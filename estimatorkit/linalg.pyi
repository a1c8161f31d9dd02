from estimatorkit.ops.linalg.matrices import (
    cholesky as cholesky, cholesky_solve as cholesky_solve, matrix_determinant, matrix_inverse,
    logdet as logdet, matrix_solve_ls, slogdet as slogdet, matrix_solve, matrix_triangular_solve,
)
from estimatorkit.ops.linalg.decompositions import (
    self_adjoint_eig, self_adjoint_eigvals, expm as expm, qr as qr, svd as svd,
)
from estimatorkit.ops.linalg.diagonals import (
    matrix_band_part, matrix_diag, matrix_diag_part, eye as eye,
    matrix_transpose as matrix_transpose, matrix_set_diag, tensor_diag as tensor_diag,
    tensor_diag_part as tensor_diag_part, trace as trace,
)
from estimatorkit.ops.linalg.products import (
    adjoint as adjoint, cross as cross, einsum as einsum, matvec as matvec, norm as norm,
    normalize as normalize, tensordot as tensordot,
)
from estimatorkit.ops.math.linalg import matmul as matmul
from estimatorkit.ops.nn.nn import l2_normalize as l2_normalize
from estimatorkit.train.optimizers.clip import global_norm as global_norm
from estimatorkit.compat.names.linalg import *

det = matrix_determinant
inv = matrix_inverse
lstsq = matrix_solve_ls
solve = matrix_solve
triangular_solve = matrix_triangular_solve
eigh = self_adjoint_eig
eigvalsh = self_adjoint_eigvals
band_part = matrix_band_part
diag = matrix_diag
diag_part = matrix_diag_part
set_diag = matrix_set_diag
transpose = matrix_transpose
