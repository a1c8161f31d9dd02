"""`tf.losses`: TensorFlow 1's functions, and version 2's `tf.keras.losses`.

Where both have a name (`mean_squared_error`), it means TensorFlow 1's function.
"""

from __future__ import annotations

from estimatorkit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
