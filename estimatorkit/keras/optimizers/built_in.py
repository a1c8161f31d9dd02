"""The built-in Keras optimizers: `SGD`, `RMSprop`, the Adam family, `Adagrad`, `Adadelta`, `Ftrl`.

Each defines its hyperparameters and update rule, numerically equal to `keras.optimizers.legacy` of
Keras 2.15, which `tf.estimator` uses. `Optimizer` documents the common arguments (`clipnorm`,
`decay`, ...).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.keras.optimizers.optimizer import computed_in
from estimatorkit.keras.optimizers.rule_optimizer import RuleOptimizer
from estimatorkit.keras.optimizers.schedules import LearningRateSchedule
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.variables.initializers import Constant
from estimatorkit.train.optimizers import keras_rules, optimizer_rules

EPSILON = 1e-7
"""`keras.backend.epsilon()` as it is at first, which an epsilon of None stands for."""


class SGD(RuleOptimizer):
    """Gradient descent, with optional momentum.

    w -= learning_rate g. With momentum: velocity = momentum velocity - learning_rate g, and w +=
    velocity or, with `nesterov`, w += momentum velocity - learning_rate g.

    Source: `tf.keras.optimizers.legacy.SGD`. Slot, with momentum only: 'momentum'.

    Args:
        learning_rate: a number, tensor, schedule, or function without arguments.
        momentum: in [0, 1].
        nesterov: whether to use Nesterov momentum.
        name, **kwargs: see `Optimizer`.

    Raises:
        ValueError: `momentum` is out of range.
    """

    _attributes = ("nesterov",)

    def __init__(
        self,
        learning_rate: Any = 0.01,
        momentum: Any = 0.0,
        nesterov: bool = False,
        name: str = "SGD",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self.nesterov = nesterov
        self._rule = optimizer_rules.gradient_descent
        if _is_used(momentum):
            self._rule = keras_rules.nesterov_momentum if nesterov else keras_rules.momentum
        self._set_hypers(kwargs, learning_rate=learning_rate, momentum=momentum)

    def _coefficients(self, dtype: DType) -> dict[str, Any]:
        return {"momentum": self._get_hyper("momentum", dtype)}


class RMSprop(RuleOptimizer):
    """rms = rho rms + (1 - rho) g^2; w -= learning_rate g / (sqrt(rms) + epsilon).

    With momentum, epsilon is inside the root: mom = momentum mom + learning_rate g / sqrt(rms +
    epsilon); w -= mom. `centered` subtracts the square of the gradient's moving average ('mg') from
    rms. Without momentum, a sparse gradient still decays the averages of all rows.

    Source: `tf.keras.optimizers.legacy.RMSprop`. Slots: 'rms', 'momentum', 'mg'.

    Args:
        learning_rate: a number, tensor, schedule, or function without arguments.
        rho: a number, tensor, or function without arguments.
        momentum: in [0, 1].
        epsilon: a number.
        centered: whether to divide by the standard deviation instead of the root mean square.
        name, **kwargs: see `Optimizer`.

    Raises:
        ValueError: `momentum` is out of range.
    """

    _attributes = ("epsilon", "centered")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: float | None = EPSILON,
        centered: bool = False,
        name: str = "RMSprop",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self.epsilon, self.centered = epsilon or EPSILON, centered
        if _is_used(momentum):
            rules = (optimizer_rules.rms_prop, optimizer_rules.centered_rms_prop)
        else:
            rules = (keras_rules.rms_prop, keras_rules.centered_rms_prop)
        self._rule = rules[bool(centered)]
        self._set_hypers(kwargs, learning_rate=learning_rate, rho=rho, momentum=momentum)

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for slot in ("rms", "momentum", "mg"):  # Keras' order
            for variable in var_list if slot in self._rule.slots else ():
                self.add_slot(variable, slot)

    def _coefficients(self, dtype: DType) -> dict[str, Any]:
        return {
            "decay": self._get_hyper("rho", dtype),
            "momentum": self._get_hyper("momentum", dtype),
            "epsilon": self.epsilon,
        }


class _Adaptive(RuleOptimizer):
    """Base of the Adam family: two moving averages and the powers of their decay rates."""

    _attributes: ClassVar[tuple[str, ...]] = ("epsilon",)

    def __init__(
        self,
        learning_rate: Any,
        beta_1: Any,
        beta_2: Any,
        epsilon: float | None,
        name: str,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self.epsilon = epsilon or EPSILON
        self._set_hypers(kwargs, learning_rate=learning_rate, beta_1=beta_1, beta_2=beta_2)

    def _coefficients(self, dtype: DType) -> dict[str, Any]:
        step = elementwise.cast(self.iterations + 1, dtype)
        beta1, beta2 = self._get_hyper("beta_1", dtype), self._get_hyper("beta_2", dtype)
        return {
            **{"beta1": beta1, "beta1_power": elementwise.pow(beta1, step)},
            **{"beta2": beta2, "beta2_power": elementwise.pow(beta2, step)},
            "epsilon": self.epsilon,
        }


class Adam(_Adaptive):
    """w -= learning_rate sqrt(1 - beta_2^t) / (1 - beta_1^t) m / (sqrt(v) + epsilon).

    m and v are the moving averages of g and g^2; with `amsgrad`, the maximum of v so far ('vhat')
    replaces v (Reddi et al. 2018). As in Keras, a sparse gradient decays m and v of all rows and
    updates all rows. For large embedding tables use Adagrad, Ftrl, SGD or
    `train.LazyAdamOptimizer`, whose cost depends only on the rows in the batch.

    Source: `tf.keras.optimizers.legacy.Adam`; Kingma & Ba 2015. Slots: 'm', 'v', 'vhat'.

    Args:
        learning_rate: a number, tensor, schedule, or function without arguments.
        beta_1, beta_2: numbers, tensors, or functions without arguments.
        epsilon: a number.
        amsgrad: see above.
        name, **kwargs: see `Optimizer`.
    """

    _attributes = ("epsilon", "amsgrad")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float | None = EPSILON,
        amsgrad: bool = False,
        name: str = "Adam",
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, name, **kwargs)
        self.amsgrad = amsgrad
        self._rule = keras_rules.amsgrad if amsgrad else optimizer_rules.adam


class AdamW(Adam):
    """Adam with decoupled weight decay: w -= learning_rate weight_decay w, before Adam's step.

    Source: `tf.keras.optimizers.AdamW`; Loshchilov & Hutter 2019. A sparse gradient decays all
    rows.

    Args:
        learning_rate, beta_1, beta_2, epsilon, amsgrad: see `Adam`.
        weight_decay: a number; see `exclude_from_weight_decay`.
        name, **kwargs: see `Optimizer`.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        weight_decay: float = 0.004,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float | None = EPSILON,
        amsgrad: bool = False,
        name: str = "AdamW",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            learning_rate,
            beta_1,
            beta_2,
            epsilon,
            amsgrad,
            name,
            weight_decay=weight_decay,
            **kwargs,
        )


