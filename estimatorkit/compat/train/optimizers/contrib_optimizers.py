"""The optimizers of `tf.contrib.opt`: Adam variants, sign-based optimizers, LARS, weight decay.

Each passes a rule to `RuleOptimizer`, as of TensorFlow 1.15. Wrappers of other optimizers are in
separate modules (`moving_average_optimizer`, `loss_scale`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from estimatorkit.compat.train.optimizers import contrib_rules
from estimatorkit.core import builtin_ops
from estimatorkit.core.dtypes import float32
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.ops.array import indexing
from estimatorkit.ops.math import elementwise
from estimatorkit.train.global_steps import get_or_create_global_step
from estimatorkit.train.optimizers import keras_rules
from estimatorkit.train.optimizers.optimizer import (
    GradientAndVariable,
    Optimizer,
    takes_repeated_rows,
)
from estimatorkit.train.optimizers.optimizers import AdamOptimizer, MomentumOptimizer
from estimatorkit.train.optimizers.rule_optimizer import RuleOptimizer, apply_rule


class NadamOptimizer(AdamOptimizer):
    """Adam with Nesterov's momentum: w -= lr_t (beta1 m + (1 - beta1) g) / (sqrt(v) + epsilon).

    Source: `tf.contrib.opt.NadamOptimizer`; Dozat 2016. Slots: 'm', 'v'.

    Args:
        learning_rate, beta1, beta2, epsilon, use_locking, name: see `AdamOptimizer`.
    """

    _RULE = contrib_rules.nesterov_adam


class AdaMaxOptimizer(AdamOptimizer):
    """Adam with the infinity norm of gradients instead of the root of v.

    v = max(beta2 v, |g|); w -= learning_rate / (1 - beta1^t) m / (v + epsilon). Sparse gradients
    update only their rows. Source: `tf.contrib.opt.AdaMaxOptimizer`; Kingma & Ba 2015, section 7.
    Slots: 'm', 'v'; the variable 'beta1_power'.

    Args:
        learning_rate, beta1, beta2, epsilon, use_locking, name: see `AdamOptimizer`.
    """

    _RULE = keras_rules.ada_max
    _POWERS: Mapping[str, str] = {"beta1_power": "beta1"}

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdaMax",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)


SignDecay = Callable[[Any], Any]


class _SignOptimizer(RuleOptimizer):
    """Base class of `AddSignOptimizer` and `PowerSignOptimizer`: the decay of the sign's weight."""

    _sign_decay_fn: SignDecay | None = None

    def apply_gradients(
        self,
        grads_and_vars: Iterable[GradientAndVariable],
        global_step: Variable | None = None,
        name: str | None = None,
        skip_gradients_aggregation: bool = False,
    ) -> Operation:
        """See `Optimizer.apply_gradients`; the sign's weight decays with `global_step`."""
        step = global_step
        if self._sign_decay_fn is not None:
            decay = self._sign_decay_fn
            step = get_or_create_global_step() if global_step is None else global_step
            self._hyperparameters["sign_decay"] = lambda: decay(step)
        return super().apply_gradients(grads_and_vars, global_step, name)


class AddSignOptimizer(_SignOptimizer):
    """w -= learning_rate (alpha + d sign(g) sign(m)) g, with m the moving average of g.

    Source: `tf.contrib.opt.AddSignOptimizer`; Bello et al. 2017. Slot: 'm'.

    Args:
        learning_rate, alpha, beta: numbers, tensors or callables.
        sign_decay_fn: d as a function of the global step, such as from `get_linear_decay_fn`; None
            is 1.
        use_locking, name: see `Optimizer`.
    """

    def __init__(
        self,
        learning_rate: Any = 0.1,
        alpha: Any = 1.0,
        beta: Any = 0.9,
        sign_decay_fn: SignDecay | None = None,
        use_locking: bool = False,
        name: str = "AddSignOptimizer",
    ) -> None:
        values = {"learning_rate": learning_rate, "alpha": alpha, "beta": beta, "sign_decay": 1.0}
        super().__init__(contrib_rules.add_sign, use_locking, name, values)
        self._sign_decay_fn = sign_decay_fn


class PowerSignOptimizer(_SignOptimizer):
    """w -= learning_rate base^(d sign(g) sign(m)) g, with m the moving average of g.

    Source: `tf.contrib.opt.PowerSignOptimizer`; Bello et al. 2017. Slot: 'm'.

    Args:
        learning_rate, beta: numbers, tensors or callables.
        base: a number.
        sign_decay_fn, use_locking, name: see `AddSignOptimizer`.
    """

    def __init__(
        self,
        learning_rate: Any = 0.1,
        base: float = math.e,
        beta: Any = 0.9,
        sign_decay_fn: SignDecay | None = None,
        use_locking: bool = False,
        name: str = "PowerSignOptimizer",
    ) -> None:
        values = {"learning_rate": learning_rate, "logbase": math.log(base), "beta": beta}
        super().__init__(contrib_rules.power_sign, use_locking, name, {**values, "sign_decay": 1.0})
        self._sign_decay_fn = sign_decay_fn


def get_linear_decay_fn(decay_steps: int) -> SignDecay:
    """Returns a function of the step that decreases linearly from 1 to 0 in `decay_steps` steps."""
    return lambda step: elementwise.maximum(1.0 - _part(step, decay_steps), 0.0)


def get_cosine_decay_fn(
    decay_steps: int, num_periods: float = 0.5, zero_after: float | None = None
) -> SignDecay:
    """Returns a function of the step: `num_periods` periods of a cosine between 1 and 0.

    Args:
        decay_steps: the number of steps until the value is constant.
        zero_after: the fraction of the steps after which the value is 0.
    """

    def decay(step: Any) -> Tensor:
        part = elementwise.minimum(_part(step, decay_steps), 1.0)
        cosine = 0.5 * (1.0 + elementwise.cos(2.0 * math.pi * num_periods * part))
        return cosine if zero_after is None else _zero_after(cosine, part, zero_after)

    return decay


