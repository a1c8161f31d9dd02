"""Metrics as objects, functions and names, as `tf.keras.metrics`.

`metric` defines `Metric`; `mean_metrics`, `confusion_metrics` and `class_metrics` hold them
by kind; `metrics_by_name` resolves names.
"""

from __future__ import annotations

from estimatorkit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
