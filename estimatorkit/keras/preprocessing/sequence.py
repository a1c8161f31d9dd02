"""`keras.preprocessing.sequence`: padding and sampling of sequences."""

from __future__ import annotations

from estimatorkit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
