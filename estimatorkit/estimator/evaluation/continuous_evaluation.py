"""Evaluations during training: `EvaluationSchedule` (when; pure computation), `SpecEvaluator` (one
`EvalSpec`), and `EvaluationHook` (observers).

Independent of where training runs: in one process a checkpoint listener queries the schedule, in a
cluster an evaluator can query it for each checkpoint it finds.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from estimatorkit.core.errors import OutOfRangeError
from estimatorkit.core.registry import Role, role_of
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.plan import INFINITE
from estimatorkit.estimator.train_spec import EvalSpec, TrainSpec
from estimatorkit.logger import logger
from estimatorkit.train.hooks.checkpoint_hooks import CheckpointSaverListener
from estimatorkit.train.hooks.hooks import SessionRunHook


class EvaluationSchedule:
    """Decides whether to evaluate a checkpoint during training.

    Args:
        throttle_secs: the minimum seconds between the starts of evaluations.
        start_step: the global step at which training begins; its checkpoint is not evaluated.
        last_step: the global step at which training ends; it is evaluated after training.
        clock: seconds; replaced in tests.
    """

    def __init__(
        self,
        throttle_secs: float,
        start_step: int,
        last_step: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._throttle_secs = throttle_secs
        self._start_step = start_step
        self._last_step = last_step
        self._clock = clock
        self._evaluated: int | None = None
        self._started_at = 0.0

    def is_new(self, step: int) -> bool:
        """Whether the checkpoint of a global step needs an evaluation."""
        ends = self._last_step is not None and step >= self._last_step
        return step > self._start_step and not ends and step != self._evaluated

    def is_due(self, step: int) -> bool:
        """Whether to evaluate the checkpoint of a global step now."""
        return self.is_new(step) and self.seconds_to_wait() <= 0

    def seconds_to_wait(self) -> float:
        """Seconds until a checkpoint can be due; 0 if a new one would be due now."""
        if self._evaluated is None:
            return 0.0
        return max(0.0, self._started_at + self._throttle_secs - self._clock())

    def started(self, step: int) -> None:
        """Records that the evaluation of a checkpoint starts now."""
        self._evaluated = step
        self._started_at = self._clock()


@dataclass(frozen=True)
class FinishedEvaluation:
    """The result of an evaluation.

    Attributes:
        label: the name of its `EvalSpec`, 'eval' if it has none.
        metrics: the result of `Estimator.evaluate`.
        checkpoint_path: the evaluated checkpoint.
    """

    label: str
    metrics: Mapping[str, Any]
    checkpoint_path: str

    @property
    def step(self) -> int:
        """The global step of the checkpoint."""
        return int(self.metrics["global_step"])


@dataclass(frozen=True)
class EvaluatedTraining:
    """A training with evaluations.

    Attributes:
        eval_specs: by label.
        start_step: the global step at which it begins.
    """

    estimator: Any
    train_spec: TrainSpec
    eval_specs: Mapping[str, EvalSpec]
    start_step: int


class EvaluationHook(SessionRunHook):
    """A hook that `train_and_evaluate` notifies of evaluations. Not in TensorFlow."""

    def before_training(self, training: EvaluatedTraining) -> str | None:
        """Called once before training.

        Returns:
            A reason not to train, or None.
        """
        return None

    def after_evaluation(self, evaluation: FinishedEvaluation) -> str | None:
        """Called after each evaluation, including the last.

        Returns:
            A reason to stop, or None.
        """
        return None

    def best_checkpoint(self) -> str | None:
        """Called after the last evaluation: the checkpoint to restore, or None."""
        return None


class SpecEvaluator:
    """Runs the evaluations and exports of one `EvalSpec`."""

    def __init__(self, estimator: Any, spec: EvalSpec) -> None:
        self._estimator = estimator
        self.spec = spec
        self.finished: FinishedEvaluation | None = None
        self.export_results: list[Any] = []
        self._watch_input = spec.steps is not None

    def evaluate(self, checkpoint_path: str) -> FinishedEvaluation:
        """Evaluates a checkpoint; the caller calls `export` afterwards."""
        spec = self.spec
        input_fn, hooks = spec.input_fn, [*spec.hooks]
        if self._watch_input:  # costs one more batch, so only once
            watch = _TruncationHook(spec)
            input_fn, hooks = watch.watched(input_fn), [*hooks, watch]
            self._watch_input = False
        metrics = self._estimator.evaluate(
            input_fn=input_fn,
            steps=spec.steps,
            name=spec.name,
            checkpoint_path=checkpoint_path,
            hooks=hooks,
        )
        self.finished = FinishedEvaluation(spec.label, metrics, checkpoint_path)
        self.export_results = [None] * len(spec.exporters)
        return self.finished

    def export(self, is_final: bool) -> None:
        """Calls the exporters that have not yet exported the evaluated checkpoint."""
        if self.finished is None:
            return
        for index, exporter in enumerate(self.spec.exporters):
            if self.export_results[index] is None:
                self.export_results[index] = exporter.export(
                    estimator=self._estimator,
                    export_path=os.path.join(self._estimator.model_dir, "export", exporter.name),
                    checkpoint_path=self.finished.checkpoint_path,
                    eval_result=self.finished.metrics,
                    is_the_final_export=is_final,
                )


class EvaluationListener(CheckpointSaverListener):
    """Evaluates saved checkpoints that are due.

    Args:
        scheduled: the evaluations, each with its schedule.
        hooks: notified of each evaluation; a reason returned by one stops training.
    """

    def __init__(
        self,
        estimator: Any,
        scheduled: Sequence[tuple[SpecEvaluator, EvaluationSchedule]],
        hooks: Sequence[EvaluationHook],
    ) -> None:
        self._estimator = estimator
        self._scheduled = list(scheduled)
        self._hooks = list(hooks)
        self.stop_reasons: list[str] = []

    def after_save(self, session: Any, global_step_value: int) -> bool:
        """Runs due evaluations; returns True if a hook requests a stop."""
        for evaluation, schedule in self._scheduled:
            if schedule.is_due(global_step_value):
                schedule.started(global_step_value)
                self._evaluate(evaluation)
            elif schedule.is_new(global_step_value):
                logger.info(
                    "Skip the current checkpoint eval due to throttle secs (%s secs).",
                    evaluation.spec.throttle_secs,
                )
        return bool(self.stop_reasons)

    def _evaluate(self, evaluation: SpecEvaluator) -> None:
        finished = evaluation.evaluate(self._estimator.latest_checkpoint())
        evaluation.export(is_final=False)
        self.stop_reasons += notify_hooks(self._hooks, finished)


def notify_hooks(hooks: Sequence[EvaluationHook], finished: FinishedEvaluation) -> list[str]:
    """Notifies hooks of an evaluation; returns their reasons to stop."""
    reasons = [hook.after_evaluation(finished) for hook in hooks]
    return [reason for reason in reasons if reason is not None]


class _TruncationHook(SessionRunHook):
    """Logs if an evaluation left part of its input unused."""

    def __init__(self, spec: EvalSpec) -> None:
        self._spec = spec
        self._endless = False

    def watched(self, input_fn: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps an input function to record whether its dataset is finite."""
        if isinstance(input_fn, functools.partial):
            function = self.watched(input_fn.func)
            return functools.partial(function, *input_fn.args, **input_fn.keywords)

        @functools.wraps(input_fn)
        def noted(*args: Any, **keywords: Any) -> Any:
            made = input_fn(*args, **keywords)
            self._endless = isinstance(made, Dataset) and made._plan.cardinality == INFINITE
            return made

        return noted

    def end(self, session: Any) -> None:
        """Checks for a remaining batch, unless the input is infinite."""
        inputs = [op for op in session.graph.get_operations() if role_of(op) is Role.ELEMENT]
        if not inputs or self._endless:
            return
        try:
            session.run(inputs)
        except OutOfRangeError:
            return
        logger.warning(
            "The evaluation %r takes %d batches, and its input has more: EvalSpec(steps=%d%s). "
            "steps=None takes all of them.",
            self._spec.label,
            self._spec.steps,
            self._spec.steps,
            " is the default" if self._spec.steps == 100 else "",
        )
