"""`EpochLines`: a line for each evaluation of a training, in the manner of Keras's epochs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.estimator.evaluation.continuous_evaluation import (
    EvaluatedTraining,
    EvaluationHook,
    FinishedEvaluation,
)
from estimatorkit.experiment import row_sets
from estimatorkit.experiment.report import number
from estimatorkit.experiment.schema import Experiment
from estimatorkit.premade.member_hook import MemberEpoch, MemberHook
from estimatorkit.train.hooks.hooks import FinishedSteps

SHOWN = ("accuracy", "auc", "rmse", "r2")
"""Metrics that are shown beside the loss and the one that selects the best checkpoint."""


class EpochLines(EvaluationHook, MemberHook):
    """Reports after each evaluation: epoch, losses and metrics, speed, and remaining time; and of
    the members of an ensemble.

    Args:
        experiment: the experiment.
        rows: the number of training rows.
        last_step: the global step at which the training ends.
        tell: shows a line.
    """

    def __init__(
        self, experiment: Experiment, rows: int, last_step: int, tell: Callable[[str], None]
    ) -> None:
        self._reads_once = experiment.estimator.reads_once
        self._rows = rows
        self._batch_size = experiment.train.batch_size
        self._by_epoch = experiment.evaluate.rhythm[1] == "epoch"
        selection = experiment.selection
        selected = () if selection is None else (selection.metric,)
        self._metrics = dict.fromkeys(["loss", *selected, *SHOWN])
        self._last_step = last_step
        self._epochs = experiment.train.epochs or last_step * self._batch_size / rows
        self._tell = tell
        self._losses: list[NDArray[Any]] = []
        self._step = 0
        self._pace = _Pace(0)

    def before_training(self, training: EvaluatedTraining) -> None:
        """Records where the training begins."""
        self._step = training.start_step

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Starts the clock."""
        self._pace = _Pace(self._step * self._batch_size)

    def after_steps(self, steps: FinishedSteps) -> None:
        """Collects losses."""
        self._losses.append(steps.losses)
        self._step = steps.last

    def after_evaluation(self, evaluation: FinishedEvaluation) -> None:
        """Reports, unless the evaluation is of another set or no step was trained before."""
        if evaluation.label != row_sets.MAIN or not self._losses:
            return
        loss = float(np.concatenate(self._losses).mean())
        self._losses.clear()
        measured = self._measured(evaluation.metrics)
        done, last = (each * self._batch_size for each in (self._step, self._last_step))
        if self._reads_once:  # neither epochs nor losses of steps say anything
            self._tell("  ".join([*measured, *self._pace.parts(done, done)]))
            return
        epoch = self._epochs
        if self._step < self._last_step:
            epoch = min(epoch, round(done / self._rows, 0 if self._by_epoch else 1))
        shown = f"epoch {epoch:g}/{round(self._epochs, 1):g}"
        parts = [f"loss {number(loss)}", *measured, *self._pace.parts(done, last)]
        self._tell("  ".join([shown, *parts]))

    def before_member(self, name: str, rows: int, epochs: int | None) -> None:
        """Says what is trained now."""
        length = f", at most {epochs} epochs" if epochs is not None else ""
        self._tell(f"{name}: training on {rows:,} rows{length}")
        self._pace = _Pace(0)

    def after_epoch(self, epoch: MemberEpoch) -> None:
        """Reports, as after an evaluation."""
        parts = [f"epoch {epoch.number}/{epoch.epochs}", f"loss {number(epoch.loss)}"]
        parts += self._measured(epoch.metrics, "validation")
        done, last = (each * epoch.rows for each in (epoch.number, epoch.epochs))
        self._tell("  ".join([*parts, *self._pace.parts(done, last)]))

    def after_member(self, name: str, loss: float, seconds: float) -> None:
        """Says how good it is."""
        self._tell(f"{name}: validation loss {number(loss)} after {seconds:.1f} s")

    def after_members(self, weights: Mapping[str, float], loss: float) -> None:
        """Says what each counts for."""
        shown = ", ".join(f"{name} {weight:.2f}" for name, weight in weights.items())
        self._tell(f"weights: {shown}; validation loss {number(loss)}")

    def _measured(self, metrics: Mapping[str, Any], of: str = "evaluation") -> list[str]:
        """The loss and metrics of an evaluation."""
        return [
            f"{f'{of} loss' if name == 'loss' else name} {number(float(metrics[name]))}"
            for name in self._metrics
            if name in metrics
        ]


class _Pace:
    """How fast a training is: at first since its start, which includes the compilation, and then
    since the first time that this was asked.

    Args:
        done: how many examples were trained before.
    """

    def __init__(self, done: float) -> None:
        self._since = done, time.monotonic()
        self._is_known = False

    def parts(self, done: float, last: float) -> list[str]:
        """The speed, and the time until `last` examples are done where the speed is known."""
        begun, at = self._since
        now = time.monotonic()
        speed = (done - begun) / (now - at)
        found = [f"{speed:,.0f} examples/s"]
        if self._is_known and done < last:
            left = (last - done) / speed
            found.append(f"{left:.0f} s left" if left < 90 else f"{left / 60:.0f} min left")
        if not self._is_known:
            self._is_known, self._since = True, (done, now)
        return found
