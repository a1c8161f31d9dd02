"""`tf.sparse`: sparse tensors."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_OPS = "estimatorkit.ops"
_PLACES = {
    **names("estimatorkit.core.sparse_tensor", "SparseTensor"),
    **names(
        f"{_OPS}.sparse.sparse",
        "eye from_dense placeholder=sparse_placeholder to_dense=sparse_tensor_to_dense",
    ),
    **names(
        f"{_OPS}.sparse.shapes",
        "expand_dims=sparse_expand_dims reorder=sparse_reorder reset_shape=sparse_reset_shape",
        "reshape=sparse_reshape retain=sparse_retain slice=sparse_slice split=sparse_split",
        "transpose=sparse_transpose",
    ),
    **names(
        f"{_OPS}.sparse.counts",
        "bincount=sparse_bincount cross=sparse_cross cross_hashed=sparse_cross_hashed",
    ),
    **names(
        f"{_OPS}.sparse.joining",
        "concat=sparse_concat fill_empty_rows=sparse_fill_empty_rows mask=sparse_mask",
        "merge=sparse_merge",
    ),
    **names(
        f"{_OPS}.sparse.math",
        "add=sparse_add maximum=sparse_maximum minimum=sparse_minimum reduce_max=sparse_reduce_max",
        "reduce_max_sparse=sparse_reduce_max_sparse reduce_sum=sparse_reduce_sum",
        "reduce_sum_sparse=sparse_reduce_sum_sparse softmax=sparse_softmax",
        "to_indicator=sparse_to_indicator",
    ),
    **names(
        f"{_OPS}.sparse.products",
        "map_values matmul=sparse_tensor_dense_matmul",
        "sparse_dense_matmul=sparse_tensor_dense_matmul",
    ),
    **names(
        f"{_OPS}.sparse.segments",
        "segment_mean=sparse_segment_mean segment_sqrt_n=sparse_segment_sqrt_n",
        "segment_sum=sparse_segment_sum",
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
