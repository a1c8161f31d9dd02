"""`tf.keras.optimizers.legacy`: the same optimizers."""

from __future__ import annotations

from typing import Any

from estimatorkit.lazy import attach, names

_PLACES = names(
    "estimatorkit.keras.optimizers",
    *("SGD", "Adadelta", "Adagrad", "Adam", "Adamax", "Ftrl", "Nadam", "Optimizer", "RMSprop"),
)

_lazy_getattr, __dir__, __all__ = attach(__name__, _PLACES)


def __getattr__(name: str) -> Any:
    """Imports the public name `name`."""
    return _lazy_getattr(name)
