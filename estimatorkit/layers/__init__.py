"""Layers (`tf.layers`), feature columns, losses and metrics.

The names here are those of `tf.layers`; `losses`, `metrics` and `feature_column` are modules.
"""

from __future__ import annotations

from estimatorkit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
