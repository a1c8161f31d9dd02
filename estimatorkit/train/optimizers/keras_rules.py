"""The update rules of `tf.keras.optimizers` that `tf.compat.v1.train` lacks (see `update_rule`).

Formulas are those of `keras.optimizers.legacy` in Keras 2.15.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from estimatorkit.train.optimizers.update_rule import update_rule

_MOMENTUM_EXAMPLE = {"learning_rate": 0.1, "momentum": 0.9}
_RMS_EXAMPLE = {"learning_rate": 0.1, "decay": 0.9, "epsilon": 0.01}
_ADAM_EXAMPLE = {
    **{"beta1_power": 0.81, "beta2_power": 0.9, "learning_rate": 0.1},
    **{"beta1": 0.9, "beta2": 0.95, "epsilon": 0.01},
}


@update_rule(
    "KerasMomentum", slots=("momentum",), example=(_MOMENTUM_EXAMPLE, ((1.42, -1.48), (0.42, 0.52)))
)
def momentum(w: Any, g: Any, velocity: Any, *, learning_rate: Any, momentum: Any) -> Any:
    velocity = momentum * velocity - learning_rate * g
    return w + velocity, velocity


@update_rule(
    "KerasNesterovMomentum",
    slots=("momentum",),
    example=(_MOMENTUM_EXAMPLE, ((1.348, -1.462), (0.42, 0.52))),
)
def nesterov_momentum(w: Any, g: Any, velocity: Any, *, learning_rate: Any, momentum: Any) -> Any:
    velocity = momentum * velocity - learning_rate * g
    return w + momentum * velocity - learning_rate * g, velocity


@update_rule(
    "KerasRMSProp",
    sparse_rows="every",
    example=(_RMS_EXAMPLE, ((0.9563633, -1.9022892), (0.459, 0.499))),
)
def rms_prop(w: Any, g: Any, rms: Any, *, learning_rate: Any, decay: Any, epsilon: Any) -> Any:
    rms = decay * rms + (1 - decay) * g * g
    return w - learning_rate * g / (jnp.sqrt(rms) + epsilon), rms


@update_rule(
    "KerasCenteredRMSProp",
    slots=("rms", "mg"),
    sparse_rows="every",
    example=(_RMS_EXAMPLE, ((0.95295405, -1.8998834), (0.459, 0.499), (0.255, 0.155))),
)
def centered_rms_prop(
    w: Any, g: Any, rms: Any, mean: Any, *, learning_rate: Any, decay: Any, epsilon: Any
) -> Any:
    rms = decay * rms + (1 - decay) * g * g
    mean = decay * mean + (1 - decay) * g
    # Rounding can make a variance of 0 negative, which is NaN in Keras.
    variance = jnp.maximum(rms - mean * mean, 0.0)
    return w - learning_rate * g / (jnp.sqrt(variance) + epsilon), rms, mean


@update_rule(
    "AdamWithAmsgrad",
    slots=("m", "v", "vhat"),
    sparse_rows="every",
    example=(
        _ADAM_EXAMPLE,
        ((0.8408377, -2.1211927), (0.48, 0.38), (0.242, 0.262), (0.242, 0.262)),
    ),
)
def amsgrad(
    w: Any,
    g: Any,
    m: Any,
    v: Any,
    largest_v: Any,
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
    largest_v = jnp.maximum(largest_v, v)
    step = learning_rate * jnp.sqrt(1 - beta2_power) / (1 - beta1_power)
    return w - step * m / (jnp.sqrt(largest_v) + epsilon), m, v, largest_v


@update_rule(
    "AdaMax", example=(_ADAM_EXAMPLE, ((0.18505943, -2.2816901), (0.48, 0.38), (0.3, 0.7)))
)
def ada_max(
    w: Any,
    g: Any,
    m: Any,
    v: Any,
    *,
    beta1_power: Any,
    learning_rate: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
) -> Any:
    m = m + (g - m) * (1 - beta1)
    v = jnp.maximum(beta2 * v, jnp.abs(g))
    return w - learning_rate / (1 - beta1_power) * (m / (v + epsilon)), m, v


@update_rule(
    "Nadam",
    sparse_rows="every slot",
    example=(
        {
            **{"learning_rate": 0.1, "beta1": 0.9, "beta2": 0.95, "beta2_power": 0.9},
            **{"momentum": 0.5, "next_momentum": 0.6, "schedule": 0.4, "next_schedule": 0.24},
            "epsilon": 0.01,
        },
        ((0.95982797, -1.98260309), (0.48, 0.38), (0.242, 0.262)),
    ),
)
def nadam(
    w: Any,
    g: Any,
    m: Any,
    v: Any,
    *,
    learning_rate: Any,
    beta1: Any,
    beta2: Any,
    beta2_power: Any,
    momentum: Any,
    next_momentum: Any,
    schedule: Any,
    next_schedule: Any,
    epsilon: Any,
) -> Any:
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    ahead = (1 - momentum) * g / (1 - schedule) + next_momentum * m / (1 - next_schedule)
    return w - learning_rate * ahead / (jnp.sqrt(v / (1 - beta2_power)) + epsilon), m, v


__all__ = [
    "ada_max",
    "amsgrad",
    "centered_rms_prop",
    "momentum",
    "nadam",
    "nesterov_momentum",
    "rms_prop",
]
