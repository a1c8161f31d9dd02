"""Optimizers by their Keras names (`tf.keras.optimizers`): classes, schedules, `get`.

The numbers are those of `keras.optimizers.legacy` in Keras 2.15, under both namespaces.
"""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    **names(
        "estimatorkit.keras.optimizers.built_in",
        "SGD Adadelta Adagrad Adam AdamW Adamax Ftrl Nadam RMSprop",
    ),
    **names("estimatorkit.keras.optimizers.optimizer", "Optimizer"),
    **names("estimatorkit.keras.optimizers.by_name", "deserialize get serialize"),
    "legacy": "estimatorkit.keras.optimizers.legacy",
    "schedules": "estimatorkit.keras.optimizers.schedules",
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
