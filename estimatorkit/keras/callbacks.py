"""Callbacks of Keras-style models (`tf.keras.callbacks`)."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    **names(
        "estimatorkit.keras.callback",
        "BaseLogger Callback History LambdaCallback LearningRateScheduler TerminateOnNaN",
    ),
    **names("estimatorkit.keras.callback_list", "CallbackList"),
    **names(
        "estimatorkit.keras.callback_monitors",
        "BackupAndRestore EarlyStopping ModelCheckpoint ReduceLROnPlateau",
    ),
    **names("estimatorkit.keras.callback_output", "CSVLogger ProgbarLogger RemoteMonitor"),
    **names("estimatorkit.keras.callback_tensorboard", "TensorBoard"),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
