"""The optimizers of `tf.contrib.opt`: Adam variants, sign-based optimizers, LARS, weight decay.

Each passes a rule to `RuleOptimizer`, as of TensorFlow 1.15. Wrappers of other optimizers are in
separate modules (`moving_average_optimizer`, `loss_scale`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimatorkit.compat.train.optimizers import contrib_rules
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.train.optimizers.optimizer import (
    takes_repeated_rows,
)
from estimatorkit.train.optimizers.optimizers import MomentumOptimizer
from estimatorkit.train.optimizers.rule_optimizer import apply_rule


class LARSOptimizer(MomentumOptimizer):
    """Layer-wise adaptive rate scaling: momentum with a learning rate per variable.

    trust = eeta |w| / (|g| + weight_decay |w| + epsilon), or 1 if a norm is 0;
    velocity = momentum velocity + g + weight_decay w; w -= learning_rate trust velocity. Sparse
    gradients are neither scaled nor decayed.

    Source: `tf.contrib.opt.LARSOptimizer`; You, Gitman & Ginsburg 2017. Slot: 'momentum'.

    Args:
        learning_rate, momentum, weight_decay, eeta, epsilon: numbers, tensors or callables.
        name: see `Optimizer`.
        skip_list: parts of names; matching variables use plain momentum.
        use_nesterov: whether to use Nesterov momentum.
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any = 0.9,
        weight_decay: Any = 0.0001,
        eeta: Any = 0.001,
        epsilon: Any = 0.0,
        name: str = "LARSOptimizer",
        skip_list: Sequence[str] | None = None,
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(learning_rate, momentum, name=name, use_nesterov=use_nesterov)
        self._plain_rule, self._rule = self._rule, contrib_rules.lars
        self._hyperparameters |= {"weight_decay": weight_decay, "eeta": eeta, "epsilon": epsilon}
        self._hyperparameters["nesterov"] = float(use_nesterov)
        self._skip_list = tuple(skip_list or ())

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation:
        skipped = any(part in var.name for part in self._skip_list)
        rule = self._plain_rule if skipped else self._rule
        return apply_rule(rule, self, self._tensors, var, grad)

    @takes_repeated_rows
    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Operation:
        return apply_rule(self._plain_rule, self, self._tensors, var, grad)


__all__ = [
    "LARSOptimizer",
]
