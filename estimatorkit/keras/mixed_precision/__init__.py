"""Mixed precision (`tf.keras.mixed_precision`): policies, and loss scaling for float16."""

from __future__ import annotations

from estimatorkit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