class Adamax(_Adaptive):
    """Adam with v = max(beta_2 v, |g|): w -= learning_rate / (1 - beta_1^t) m / (v + epsilon).

    A sparse gradient updates only its own rows. Source: `tf.keras.optimizers.legacy.Adamax`; Kingma
    & Ba 2015, section 7. Slots: 'm', 'v'. Arguments are those of `Adam`, without `amsgrad`.
    """

    _rule = keras_rules.ada_max

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float | None = EPSILON,
        name: str = "Adamax",
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, name, **kwargs)


class Nadam(_Adaptive):
    """Adam with Nesterov momentum and a momentum schedule that approaches beta_1.

    The momentum at step t is beta_1 (1 - 0.96^(schedule_decay t) / 2). A sparse gradient decays m
    and v of all rows and updates its own rows.

    Source: `tf.keras.optimizers.legacy.Nadam`; Dozat 2016. Slots: 'm', 'v'; the variable
    'momentum_cache' is the product of the momenta.

    Args:
        learning_rate: a number, a tensor, or a function without arguments; not a schedule.
        beta_1, beta_2, epsilon, name: see `Adam`.
        **kwargs: see `Optimizer`; also `schedule_decay`, 0.004 by default.

    Raises:
        ValueError: the learning rate is a schedule.
    """

    _rule = keras_rules.nadam

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float | None = EPSILON,
        name: str = "Nadam",
        **kwargs: Any,
    ) -> None:
        if isinstance(kwargs.get("lr", learning_rate), LearningRateSchedule):
            raise ValueError(
                "The Nadam optimizer does not support tf.keras.optimizers.LearningRateSchedules as "
                "the learning rate."
            )
        kwargs["decay"] = kwargs.pop("schedule_decay", kwargs.get("decay", 0.004))
        super().__init__(learning_rate, beta_1, beta_2, epsilon, name, **kwargs)

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        graph = get_default_graph().outermost
        if var_list and ("momentum_cache", graph) not in self._non_slots:
            dtype = computed_in(var_list[0].dtype)
            made = self._own_variable("momentum_cache", 1.0, dtype)
            self._weights.setdefault(graph, []).append(made)
        super()._create_slots(var_list)

    def _decayed_lr(self, var_dtype: Any) -> Tensor:
        rate: Tensor = self._get_hyper("learning_rate", var_dtype)
        return rate  # `decay` is the momentum's

    def _prepare(self, var_list: Sequence[Variable] = ()) -> dict[Any, Any]:  # type: ignore[override]
        cache: Any = self._own_variable("momentum_cache", 1.0)
        dtype = cache.dtype
        step = elementwise.cast(self.iterations + 1, dtype)
        momentum, following = (self._momentum(each, dtype) for each in (step, step + 1.0))
        schedule = cache.assign(cache * momentum)
        self._schedule = {
            **{"momentum": momentum, "next_momentum": following},
            **{"schedule": schedule, "next_schedule": schedule * following},
        }
        return super()._prepare(var_list)

    def _momentum(self, step: Tensor, dtype: DType) -> Tensor:
        rise = elementwise.pow(convert_to_tensor(0.96, dtype), self._initial_decay * step)
        momentum: Tensor = self._get_hyper("beta_1", dtype) * (1.0 - 0.5 * rise)
        return momentum

    def _coefficients(self, dtype: DType) -> dict[str, Any]:
        schedule = {name: elementwise.cast(each, dtype) for name, each in self._schedule.items()}
        return super()._coefficients(dtype) | schedule


