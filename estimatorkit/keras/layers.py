"""Layers (`tf.keras.layers`).

The classes of `estimatorkit.layers` by the names that Keras gives them, functions that merge
tensors, and the inputs of models.
"""

from __future__ import annotations

from estimatorkit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
