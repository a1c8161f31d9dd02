"""`tf.keras.mixed_precision.experimental`: the spellings of TensorFlow 2.1 to 2.3."""

from __future__ import annotations

from typing import Any

from estimatorkit.keras.mixed_precision import loss_scale_optimizer
from estimatorkit.layers.engine import policy
from estimatorkit.layers.engine.policy import global_policy, set_global_policy as set_policy
from estimatorkit.lazy import listing
from estimatorkit.train.optimizers.loss_scale import DynamicLossScale, LossScale, as_loss_scale


class Policy(policy.Policy):
    """A policy that knows a loss scale.

    Args:
        name: see `keras.mixed_precision.Policy`.
        loss_scale: a `LossScale`, a number, 'dynamic' or None; 'auto': 'dynamic' for
            'mixed_float16', else None.
    """

    def __init__(self, name: Any, loss_scale: Any = "auto") -> None:
        super().__init__(name)
        if loss_scale == "auto":
            loss_scale = "dynamic" if self.name == "mixed_float16" else None
        self._loss_scale = None if loss_scale is None else as_loss_scale(loss_scale)

    @property
    def loss_scale(self) -> LossScale | None:
        """The loss scale, or None."""
        return self._loss_scale


class LossScaleOptimizer(loss_scale_optimizer.LossScaleOptimizer):
    """`keras.mixed_precision.LossScaleOptimizer`, made from a loss scale.

    Args:
        optimizer: the optimizer.
        loss_scale: a `LossScale`, a number, or 'dynamic'.
    """

    def __init__(self, optimizer: Any, loss_scale: Any) -> None:
        scale = as_loss_scale(loss_scale)
        if isinstance(scale, DynamicLossScale):
            super().__init__(optimizer, True, scale.initial_loss_scale, scale.increment_period)
        else:
            super().__init__(optimizer, False, 1.0)
        self._loss_scale = scale


__dir__ = listing(__name__)
__all__ = ["LossScaleOptimizer", "Policy", "global_policy", "set_policy"]
