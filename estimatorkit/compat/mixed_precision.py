"""`mixed_precision`: loss scaling under its older names (see `loss_scale`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimatorkit.core import builtin_ops
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.ops.array import indexing
from estimatorkit.train.optimizers.loss_scale import (
    DynamicLossScale,
    FixedLossScale,
    LossScale,
    MixedPrecisionLossScaleOptimizer,
    all_finite,
)
from estimatorkit.train.optimizers.optimizer import Optimizer


class FixedLossScaleManager(FixedLossScale):
    """A constant loss scale.

    Args:
        loss_scale: the scale, at least 1.
    """

    def __init__(self, loss_scale: float) -> None:
        super().__init__(loss_scale)


class ExponentialUpdateLossScaleManager(DynamicLossScale):
    """Increases after finite steps, and decreases after some that are not.

    Args:
        init_loss_scale: the initial scale.
        incr_every_n_steps: finite steps before an increase.
        decr_every_n_nan_or_inf: non-finite steps before a decrease.
        incr_ratio, decr_ratio: the factors.
    """

    def __init__(
        self,
        init_loss_scale: float,
        incr_every_n_steps: int,
        decr_every_n_nan_or_inf: int = 2,
        incr_ratio: float = 2,
        decr_ratio: float = 0.8,
    ) -> None:
        super().__init__(init_loss_scale, incr_every_n_steps, incr_ratio)
        self._fall = (int(decr_every_n_nan_or_inf), float(decr_ratio))
        self._bad: dict[Any, Variable] = {}

    def update(self, grads: Sequence[Any]) -> tuple[Operation, Tensor | bool]:
        """See `LossScale.update`."""
        graph = get_default_graph().outermost
        scale, good_steps = self.variables()
        if graph not in self._bad:
            with graph.init_scope(), graph.name_scope(None):
                self._bad[graph] = Variable(0, trainable=False, name="bad_steps", dtype="int64")
        bad_steps = self._bad[graph]
        every, ratio = self._fall
        finite = all_finite(grads)
        good = indexing.where(finite, good_steps + 1, builtin_ops.identity(good_steps))
        bad = indexing.where(finite, builtin_ops.identity(bad_steps), bad_steps + 1)
        grows, falls = good >= self.increment_period, bad >= every
        least = indexing.where(scale * ratio < 1.0, 0.0 * scale + 1.0, scale * ratio)
        kept = indexing.where(falls, least, builtin_ops.identity(scale))
        changed = indexing.where(grows, scale * self.multiplier, kept)
        over = indexing.where(grows, 0 * good, indexing.where(falls, 0 * good, good))
        done: Operation = builtin_ops.group(
            scale.assign(changed),
            good_steps.assign(over),
            bad_steps.assign(indexing.where(grows, 0 * bad, indexing.where(falls, 0 * bad, bad))),
        )
        return done, finite


class LossScaleOptimizer(MixedPrecisionLossScaleOptimizer):
    """Scales the loss for another optimizer.

    Args:
        opt: the optimizer.
        loss_scale_manager: the scale.
    """

    def __init__(self, opt: Optimizer, loss_scale_manager: LossScale) -> None:
        super().__init__(opt, loss_scale_manager)
