from estimatorkit.compat.ops.sparse.math import (
    sparse_add, sparse_maximum, sparse_minimum, sparse_reduce_max, sparse_reduce_max_sparse,
    sparse_reduce_sum, sparse_reduce_sum_sparse, sparse_softmax, sparse_to_indicator,
)
from estimatorkit.ops.sparse.products import map_values as map_values, sparse_tensor_dense_matmul
from estimatorkit.compat.ops.sparse.segments import (
    sparse_segment_mean, sparse_segment_sqrt_n, sparse_segment_sum,
)
add = sparse_add
maximum = sparse_maximum
minimum = sparse_minimum
reduce_max = sparse_reduce_max
reduce_max_sparse = sparse_reduce_max_sparse
reduce_sum = sparse_reduce_sum
reduce_sum_sparse = sparse_reduce_sum_sparse
softmax = sparse_softmax
to_indicator = sparse_to_indicator
matmul = sparse_tensor_dense_matmul
sparse_dense_matmul = sparse_tensor_dense_matmul
segment_mean = sparse_segment_mean
segment_sqrt_n = sparse_segment_sqrt_n
segment_sum = sparse_segment_sum
