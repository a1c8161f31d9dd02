from estimatorkit.compat.ops.linalg.matrix_functions import (
    logm as logm, matrix_rank as matrix_rank, pinv as pinv, sqrtm as sqrtm,
)