def get_restart_decay_fn(
    decay_steps: int, num_periods: int = 1, zero_after: float | None = None
) -> SignDecay:
    """Returns a function of the step: `num_periods` half cosines from 1 to 0.

    Args:
        decay_steps: the total number of steps.
        num_periods: the number of half cosines.
        zero_after: the fraction of each half cosine after which the value is 0.
    """

    def decay(step: Any) -> Tensor:
        part = elementwise.floormod(num_periods * _part(step, decay_steps), 1.0)
        cosine = 0.5 * (1.0 + elementwise.cos(math.pi * part))
        return cosine if zero_after is None else _zero_after(cosine, part, zero_after)

    return decay


def _part(step: Any, decay_steps: int) -> Tensor:
    if step is None:
        raise ValueError("global_step is required for sign_decay_fn.")
    return elementwise.cast(step, float32) / float(decay_steps)


def _zero_after(value: Tensor, part: Tensor, limit: float) -> Tensor:
    return indexing.where(part >= limit, 0.0 * value, value)


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


class DecoupledWeightDecayExtension(Optimizer):
    """A mixin that subtracts `weight_decay` times the variable before the optimizer's step.

    It precedes an optimizer among the bases of a class (see `extend_with_decoupled_weight_decay`).
    The decay bypasses the gradient, and thus Adam's moments (Loshchilov & Hutter 2017). It is not
    scaled by the learning rate, so give it the same schedule. Sparse gradients decay only their
    rows.

    Source: `tf.contrib.opt.DecoupledWeightDecayExtension`.

    Args:
        weight_decay: a number, tensor or callable.
        **kwargs: the optimizer's arguments.
    """

    def __init__(self, weight_decay: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._weight_decay = weight_decay
        self._decayed: set[Variable] | None = None

    def minimize(
        self, loss: Any, *args: Any, decay_var_list: Sequence[Variable] | None = None, **kwargs: Any
    ) -> Operation:
        """See `Optimizer.minimize`; `decay_var_list` are the variables to decay, all by default."""
        self._decayed = None if decay_var_list is None else set(decay_var_list)
        return super().minimize(loss, *args, **kwargs)

    def apply_gradients(  # type: ignore[override]
        self,
        grads_and_vars: Iterable[GradientAndVariable],
        global_step: Variable | None = None,
        name: str | None = None,
        decay_var_list: Sequence[Variable] | None = None,
    ) -> Operation:
        """See `Optimizer.apply_gradients`; `decay_var_list` are the variables to decay."""
        if decay_var_list is not None:
            self._decayed = set(decay_var_list)
        return super().apply_gradients(grads_and_vars, global_step, name)

    def _update(self, gradient: Any, variable: Variable) -> Operation:
        decay = self._decay_of(variable)
        if decay is None:
            return super()._update(gradient, variable)
        if isinstance(gradient, IndexedSlices):
            kept = indexing.gather(variable, gradient.all_indices) * (1.0 - decay)
            decayed = variable.scatter_update(IndexedSlices(kept, gradient.all_indices))
        else:
            decayed = variable.assign_sub(decay * variable)
        with get_default_graph().control_dependencies([decayed]):
            return super()._update(gradient, variable)

    def _decay_of(self, variable: Variable) -> Tensor | None:
        if self._decayed is not None and variable not in self._decayed:
            return None
        decay = self._call_if_callable(self._weight_decay)
        return elementwise.cast(builtin_ops.identity(decay), variable.dtype)


def extend_with_decoupled_weight_decay(base_optimizer: type[Optimizer]) -> type[Optimizer]:
    """Returns a subclass of an optimizer class with decoupled weight decay.

    Its constructor takes `weight_decay`, then the arguments of `base_optimizer`.
    """

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecayExtension, base_optimizer):  # type: ignore[misc,valid-type]
        """`base_optimizer` with decoupled weight decay."""

    return OptimizerWithDecoupledWeightDecay


class AdamWOptimizer(DecoupledWeightDecayExtension, AdamOptimizer):
    """`AdamOptimizer` with decoupled weight decay (Loshchilov & Hutter 2017).

    Source: `tf.contrib.opt.AdamWOptimizer`.

    Args:
        weight_decay: see `DecoupledWeightDecayExtension`.
        learning_rate, beta1, beta2, epsilon, use_locking, name: see `AdamOptimizer`.
    """

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdamW",
    ) -> None:
        super().__init__(weight_decay, learning_rate, beta1, beta2, epsilon, use_locking, name)


class MomentumWOptimizer(DecoupledWeightDecayExtension, MomentumOptimizer):
    """`MomentumOptimizer` with decoupled weight decay (Loshchilov & Hutter 2017).

    Source: `tf.contrib.opt.MomentumWOptimizer`.

    Args:
        weight_decay: see `DecoupledWeightDecayExtension`.
        learning_rate, momentum, use_locking, name, use_nesterov: see `MomentumOptimizer`.
    """

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "MomentumW",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(weight_decay, learning_rate, momentum, use_locking, name, use_nesterov)


__all__ = [
    "AdaMaxOptimizer",
    "AdamWOptimizer",
    "AddSignOptimizer",
    "DecoupledWeightDecayExtension",
    "LARSOptimizer",
    "MomentumWOptimizer",
    "NadamOptimizer",
    "PowerSignOptimizer",
    "extend_with_decoupled_weight_decay",
    "get_cosine_decay_fn",
    "get_linear_decay_fn",
    "get_restart_decay_fn",
]
