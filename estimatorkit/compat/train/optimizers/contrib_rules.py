"""The update rules of `tf.contrib.opt` (see `update_rule`), as of TensorFlow 1.15."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from estimatorkit.train.optimizers.optimizer_rules import adam
from estimatorkit.train.optimizers.update_rule import update_rule

_SIGN_EXAMPLE = {"learning_rate": 0.1, "sign_decay": 0.5, "beta": 0.9}


@update_rule(
    "NesterovAdam",
    sparse_rows="every",
    example=(
        adam.example[0],
        ((0.8468063, -2.0867484), (0.48, 0.38), (0.242, 0.262)),
    ),
)
def nesterov_adam(
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
    return w - step * (beta1 * m + (1 - beta1) * g) / (jnp.sqrt(v) + epsilon), m, v


@update_rule(
    "AddSign",
    sparse_rows="every slot",
    example=({**_SIGN_EXAMPLE, "alpha": 1.0}, ((0.955, -1.965), (0.48, 0.38))),
)
def add_sign(
    w: Any, g: Any, m: Any, *, learning_rate: Any, alpha: Any, sign_decay: Any, beta: Any
) -> Any:
    m = beta * m + (1 - beta) * g
    return w - learning_rate * (alpha + sign_decay * jnp.sign(g) * jnp.sign(m)) * g, m


@update_rule(
    "PowerSign",
    sparse_rows="every slot",
    example=({**_SIGN_EXAMPLE, "logbase": 1.0}, ((0.95053834, -1.9575429), (0.48, 0.38))),
)
def power_sign(
    w: Any, g: Any, m: Any, *, learning_rate: Any, logbase: Any, sign_decay: Any, beta: Any
) -> Any:
    m = beta * m + (1 - beta) * g
    return w - learning_rate * jnp.exp(logbase * sign_decay * jnp.sign(g) * jnp.sign(m)) * g, m


@update_rule(
    "Lars",
    slots=("momentum",),
    sparse_rows="none",
    example=(
        {
            **{"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.5, "eeta": 1.0},
            **{"epsilon": 0.25, "nesterov": 0.0},
        },
        ((0.8687514, -1.8687514), (1.25, -1.25)),
    ),
)
def lars(
    w: Any,
    g: Any,
    velocity: Any,
    *,
    learning_rate: Any,
    momentum: Any,
    weight_decay: Any,
    eeta: Any,
    epsilon: Any,
    nesterov: Any,
) -> Any:
    w_norm, g_norm = jnp.sqrt(jnp.sum(w * w)), jnp.sqrt(jnp.sum(g * g))
    divisor = g_norm + weight_decay * w_norm + epsilon
    both = (w_norm > 0) & (g_norm > 0)
    trust = jnp.where(both, eeta * w_norm / jnp.where(both, divisor, 1.0), 1.0)
    g = g + weight_decay * w
    velocity = momentum * velocity + g
    step = velocity + nesterov * (g + (momentum - 1) * velocity)
    return w - learning_rate * trust * step, velocity


__all__ = ["add_sign", "lars", "nesterov_adam", "power_sign"]
