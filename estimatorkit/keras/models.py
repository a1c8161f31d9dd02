"""`tf.keras.models`: models, and reading and writing them."""

from __future__ import annotations

from typing import Any

from estimatorkit.lazy import attach, names

_PLACES = {
    **names("estimatorkit.keras.engine.model", "Model"),
    **names("estimatorkit.keras.engine.sequential", "Sequential"),
    **names("estimatorkit.keras.engine.saving", "load_model", "save_model"),
    **names(
        "estimatorkit.keras.engine.model_config",
        *("clone_model", "model_from_config", "model_from_json", "model_from_yaml"),
    ),
}

_lazy_getattr, __dir__, __all__ = attach(__name__, _PLACES)


def __getattr__(name: str) -> Any:
    """Imports the public name `name`."""
    return _lazy_getattr(name)
