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

_Maker = Callable[[Any], Optimizer]

# Defaults of tf.keras.optimizers.legacy, which TensorFlow 2's estimators use: the learning rate and
# the optimizer.
_VERSION_2: dict[str, tuple[float, _Maker]] = {
    "Adagrad": (0.001, lambda rate: AdagradOptimizer(rate, epsilon=1e-7)),
    "Adam": (0.001, lambda rate: AdamOptimizer(rate, epsilon=1e-7)),
    "Ftrl": (0.001, FtrlOptimizer),
    "RMSProp": (
        0.001,
        lambda rate: RMSPropOptimizer(
            rate, epsilon=1e-7, initial_mean_square=0.0, epsilon_in_root=False
        ),
    ),
    "SGD": (0.01, lambda rate: GradientDescentOptimizer(rate, name="SGD")),
}
_VERSION_1: dict[str, _Maker] = {
    "Adagrad": AdagradOptimizer,
    "Adam": AdamOptimizer,
    "Ftrl": FtrlOptimizer,
    "RMSProp": RMSPropOptimizer,
    "SGD": GradientDescentOptimizer,
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
        names = tuple(sorted(_VERSION_2))
        if optimizer not in _VERSION_2:
            raise value_error(
                f"Unsupported optimizer name: {optimizer}. Supported names are: {names}",
                hint=_suggestion(optimizer),
            )
        if version == 1:
            if learning_rate is None:
                raise ValueError("learning_rate must be specified when opt is string.")
            return _VERSION_1[optimizer](learning_rate)
        usual, make = _VERSION_2[optimizer]
        return make(usual if learning_rate is None else learning_rate)
    found = optimizer() if callable(optimizer) else optimizer
    if not isinstance(found, Optimizer):
        raise value_error(
            f"The given object is not an Optimizer instance. Given: {found!r}",
            expected=f"an Optimizer, a function that returns one, or one of {sorted(_VERSION_2)}",
            received=type(found).__name__,
        )
    return found


def _suggestion(name: str) -> str | None:
    """Returns `did you mean ...?`, ignoring case and the suffix 'Optimizer', or None."""
    lower = {known.lower(): known for known in _VERSION_2}
    lower["gradientdescent"] = "SGD"
    wanted = name.lower().removesuffix("optimizer")
    if wanted in lower:
        return f"did you mean {lower[wanted]!r}?"
    return did_you_mean(name, _VERSION_2)


__all__ = ["get_optimizer_by_name"]
