"""Hooks that stop training based on evaluation metrics (`tf.estimator.experimental.stop_if_...`).

They read the metrics in the evaluation's folder at intervals of seconds or steps and, under
`train_and_evaluate`, after each evaluation. See `EarlyStopping` for a hook that counts evaluations
and restores the best checkpoint.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.evaluation.continuous_evaluation import (
    EvaluatedTraining,
    EvaluationHook,
    FinishedEvaluation,
)
from estimatorkit.estimator.evaluation.evaluation_records import EvaluationRecords
from estimatorkit.estimator.evaluation.metric_monitor import MetricMonitor
from estimatorkit.logger import logger
from estimatorkit.storage.checkpoint import latest_checkpoint
from estimatorkit.train.hooks.hooks import FinishedSteps, SessionRunHook, StopAtStepHook
from estimatorkit.train.hooks.summary_hooks import SecondOrStepTimer
from estimatorkit.train.saving.checkpoint_compatibility import saved_global_step


class StopOnPredicateHook(SessionRunHook):
    """Stops training when a function returns True; see `make_early_stopping_hook`."""

    watches_runs = True

    def __init__(
        self,
        should_stop_fn: Callable[[], Any],
        run_every_secs: float | None = 60,
        run_every_steps: int | None = None,
    ) -> None:
        if not callable(should_stop_fn):
            raise TypeError("`should_stop_fn` must be callable.")
        self._should_stop_fn = should_stop_fn
        self._by_steps = run_every_steps is not None
        self._timer = SecondOrStepTimer(run_every_secs, run_every_steps)

    def next_control_step(self, global_step: int) -> int | None:
        """The next step at which to call it; None with intervals in seconds, which are checked
        after steps.
        """
        return self._timer.next_step(global_step) if self._by_steps else None

    def after_steps(self, steps: FinishedSteps) -> None:
        """Calls the function if it is due."""
        if self._timer.should_trigger_for_step(steps.last):
            self._timer.update_last_triggered_step(steps.last)
            if self._should_stop_fn():
                logger.info("Requesting early stopping at global step %d", steps.last)
                steps.request_stop("early stopping was requested")


def make_early_stopping_hook(
    estimator: Any,
    should_stop_fn: Callable[[], bool],
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """Returns a hook that stops training when a function returns True.

    Args:
        estimator: the `Estimator`.
        should_stop_fn: returns True to stop training.
        run_every_secs: seconds between calls; None if steps are given.
        run_every_steps: steps between calls.

    Raises:
        TypeError: `estimator` is not an estimator, or `should_stop_fn` not a function.
        ValueError: both or neither of seconds and steps are given.
    """
    _check(estimator, run_every_secs, run_every_steps)
    return StopOnPredicateHook(should_stop_fn, run_every_secs, run_every_steps)


def _check(estimator: Any, run_every_secs: float | None, run_every_steps: int | None) -> None:
    if not isinstance(estimator, Estimator):
        raise TypeError(
            f"`estimator` must have type `tf.estimator.Estimator`. Got: {type(estimator)}"
        )
    if run_every_secs is not None and run_every_steps is not None:
        raise ValueError("Only one of `run_every_secs` and `run_every_steps` must be set.")


class _StopOnMetricHook(StopOnPredicateHook, EvaluationHook):
    """Stops training based on the metrics in an evaluation's folder.

    Args:
        monitor: the metric.
        reason_to_stop: maps the metric's values by step to a reason to stop, or None.
        eval_dir: the folder; by default that of the evaluation without a name.
        min_steps: evaluations before this step are ignored.
        patience: steps allowed without improvement; None if not applicable.
        run_every_secs, run_every_steps: the interval of checks.
    """

    def __init__(
        self,
        estimator: Any,
        monitor: MetricMonitor,
        reason_to_stop: Callable[[Mapping[int, float]], str | None],
        eval_dir: str | None,
        min_steps: int,
        patience: int | None,
        run_every_secs: float | None,
        run_every_steps: int | None,
    ) -> None:
        _check(estimator, run_every_secs, run_every_steps)
        super().__init__(self._reason, run_every_secs, run_every_steps)
        self._estimator = estimator
        self._monitor = monitor
        self._reason_to_stop = reason_to_stop
        self._eval_dir = estimator.eval_dir() if eval_dir is None else os.fspath(eval_dir)
        self._records = EvaluationRecords(self._eval_dir)
        self._min_steps = min_steps
        self._patience = patience

    def before_training(self, training: EvaluatedTraining) -> None:
        """Warns if the hook would have no effect."""
        folders = [self._estimator.eval_dir(spec.name) for spec in training.eval_specs.values()]
        if os.path.abspath(self._eval_dir) not in map(os.path.abspath, folders):
            logger.warning(
                "Early stopping looks for %r in %s, but the evaluations write into %s: give the "
                "hook eval_dir=estimator.eval_dir(name).",
                self._monitor.metric,
                self._eval_dir,
                ", ".join(folders),
            )
        every = self._estimator.config.save_checkpoints_steps
        if self._patience is not None and every is not None and self._patience < every:
            logger.warning(
                "Early stopping waits for %d steps without improvement of %r, but evaluations are "
                "%d steps apart (RunConfig.save_checkpoints_steps): the first that is no "
                "improvement ends the training.",
                self._patience,
                self._monitor.metric,
                every,
            )

    def after_evaluation(self, evaluation: FinishedEvaluation) -> str | None:
        """Checks the metrics."""
        return self._reason()

    def _reason(self) -> str | None:
        evaluations = {
            step: metrics
            for step, metrics in self._records.read().items()
            if step >= self._min_steps
        }
        name = self._monitor.metric
        values = {step: each[name] for step, each in evaluations.items() if name in each}
        if evaluations and not values:
            self._monitor.value(next(reversed(evaluations.values())))  # raises, listing the metrics
        reason = self._reason_to_stop(values)
        if reason is not None:
            logger.info(reason)
        return reason


def _threshold_hook(
    monitor: MetricMonitor,
    threshold: float,
    estimator: Any,
    eval_dir: str | None,
    min_steps: int,
    *cadence: Any,
) -> SessionRunHook:
    words = {"max": "greater than", "min": "less than"}[monitor.mode]

    def reason_to_stop(values: Mapping[int, float]) -> str | None:
        for step, value in values.items():
            if monitor.is_better(value, threshold):
                return (
                    f'At step {step}, metric "{monitor.metric}" has value {value} which is {words} '
                    f"the configured threshold ({threshold}) for early stopping."
                )
        return None

    return _StopOnMetricHook(
        estimator, monitor, reason_to_stop, eval_dir, min_steps, None, *cadence
    )


def _no_improvement_hook(
    monitor: MetricMonitor,
    max_steps: int,
    estimator: Any,
    eval_dir: str | None,
    min_steps: int,
    *cadence: Any,
) -> SessionRunHook:
    word = {"max": "increase", "min": "decrease"}[monitor.mode]

    def reason_to_stop(values: Mapping[int, float]) -> str | None:
        best: tuple[int, float] | None = None
        for step, value in values.items():
            if best is None or monitor.is_better(value, best[1]):
                best = step, value
            if step - best[0] >= max_steps:
                return (
                    f'No {word} in metric "{monitor.metric}" for {step - best[0]} steps, which is '
                    f"greater than or equal to max steps ({max_steps}) configured for early "
                    "stopping."
                )
        return None

    return _StopOnMetricHook(
        estimator, monitor, reason_to_stop, eval_dir, min_steps, max_steps, *cadence
    )


def stop_if_higher_hook(
    estimator: Any,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """Returns a hook that stops training when a metric exceeds a threshold.

    Args:
        estimator: the `Estimator`.
        metric_name: the metric's name in the result of `Estimator.evaluate`.
        threshold: the number.
        eval_dir: `estimator.eval_dir(name)`; by default that of the evaluation without a name.
        min_steps: evaluations before this global step are ignored.
        run_every_secs: seconds between checks; None if steps are given.
        run_every_steps: steps between checks.

    Raises:
        TypeError: `estimator` is not an estimator.
        ValueError: both or neither of seconds and steps are given. During training: there are
            evaluations, but without this metric.
    """
    return _threshold_hook(
        MetricMonitor(metric_name, "max"),
        threshold,
        estimator,
        eval_dir,
        min_steps,
        run_every_secs,
        run_every_steps,
    )


def stop_if_lower_hook(
    estimator: Any,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """Returns a hook that stops training when a metric is below a threshold; see
    `stop_if_higher_hook`.
    """
    return _threshold_hook(
        MetricMonitor(metric_name, "min"),
        threshold,
        estimator,
        eval_dir,
        min_steps,
        run_every_secs,
        run_every_steps,
    )


def stop_if_no_increase_hook(
    estimator: Any,
    metric_name: str,
    max_steps_without_increase: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """Returns a hook that stops training when a metric has not increased for some steps.

    Args: as `stop_if_higher_hook`, and
        max_steps_without_increase: steps from the evaluation with the highest value to the newest.

    Difference from TensorFlow: an initial NaN is not a best value, which nothing could ever exceed.
    """
    return _no_improvement_hook(
        MetricMonitor(metric_name, "max"),
        max_steps_without_increase,
        estimator,
        eval_dir,
        min_steps,
        run_every_secs,
        run_every_steps,
    )


def stop_if_no_decrease_hook(
    estimator: Any,
    metric_name: str,
    max_steps_without_decrease: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """Returns a hook that stops training when a metric has not decreased for some steps.

    Args: as `stop_if_higher_hook`, and
        max_steps_without_decrease: steps from the evaluation with the lowest value to the newest.

    Difference from TensorFlow: see `stop_if_no_increase_hook`.
    """
    return _no_improvement_hook(
        MetricMonitor(metric_name, "min"),
        max_steps_without_decrease,
        estimator,
        eval_dir,
        min_steps,
        run_every_secs,
        run_every_steps,
    )


class StopAtCheckpointStepHook(SessionRunHook):
    """Stops training once a step's checkpoint exists, for workers that save none.

    Args:
        model_dir: the model's folder.
        last_step: the global step.
        wait_after_file_check_secs: seconds to wait before checking again.
        sleep: waits a number of seconds; replaced in tests.

    Raises:
        ValueError: `last_step` or `model_dir` is None.
    """

    def __init__(
        self,
        model_dir: str,
        last_step: int,
        wait_after_file_check_secs: float = 30,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        for name, value in (("last_step", last_step), ("model_dir", model_dir)):
            if value is None:
                raise ValueError(f"{name} must be specified.")
        self._model_dir = model_dir
        self._last_step = last_step
        self._wait = wait_after_file_check_secs
        self._sleep = sleep

    def next_control_step(self, global_step: int) -> int | None:
        """The last step."""
        return max(self._last_step, global_step + 1)

    def after_steps(self, steps: FinishedSteps) -> None:
        """Checks the latest checkpoint, from the last step on."""
        if steps.last < self._last_step:
            return
        path = latest_checkpoint(self._model_dir)
        if path is not None and saved_global_step(path) >= self._last_step:
            steps.request_stop(f"the checkpoint of step {self._last_step} is there")
        else:
            self._sleep(self._wait)


def make_stop_at_checkpoint_step_hook(
    estimator: Any, last_step: int, wait_after_file_check_secs: float = 30
) -> SessionRunHook:
    """Returns a hook that stops training at a step: the chief by counting steps, other tasks once
    the step's checkpoint exists.

    Args:
        estimator: the `Estimator`; its config determines whether this is the chief.
        last_step: the global step.
        wait_after_file_check_secs: seconds between checks of other tasks.
    """
    if estimator.config.is_chief:
        return StopAtStepHook(last_step=last_step)
    return StopAtCheckpointStepHook(estimator.model_dir, last_step, wait_after_file_check_secs)
