"""Keras-style models (`tf.keras`): layers, models, losses, metrics, optimizers, callbacks.

The namespaces below are modules; names are imported when they are first used.
"""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    "activations": "estimatorkit.layers.activations",
    "backend": "estimatorkit.keras.backend",
    "callbacks": "estimatorkit.keras.callbacks",
    "constraints": "estimatorkit.layers.constraints",
    "initializers": "estimatorkit.layers.initializers",
    "layers": "estimatorkit.keras.layers",
    "losses": "estimatorkit.keras.losses",
    "metrics": "estimatorkit.keras.metrics",
    "regularizers": "estimatorkit.layers.regularizers",
    "mixed_precision": "estimatorkit.keras.mixed_precision",
    "optimizers": "estimatorkit.keras.optimizers",
    "models": "estimatorkit.keras.models",
    "datasets": "estimatorkit.keras.datasets",
    "estimator": "estimatorkit.keras.estimator",
    "preprocessing": "estimatorkit.keras.preprocessing",
    "utils": "estimatorkit.keras.utils",
    "wrappers": "estimatorkit.keras.wrappers",
    **names("estimatorkit.keras.engine.model", "Model"),
    **names("estimatorkit.keras.engine.sequential", "Sequential"),
    **names("estimatorkit.keras.engine.input_layer", "Input"),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
