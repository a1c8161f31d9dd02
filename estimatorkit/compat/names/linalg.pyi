from estimatorkit.compat.ops.linalg.lu import (
    lu as lu, lu_matrix_inverse as lu_matrix_inverse, lu_reconstruct as lu_reconstruct,
    lu_solve as lu_solve,
)
from estimatorkit.compat.ops.linalg.matrix_functions import (
    logm as logm, matrix_rank as matrix_rank, pinv as pinv, sqrtm as sqrtm,
)
from estimatorkit.compat.ops.linalg.tridiagonal import (
    tridiagonal_matmul as tridiagonal_matmul, tridiagonal_solve as tridiagonal_solve,
)
