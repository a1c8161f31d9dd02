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

from estimatorkit.core.errors import explain
from estimatorkit.core.nest import flatten
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


class CallbackList:
    """Callbacks that are called in turn.

    Args:
        callbacks: a callback, or a list of them.
        add_history: whether to add a `History` where there is none.
        add_progbar: whether to add a `ProgbarLogger` where there is none.
        model: the model.
        params: 'verbose', 'epochs', 'steps'.
    """

    def __init__(
        self,
        callbacks: Any = None,
        add_history: bool = False,
        add_progbar: bool = False,
        model: Any = None,
        **params: Any,
    ) -> None:
        from estimatorkit.keras.callback_output import ProgbarLogger

        self.callbacks: list[Any] = [] if callbacks is None else flatten(callbacks)
        self.model: Any = None
        self.params: dict[str, Any] = {}
        self._last_logs: dict[str, Any] = {}
        if add_progbar and not any(isinstance(each, ProgbarLogger) for each in self.callbacks):
            self.append(ProgbarLogger(count_mode="steps"))
        if add_history and not any(isinstance(each, History) for each in self.callbacks):
            self.append(History())
        if model is not None:
            self.set_model(model)
        if params:
            self.set_params(params)

    def append(self, callback: Any) -> None:
        """Adds a callback."""
        self.callbacks.append(callback)

    def set_params(self, params: dict[str, Any]) -> None:
        """Gives all of them the parameters of the training."""
        self.params = params
        for callback in self.callbacks:
            callback.set_params(params)

    def set_model(self, model: Any) -> None:
        """Gives all of them the model, and the model the `History`."""
        self.model = model
        for callback in self.callbacks:
            if isinstance(callback, History):
                model.history = callback
            callback.set_model(model)

    @property
    def history(self) -> Any:
        """The `History` among them, or None."""
        return next((each for each in self.callbacks if isinstance(each, History)), None)

    @property
    def wants_batches(self) -> bool:
        """Whether one of them must be called for every batch of a training."""
        return any(callback.wants_batches("train") for callback in self.callbacks)

    @property
    def wants_test_batches(self) -> bool:
        """Whether one of them must be called for every batch of an evaluation."""
        return any(callback.wants_batches("test") for callback in self.callbacks)

    @property
    def wants_predict_batches(self) -> bool:
        """Whether one of them must be called for every batch of a prediction."""
        return any(callback.wants_batches("predict") for callback in self.callbacks)

    @property
    def wants_epochs(self) -> bool:
        """Whether one of them must be called right after each epoch."""
        return any(callback.wants_epochs() for callback in self.callbacks)

    def first_epoch(self, epoch: int) -> int:
        """The epoch that a training begins with, which would begin with `epoch`; asked for after
        `on_train_begin` (`BackupAndRestore`).
        """
        for callback in self.callbacks:
            epoch = callback.first_epoch(epoch)
        return epoch

    def after_steps(self, count: int) -> None:
        """Tells each."""
        self._call("after_steps", count)

    def _call(self, hook: str, *args: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, hook)(*args)

    def on_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """`on_train_batch_begin`."""
        self.on_train_batch_begin(batch, logs)

    def on_batch_end(self, batch: int, logs: Logs = None) -> None:
        """`on_train_batch_end`."""
        self.on_train_batch_end(batch, logs)

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Calls this hook of each."""
        self._call("on_epoch_begin", epoch, _dict(logs))

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Calls this hook of each, with one dict."""
        self._last_logs = _dict(logs)
        self._call("on_epoch_end", epoch, self._last_logs)

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """Calls this hook of each."""
        self._call("on_train_batch_begin", batch, _dict(logs))

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Calls this hook of each, with one dict."""
        self._call("on_train_batch_end", batch, _dict(logs))

    def on_test_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """Calls this hook of each."""
        self._call("on_test_batch_begin", batch, _dict(logs))

    def on_test_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Calls this hook of each, with one dict."""
        self._call("on_test_batch_end", batch, _dict(logs))

    def on_predict_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """Calls this hook of each."""
        self._call("on_predict_batch_begin", batch, _dict(logs))

    def on_predict_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Calls this hook of each, with one dict."""
        self._call("on_predict_batch_end", batch, _dict(logs))

    def on_train_begin(self, logs: Logs = None) -> None:
        """Calls this hook of each."""
        self._call("on_train_begin", _dict(logs))

    def on_train_end(self, logs: Logs = None) -> None:
        """Calls this hook of each, with the logs of the last epoch."""
        self._call("on_train_end", self._last_logs if logs is None else logs)

    def on_test_begin(self, logs: Logs = None) -> None:
        """Calls this hook of each."""
        self._call("on_test_begin", _dict(logs))

    def on_test_end(self, logs: Logs = None) -> None:
        """Calls this hook of each."""
        self._call("on_test_end", _dict(logs))

    def on_predict_begin(self, logs: Logs = None) -> None:
        """Calls this hook of each."""
        self._call("on_predict_begin", _dict(logs))

    def on_predict_end(self, logs: Logs = None) -> None:
        """Calls this hook of each."""
        self._call("on_predict_end", _dict(logs))

    def __iter__(self) -> Any:
        return iter(self.callbacks)


def _dict(logs: Logs) -> dict[str, Any]:
    return {} if logs is None else logs


class History(Callback):
    """Keeps the logs of all epochs; `fit` returns it.

    Attributes:
        epoch: the numbers of the epochs.
        history: the values of each log, one an epoch; 'acc' means 'accuracy', too.
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
            raise ValueError(
                explain(
                    'The output of the "schedule" function should be float',
                    received=f"{rate!r} for epoch {epoch}",
                )
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
        raise ValueError(
            explain(
                'Optimizer must have a "lr" attribute that is a variable',
                received=f"{model.optimizer!r} with lr {rate!r}",
                hint="compile with a Keras optimizer and a number as its learning rate",
            )
        )
    return rate


def has_learning_rate(model: Any) -> bool:
    """Whether the learning rate of a model's optimizer is a variable."""
    with model.graph.as_default():
        return hasattr(getattr(model.optimizer, "lr", None), "load")


def learning_rate_of(model: Any) -> float:
    """The learning rate of a model's optimizer.

    Raises:
        ValueError: it is no variable, but a schedule, say.
    """
    return float(values_of([_rate_variable(model)])[0])


def set_learning_rate(model: Any, rate: float) -> None:
    """Sets the learning rate of a model's optimizer: a variable's value, nothing is compiled.

    Raises:
        ValueError: it is no variable.
    """
    set_values([(_rate_variable(model), rate)])


def plain_logs(logs: Mapping[str, Any]) -> dict[str, Any]:
    """Logs as numbers that files take."""
    return {name: value.item() if hasattr(value, "item") else value for name, value in logs.items()}


__all__ = [
    *("BaseLogger", "Callback", "CallbackList", "History", "LambdaCallback"),
    *("LearningRateScheduler", "TerminateOnNaN"),
]
