"""`AdamWOptimizer`: Adam with decoupled weight decay, and factors of kinds of variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.train.optimizers import optimizer_rules as rules
from estimatorkit.train.optimizers.optimizers import AdamOptimizer

Factors = Callable[[Variable], tuple[float, float]] | Mapping[str, tuple[float, float]]


class AdamWOptimizer(AdamOptimizer):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2017, arXiv:1711.05101).

    w -= learning_rate (step + weight_decay w), where `learning_rate step` is what `AdamOptimizer`
    subtracts: the decay bypasses m and v, and follows the learning rate's schedule. (That of
    `tf.contrib.opt.AdamWOptimizer` does not.) Sparse gradients decay and update all rows. Slots:
    'm', 'v'.

    Args:
        learning_rate, beta1, beta2, epsilon: see `AdamOptimizer`.
        weight_decay: a number, tensor or callable; 0.01 by default.
        factors: of a variable's learning rate and of its weight decay (which also gets the first):
            a function of the variable, or a dict by regular expressions, such as `{"bias$": (0.1,
            0.0)}`, whose first that is found in `variable.op.name` counts. (1, 1) for others.
        use_locking, name: see `Optimizer`.
    """

    _RULE = rules.adam_w

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        weight_decay: Any = 0.01,
        factors: Factors | None = None,
        use_locking: bool = False,
        name: str = "AdamW",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)
        self._hyperparameters["weight_decay"] = weight_decay
        self._factors = {} if factors is None else factors

    def _tensors_of(self, var: Variable) -> Mapping[str, Tensor]:
        given = dict(self._tensors)
        names = ("learning_rate", "weight_decay")
        for name, factor in zip(names, self._factors_of(var), strict=True):
            if factor != 1.0:
                given[name] = given[name] * factor
        return given

    def _factors_of(self, var: Variable) -> tuple[float, float]:
        if not isinstance(self._factors, Mapping):
            return self._factors(var)
        found = (each for key, each in self._factors.items() if re.search(key, var.op.name))
        return next(found, (1.0, 1.0))


__all__ = ["AdamWOptimizer", "Factors"]
