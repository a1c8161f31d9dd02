"""`Callback`: what is called while a model is trained, evaluated or asked; and lists of them.

A training whose callbacks look at single batches runs one step a call; without one, many steps are
one XLA call, and the batch hooks are called once for each such call, with the number of its last
batch. `CallbackList.wants_batches` says which: it asks each callback whether it overrides a hook of
batches.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.keras.engine.metric_logs import MetricLogs
from estimatorkit.layers.engine.sessions import set_values, values_of

Logs = Any  # a dict of numbers by name, or None

_BATCH_HOOKS = {
    "train": ("on_batch_begin", "on_batch_end", "on_train_batch_begin", "on_train_batch_end"),
    "test": ("on_test_batch_begin", "on_test_batch_end"),
    "predict": ("on_predict_batch_begin", "on_predict_batch_end"),
}


class Callback:
    """The base of all callbacks: hooks that do nothing (`tf.keras.callbacks.Callback`).

    Hooks get `logs`, numbers by name; what a hook adds to an epoch's logs the callbacks after it
    see. `self.model.stop_training = True` ends a training.

    Attributes:
        params: 'verbose', 'epochs', 'steps' of the training.
        model: the model.
        validation_data: None, for old programs.
    """

    def __init__(self) -> None:
        self.validation_data: Any = None
        self.model: Any = None
        self.params: dict[str, Any] = {}

    def set_params(self, params: dict[str, Any]) -> None:
        """Takes the parameters of the training."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Takes the model."""
        self.model = model

    def wants_batches(self, kind: str) -> bool:
        """Whether it must be called for every batch: whether it overrides a hook of batches.

        Args:
            kind: 'train', 'test' or 'predict'.
        """
        return any(
            name in vars(self) or getattr(type(self), name) is not getattr(Callback, name)
            for name in _BATCH_HOOKS[kind]
        )

    def wants_epochs(self) -> bool:
        """Whether it must be called right after each epoch: whether it overrides a hook of epochs.

        Those that only write the logs down are told of several epochs after one XLA call.
        """
        return any(
            name in vars(self) or getattr(type(self), name) is not getattr(Callback, name)
            for name in ("on_epoch_begin", "on_epoch_end")
        )

    def first_epoch(self, epoch: int) -> int:
        """The epoch that a training begins with, which would begin with `epoch`."""
        return epoch

    def after_steps(self, count: int) -> None:
        """Told that a call of training has ended, before the hooks of its `count` steps."""

    def on_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """The older name of `on_train_batch_begin`."""

    def on_batch_end(self, batch: int, logs: Logs = None) -> None:
        """The older name of `on_train_batch_end`."""

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Called before an epoch of a training."""

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Called after an epoch and its validation, with the logs of both."""

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """Called before a batch of a training; `batch` counts from 0 in each epoch."""
        self.on_batch_begin(batch, logs=logs)

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Called after a batch of a training, with the means over the epoch until then."""
        self.on_batch_end(batch, logs=logs)

    def on_test_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """Called before a batch of an evaluation or a validation."""

    def on_test_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Called after a batch of an evaluation or a validation."""

    def on_predict_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """Called before a batch of a prediction."""

    def on_predict_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Called after a batch of a prediction; `logs` has its 'outputs'."""

    def on_train_begin(self, logs: Logs = None) -> None:
        """Called when a training begins."""

    def on_train_end(self, logs: Logs = None) -> None:
        """Called when a training ends."""

    def on_test_begin(self, logs: Logs = None) -> None:
        """Called when an evaluation or a validation begins."""

    def on_test_end(self, logs: Logs = None) -> None:
        """Called when an evaluation or a validation ends."""

    def on_predict_begin(self, logs: Logs = None) -> None:
        """Called when a prediction begins."""

    def on_predict_end(self, logs: Logs = None) -> None:
        """Called when a prediction ends."""


class History(Callback):
    """Keeps the logs of all epochs; `fit` returns it.

    Attributes:
        epoch: the numbers of the epochs.
        history: the values of each log, one per epoch; 'acc' means 'accuracy', too.
    """

    def __init__(self) -> None:
        super().__init__()
        self.epoch: list[int] = []
        self.history: dict[str, list[Any]] = MetricLogs()

    def wants_epochs(self) -> bool:
        """False: it only writes the logs down."""
        return False

    def on_train_begin(self, logs: Logs = None) -> None:
        """Forgets the epochs of a training before."""
        self.epoch = []
        self.history = MetricLogs()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Keeps the logs."""
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)


