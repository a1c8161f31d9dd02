from estimatorkit.core.sparse_tensor import SparseTensor as SparseTensor
from estimatorkit.ops.sparse.sparse import (
    eye as eye, from_dense as from_dense, sparse_placeholder, sparse_tensor_to_dense,
)
from estimatorkit.ops.sparse.shapes import (
    sparse_expand_dims, sparse_reorder, sparse_reset_shape, sparse_reshape, sparse_retain,
    sparse_slice, sparse_split, sparse_transpose,
)
from estimatorkit.ops.sparse.counts import sparse_bincount, sparse_cross, sparse_cross_hashed
from estimatorkit.ops.sparse.joining import (
    sparse_concat, sparse_fill_empty_rows, sparse_mask, sparse_merge,
)
from estimatorkit.ops.sparse.math import (
    sparse_add, sparse_maximum, sparse_minimum, sparse_reduce_max, sparse_reduce_max_sparse,
    sparse_reduce_sum, sparse_reduce_sum_sparse, sparse_softmax, sparse_to_indicator,
)
from estimatorkit.ops.sparse.products import map_values as map_values, sparse_tensor_dense_matmul
from estimatorkit.ops.sparse.segments import (
    sparse_segment_mean, sparse_segment_sqrt_n, sparse_segment_sum,
)

placeholder = sparse_placeholder
to_dense = sparse_tensor_to_dense
expand_dims = sparse_expand_dims
reorder = sparse_reorder
reset_shape = sparse_reset_shape
reshape = sparse_reshape
retain = sparse_retain
slice = sparse_slice
split = sparse_split
transpose = sparse_transpose
bincount = sparse_bincount
cross = sparse_cross
cross_hashed = sparse_cross_hashed
concat = sparse_concat
fill_empty_rows = sparse_fill_empty_rows
mask = sparse_mask
merge = sparse_merge
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
