"""Callbacks that monitor a log: early stopping, checkpoints, reducing the learning rate.

`Monitor` compares two values; `EarlyStopping`, `ReduceLROnPlateau` and `ModelCheckpoint` track the
best one.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.keras.callback import Callback, Logs, learning_rate_of, set_learning_rate
from estimatorkit.keras.engine.metric_logs import MetricLogs
from estimatorkit.storage.atomic_files import write_durably
from estimatorkit.train.hooks.interruption import InterruptionHook

_log = logging.getLogger("estimatorkit")
_BEST_BYTES = 1 << 16


class Monitor:
    """A monitored log and whether larger or smaller values are better.

    Args:
        name: the log's name.
        mode: 'min', 'max', or 'auto'.
        larger: whether larger values are better with 'auto'.
        what: the callback's name, for warnings.
    """

    def __init__(self, name: str, mode: str, larger: bool, what: str) -> None:
        self.name = name
        if mode not in ("auto", "min", "max"):
            _log.warning("%s mode %s is unknown, fallback to auto mode.", what, mode)
            mode = "auto"
        self.increasing = larger if mode == "auto" else mode == "max"
        self.worst = -math.inf if self.increasing else math.inf

    def better(self, value: Any, than: Any, by: float = 0.0) -> bool:
        """Whether `value` is better than `than` by more than `by`."""
        return bool(value - by > than if self.increasing else value + by < than)

    def value(self, logs: Logs, doing: str) -> Any:
        """The log's value, or None with a warning."""
        found = (logs or {}).get(self.name)
        if found is None:
            _log.warning(
                "%s `%s` which is not available. Available metrics are: %s",
                doing,
                self.name,
                ",".join(logs or {}),
            )
        return found


class EarlyStopping(Callback):
    """Stops training when a log has stopped improving.

    Unlike in Keras, `restore_best_weights` restores the weights of the best epoch whatever ended
    the training.

    Args:
        monitor: the log's name.
        min_delta: the minimum change that counts as an improvement.
        patience: the number of epochs without improvement after which training stops.
        verbose: 1 to print a message.
        mode: 'min', 'max' or 'auto': accuracies and AUC are maximized, all else is minimized.
        baseline: an epoch must also be better than this value to reset the patience.
        restore_best_weights: see above.
        start_from_epoch: ignore epochs before this one.

    Attributes:
        best, best_epoch: the best value and its epoch.
        stopped_epoch: the epoch at which this callback stopped the training, otherwise 0.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
        start_from_epoch: int = 0,
    ) -> None:
        super().__init__()
        self.monitor = monitor
        self.min_delta = abs(min_delta)
        self.patience = patience
        self.verbose = verbose
        self.baseline = baseline
        self.restore_best_weights = restore_best_weights
        self.start_from_epoch = start_from_epoch
        larger = monitor.endswith(("acc", "accuracy", "auc"))
        self._monitor = Monitor(monitor, mode, larger, "EarlyStopping")
        self._begin()

    def _begin(self) -> None:
        self.wait = 0
        self.stopped_epoch = 0
        self.best: Any = self._monitor.worst
        self.best_epoch = 0
        self.best_weights: Any = None
        self._last_epoch = 0  # the epoch whose weights the model has

    def on_train_begin(self, logs: Logs = None) -> None:
        """Resets the state."""
        self._begin()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Compares the log with the best value; may stop the training."""
        current = self._monitor.value(logs, "Early stopping conditioned on metric")
        if current is None or epoch < self.start_from_epoch:
            return
        self._last_epoch = epoch
        if self.restore_best_weights and self.best_weights is None:
            self.best_weights = self.model.get_weights()
        self.wait += 1
        if self._monitor.better(current, self.best, self.min_delta):
            self.best, self.best_epoch = current, epoch
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            if self.baseline is None or self._monitor.better(
                current, self.baseline, self.min_delta
            ):
                self.wait = 0
            return
        if self.wait >= self.patience and epoch > 0:
            self.stopped_epoch = epoch
            self.model.stop_training = True
            self._restore()

    def _restore(self) -> None:
        if self.best_weights is not None and self._last_epoch != self.best_epoch:
            if self.verbose > 0:
                print(
                    "Restoring model weights from the end of the best epoch: "
                    f"{self.best_epoch + 1}."
                )
            self.model.set_weights(self.best_weights)
            self._last_epoch = self.best_epoch

    def on_train_end(self, logs: Logs = None) -> None:
        """Restores the best weights if something else ended the training."""
        if self.stopped_epoch > 0 and self.verbose > 0:
            print(f"Epoch {self.stopped_epoch + 1}: early stopping")
        self._restore()


