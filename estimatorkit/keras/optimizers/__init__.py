"""Optimizers by their Keras names (`tf.keras.optimizers`): classes, schedules, `get`.

The numbers are those of `keras.optimizers.legacy` in Keras 2.15, under both namespaces.
"""

from __future__ import annotations

from estimatorkit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
