"""Mixed precision (`tf.keras.mixed_precision`): policies, and loss scaling for float16."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    **names("estimatorkit.layers.engine.policy", "Policy global_policy set_global_policy"),
    **names("estimatorkit.keras.mixed_precision.loss_scale_optimizer", "LossScaleOptimizer"),
    "experimental": "estimatorkit.keras.mixed_precision.experimental",
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
