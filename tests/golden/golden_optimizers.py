"""The cases of `make_keras_optimizers.py`, which the tests read too: arguments, data, schedules."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

STEPS = 50
KEPT_STEPS = (1, 2, 3, 5, 10, 20, 35, 50)
SCHEDULE_STEPS = (0, 1, 3, 5, 9, 10, 11, 15, 20, 25, 40, 100)

_DECAY: dict[str, Any] = {
    "class_name": "ExponentialDecay",
    "config": {"initial_learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.5},
}

# A case: 'keras' (`tf.keras.optimizers.legacy`) or 'train', the class, its arguments.
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "sgd": ("keras", "SGD", {}),
    "sgd_momentum": ("keras", "SGD", {"learning_rate": 0.1, "momentum": 0.9}),
    "sgd_nesterov": ("keras", "SGD", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    "sgd_decay": ("keras", "SGD", {"learning_rate": 0.1, "decay": 0.2, "momentum": 0.5}),
    "sgd_schedule": ("keras", "SGD", {"learning_rate": _DECAY}),
    "sgd_clipvalue": ("keras", "SGD", {"learning_rate": 0.1, "clipvalue": 0.3}),
    "sgd_clipnorm": ("keras", "SGD", {"learning_rate": 0.1, "clipnorm": 0.5}),
    "sgd_global_clipnorm": ("keras", "SGD", {"learning_rate": 0.1, "global_clipnorm": 0.5}),
    "rmsprop": ("keras", "RMSprop", {"learning_rate": 0.05}),
    "rmsprop_momentum": ("keras", "RMSprop", {"learning_rate": 0.05, "rho": 0.8, "momentum": 0.5}),
    "rmsprop_centered": ("keras", "RMSprop", {"learning_rate": 0.05, "centered": True}),
    "rmsprop_centered_momentum": (
        "keras",
        "RMSprop",
        {"learning_rate": 0.05, "centered": True, "momentum": 0.5, "epsilon": 1e-3},
    ),
    "adam": ("keras", "Adam", {"learning_rate": 0.1}),
    "adam_arguments": (
        "keras",
        "Adam",
        {"learning_rate": 0.1, "beta_1": 0.8, "beta_2": 0.95, "epsilon": 0.01, "decay": 0.1},
    ),
    "adam_amsgrad": ("keras", "Adam", {"learning_rate": 0.1, "beta_2": 0.9, "amsgrad": True}),
    "adam_clipped_schedule": ("keras", "Adam", {"learning_rate": _DECAY, "clipnorm": 1.0}),
    "adagrad": ("keras", "Adagrad", {"learning_rate": 0.1}),
    "adagrad_zero": (
        "keras",
        "Adagrad",
        {"learning_rate": 0.1, "initial_accumulator_value": 0.0, "epsilon": 0.01},
    ),
    "adadelta": ("keras", "Adadelta", {"learning_rate": 1.0, "rho": 0.9}),
    "adamax": ("keras", "Adamax", {"learning_rate": 0.1}),
    "nadam": ("keras", "Nadam", {"learning_rate": 0.1}),
    "nadam_arguments": (
        "keras",
        "Nadam",
        {"learning_rate": 0.1, "beta_1": 0.8, "beta_2": 0.9, "schedule_decay": 0.1},
    ),
    "ftrl": ("keras", "Ftrl", {"learning_rate": 0.1}),
    "ftrl_all": (
        "keras",
        "Ftrl",
        {
            "learning_rate": 0.1,
            "learning_rate_power": -0.6,
            "l1_regularization_strength": 0.05,
            "l2_regularization_strength": 0.1,
            "l2_shrinkage_regularization_strength": 0.2,
            "beta": 0.3,
        },
    ),
    "adagrad_da": ("train", "AdagradDAOptimizer", {"learning_rate": 0.1}),
    "adagrad_da_l1_l2": (
        "train",
        "AdagradDAOptimizer",
        {
            "learning_rate": 0.1,
            "l1_regularization_strength": 0.05,
            "l2_regularization_strength": 0.1,
        },
    ),
}

# A schedule: the class in `tf.keras.optimizers.schedules` and its arguments.
SCHEDULES: dict[str, tuple[str, dict[str, Any]]] = {
    "exponential": ("ExponentialDecay", _DECAY["config"]),
    "exponential_staircase": ("ExponentialDecay", {**_DECAY["config"], "staircase": True}),
    "piecewise": (
        "PiecewiseConstantDecay",
        {"boundaries": [3.0, 10.0], "values": [1.0, 0.5, 0.25]},
    ),
    "polynomial": ("PolynomialDecay", {"initial_learning_rate": 0.1, "decay_steps": 20}),
    "polynomial_cycle": (
        "PolynomialDecay",
        {
            "initial_learning_rate": 0.1,
            "decay_steps": 10,
            "end_learning_rate": 0.01,
            "power": 2.0,
            "cycle": True,
        },
    ),
    "inverse_time": (
        "InverseTimeDecay",
        {"initial_learning_rate": 0.1, "decay_steps": 5, "decay_rate": 0.5},
    ),
    "inverse_time_staircase": (
        "InverseTimeDecay",
        {"initial_learning_rate": 0.1, "decay_steps": 5, "decay_rate": 0.5, "staircase": True},
    ),
    "cosine": ("CosineDecay", {"initial_learning_rate": 0.1, "decay_steps": 20, "alpha": 0.1}),
    "cosine_warmup": (
        "CosineDecay",
        {
            "initial_learning_rate": 0.01,
            "decay_steps": 20,
            "alpha": 0.1,
            "warmup_target": 0.1,
            "warmup_steps": 10,
        },
    ),
    "cosine_restarts": (
        "CosineDecayRestarts",
        {
            "initial_learning_rate": 0.1,
            "first_decay_steps": 10,
            "t_mul": 2.0,
            "m_mul": 0.5,
            "alpha": 0.1,
        },
    ),
}


def starts() -> dict[str, NDArray[Any]]:
    """The first values of the variables."""
    random = np.random.RandomState(15)
    shapes: dict[str, tuple[int, ...]] = {"matrix": (3, 2), "vector": (3,), "table": (5, 2)}
    return {name: random.normal(size=size).astype(np.float32) for name, size in shapes.items()}


def gradients() -> dict[str, NDArray[Any]]:
    """The gradients of each step, those of four rows for the table, and these rows."""
    random = np.random.RandomState(16)
    shapes: dict[str, tuple[int, ...]] = {"matrix": (3, 2), "vector": (3,), "table": (4, 2)}
    data = {
        name: random.normal(size=(STEPS, *size)).astype(np.float32) for name, size in shapes.items()
    }
    rows = random.randint(0, 5, (STEPS, 4))
    rows[::2, 1] = rows[::2, 0]  # every other step has a row twice for certain
    data["rows"] = rows.astype(np.int64)
    return data
