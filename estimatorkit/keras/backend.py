"""`tf.keras.backend`: the functions of which old layers, losses and models are made.

A table: most are the package's own operations, the others are in `backend_*`.
"""

from __future__ import annotations

from estimatorkit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
