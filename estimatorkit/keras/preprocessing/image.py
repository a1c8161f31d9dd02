"""`keras.preprocessing.image`: conversion of images to arrays and files."""

from __future__ import annotations

from estimatorkit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