class BaseLogger(Callback):
    """Nothing: logs are means already. For old programs (`tf.keras.callbacks.BaseLogger`).

    Args:
        stateful_metrics: accepted for TensorFlow's signature.
    """

    def __init__(self, stateful_metrics: Any = None) -> None:
        super().__init__()
        self.stateful_metrics = set(stateful_metrics or ())


class LambdaCallback(Callback):
    """Functions as hooks.

    Args:
        on_epoch_begin, on_epoch_end: functions of (epoch, logs).
        on_batch_begin, on_batch_end: functions of (batch, logs).
        on_train_begin, on_train_end: functions of (logs).
        kwargs: functions for the other hooks, or any attribute.
    """

    def __init__(
        self,
        on_epoch_begin: Callable[..., Any] | None = None,
        on_epoch_end: Callable[..., Any] | None = None,
        on_batch_begin: Callable[..., Any] | None = None,
        on_batch_end: Callable[..., Any] | None = None,
        on_train_begin: Callable[..., Any] | None = None,
        on_train_end: Callable[..., Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        hooks = {
            "on_epoch_begin": on_epoch_begin,
            "on_epoch_end": on_epoch_end,
            "on_batch_begin": on_batch_begin,
            "on_batch_end": on_batch_end,
            "on_train_begin": on_train_begin,
            "on_train_end": on_train_end,
        }
        given = {name: function for name, function in hooks.items() if function is not None}
        vars(self).update({**kwargs, **given})


class TerminateOnNaN(Callback):
    """Ends a training whose loss is NaN or infinite, at that batch."""

    def on_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Looks at the loss."""
        loss = (logs or {}).get("loss")
        if loss is not None and not math.isfinite(loss):
            print(f"Batch {batch}: Invalid loss, terminating training")
            self.model.stop_training = True


class LearningRateScheduler(Callback):
    """Sets the learning rate before each epoch; the logs have it as 'lr'.

    Args:
        schedule: a function of (epoch), or (epoch, rate), giving the rate.
        verbose: 1 to say so.

    Raises:
        ValueError: in training: it gave no number.
    """

    def __init__(self, schedule: Callable[..., float], verbose: int = 0) -> None:
        super().__init__()
        self.schedule = schedule
        self.verbose = verbose
        try:
            inspect.signature(schedule).bind(0, 0.0)
            self._takes_rate = True
        except TypeError:
            self._takes_rate = False

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Sets the rate."""
        before = learning_rate_of(self.model)
        rate = self.schedule(epoch, before) if self._takes_rate else self.schedule(epoch)
        if not hasattr(rate, "__float__") or isinstance(rate, str):
            raise value_error(
                'The output of the "schedule" function should be float',
                received=f"{rate!r} for epoch {epoch}",
            )
        set_learning_rate(self.model, float(rate))
        if self.verbose > 0:
            print(f"\nEpoch {epoch + 1}: LearningRateScheduler setting learning rate to {rate}.")

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Adds the rate to the logs."""
        if logs is not None:
            logs["lr"] = learning_rate_of(self.model)


def _rate_variable(model: Any) -> Any:
    with model.graph.as_default():
        rate = getattr(model.optimizer, "lr", None)
    if not hasattr(rate, "load"):
        raise value_error(
            'Optimizer must have a "lr" attribute that is a variable',
            received=f"{model.optimizer!r} with lr {rate!r}",
            hint="compile with a Keras optimizer and a number as its learning rate",
        )
    return rate


def has_learning_rate(model: Any) -> bool:
    """Whether the learning rate of a model's optimizer is a variable."""
    with model.graph.as_default():
        return hasattr(getattr(model.optimizer, "lr", None), "load")


def learning_rate_of(model: Any) -> float:
    """The learning rate of a model's optimizer.

    Raises:
        ValueError: it is not a variable, but a schedule, say.
    """
    return float(values_of([_rate_variable(model)])[0])


def set_learning_rate(model: Any, rate: float) -> None:
    """Sets the learning rate of a model's optimizer: a variable's value, nothing is compiled.

    Raises:
        ValueError: it is not a variable.
    """
    set_values([(_rate_variable(model), rate)])


def plain_logs(logs: Mapping[str, Any]) -> dict[str, Any]:
    """Logs as numbers that files take."""
    return {name: value.item() if hasattr(value, "item") else value for name, value in logs.items()}


__all__ = [
    *("BaseLogger", "Callback", "CallbackList", "History", "LambdaCallback"),
    *("LearningRateScheduler", "TerminateOnNaN"),
]
