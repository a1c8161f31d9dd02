"""The optimizers of `tf.compat.v1.train`.

Each class has TensorFlow's constructor, and passes its update rule and arguments, from which the
rule takes its hyperparameters, to `RuleOptimizer`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.ops.math.elementwise import cast
from estimatorkit.train.optimizers import keras_rules, optimizer_rules as rules
from estimatorkit.train.optimizers.optimizer import Optimizer, filled_like, takes_repeated_rows
from estimatorkit.train.optimizers.rule_optimizer import RuleOptimizer, apply_rule
from estimatorkit.train.optimizers.update_rule import UpdateRule


class GradientDescentOptimizer(RuleOptimizer):
    """Gradient descent: w -= learning_rate * g.

    Source: `tf.compat.v1.train.GradientDescentOptimizer`.

    Args:
        learning_rate: a number, tensor or callable.
        use_locking, name: see `Optimizer`.
    """

    def __init__(
        self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent"
    ) -> None:
        super().__init__(rules.gradient_descent, use_locking, name, locals())


class MomentumOptimizer(RuleOptimizer):
    """Gradient descent with momentum.

    momentum_slot = momentum * momentum_slot + g; w -= learning_rate * momentum_slot.

    With `use_nesterov`, w -= learning_rate * (g + momentum * momentum_slot) (Sutskever et al. 2013,
    with variables at the look-ahead position). Sparse gradients update only their rows of variables
    and slots.

    Source: `tf.compat.v1.train.MomentumOptimizer`. Slot: 'momentum'.

    Args:
        learning_rate, momentum: numbers, tensors or callables.
        use_locking, name: see `Optimizer`.
        use_nesterov: whether to use Nesterov momentum.
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        rule = rules.nesterov_momentum if use_nesterov else rules.momentum
        super().__init__(rule, use_locking, name, locals())


class AdagradOptimizer(RuleOptimizer):
    """Adagrad: steps are scaled down by the accumulated squares of the gradients.

    accumulator += g^2; w -= learning_rate * g / (sqrt(accumulator) + epsilon).

    Source: `tf.compat.v1.train.AdagradOptimizer`; Duchi et al. 2011. Slot: 'accumulator'.

    Args:
        learning_rate: a number, tensor or callable.
        initial_accumulator_value: positive; 0 only with a positive epsilon.
        use_locking, name: see `Optimizer`.
        epsilon: 0 as in TensorFlow 1; Keras uses 1e-7.

    Raises:
        ValueError: `initial_accumulator_value` is out of range.
    """

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
        *,
        epsilon: Any = 0.0,
    ) -> None:
        _positive(initial_accumulator_value, or_zero=not _is_zero(epsilon))
        initial = {"accumulator": initial_accumulator_value}
        super().__init__(rules.adagrad, use_locking, name, locals(), initial)


class RowwiseAdagradOptimizer(RuleOptimizer):
    """Adagrad with one accumulator for each row, for embedding tables.

    accumulator += mean(g^2) over the row; w -= learning_rate * g / (sqrt(accumulator) + epsilon).
    The slot of a table `(n, d)` is `(n, 1)`. Not in TensorFlow; as in Mudigere et al. 2022,
    arXiv:2104.05158, section 4.1.4. Slot: 'accumulator'.

    Args:
        learning_rate: a number, tensor or callable.
        initial_accumulator_value: positive; 0 only with a positive epsilon.
        epsilon: added to the root, 0 by default.
        name: see `Optimizer`.

    Raises:
        ValueError: `initial_accumulator_value` is out of range.
    """

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        epsilon: Any = 0.0,
        name: str = "RowwiseAdagrad",
    ) -> None:
        _positive(initial_accumulator_value, or_zero=not _is_zero(epsilon))
        super().__init__(rules.rowwise_adagrad, False, name, locals())
        self._first = initial_accumulator_value

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        def first(variable: Variable) -> Tensor:
            columns = (variable.shape.rank or 1) - 1
            return filled_like(variable, self._first)[(slice(None), *[slice(1)] * columns)]

        for variable in var_list:
            self._slot(variable, "accumulator", self._name, partial(first, variable))


