"""`MetricMonitor`: compares evaluations by one metric."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from estimatorkit.core.errors import did_you_mean, value_error

Mode = Literal["auto", "min", "max"]

_LOWER = (
    "loss",
    "error",
    "mse",
    "mae",
    "rmse",
    "mape",
    "perplexity",
    "entropy",
    "distance",
    "deviance",
    "divergence",
    "false",
)
_HIGHER = (
    "accuracy",
    "auc",
    "precision",
    "recall",
    "f1",
    "score",
    "iou",
    "bleu",
    "r2",
    "correlation",
    "likelihood",
    "true",
    "top_k",
    "ndcg",
    "kappa",
    "sensitivity",
    "specificity",
)


@dataclass(frozen=True)
class MetricMonitor:
    """Compares evaluations by one metric.

    Args:
        metric: its name in the result of `Estimator.evaluate`.
        mode: 'min' if lower is better, 'max' if higher is, 'auto' to infer it from the name.

    Raises:
        ValueError: the mode is invalid, or 'auto' cannot infer it.
    """

    metric: str
    mode: Mode = "auto"

    def __post_init__(self) -> None:
        if self.mode not in ("auto", "min", "max"):
            raise value_error(
                f"mode of the metric {self.metric!r}",
                expected="'min' (lower is better), 'max' (higher is better) or 'auto'",
                received=repr(self.mode),
                hint=did_you_mean(str(self.mode), ("auto", "min", "max")),
            )
        if self.mode == "auto":
            object.__setattr__(self, "mode", _mode_of(self.metric))

    def value(self, metrics: Mapping[str, Any]) -> float:
        """The metric's value in an evaluation.

        Raises:
            ValueError: it is missing, or not a scalar; the message lists the metrics.
        """
        if self.metric in metrics and np.ndim(metrics[self.metric]) == 0:
            return float(metrics[self.metric])
        available = sorted(name for name, value in metrics.items() if np.ndim(value) == 0)
        raise value_error(
            f"the evaluation has no metric {self.metric!r} that is a single number",
            expected=f"one of {', '.join(available)}",
            received=repr(self.metric),
            hint=did_you_mean(self.metric, available) or "add it by eval_metric_ops or add_metrics",
        )

    def is_better(self, value: float, than: float, by: float = 0.0) -> bool:
        """Whether `value` is better than `than` by more than `by`, >= 0. NaN is worse than any
        number.
        """
        if math.isnan(value) or math.isnan(than):
            return math.isnan(than) and not math.isnan(value)
        return value < than - by if self.mode == "min" else value > than + by

    def __str__(self) -> str:
        return f"{self.metric} ({self.mode})"


def _mode_of(metric: str) -> Mode:
    name = metric.lower()
    lower = any(word in name for word in _LOWER)
    higher = any(word in name for word in _HIGHER)
    if lower == higher:
        raise value_error(
            f"whether a higher or a lower {metric!r} is better cannot be told from its name",
            expected="mode='min' or mode='max'",
            received="mode='auto'",
        )
    return "min" if lower else "max"
