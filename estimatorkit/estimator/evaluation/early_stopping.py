"""`EarlyStopping`: stops training when evaluations no longer improve, and restores the best model.

The best checkpoint is kept in `model_dir/best/`, unaffected by `keep_checkpoint_max`, together with
`best.json`, the record of evaluations: a resumed training keeps its best checkpoint and patience.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estimatorkit.core.errors import OpError, did_you_mean, value_error
from estimatorkit.estimator.evaluation.continuous_evaluation import (
    EvaluatedTraining,
    EvaluationHook,
    FinishedEvaluation,
)
from estimatorkit.estimator.evaluation.metric_monitor import MetricMonitor, Mode
from estimatorkit.logger import logger
from estimatorkit.storage.atomic_files import (
    os_errors,
    read_plain,
    remove_durably,
    sync_file,
    temporary_beside,
    write_durably,
)
from estimatorkit.storage.checkpoint import checkpoint_exists, checkpoint_step
from estimatorkit.storage.checkpoint_state import (
    check_name,
    get_checkpoint_state,
    update_checkpoint_state,
)
from estimatorkit.storage.directory_lock import DirectoryLock

_FOLDER = "best"
_STATE = "best.json"
_DAMAGE = (ValueError, LookupError, TypeError, ArithmeticError, RecursionError, OpError)


@dataclass(frozen=True)
class Patience:
    """Counts evaluations without improvement; pure computation.

    Args:
        monitor: compares two values.
        evaluations: the number allowed; None for any.
        min_delta: the minimum difference that counts as an improvement.
    """

    monitor: MetricMonitor
    evaluations: int | None
    min_delta: float = 0.0

    def waited(self, values: Iterable[float]) -> int:
        """The number of trailing values that do not improve on the best before them."""
        best: float | None = None
        waited = 0
        for value in values:
            if best is None or self.monitor.is_better(value, best, self.min_delta):
                best, waited = value, 0
            else:
                waited += 1
        return waited

    def is_over(self, values: Iterable[float]) -> bool:
        """Whether to stop."""
        return self.evaluations is not None and self.waited(values) >= self.evaluations


class EarlyStopping(EvaluationHook):
    """Stops when a metric has not improved for some evaluations; for `TrainSpec.hooks`.

    Not in TensorFlow, whose hooks count steps and keep the last model; see
    `stop_if_no_decrease_hook`. The best checkpoint is restored whatever ended training; exporters
    with `is_the_final_export` and the returned metrics refer to it.

    Args:
        metric: its name in the result of `Estimator.evaluate`.
        mode: 'min' if lower is better, 'max' if higher is; 'auto' infers it from the name.
        patience: the number of evaluations without improvement that stops training, at least 1;
            None never stops it, and only keeps the best checkpoint.
        min_delta: the minimum difference that counts as an improvement.
        restore_best: restore the best checkpoint at the end.
        evaluation: the name of the `EvalSpec` with the metric, if there are several; by default the
            first.

    Raises:
        ValueError: a number is out of range, or `mode` is invalid.
    """

    def __init__(
        self,
        metric: str = "loss",
        mode: Mode = "auto",
        patience: int | None = 3,
        min_delta: float = 0.0,
        restore_best: bool = True,
        evaluation: str | None = None,
    ) -> None:
        if (patience is not None and patience < 1) or min_delta < 0:
            raise value_error(
                "EarlyStopping: invalid patience or min_delta",
                expected="patience >= 1 (evaluations) and min_delta >= 0",
                received=f"patience={patience}, min_delta={min_delta}",
            )
        self._monitor = MetricMonitor(metric, mode)
        self._patience = Patience(self._monitor, patience, min_delta)
        self._restore_best = restore_best
        self._evaluation = evaluation
        self._label: str | None = None
        self._store: BestCheckpoint | None = None
        self._evaluations: list[tuple[int, float]] = []
        self._warned = False

    def before_training(self, training: EvaluatedTraining) -> str | None:
        """Reads the record, and warns if the patience cannot run out.

        Raises:
            ValueError: there is no `EvalSpec` of that name.
        """
        labels = list(training.eval_specs)
        self._label = labels[0] if self._evaluation is None else self._evaluation
        if self._label not in labels:
            raise value_error(
                "EarlyStopping: unknown evaluation",
                expected=f"one of {', '.join(labels)}",
                received=repr(self._label),
                hint=did_you_mean(self._label, labels),
            )
        self._store = BestCheckpoint(training.estimator.model_dir, self._monitor, self._label)
        self._evaluations = self._store.read(training.start_step)
        self._warn_of_few_evaluations(training)
        return self._reason()

    def after_evaluation(self, evaluation: FinishedEvaluation) -> str | None:
        """Counts the evaluation; keeps its checkpoint if it is the best."""
        if evaluation.label != self._label or self._store is None:
            return None
        value = self._monitor.value(evaluation.metrics)
        if evaluation.step not in [step for step, _ in self._evaluations]:
            self._evaluations.append((evaluation.step, value))
            self._store.add(evaluation, value, self._evaluations, self._restore_best)
        return self._reason()

    def best_checkpoint(self) -> str | None:
        """The best checkpoint, if it is to be restored."""
        if self._store is None or not self._restore_best:
            return None
        return self._store.checkpoint

    def end(self, session: Any) -> None:
        """Warns if there were too few evaluations to act on."""
        seen, needed = len(self._evaluations), self._patience.evaluations
        if self._store is None:
            logger.warning(
                "EarlyStopping saw no evaluations: give it to "
                "TrainSpec(hooks=[...]) of train_and_evaluate; Estimator.train does not evaluate."
            )
        elif needed is not None and seen < needed and not self._warned:
            logger.warning(
                "EarlyStopping waits for %d evaluations without improvement, but saw %d: evaluate "
                "more often, or lower the patience.",
                needed,
                seen,
            )

    def _reason(self) -> str | None:
        values = [value for _, value in self._evaluations]
        if not self._patience.is_over(values):
            return None
        return (
            f"{self._monitor} has not improved for {self._patience.waited(values)} evaluations "
            f"(patience {self._patience.evaluations})"
        )

    def _warn_of_few_evaluations(self, training: EvaluatedTraining) -> None:
        config, spec = training.estimator.config, training.eval_specs[self._label or ""]
        max_steps, every = training.train_spec.max_steps, config.save_checkpoints_steps
        patience = self._patience.evaluations
        if max_steps is None or every is None or patience is None:
            return
        evaluations = -(-(max_steps - training.start_step) // every) + len(self._evaluations)
        if evaluations <= patience:
            self._warned = True
            apart = f", and {spec.throttle_secs:g} seconds apart" if spec.throttle_secs else ""
            logger.warning(
                "EarlyStopping waits for %d evaluations without improvement, but there are at most "
                "%d in %d steps: one every %d steps%s. It will not stop this training.",
                patience,
                evaluations,
                max_steps,
                every,
                apart,
            )


class BestCheckpoint:
    """The best checkpoint of a model folder, and the record of evaluations.

    Args:
        model_dir: the model's folder; both are in its sub-folder `best/`.
        monitor: compares two evaluations.
        label: the evaluations' label.
    """

    def __init__(self, model_dir: str, monitor: MetricMonitor, label: str) -> None:
        self._model_dir = model_dir
        self._folder = Path(model_dir) / _FOLDER
        self._monitor = monitor
        self._label = label
        self._best: tuple[str, float] | None = None

    @property
    def checkpoint(self) -> str | None:
        """The path of the best checkpoint; None if there is none."""
        if self._best is None:
            return None
        path = self._folder / self._best[0]
        return os.fspath(path) if checkpoint_exists(path) else None

    def read(self, start_step: int) -> list[tuple[int, float]]:
        """Reads the record when training resumes at a step.

        Returns:
            The evaluations (step, value) up to that step.
        """
        state = self._read_state()
        if state is None or start_step == 0:
            return []
        self._best = state[0]
        return [(step, value) for step, value in state[1] if step <= start_step]

    def add(
        self,
        evaluation: FinishedEvaluation,
        value: float,
        evaluations: Sequence[tuple[int, float]],
        keep: bool,
    ) -> None:
        """Records an evaluation, and copies its checkpoint if it is the best.

        Args:
            value: the metric's value.
            evaluations: all, including the newest.
            keep: whether to copy the checkpoint.
        """
        name = os.path.basename(evaluation.checkpoint_path)
        if self._best is None or self._monitor.is_better(value, self._best[1]):
            self._best = (name, value)
            if keep:
                copy_checkpoint(Path(evaluation.checkpoint_path), self._folder)
        self._write_state(evaluations)
        self._remove_others()

    def _write_state(self, evaluations: Sequence[tuple[int, float]]) -> None:
        name, value = self._best or ("", 0.0)
        self._folder.mkdir(parents=True, exist_ok=True)
        content = {
            "metric": self._monitor.metric,
            "mode": self._monitor.mode,
            "evaluation": self._label,
            "checkpoint": name,
            "value": value,
            "evaluations": [[step, number] for step, number in evaluations],
        }
        write_durably(self._folder / _STATE, json.dumps(content, indent=1).encode())

    def _read_state(self) -> tuple[tuple[str, float], list[tuple[int, float]]] | None:
        path = self._folder / _STATE
        try:
            content = json.loads(read_plain(path))
            watched = (content["metric"], content["mode"], content["evaluation"])
            best = (check_name(str(content["checkpoint"])), float(content["value"]))
            evaluations = [(int(step), float(value)) for step, value in content["evaluations"]]
        except FileNotFoundError:
            return None
        except (
            ValueError,
            LookupError,
            TypeError,
            OverflowError,
            RecursionError,
            OpError,
        ) as error:
            logger.warning("%s is damaged and ignored: %s", path, error)
            return None
        if watched != (self._monitor.metric, self._monitor.mode, self._label):
            logger.warning(
                "%s is about %s (%s) of the evaluation %r, not about %s: early stopping begins "
                "anew.",
                path,
                *watched,
                self._monitor,
            )
            return None
        return best, evaluations

    def _remove_others(self) -> None:
        best = self._best[0] if self._best else ""
        for entry in list(self._folder.iterdir()):
            if entry.name not in (best, _STATE) and checkpoint_step(entry) is not None:
                remove_durably(entry)


def copy_checkpoint(path: Path, folder: Path) -> Path:
    """Copies a checkpoint into a folder atomically, replacing one of the same name; returns its
    path.

    Its immutable files are hard-linked if the file system supports that.
    """
    target = folder / path.name
    with os_errors("copy the checkpoint", target):
        folder.mkdir(parents=True, exist_ok=True)
        with temporary_beside(target) as temporary:
            shutil.copytree(path, temporary, copy_function=_link_or_copy)
            sync_file(temporary)
            if target.exists():
                remove_durably(target)
            os.rename(temporary, target)
            sync_file(folder)
    return target


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
        sync_file(target)


def go_back_to(model_dir: str, checkpoint: str) -> str:
    """Makes a checkpoint the newest of a model folder; returns its path there."""
    name = os.path.basename(checkpoint)
    with DirectoryLock(model_dir):
        path = Path(model_dir) / name
        if not checkpoint_exists(path):
            copy_checkpoint(Path(checkpoint), Path(model_dir))
        state = get_checkpoint_state(model_dir)
        paths = state.all_model_checkpoint_paths if state else []
        times = state.all_model_checkpoint_timestamps if state else []
        if len(times) != len(paths):
            times = [time.time()] * len(paths)
        others = [
            (each, written)
            for each, written in zip(paths, times, strict=True)
            if os.path.basename(each) != name
        ]
        update_checkpoint_state(
            model_dir,
            name,
            [*(os.path.basename(each) for each, _ in others), name],
            None,
            [*(written for _, written in others), time.time()],
            state.last_preserved_timestamp if state else None,
        )
    return os.fspath(path)