class AdadeltaOptimizer(RuleOptimizer):
    """Adadelta: Adagrad with decaying sums, scaled by the size of recent steps.

    accum = rho accum + (1 - rho) g^2; u = g sqrt(accum_update + epsilon) / sqrt(accum + epsilon);
    w -= learning_rate u. Then accum_update = rho accum_update + (1 - rho) u^2.

    Source: `tf.compat.v1.train.AdadeltaOptimizer`; Zeiler 2012. Slots: 'accum', 'accum_update'.

    Args:
        learning_rate, rho, epsilon: numbers, tensors or callables.
        use_locking, name: see `Optimizer`.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(rules.adadelta, use_locking, name, locals())


class AdamOptimizer(RuleOptimizer):
    """The Adam optimizer.

    w -= learning_rate sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon).

    m and v are the moving averages of g and of g^2, with beta1 and beta2; t counts the steps. This
    is the form just before section 2.1 of Kingma & Ba 2015, where epsilon is their "epsilon hat".
    As in TensorFlow, sparse gradients decay m and v of all rows, and update all rows; for large
    tables, prefer Adagrad or RMSProp, which update only the rows in the batch.

    Source: `tf.compat.v1.train.AdamOptimizer`. Slots: 'm', 'v'; the powers of the betas are the
    variables 'beta1_power' and 'beta2_power'.

    Args:
        learning_rate, beta1, beta2, epsilon: numbers, tensors or callables.
        use_locking, name: see `Optimizer`.
    """

    _RULE: UpdateRule = rules.adam
    _POWERS: Mapping[str, str] = {"beta1_power": "beta1", "beta2_power": "beta2"}

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(self._RULE, use_locking, name, locals())

    def _get_beta_accumulators(self) -> Any:
        """Returns the variables of the betas' powers; a single one without a tuple."""
        powers = tuple(map(self._get_non_slot_variable, self._POWERS))
        return powers if len(powers) > 1 else powers[0]

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        first = min(var_list, key=lambda variable: variable.name)
        for power, beta in self._POWERS.items():
            self._create_non_slot_variable(lambda beta=beta: self._tensor(beta), power, first)
        super()._create_slots(var_list)

    def _tensor(self, name: str) -> Tensor:
        if name in self._POWERS:
            return convert_to_tensor(self._get_non_slot_variable(name))
        return super()._tensor(name)

    def _finish(self, update_ops: Sequence[Operation], name_scope: str) -> Operation:
        moved: list[Operation] = []
        graph = get_default_graph()
        for name, beta in self._POWERS.items():
            power = self._get_non_slot_variable(name)
            with graph.control_dependencies(update_ops), graph.colocate_with(power):
                moved.append(power.assign(power * self._tensors[beta]).op)
        return super()._finish([*update_ops, *moved], name_scope)


class LazyAdamOptimizer(AdamOptimizer):
    """A variant of Adam in which sparse gradients update only their rows of w, m and v.

    For large embeddings: the cost of a step depends on the rows in the batch, not on the table.
    Dense gradients are applied as in `AdamOptimizer`. Source: `tf.contrib.opt.LazyAdamOptimizer`.
    Slots: 'm', 'v'.

    Args:
        learning_rate, beta1, beta2, epsilon, use_locking, name: see `AdamOptimizer`.
    """

    @takes_repeated_rows
    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Operation:
        return apply_rule(rules.lazy_adam, self, self._tensors, var, grad)


class RMSPropOptimizer(RuleOptimizer):
    """RMSProp: steps are scaled by a moving average of the squared gradients.

    rms = decay rms + (1 - decay) g^2; mom = momentum mom + lr g / sqrt(rms + epsilon); w -= mom.

    With `centered`, the square of the gradient's moving average ('mg') is subtracted from rms under
    the root.

    Source: `tf.compat.v1.train.RMSPropOptimizer`; Tieleman & Hinton 2012. Slots: 'rms', 'momentum',
    and 'mg' if centered.

    Args:
        learning_rate, decay, momentum, epsilon: numbers, tensors or callables.
        use_locking, name: see `Optimizer`.
        centered: whether to divide by the variance rather than by the second moment.
        initial_mean_square: the initial 'rms': 1 as in TensorFlow 1; Keras uses 0.
        epsilon_in_root: False for Keras' form without momentum: w -= lr g / (sqrt(rms) + epsilon),
            without the 'momentum' slot, and with sparse gradients decaying every row's averages.

    Raises:
        ValueError: momentum is combined with `epsilon_in_root=False`.
    """

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
        *,
        initial_mean_square: float = 1.0,
        epsilon_in_root: bool = True,
    ) -> None:
        if epsilon_in_root:
            rule = rules.centered_rms_prop if centered else rules.rms_prop
        elif _is_zero(momentum):
            rule = keras_rules.centered_rms_prop if centered else keras_rules.rms_prop
        else:
            raise value_error(
                "epsilon_in_root=False excludes momentum",
                expected="momentum=0.0",
                received=f"momentum={momentum!r}",
                hint="Keras with momentum has epsilon under the root too",
            )
        # TensorFlow numbers slots in this order: rms, mg, momentum.
        super().__init__(rule, use_locking, name, locals(), {"rms": initial_mean_square})


