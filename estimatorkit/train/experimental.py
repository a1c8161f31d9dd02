"""`tf.train.experimental`: loss scaling (see `loss_scale`)."""

from __future__ import annotations

from typing import Any

from estimatorkit.lazy import attach, names

_PLACES = names(
    "estimatorkit.train.optimizers.loss_scale",
    *("DynamicLossScale", "FixedLossScale", "LossScale", "MixedPrecisionLossScaleOptimizer"),
    "enable_mixed_precision_graph_rewrite",
)

_lazy_getattr, __dir__, __all__ = attach(__name__, _PLACES)


def __getattr__(name: str) -> Any:
    """Imports the public name `name`."""
    return _lazy_getattr(name)
