from estimatorkit.compat.ops.control.defun import recompute_grad as recompute_grad
from estimatorkit.compat.ops.control.gradient_tape import (
    GradientTape as GradientTape, UnconnectedGradients as UnconnectedGradients,
)
from estimatorkit.ops.array.windows import strided_slice as strided_slice
from estimatorkit.compat.ops.sparse.math import (
    sparse_add as sparse_add, sparse_maximum as sparse_maximum, sparse_minimum as sparse_minimum,
    sparse_reduce_max as sparse_reduce_max, sparse_reduce_max_sparse as sparse_reduce_max_sparse,
    sparse_reduce_sum as sparse_reduce_sum, sparse_reduce_sum_sparse as sparse_reduce_sum_sparse,
    sparse_softmax as sparse_softmax, sparse_to_indicator as sparse_to_indicator,
)
from estimatorkit.ops.sparse.products import (
    sparse_matmul as sparse_matmul, sparse_tensor_dense_matmul as sparse_tensor_dense_matmul,
)
from estimatorkit.compat.ops.sparse.segments import (
    sparse_segment_mean as sparse_segment_mean, sparse_segment_sqrt_n as sparse_segment_sqrt_n,
    sparse_segment_sum as sparse_segment_sum,
)
from estimatorkit.compat.ops.sparse.sets import edit_distance as edit_distance
from estimatorkit.compat.ops.control.critical_section import CriticalSection as CriticalSection
from estimatorkit.compat.ops.queues.accumulators import (
    ConditionalAccumulator as ConditionalAccumulator,
    SparseConditionalAccumulator as SparseConditionalAccumulator,
)
