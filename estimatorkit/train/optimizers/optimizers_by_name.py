"""`get_optimizer_by_name`: resolves the `optimizer` argument of estimators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.train.optimizers.optimizer import Optimizer
from estimatorkit.train.optimizers.optimizers import (
    AdagradOptimizer,
    AdamOptimizer,
    FtrlOptimizer,
    GradientDescentOptimizer,
    RMSPropOptimizer,
)

# The class, and what version 2 gives it: the defaults of tf.keras.optimizers.legacy, which
# TensorFlow 2's estimators use. Version 1 gives it the learning rate alone.
_BY_NAME: dict[str, tuple[Callable[..., Optimizer], dict[str, Any]]] = {
    "Adagrad": (AdagradOptimizer, {"learning_rate": 0.001, "epsilon": 1e-7}),
    "Adam": (AdamOptimizer, {"learning_rate": 0.001, "epsilon": 1e-7}),
    "Ftrl": (FtrlOptimizer, {"learning_rate": 0.001}),
    "RMSProp": (
        RMSPropOptimizer,
        {
            "learning_rate": 0.001,
            "epsilon": 1e-7,
            "initial_mean_square": 0.0,
            "epsilon_in_root": False,
        },
    ),
    "SGD": (GradientDescentOptimizer, {"learning_rate": 0.01, "name": "SGD"}),
}


def get_optimizer_by_name(
    optimizer: str | Optimizer | Callable[[], Optimizer],
    learning_rate: Any = None,
    *,
    version: Literal[1, 2] = 2,
) -> Optimizer:
    """Resolves the `optimizer` argument of estimators; ValueError if it is invalid.

    Args:
        optimizer: an optimizer, a function without arguments that returns one, or 'Adagrad',
            'Adam', 'Ftrl', 'RMSProp' or 'SGD'.
        learning_rate: a number, tensor or callable; for names only.
        version: 2 for the defaults of `tf.keras.optimizers.legacy`, as in `tf.estimator` (epsilon
            1e-7; RMSProp's average starts at 0; learning rate 0.001, SGD 0.01); 1 for those of
            `tf.compat.v1.train`, which require a learning rate.
    """
    if isinstance(optimizer, str):
        names = tuple(sorted(_BY_NAME))
        if optimizer not in _BY_NAME:
            raise value_error(
                f"Unsupported optimizer name: {optimizer}. Supported names are: {names}",
                hint=_suggestion(optimizer),
            )
        make, usual = _BY_NAME[optimizer]
        if version == 1:
            if learning_rate is None:
                raise ValueError("learning_rate must be specified when opt is string.")
            return make(learning_rate)
        given = {} if learning_rate is None else {"learning_rate": learning_rate}
        return make(**{**usual, **given})
    found = optimizer() if callable(optimizer) else optimizer
    if not isinstance(found, Optimizer):
        raise value_error(
            f"The given object is not an Optimizer instance. Given: {found!r}",
            expected=f"an Optimizer, a function that returns one, or one of {sorted(_BY_NAME)}",
            received=type(found).__name__,
        )
    return found


def _suggestion(name: str) -> str | None:
    """Returns `did you mean ...?`, ignoring case and the suffix 'Optimizer', or None."""
    lower = {known.lower(): known for known in _BY_NAME}
    lower["gradientdescent"] = "SGD"
    wanted = name.lower().removesuffix("optimizer")
    if wanted in lower:
        return f"did you mean {lower[wanted]!r}?"
    return did_you_mean(name, _BY_NAME)


__all__ = ["get_optimizer_by_name"]
