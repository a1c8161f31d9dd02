"""Keras-style models (`tf.keras`): layers, models, losses, metrics, optimizers, callbacks.

The namespaces below are modules; names are imported when they are first used.
"""

from __future__ import annotations

from estimatorkit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
