"""Legacy names: `compat.v1` is TensorFlow 1's module tree; the rest is TensorFlow's `tf.compat`."""

from __future__ import annotations

from estimatorkit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
