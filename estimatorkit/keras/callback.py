"""`Callback`: hooks called during training, evaluation and prediction.

Training runs one step per call if a callback overrides a batch hook. Otherwise many steps are one
XLA call, and the batch hooks are called once per call, with the number of its last batch;
`CallbackList.wants_batches` decides.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.keras.engine.metric_logs import MetricLogs
from estimatorkit.layers.engine.arguments import given_arguments
from estimatorkit.layers.engine.sessions import set_values, values_of

Logs = Any  # a dict of numbers by name, or None

_BATCH_HOOKS = {
    "train": ("on_batch_begin", "on_batch_end", "on_train_batch_begin", "on_train_batch_end"),
    "test": ("on_test_batch_begin", "on_test_batch_end"),
    "predict": ("on_predict_batch_begin", "on_predict_batch_end"),
}


class Callback:
    """Base class of callbacks, whose hooks do nothing (`tf.keras.callbacks.Callback`).

    Hooks receive `logs`, numbers by name; later callbacks see what a hook adds to an epoch's logs.
    `self.model.stop_training = True` stops training.

    Attributes:
        params: 'verbose', 'epochs', 'steps' of the training.
        model: the model.
        validation_data: None; for compatibility with old programs.
    """

    def __init__(self) -> None:
        self.validation_data: Any = None
        self.model: Any = None
        self.params: dict[str, Any] = {}

    def set_params(self, params: dict[str, Any]) -> None:
        """Sets the parameters of the training."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Sets the model."""
        self.model = model

    def wants_batches(self, kind: str) -> bool:
        """Whether it overrides a batch hook, which must then be called for every batch.

        Args:
            kind: 'train', 'test' or 'predict'.
        """
        return any(
            name in vars(self) or getattr(type(self), name) is not getattr(Callback, name)
            for name in _BATCH_HOOKS[kind]
        )

    def wants_epochs(self) -> bool:
        """Whether it overrides an epoch hook, which must then be called right after each epoch.

        Otherwise several epochs may run in one XLA call before the hooks are called.
        """
        return any(
            name in vars(self) or getattr(type(self), name) is not getattr(Callback, name)
            for name in ("on_epoch_begin", "on_epoch_end")
        )

    def around_training(self) -> AbstractContextManager[None]:
        """A context manager for `fit`, entered before `on_train_begin`."""
        return nullcontext()

    def first_epoch(self, epoch: int) -> int:
        """The epoch at which to start or resume, given the `epoch` requested."""
        return epoch

    def after_steps(self, count: int) -> None:
        """Called after each training call, before the hooks of its `count` steps."""

    def on_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """The older name of `on_train_batch_begin`."""

    def on_batch_end(self, batch: int, logs: Logs = None) -> None:
        """The older name of `on_train_batch_end`."""

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Called before a training epoch."""

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Called after an epoch and its validation, with the logs of both."""

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """Called before a training batch; `batch` counts from 0 in each epoch."""
        self.on_batch_begin(batch, logs=logs)

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Called after a training batch, with the means over the epoch so far."""
        self.on_batch_end(batch, logs=logs)

    def on_test_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """Called before a batch of an evaluation or validation."""

    def on_test_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Called after a batch of an evaluation or validation."""

    def on_predict_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """Called before a prediction batch."""

    def on_predict_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Called after a prediction batch; `logs` has its 'outputs'."""

    def on_train_begin(self, logs: Logs = None) -> None:
        """Called when training begins."""

    def on_train_end(self, logs: Logs = None) -> None:
        """Called when training ends."""

    def on_test_begin(self, logs: Logs = None) -> None:
        """Called when an evaluation or validation begins."""

    def on_test_end(self, logs: Logs = None) -> None:
        """Called when an evaluation or validation ends."""

    def on_predict_begin(self, logs: Logs = None) -> None:
        """Called when prediction begins."""

    def on_predict_end(self, logs: Logs = None) -> None:
        """Called when prediction ends."""


class History(Callback):
    """Records the logs of all epochs; `fit` returns it.

    Attributes:
        epoch: the numbers of the epochs.
        history: the values of each log, one per epoch; 'acc' is an alias of 'accuracy'.
    """

    def __init__(self) -> None:
        super().__init__()
        self.epoch: list[int] = []
        self.history: dict[str, list[Any]] = MetricLogs()

    def wants_epochs(self) -> bool:
        """False: it only records logs."""
        return False

    def on_train_begin(self, logs: Logs = None) -> None:
        """Clears the history of an earlier training."""
        self.epoch = []
        self.history = MetricLogs()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Records the logs."""
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)


class BaseLogger(Callback):
    """Has no effect, since logs are already means (`tf.keras.callbacks.BaseLogger`).

    Args:
        stateful_metrics: accepted for compatibility only.
    """

    def __init__(self, stateful_metrics: Any = None) -> None:
        super().__init__()
        self.stateful_metrics = set(stateful_metrics or ())


class LambdaCallback(Callback):
    """A callback made of functions.

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
        hooks = given_arguments(locals())
        given = {name: function for name, function in hooks.items() if function is not None}
        vars(self).update({**kwargs, **given})


class TerminateOnNaN(Callback):
    """Stops training at the batch whose loss is NaN or infinite."""

    def on_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Checks the loss."""
        loss = (logs or {}).get("loss")
        if loss is not None and not math.isfinite(loss):
            print(f"Batch {batch}: Invalid loss, terminating training")
            self.model.stop_training = True


class LearningRateScheduler(Callback):
    """Sets the learning rate before each epoch and adds it to the logs as 'lr'.

    Args:
        schedule: a function of (epoch) or (epoch, rate) that returns the rate.
        verbose: 1 to print a message.

    Raises:
        ValueError: in training: `schedule` did not return a number.
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
        """Sets the learning rate."""
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
        """Adds the learning rate to the logs."""
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
    """The learning rate of a model's optimizer; raises ValueError if it is not a variable."""
    return float(values_of([_rate_variable(model)])[0])


def set_learning_rate(model: Any, rate: float) -> None:
    """Sets the learning rate of a model's optimizer without recompilation.

    Raises ValueError if it is not a variable.
    """
    set_values([(_rate_variable(model), rate)])


def plain_logs(logs: Mapping[str, Any]) -> dict[str, Any]:
    """Logs with NumPy scalars converted to Python numbers."""
    return {name: value.item() if hasattr(value, "item") else value for name, value in logs.items()}


__all__ = [
    "BaseLogger",
    "Callback",
    "History",
    "LambdaCallback",
    "LearningRateScheduler",
    "TerminateOnNaN",
]
