"""Estimators of Keras-style models (`tf.keras.estimator`)."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = names("estimatorkit.estimator.keras_estimator", "model_to_estimator")

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
