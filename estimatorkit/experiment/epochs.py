"""`EpochLines`: a line for each evaluation of a training, in the manner of Keras's epochs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.estimator.evaluation.continuous_evaluation import (
    EvaluatedTraining,
    EvaluationHook,
    FinishedEvaluation,
)
from estimatorkit.experiment import tables
from estimatorkit.experiment.estimators import Trees
from estimatorkit.experiment.report import number
from estimatorkit.experiment.schema import Experiment
from estimatorkit.train.hooks.hooks import FinishedSteps

_SHOWN = ("accuracy", "auc", "rmse", "r2")
"""Metrics that are shown beside the loss and the one that selects the best checkpoint."""


class EpochLines(EvaluationHook):
    """Reports after each evaluation: epoch, losses and metrics, speed, and remaining time.

    Args:
        experiment: the experiment.
        rows: the number of training rows.
        last_step: the global step at which the training ends.
        tell: shows a line.
    """

    def __init__(
        self, experiment: Experiment, rows: int, last_step: int, tell: Callable[[str], None]
    ) -> None:
        self._reads_once = isinstance(experiment.estimator, Trees)
        self._steps_an_epoch = last_step if self._reads_once else rows / experiment.train.batch_size
        self._batch_size = experiment.train.batch_size
        selection = experiment.selection
        selected = () if selection is None else (selection.metric,)
        self._metrics = dict.fromkeys(["loss", *selected, *_SHOWN])
        self._last_step = last_step
        self._tell = tell
        self._losses: list[NDArray[Any]] = []
        self._first_step = self._step = 0
        self._started_at = 0.0

    def before_training(self, training: EvaluatedTraining) -> None:
        """Records where the training begins."""
        self._first_step = self._step = training.start_step

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Starts the clock."""
        self._started_at = time.monotonic()

    def after_steps(self, steps: FinishedSteps) -> None:
        """Collects losses."""
        self._losses.append(steps.losses)
        self._step = steps.last

    def after_evaluation(self, evaluation: FinishedEvaluation) -> None:
        """Reports, unless the evaluation is of another set or no step was trained before."""
        if evaluation.label != tables.MAIN or not self._losses:
            return
        epoch, last = (each / self._steps_an_epoch for each in (self._step, self._last_step))
        parts = [f"epoch {round(epoch, 1):g}/{round(last, 1):g}"]
        if not self._reads_once:  # else steps have no loss to speak of
            parts.append(f"loss {number(np.concatenate(self._losses).mean())}")
        for name in self._metrics:
            if name in evaluation.metrics:
                shown = "evaluation loss" if name == "loss" else name
                parts.append(f"{shown} {number(float(evaluation.metrics[name]))}")
        speed = (self._step - self._first_step) / (time.monotonic() - self._started_at)
        parts.append(f"{speed * self._batch_size:,.0f} examples/s")
        left = (self._last_step - self._step) / speed
        if left > 0:
            parts.append(f"{left:.0f} s left" if left < 90 else f"{left / 60:.0f} min left")
        self._tell("  ".join(parts))
        self._losses.clear()