class ReduceLROnPlateau(Callback):
    """Reduces the learning rate when a log has stopped improving.

    Args:
        monitor: the log's name.
        factor: multiplies the learning rate; below 1.
        patience: the number of epochs without improvement before a reduction.
        verbose: 1 to print a message.
        mode: 'min', 'max' or 'auto': logs with 'acc' in their names are maximized.
        min_delta: the minimum change that counts as an improvement.
        cooldown: the number of epochs to ignore after a reduction.
        min_lr: the lower bound of the learning rate.
        kwargs: `epsilon`, an older name of `min_delta`.

    Raises:
        ValueError: `factor` is 1 or more.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 0,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau does not support a factor >= 1.0. Got {factor}")
        self.monitor = monitor
        self.factor = factor
        self.patience = patience
        self.verbose = verbose
        self.min_delta = kwargs.pop("epsilon", min_delta)
        self.cooldown = cooldown
        self.min_lr = min_lr
        self._monitor = Monitor(monitor, mode, "acc" in monitor, "Learning rate reduction")
        self._begin()

    def _begin(self) -> None:
        self.best: Any = self._monitor.worst
        self.cooldown_counter = 0
        self.wait = 0

    def on_train_begin(self, logs: Logs = None) -> None:
        """Resets the state."""
        self._begin()

    def in_cooldown(self) -> bool:
        """Whether epochs are still ignored after the last reduction."""
        return self.cooldown_counter > 0

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Reduces the learning rate on a plateau; adds 'lr' to the logs."""
        rate = learning_rate_of(self.model)
        if logs is not None:
            logs["lr"] = rate
        current = self._monitor.value(logs, "Learning rate reduction is conditioned on metric")
        if current is None:
            return
        if self.in_cooldown():
            self.cooldown_counter -= 1
            self.wait = 0
        if self._monitor.better(current, self.best, self.min_delta):
            self.best = current
            self.wait = 0
            return
        if self.in_cooldown():
            return
        self.wait += 1
        if self.wait >= self.patience and rate > self.min_lr:
            lower = max(rate * self.factor, self.min_lr)
            set_learning_rate(self.model, lower)
            if self.verbose > 0:
                print(f"\nEpoch {epoch + 1}: ReduceLROnPlateau reducing learning rate to {lower}.")
            self.cooldown_counter = self.cooldown
            self.wait = 0


