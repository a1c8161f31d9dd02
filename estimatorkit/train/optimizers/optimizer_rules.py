"""The update rules of `tf.compat.v1.train` (see `update_rule`): kernels, slots and examples.

A kernel's w is the variable, g the gradient. Formulas are those of TensorFlow's training ops;
expected results are from TensorFlow 2.15.1.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from estimatorkit.train.optimizers.update_rule import update_rule

_RMS_EXAMPLE = {"learning_rate": 0.1, "decay": 0.9, "momentum": 0.5, "epsilon": 0.01}
_PROXIMAL_EXAMPLE = {"learning_rate": 0.1, "l1": 0.2, "l2": 0.3}


def _soft_threshold(x: Any, by: Any) -> Any:
    """Moves x towards 0 by `by`, stopping at 0."""
    return jnp.sign(x) * jnp.maximum(jnp.abs(x) - by, 0.0)


@update_rule(
    "GradientDescent", sparse_rows="added", example=({"learning_rate": 0.1}, ((0.97, -1.93),))
)
def gradient_descent(w: Any, g: Any, *, learning_rate: Any) -> tuple[Any, ...]:
    return (w - learning_rate * g,)


@update_rule(
    "Momentum",
    slots=("momentum",),
    example=(
        {"learning_rate": 0.1, "momentum": 0.9},
        ((0.925, -1.975), (0.75, -0.25)),
    ),
)
def momentum(w: Any, g: Any, velocity: Any, *, learning_rate: Any, momentum: Any) -> Any:
    velocity = momentum * velocity + g
    return w - learning_rate * velocity, velocity


@update_rule(
    "NesterovMomentum",
    slots=("momentum",),
    example=(
        {"learning_rate": 0.1, "momentum": 0.9},
        ((0.9025, -1.9075), (0.75, -0.25)),
    ),
)
def nesterov_momentum(w: Any, g: Any, velocity: Any, *, learning_rate: Any, momentum: Any) -> Any:
    velocity = momentum * velocity + g
    return w - learning_rate * (g + momentum * velocity), velocity


@update_rule(
    "Adagrad",
    example=(
        {"learning_rate": 0.1, "epsilon": 0.01},
        ((0.9614453, -1.9303474), (0.59, 0.99)),
    ),
)
def adagrad(w: Any, g: Any, accumulator: Any, *, learning_rate: Any, epsilon: Any) -> Any:
    accumulator = accumulator + g * g
    return w - learning_rate * g / (jnp.sqrt(accumulator) + epsilon), accumulator


@update_rule("RowwiseAdagrad", example=adagrad.example)
def rowwise_adagrad(w: Any, g: Any, accumulator: Any, *, learning_rate: Any, epsilon: Any) -> Any:
    accumulator = accumulator + jnp.mean(g * g, axis=tuple(range(1, g.ndim)), keepdims=True)
    return w - learning_rate * g / (jnp.sqrt(accumulator) + epsilon), accumulator


@update_rule(
    "Adadelta",
    example=(
        {"learning_rate": 0.1, "rho": 0.95, "epsilon": 0.01},
        ((0.9781359, -1.949995), (0.4795, 0.4995), (0.23989019, 0.25000244)),
    ),
)
def adadelta(
    w: Any, g: Any, accum: Any, accum_update: Any, *, learning_rate: Any, rho: Any, epsilon: Any
) -> Any:
    accum = rho * accum + (1 - rho) * g * g
    update = jnp.sqrt(accum_update + epsilon) / jnp.sqrt(accum + epsilon) * g
    accum_update = rho * accum_update + (1 - rho) * update * update
    return w - learning_rate * update, accum, accum_update


@update_rule(
    "Adam",
    sparse_rows="every",
    example=(
        {
            **{"beta1_power": 0.81, "beta2_power": 0.9, "learning_rate": 0.1},
            **{"beta1": 0.9, "beta2": 0.95, "epsilon": 0.01},
        },
        ((0.8408377, -2.1211927), (0.48, 0.38), (0.242, 0.262)),
    ),
)
def adam(
    w: Any,
    g: Any,
    m: Any,
    v: Any,
    *,
    beta1_power: Any,
    beta2_power: Any,
    learning_rate: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
) -> Any:
    m = m + (g - m) * (1 - beta1)
    v = v + (g * g - v) * (1 - beta2)
    step = learning_rate * jnp.sqrt(1 - beta2_power) / (1 - beta1_power)
    return w - step * m / (jnp.sqrt(v) + epsilon), m, v


@update_rule(
    "AdamW",
    sparse_rows="every",
    example=(
        {**adam.example[0], "weight_decay": 0.5},
        ((0.7908377, -2.0211927), *adam.example[1][1:]),  # 0.05 w less than Adam's
    ),
)
def adam_w(
    w: Any,
    g: Any,
    m: Any,
    v: Any,
    *,
    beta1_power: Any,
    beta2_power: Any,
    learning_rate: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    weight_decay: Any,
) -> Any:
    powers = {"beta1_power": beta1_power, "beta2_power": beta2_power}
    rest = {"learning_rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon": epsilon}
    moved, m, v = adam.kernel(w, g, m, v, **powers, **rest)
    return moved - learning_rate * weight_decay * w, m, v


lazy_adam = update_rule("LazyAdam", slots=adam.slots, example=adam.example)(adam.kernel)


@update_rule(
    "RMSProp",
    slots=("rms", "momentum"),
    example=(
        _RMS_EXAMPLE,
        ((0.83119386, -2.026884), (0.459, 0.499), (0.16880614, 0.026884161)),
    ),
)
def rms_prop(
    w: Any,
    g: Any,
    rms: Any,
    velocity: Any,
    *,
    learning_rate: Any,
    decay: Any,
    momentum: Any,
    epsilon: Any,
) -> Any:
    rms = rms + (g * g - rms) * (1 - decay)
    velocity = momentum * velocity + learning_rate * g / jnp.sqrt(rms + epsilon)
    return w - velocity, rms, velocity


@update_rule(
    "CenteredRMSProp",
    slots=("rms", "mg", "momentum"),
    example=(
        _RMS_EXAMPLE,
        ((0.8902998, -1.9619833), (0.459, 0.499), (0.255, 0.155), (0.10970022, -0.03801673)),
    ),
)
def centered_rms_prop(
    w: Any,
    g: Any,
    rms: Any,
    mean: Any,
    velocity: Any,
    *,
    learning_rate: Any,
    decay: Any,
    momentum: Any,
    epsilon: Any,
) -> Any:
    rms = rms + (g * g - rms) * (1 - decay)
    mean = mean + (g - mean) * (1 - decay)
    velocity = momentum * velocity + learning_rate * g / jnp.sqrt(rms - mean * mean + epsilon)
    return w - velocity, rms, mean, velocity


@update_rule(
    "Ftrl",
    example=(
        {
            **{"learning_rate": 0.1, "l1": 0.2, "l2": 0.3, "l2_shrinkage": 0.1},
            **{"learning_rate_power": -0.6, "beta": 0.05},
        },
        ((0.0, -0.5103933), (0.59, 0.99), (0.061169386, 5.834681)),
    ),
)
def ftrl(
    w: Any,
    g: Any,
    accum: Any,
    linear: Any,
    *,
    learning_rate: Any,
    l1: Any,
    l2: Any,
    l2_shrinkage: Any,
    learning_rate_power: Any,
    beta: Any,
) -> Any:
    new_accum = accum + g * g
    old_rate, new_rate = accum**-learning_rate_power, new_accum**-learning_rate_power
    shrunk = g + 2 * l2_shrinkage * w
    linear = linear + shrunk - (new_rate - old_rate) / learning_rate * w
    quadratic = (new_rate + beta) / learning_rate + 2 * l2
    return -_soft_threshold(linear, l1) / quadratic, new_accum, linear


@update_rule("ProximalGradientDescent", example=(_PROXIMAL_EXAMPLE, ((0.92233014, -1.8543689),)))
def proximal_gradient_descent(
    w: Any, g: Any, *, learning_rate: Any, l1: Any, l2: Any
) -> tuple[Any, ...]:
    return (_soft_threshold(w - learning_rate * g, learning_rate * l1) / (1 + learning_rate * l2),)


@update_rule(
    "ProximalAdagrad", example=(_PROXIMAL_EXAMPLE, ((0.89976376, -1.8536568), (0.59, 0.99)))
)
def proximal_adagrad(
    w: Any, g: Any, accumulator: Any, *, learning_rate: Any, l1: Any, l2: Any
) -> Any:
    accumulator = accumulator + g * g
    rate = learning_rate / jnp.sqrt(accumulator)
    return _soft_threshold(w - rate * g, rate * l1) / (1 + rate * l2), accumulator


@update_rule(
    "AdagradDA",
    slots=("gradient_accumulator", "gradient_squared_accumulator"),
    example=(
        {"learning_rate": 0.1, "l1": 0.2, "l2": 0.3, "step": 3.0},
        ((-0.029713478, 0.0), (0.8, -0.2), (0.34, 0.74)),
    ),
)
def adagrad_dual_averaging(
    w: Any,
    g: Any,
    gradient_sum: Any,
    square_sum: Any,
    *,
    learning_rate: Any,
    l1: Any,
    l2: Any,
    step: Any,
) -> Any:
    gradient_sum, square_sum = gradient_sum + g, square_sum + g * g
    shrunk = _soft_threshold(gradient_sum, l1 * step)
    w = -learning_rate * shrunk / (l2 * step * learning_rate + jnp.sqrt(square_sum))
    return w, gradient_sum, square_sum
