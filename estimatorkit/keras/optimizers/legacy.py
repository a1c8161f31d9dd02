"""`tf.keras.optimizers.legacy`: the same optimizers."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = names(
    "estimatorkit.keras.optimizers", "SGD Adadelta Adagrad Adam Adamax Ftrl Nadam Optimizer RMSprop"
)

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