class Adagrad(RuleOptimizer):
    """accumulator += g^2; w -= learning_rate g / (sqrt(accumulator) + epsilon).

    Source: `tf.keras.optimizers.legacy.Adagrad`; Duchi et al. 2011. Slot: 'accumulator'.

    Args:
        learning_rate: a number, tensor, schedule, or function without arguments.
        initial_accumulator_value: the slot's initial value; not negative.
        epsilon: a number.
        name, **kwargs: see `Optimizer`.

    Raises:
        ValueError: `initial_accumulator_value` is negative.
    """

    _rule = optimizer_rules.adagrad
    _attributes = ("initial_accumulator_value", "epsilon")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float | None = EPSILON,
        name: str = "Adagrad",
        **kwargs: Any,
    ) -> None:
        _check_not_negative(initial_accumulator_value=initial_accumulator_value)
        super().__init__(name, **kwargs)
        self.initial_accumulator_value = initial_accumulator_value
        self.epsilon = epsilon or EPSILON
        self._set_hypers(kwargs, learning_rate=learning_rate)

    def _initial(self, slot: str) -> Any:
        return Constant(self.initial_accumulator_value)

    def _coefficients(self, dtype: DType) -> dict[str, Any]:
        return {"epsilon": self.epsilon}


class Adadelta(RuleOptimizer):
    """Adadelta: scales gradients by decaying averages; see `train.AdadeltaOptimizer`.

    Source: `tf.keras.optimizers.legacy.Adadelta`; Zeiler 2012. Slots: 'accum_grad', 'accum_var'.

    Args:
        learning_rate: a number, tensor, schedule, or function without arguments.
        rho: a number, tensor, or function without arguments.
        epsilon: a number.
        name, **kwargs: see `Optimizer`.
    """

    _rule = optimizer_rules.adadelta
    _rule_slots: ClassVar[Mapping[str, str]] = {
        "accum": "accum_grad",
        "accum_update": "accum_var",
    }
    _attributes = ("epsilon",)

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: float | None = EPSILON,
        name: str = "Adadelta",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self.epsilon = epsilon or EPSILON
        self._set_hypers(kwargs, learning_rate=learning_rate, rho=rho)

    def _coefficients(self, dtype: DType) -> dict[str, Any]:
        return {"rho": self._get_hyper("rho", dtype), "epsilon": self.epsilon}


