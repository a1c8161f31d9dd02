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
from estimatorkit.compat.names.sparse import *

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
