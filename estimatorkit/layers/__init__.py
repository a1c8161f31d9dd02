"""Layers (`tf.layers`), feature columns, losses and metrics.

The names here are those of `tf.layers`; `losses`, `metrics` and `feature_column` are modules.
"""

from __future__ import annotations

from typing import Any

from estimatorkit.lazy import attach, names

_PLACES = names("estimatorkit.layers.core", "batch_normalization", "dense", "dropout", "flatten")

_lazy_getattr, __dir__, __all__ = attach(__name__, _PLACES)


def __getattr__(name: str) -> Any:
    """Imports the public name `name`."""
    return _lazy_getattr(name)