class Ftrl(RuleOptimizer):
    """FTRL-proximal (follow the regularized leader); see `train.FtrlOptimizer` for the formula.

    Source: `tf.keras.optimizers.legacy.Ftrl`; McMahan et al. 2013. Slots: 'accumulator', 'linear'.

    Args:
        learning_rate: a number, tensor, schedule, or function without arguments.
        learning_rate_power: the exponent of the decay of the learning rate; not positive.
        initial_accumulator_value: the initial value of 'accumulator'; not negative.
        l1_regularization_strength, l2_regularization_strength: not negative.
        l2_shrinkage_regularization_strength: an l2 penalty on the magnitude; not negative.
        beta: beta of the paper.
        name, **kwargs: see `Optimizer`.

    Raises:
        ValueError: an argument is out of range.
    """

    _rule = optimizer_rules.ftrl
    _rule_slots: ClassVar[Mapping[str, str]] = {"accum": "accumulator"}
    _attributes = ("initial_accumulator_value", "l2_shrinkage_regularization_strength")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        learning_rate_power: Any = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        name: str = "Ftrl",
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: Any = 0.0,
        **kwargs: Any,
    ) -> None:
        if learning_rate_power > 0.0:
            raise ValueError(
                "`learning_rate_power` needs to be negative or zero. Received: "
                f"learning_rate_power={learning_rate_power}."
            )
        _check_not_negative(
            initial_accumulator_value=initial_accumulator_value,
            l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
            l2_shrinkage_regularization_strength=l2_shrinkage_regularization_strength,
        )
        super().__init__(name, **kwargs)
        self.initial_accumulator_value = initial_accumulator_value
        self.l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        self._set_hypers(
            kwargs,
            learning_rate=learning_rate,
            learning_rate_power=learning_rate_power,
            l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
            beta=beta,
        )

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for variable in var_list:  # Keras' order
            super()._create_slots([variable])

    def _initial(self, slot: str) -> Any:
        return Constant(self.initial_accumulator_value) if slot == "accum" else "zeros"

    def _coefficients(self, dtype: DType) -> dict[str, Any]:
        return {
            "l1": self._get_hyper("l1_regularization_strength", dtype),
            "l2": self._get_hyper("l2_regularization_strength", dtype),
            "l2_shrinkage": self.l2_shrinkage_regularization_strength,
            "learning_rate_power": self._get_hyper("learning_rate_power", dtype),
            "beta": self._get_hyper("beta", dtype),
        }


def _is_used(momentum: Any) -> bool:
    """Whether momentum is a tensor, a function, or a nonzero number."""
    if not isinstance(momentum, (int, float)):
        return True
    if not 0 <= momentum <= 1:
        raise ValueError(
            f"`momentum` must be between [0, 1]. Received: momentum={momentum} (of type "
            f"{type(momentum)})."
        )
    return momentum > 0


def _check_not_negative(**values: Any) -> None:
    for name, value in values.items():
        if isinstance(value, (int, float)) and value < 0.0:
            raise ValueError(f"`{name}` needs to be positive or zero. Received: {name}={value}.")


__all__ = [
    "EPSILON",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Ftrl",
    "Nadam",
    "RMSprop",
]
