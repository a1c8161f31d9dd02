"""Preparing data for models (`tf.keras.preprocessing`): `image`, `sequence` and `text`."""

from __future__ import annotations

from typing import Any

from estimatorkit.lazy import attach

_PLACES = {
    "image": "estimatorkit.keras.preprocessing.image",
    "sequence": "estimatorkit.keras.preprocessing.sequence",
    "text": "estimatorkit.keras.preprocessing.text",
}

_lazy_getattr, __dir__, __all__ = attach(__name__, _PLACES)


def __getattr__(name: str) -> Any:
    """Imports the public name `name`."""
    return _lazy_getattr(name)
