"""`tf.train.experimental`: loss scaling (see `loss_scale`)."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = names(
    "estimatorkit.train.optimizers.loss_scale",
    "DynamicLossScale FixedLossScale LossScale MixedPrecisionLossScaleOptimizer",
    "enable_mixed_precision_graph_rewrite",
)

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