class ModelCheckpoint(Callback):
    """Saves the model, or its weights, after epochs or a number of batches.

    With `save_best_only`, the best value is also stored in `NAME.best.json`. Unlike in Keras,
    training resumed in a new process from a later epoch (`fit(initial_epoch=...)`) therefore does
    not replace the best model by a worse one.

    Args:
        filepath: the path; `{epoch:02d}` and `{val_loss:.2f}` are replaced by the epoch, from 1,
            and logs.
        monitor: the name of the log that defines the best model.
        verbose: 1 to print a message.
        save_best_only: save only if the value is the best so far.
        save_weights_only: call `save_weights` instead of `save`.
        mode: 'min', 'max' or 'auto': accuracies, AUC and F-measures are maximized.
        save_freq: 'epoch', or a number of batches.
        options: accepted for compatibility only.
        initial_value_threshold: the first saved value must be better than this.
        kwargs: `period`, the interval in epochs; `load_weights_on_restart`.

    Raises:
        ValueError: `save_freq` is invalid.
        TypeError: an argument is unknown.
    """

    def __init__(
        self,
        filepath: str | os.PathLike[str],
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: Any = "epoch",
        options: Any = None,
        initial_value_threshold: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.filepath = os.fspath(filepath)
        self.monitor = monitor
        self.verbose = verbose
        self.save_best_only = save_best_only
        self.save_weights_only = save_weights_only
        self.period = kwargs.pop("period", 1)
        self.load_weights_on_restart = kwargs.pop("load_weights_on_restart", False)
        if kwargs:
            raise TypeError(f"Invalid keyword arguments: {sorted(kwargs)}")
        if save_freq != "epoch" and not isinstance(save_freq, int):
            raise ValueError(
                f'Unrecognized save_freq: {save_freq}. Expected save_freq are "epoch" or integer'
            )
        self.save_freq = save_freq
        larger = "acc" in monitor or monitor.startswith("fmeasure") or "auc" in monitor
        self._monitor = Monitor(monitor, mode, larger, "ModelCheckpoint")
        threshold = initial_value_threshold
        self.best: Any = self._monitor.worst if threshold is None else threshold
        self._epoch = 0
        self._epochs_since_save = 0
        self._batches_since_save = 0
        self._resuming = False

    def wants_batches(self, kind: str) -> bool:
        """Whether `save_freq` is a number of batches."""
        return kind == "train" and self.save_freq != "epoch"

    def on_train_begin(self, logs: Logs = None) -> None:
        """Loads existing weights with `load_weights_on_restart`."""
        self._resuming = True
        if self.load_weights_on_restart and os.path.exists(self.filepath):
            self.model.load_weights(self.filepath)

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Records the epoch; training that begins after epoch 0 loads the stored best value."""
        if self._resuming and epoch > 0 and self.save_best_only:
            self._remember()
        self._resuming = False
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Counts batches and saves when due."""
        if self.save_freq != "epoch":
            self._batches_since_save += 1
            if self._batches_since_save >= self.save_freq:
                self._batches_since_save = 0
                self._save(self._epoch, batch, logs or {})

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Counts epochs and saves when due."""
        self._epochs_since_save += 1
        if self.save_freq == "epoch" and self._epochs_since_save >= self.period:
            self._epochs_since_save = 0
            self._save(epoch, None, logs or {})

    def _save(self, epoch: int, batch: int | None, logs: dict[str, Any]) -> None:
        path = self._path(epoch, batch, logs)
        if not self.save_best_only:
            if self.verbose > 0:
                print(f"\nEpoch {epoch + 1}: saving model to {path}")
            self._write(path)
            return
        current = logs.get(self.monitor)
        if current is None:
            _log.warning("Can save best model only with %s available, skipping.", self.monitor)
            return
        if not self._monitor.better(current, self.best):
            if self.verbose > 0:
                print(f"\nEpoch {epoch + 1}: {self.monitor} did not improve from {self.best:.5f}")
            return
        if self.verbose > 0:
            print(
                f"\nEpoch {epoch + 1}: {self.monitor} improved from {self.best:.5f} to "
                f"{current:.5f}, saving model to {path}"
            )
        self.best = current
        self._write(path)
        best = {"monitor": self.monitor, "best": float(current), "epoch": epoch + 1}
        write_durably(self._best_file, json.dumps(best).encode())

    def _write(self, path: str) -> None:
        parent = os.path.dirname(path)
        if parent:
            os.makedirs(parent, exist_ok=True)
        if self.save_weights_only:
            self.model.save_weights(path, overwrite=True)
        else:
            self.model.save(path, overwrite=True)

    def _path(self, epoch: int, batch: int | None, logs: dict[str, Any]) -> str:
        values = MetricLogs(logs, epoch=epoch + 1)
        if batch is not None:
            values["batch"] = batch + 1
        try:
            return self.filepath.format_map(values)
        except KeyError as error:
            raise KeyError(
                f'Failed to format this callback filepath: "{self.filepath}". Reason: {error}'
            ) from None

    # -- the best value

    @property
    def _best_file(self) -> Path:
        folder, name = os.path.split(self.filepath)
        return Path(folder, re.sub(r"[^\w.=-]", "_", name) + ".best.json")

    def _remember(self) -> None:
        path = self._best_file
        try:
            found = json.loads(path.read_bytes()[:_BEST_BYTES])
            value = found["best"] if found["monitor"] == self.monitor else None
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError) as error:
            _log.warning("ModelCheckpoint: %s says nothing of the best value: %s", path, error)
            return
        if isinstance(value, (int, float)) and self._monitor.better(value, self.best):
            self.best = value


class BackupAndRestore(Callback):
    """Saves the training state after each epoch, so that `fit` resumes after an interruption.

    Calling `fit` again restores weights, the optimizer's variables and the epoch
    (`tf.keras.callbacks.BackupAndRestore`).

    Args:
        backup_dir: a directory used by this callback alone.
        save_freq: must be 'epoch'.
        delete_checkpoint: delete the backup when training has ended.
        save_before_preemption: on Ctrl-C or SIGTERM, stop in the middle of the epoch and save; the
            epoch starts again when training resumes. As without this option, the process ends with
            KeyboardInterrupt or exit code 143.

    Raises:
        ValueError: `backup_dir` is empty, or `save_freq` is not 'epoch'.
    """

    def __init__(
        self,
        backup_dir: str | os.PathLike[str],
        save_freq: Any = "epoch",
        delete_checkpoint: bool = True,
        save_before_preemption: bool = False,
    ) -> None:
        super().__init__()
        if not os.fspath(backup_dir):
            raise ValueError("Empty `backup_dir` argument passed")
        if save_freq != "epoch":
            raise value_error(
                "BackupAndRestore saves after epochs",
                expected="save_freq='epoch'",
                received=repr(save_freq),
                hint="ModelCheckpoint(save_freq=100) saves after batches",
            )
        self.backup_dir = os.fspath(backup_dir)
        self.delete_checkpoint = delete_checkpoint
        self._interruption = InterruptionHook() if save_before_preemption else None
        self._epoch: int | None = None
        self._steps = 0  # in this epoch

    @property
    def _path(self) -> str:
        return os.path.join(self.backup_dir, "backup")

    def around_training(self) -> AbstractContextManager[None]:
        """Watches for signals if `save_before_preemption` is set."""
        return nullcontext() if self._interruption is None else self._interruption.watching()

    @property
    def _is_interrupted(self) -> bool:
        return self._interruption is not None and self._interruption.came

    def on_train_begin(self, logs: Logs = None) -> None:
        """Restores the backup, if there is one."""
        from estimatorkit.keras.engine.saving import restore_training

        self._epoch = restore_training(self.model, self._path)

    def first_epoch(self, epoch: int) -> int:
        """The epoch after the saved one."""
        return epoch if self._epoch is None else self._epoch + 1

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Starts counting the epoch's steps."""
        self._steps = 0

    def after_steps(self, count: int) -> None:
        """Stops training if a signal was received."""
        self._steps += count
        if self._is_interrupted:
            self.model.stop_training = True

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Saves the backup."""
        from estimatorkit.keras.engine.saving import save_training

        is_partial = self._is_interrupted and self._steps != self.params.get("steps")
        os.makedirs(self.backup_dir, exist_ok=True)
        save_training(self.model, self._path, epoch - is_partial)

    def on_train_end(self, logs: Logs = None) -> None:
        """Deletes the backup if `delete_checkpoint` is set, unless a signal was received."""
        if self._is_interrupted:
            return
        if self.delete_checkpoint and os.path.exists(self._path):
            os.remove(self._path)


__all__ = ["BackupAndRestore", "EarlyStopping", "ModelCheckpoint", "Monitor", "ReduceLROnPlateau"]
