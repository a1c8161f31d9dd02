"""`tf.keras.models`: models, and reading and writing them."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    **names("estimatorkit.keras.engine.model", "Model"),
    **names("estimatorkit.keras.engine.sequential", "Sequential"),
    **names("estimatorkit.keras.engine.saving", "load_model save_model"),
    **names(
        "estimatorkit.keras.engine.model_config",
        "clone_model model_from_config model_from_json model_from_yaml",
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
