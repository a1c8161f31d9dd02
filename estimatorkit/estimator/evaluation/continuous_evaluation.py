"""Evaluations in the course of a training: when (`EvaluationSchedule`, which only computes), of
what (`SpecEvaluator`, one `EvalSpec`), and who is told (`EvaluationHook`).

Nothing here knows where the training runs: a listener of checkpoints asks the schedule in one
process, an evaluator of a cluster may ask it for each checkpoint that it finds.
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
    """Says whether a checkpoint is to be evaluated while the training goes on.

    Args:
        throttle_secs: seconds from the start of an evaluation to that of the next, at least.
        start_step: the global step at which the training begins: nothing is learned there yet.
        last_step: the global step at which it ends: that evaluation comes after the training.
        clock: seconds; for tests.
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
        """Whether the checkpoint of a global step is to be evaluated at all."""
        ends = self._last_step is not None and step >= self._last_step
        return step > self._start_step and not ends and step != self._evaluated

    def is_due(self, step: int) -> bool:
        """Whether the checkpoint of a global step is to be evaluated now."""
        return self.is_new(step) and self.seconds_to_wait() <= 0

    def seconds_to_wait(self) -> float:
        """How long no checkpoint will be due; 0 if a new one would be."""
        if self._evaluated is None:
            return 0.0
        return max(0.0, self._started_at + self._throttle_secs - self._clock())

    def started(self, step: int) -> None:
        """Told that the evaluation of a checkpoint starts now."""
        self._evaluated = step
        self._started_at = self._clock()


@dataclass(frozen=True)
class FinishedEvaluation:
    """What an evaluation gave.

    Attributes:
        label: which `EvalSpec` it belongs to: its name, 'eval' where it has none.
        metrics: what `Estimator.evaluate` returned.
        checkpoint_path: the checkpoint.
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
    """What a training is that will be evaluated.

    Attributes:
        estimator: the `Estimator`.
        train_spec: with what it is trained.
        eval_specs: with what it is evaluated, by label.
        start_step: the global step at which it begins.
    """

    estimator: Any
    train_spec: TrainSpec
    eval_specs: Mapping[str, EvalSpec]
    start_step: int


class EvaluationHook(SessionRunHook):
    """A hook that `train_and_evaluate` tells of evaluations. Not in TensorFlow."""

    def before_training(self, training: EvaluatedTraining) -> str | None:
        """Called once, before the training.

        Returns:
            A reason not to train any more; None to train.
        """
        return None

    def after_evaluation(self, evaluation: FinishedEvaluation) -> str | None:
        """Called after each evaluation, the last one too.

        Returns:
            A reason to stop; None to go on.
        """
        return None

    def best_checkpoint(self) -> str | None:
        """Called after the last evaluation: the checkpoint to go back to; None for none."""
        return None


class SpecEvaluator:
    """The evaluations and exports of one `EvalSpec`.

    Args:
        estimator: the `Estimator`.
        spec: what to evaluate with.
    """

    def __init__(self, estimator: Any, spec: EvalSpec) -> None:
        self._estimator = estimator
        self.spec = spec
        self.finished: FinishedEvaluation | None = None
        self.export_results: list[Any] = []
        self._watch_input = spec.steps is not None

    def evaluate(self, checkpoint_path: str) -> FinishedEvaluation:
        """Evaluates a checkpoint; `export` is still to be called."""
        spec = self.spec
        input_fn, hooks = spec.input_fn, [*spec.hooks]
        if self._watch_input:  # it costs one more batch, so once is enough
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
        """Calls those exporters that have not exported the evaluated checkpoint yet."""
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
    """Evaluates checkpoints as they are saved, where their schedule says so.

    Args:
        estimator: the `Estimator`.
        scheduled: the evaluations, each with its schedule.
        hooks: told of each evaluation; one that gives a reason ends the training.
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
        """Evaluates; True if a hook wants the training to end."""
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
        self.stop_reasons += told(self._hooks, finished)


def told(hooks: Sequence[EvaluationHook], finished: FinishedEvaluation) -> list[str]:
    """Tells hooks of an evaluation; returns their reasons to stop."""
    reasons = [hook.after_evaluation(finished) for hook in hooks]
    return [reason for reason in reasons if reason is not None]


class _TruncationHook(SessionRunHook):
    """Says so where an evaluation has left out a part of its input."""

    def __init__(self, spec: EvalSpec) -> None:
        self._spec = spec
        self._endless = False

    def watched(self, input_fn: Callable[..., Any]) -> Callable[..., Any]:
        """An input function like another, of whose dataset it is noted whether it ends."""
        if isinstance(input_fn, functools.partial):
            function = self.watched(input_fn.func)
            return functools.partial(function, *input_fn.args, **input_fn.keywords)

        @functools.wraps(input_fn)
        def noted(*args: Any, **keywords: Any) -> Any:
            made = input_fn(*args, **keywords)
            self._endless = isinstance(made, Dataset) and made.cardinality() == INFINITE
            return made

        return noted

    def end(self, session: Any) -> None:
        """Looks whether there is another batch. An input without end is meant to be cut off."""
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
            *(self._spec.label, self._spec.steps, self._spec.steps),
            " is the default" if self._spec.steps == 100 else "",
        )
