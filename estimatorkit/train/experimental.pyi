from estimatorkit.train.optimizers.loss_scale import (
    DynamicLossScale as DynamicLossScale,
    enable_mixed_precision_graph_rewrite as enable_mixed_precision_graph_rewrite,
    FixedLossScale as FixedLossScale, LossScale as LossScale,
    MixedPrecisionLossScaleOptimizer as MixedPrecisionLossScaleOptimizer,
)
