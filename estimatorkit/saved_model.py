"""`tf.saved_model`: models as folders, written and loaded, and their signatures."""

from __future__ import annotations

from estimatorkit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
