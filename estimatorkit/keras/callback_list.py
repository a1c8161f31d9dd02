"""`CallbackList`: several callbacks, called in turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from estimatorkit.core.nest import flatten
from estimatorkit.keras.callback import History, Logs
from estimatorkit.keras.callback_output import ProgbarLogger


class CallbackList:
    """Callbacks that are called in turn.

    Args:
        callbacks: a callback, or a list of them.
        add_history: whether to add a `History` if there is none.
        add_progbar: whether to add a `ProgbarLogger` if there is none.
        model: the model.
        params: 'verbose', 'epochs', 'steps', 'samples', 'batch_size', 'do_validation', 'metrics'.
    """

    def __init__(
        self,
        callbacks: Any = None,
        add_history: bool = False,
        add_progbar: bool = False,
        model: Any = None,
        **params: Any,
    ) -> None:
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
        """Sets the parameters of the training in all callbacks."""
        self.params = params
        for callback in self.callbacks:
            callback.set_params(params)

    def set_model(self, model: Any) -> None:
        """Sets the model in all callbacks, and the `History` in the model."""
        self.model = model
        for callback in self.callbacks:
            if isinstance(callback, History):
                model.history = callback
            callback.set_model(model)

    @property
    def history(self) -> Any:
        """The `History` among the callbacks, or None."""
        return next((each for each in self.callbacks if isinstance(each, History)), None)

    @property
    def wants_batches(self) -> bool:
        """Whether a callback must be called for every training batch."""
        return any(callback.wants_batches("train") for callback in self.callbacks)

    @property
    def wants_test_batches(self) -> bool:
        """Whether a callback must be called for every evaluation batch."""
        return any(callback.wants_batches("test") for callback in self.callbacks)

    @property
    def wants_predict_batches(self) -> bool:
        """Whether a callback must be called for every prediction batch."""
        return any(callback.wants_batches("predict") for callback in self.callbacks)

    @property
    def wants_epochs(self) -> bool:
        """Whether a callback must be called right after each epoch."""
        return any(callback.wants_epochs() for callback in self.callbacks)

    @contextmanager
    def around_training(self) -> Iterator[None]:
        """Enters the context managers of all callbacks."""
        with ExitStack() as stack:
            for callback in self.callbacks:
                stack.enter_context(callback.around_training())
            yield

    def first_epoch(self, epoch: int) -> int:
        """The epoch at which to start or resume, given the `epoch` requested; called after
        `on_train_begin`.
        """
        for callback in self.callbacks:
            epoch = callback.first_epoch(epoch)
        return epoch

    def after_steps(self, count: int) -> None:
        """Calls this hook of each."""
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
