"""Which modules register op types that only TensorFlow 1 programs use."""

from __future__ import annotations

from estimatorkit.core.registry import add_ops

add_ops(
    "estimatorkit.train.optimizers.contrib_rules",
    "ApplyAddSign ApplyLars ApplyLazyAdam ApplyNesterovAdam ApplyPowerSign SparseApplyAddSign "
    "SparseApplyLazyAdam SparseApplyNesterovAdam SparseApplyPowerSign",
)
add_ops("estimatorkit.train.optimizers.sync_replicas_optimizer", "QueueReopen")