class FtrlOptimizer(RuleOptimizer):
    """FTRL-Proximal (follow the regularized leader): l1 regularization makes models sparse.

    With p = -learning_rate_power and g' = g + 2 l2_shrinkage w:
    linear += g' - ((accum + g^2)^p - accum^p) / lr w; accum += g^2;
    w = 0 if |linear| <= l1, else (sign(linear) l1 - linear) / ((accum^p + beta) / lr + 2 l2).

    Source: `tf.compat.v1.train.FtrlOptimizer`; McMahan et al. 2013. Slots: 'accum', 'linear'.

    Args:
        learning_rate: a number, tensor or callable.
        learning_rate_power: the exponent of the learning rate's decay, <= 0; 0 for a constant rate.
        initial_accumulator_value: the initial 'accum'; not negative.
        l1_regularization_strength, l2_regularization_strength: not negative.
        use_locking, name: see `Optimizer`.
        accum_name, linear_name: the suffixes of the slots' names.
        l2_shrinkage_regularization_strength: an l2 penalty on the magnitude; not negative. Sparse
            gradients shrink only their rows.
        beta: the beta of the paper; None is 0.

    Raises:
        ValueError: an argument is out of range.
    """

    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: Any = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: Any = 0.0,
        beta: Any = None,
    ) -> None:
        _positive(initial_accumulator_value, or_zero=True)
        for argument, value, sign in (
            ("learning_rate_power", learning_rate_power, -1),
            ("l1_regularization_strength", l1_regularization_strength, 1),
            ("l2_regularization_strength", l2_regularization_strength, 1),
            ("l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength, 1),
        ):
            if isinstance(value, (int, float)) and value * sign < 0:
                wanted = "positive" if sign > 0 else "negative"
                raise ValueError(f"{argument} {value:f} needs to be {wanted} or zero.")
        beta = 0.0 if beta is None else beta
        initial = {"accum": initial_accumulator_value}
        suffixes = {"accum": accum_name or name, "linear": linear_name or name}
        super().__init__(rules.ftrl, use_locking, name, locals(), initial, suffixes)


class AdagradDAOptimizer(RuleOptimizer):
    """Adagrad dual averaging, for very sparse linear models with l1 (Duchi et al. 2011).

    Gradients and their squares are summed. With t the step, counted from 1:
    w = -learning_rate sign(sum) max(|sum| - l1 t, 0) / (l2 learning_rate t + sqrt(sum of squares)).
    The first step discards the initial values of variables. Sparse gradients update only their
    rows.

    Source: `tf.compat.v1.train.AdagradDAOptimizer`. Slots: 'gradient_accumulator',
    'gradient_squared_accumulator'.

    Args:
        learning_rate: a number, tensor or callable.
        global_step: the variable or tensor that counts the steps, from 0.
        initial_gradient_squared_accumulator_value: the initial value of the second slot; positive.
        l1_regularization_strength, l2_regularization_strength: not negative.
        use_locking, name: see `Optimizer`.

    Raises:
        ValueError: `initial_gradient_squared_accumulator_value` is out of range.
    """

    def __init__(
        self,
        learning_rate: Any,
        global_step: Any,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        _positive(
            initial_gradient_squared_accumulator_value,
            or_zero=False,
            argument="initial_gradient_squared_accumulator_value",
        )

        def step() -> Tensor:
            return cast(convert_to_tensor(global_step), float32) + 1.0

        initial = {"gradient_squared_accumulator": initial_gradient_squared_accumulator_value}
        rule = rules.adagrad_dual_averaging
        super().__init__(rule, use_locking, name, locals(), initial)


class ProximalGradientDescentOptimizer(RuleOptimizer):
    """Gradient descent, followed by soft thresholding (l1) and shrinkage (l2).

    p = w - lr g; w = sign(p) max(|p| - lr l1, 0) / (1 + lr l2).

    Source: `tf.compat.v1.train.ProximalGradientDescentOptimizer`; Duchi & Singer 2009.

    Args:
        learning_rate: a number, tensor or callable.
        l1_regularization_strength, l2_regularization_strength: likewise, and not negative.
        use_locking, name: see `Optimizer`.
    """

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(rules.proximal_gradient_descent, use_locking, name, locals())


class ProximalAdagradOptimizer(RuleOptimizer):
    """Adagrad, followed by soft thresholding (l1) and shrinkage (l2) at the element's Adagrad rate.

    Source: `tf.compat.v1.train.ProximalAdagradOptimizer`; Duchi & Singer 2009. Slot: 'accumulator'.

    Args:
        learning_rate: a number, tensor or callable.
        initial_accumulator_value: positive.
        l1_regularization_strength, l2_regularization_strength: not negative.
        use_locking, name: see `Optimizer`.

    Raises:
        ValueError: `initial_accumulator_value` is out of range.
    """

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        _positive(initial_accumulator_value, or_zero=False)
        initial = {"accumulator": initial_accumulator_value}
        super().__init__(rules.proximal_adagrad, use_locking, name, locals(), initial)


def _is_zero(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == 0


def _positive(value: float, or_zero: bool, argument: str = "initial_accumulator_value") -> None:
    if value < 0 or (value == 0 and not or_zero):
        raise ValueError(f"{argument} must be positive{' or zero' if or_zero else ''}: {value}")


__all__ = [
    "AdadeltaOptimizer",
    "AdagradDAOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "FtrlOptimizer",
    "GradientDescentOptimizer",
    "LazyAdamOptimizer",
    "MomentumOptimizer",
    "Optimizer",
    "ProximalAdagradOptimizer",
    "ProximalGradientDescentOptimizer",
    "RMSPropOptimizer",
    "RowwiseAdagradOptimizer",
    "RuleOptimizer",
]
