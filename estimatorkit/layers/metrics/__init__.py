"""Streaming metrics in graph form, as `tf.metrics`: each function gives `(value, update_op)`.

`streaming` defines metrics; `means`, `confusion`, `curves`, `classes`, `top_k`, `ranking` and
`click_models` hold the metrics by kind; `thresholds` counts decisions at many thresholds at once.
"""

from __future__ import annotations

from estimatorkit.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
