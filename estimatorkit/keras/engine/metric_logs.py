"""Training logs that accept both spellings of a metric's name."""

from __future__ import annotations

from typing import Any

_SHORT = {
    "accuracy": "acc",
    "crossentropy": "ce",
    "mean_squared_error": "mse",
    "mean_absolute_error": "mae",
    "mean_absolute_percentage_error": "mape",
    "mean_squared_logarithmic_error": "msle",
    "kullback_leibler_divergence": "kld",
}
_SPELLINGS = _SHORT | {short: long for long, short in _SHORT.items()}


class MetricLogs(dict[str, Any]):
    """Values by the names of metrics: 'val_acc' is found as 'val_accuracy', and the reverse.

    `metrics=["accuracy", "mae"]` are called 'acc' and 'mean_absolute_error' in the logs of
    TensorFlow 1's Keras, 'accuracy' and 'mae' in those of TensorFlow 2's. Keys are as TensorFlow
    2's.
    """

    def __missing__(self, key: str) -> Any:
        other = _other_spelling(key)
        if other is None or not super().__contains__(other):
            raise KeyError(key)
        return self[other]

    def __contains__(self, key: object) -> bool:
        other = _other_spelling(key)
        return super().__contains__(key) or (other is not None and super().__contains__(other))

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a name, or `default`."""
        try:
            return self[key]
        except KeyError:
            return default


def _other_spelling(name: object) -> str | None:
    if not isinstance(name, str):
        return None
    for end, other in _SPELLINGS.items():
        if name == end or name.endswith(f"_{end}"):
            return name.removesuffix(end) + other
    return None
