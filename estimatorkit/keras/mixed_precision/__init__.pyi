from estimatorkit.layers.engine.policy import (
    global_policy as global_policy, Policy as Policy, set_global_policy as set_global_policy,
)
from estimatorkit.keras.mixed_precision.loss_scale_optimizer import (
    LossScaleOptimizer as LossScaleOptimizer,
)
from . import experimental as experimental
