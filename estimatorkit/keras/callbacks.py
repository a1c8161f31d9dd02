"""Callbacks of Keras-style models (`tf.keras.callbacks`)."""

from __future__ import annotations

from typing import Any

from estimatorkit.lazy import attach, names

_PLACES = {
    **names(
        "estimatorkit.keras.callback",
        *("BaseLogger", "Callback", "CallbackList", "History", "LambdaCallback"),
        *("LearningRateScheduler", "TerminateOnNaN"),
    ),
    **names(
        "estimatorkit.keras.callback_monitors",
        *("BackupAndRestore", "EarlyStopping", "ModelCheckpoint", "ReduceLROnPlateau"),
    ),
    **names("estimatorkit.keras.callback_output", "CSVLogger", "ProgbarLogger", "RemoteMonitor"),
    **names("estimatorkit.keras.callback_tensorboard", "TensorBoard"),
}

_lazy_getattr, __dir__, __all__ = attach(__name__, _PLACES)


def __getattr__(name: str) -> Any:
    """Imports the public name `name`."""
    return _lazy_getattr(name)
