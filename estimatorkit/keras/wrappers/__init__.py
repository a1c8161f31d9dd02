"""Keras-style models for other libraries (`tf.keras.wrappers`)."""

from __future__ import annotations

from typing import Any

from estimatorkit.lazy import attach

_lazy_getattr, __dir__, __all__ = attach(
    __name__, {"scikit_learn": "estimatorkit.keras.wrappers.scikit_learn"}
)


def __getattr__(name: str) -> Any:
    """Imports the public name `name`."""
    return _lazy_getattr(name)
