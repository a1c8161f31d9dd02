"""`EvaluatedRun`: training in one process, with evaluation and export of its checkpoints.

Stages: train; evaluate the last checkpoint; restore the best if a hook requests it; final exports.
`completion.Completion` records finished stages, so that each can be killed and resumed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.evaluation.completion import (
    FILE,
    Completion,
    read_completion,
    recorded_result,
    result_record,
)
from estimatorkit.estimator.evaluation.continuous_evaluation import (
    EvaluatedTraining,
    EvaluationHook,
    EvaluationListener,
    EvaluationSchedule,
    SpecEvaluator,
    notify_hooks,
)
from estimatorkit.estimator.evaluation.early_stopping import go_back_to
from estimatorkit.estimator.train_spec import EvalSpec, TrainSpec
from estimatorkit.logger import logger
from estimatorkit.train.hooks.hooks import FinishedSteps, SessionRunHook
from estimatorkit.train.saving.checkpoint_compatibility import saved_global_step

Results = dict[str, tuple[dict[str, Any], list[Any]]]


class EvaluatedRun:
    """One call of `train_and_evaluate`."""

    def __init__(
        self, estimator: Estimator, train_spec: TrainSpec, specs: Mapping[str, EvalSpec]
    ) -> None:
        self._estimator = estimator
        self._model_dir = estimator.model_dir
        self._train_spec = train_spec
        self._specs = specs
        self.evaluations = {label: SpecEvaluator(estimator, spec) for label, spec in specs.items()}
        self.hooks = [hook for hook in train_spec.hooks if isinstance(hook, EvaluationHook)]

    def results(self) -> Results:
        """The metrics and exports of the last evaluations, by label."""
        latest, max_steps = self._estimator.latest_checkpoint(), self._train_spec.max_steps
        found = read_completion(self._model_dir)
        done = found if found is not None and found.is_of(max_steps, latest) else None
        if done is not None and done.results is not None:
            if max_steps is None:
                done = None  # each run trains until the input ends
            elif set(done.results or ()) == set(self._specs):
                return self.finished_or_stored(done)
        start = done.step if done is not None else step_of(latest)
        reasons = self.prepared(start)
        if done is None:
            if found is not None and found.was_killed_after(start):
                # Its evaluation may have been interrupted, or a hook may not have been notified of
                # it.
                reasons += self._evaluate(str(latest))
                self._export(is_final=False)
            done = self._trained(start, reasons)
            done.write(self._model_dir)
        return self._finished(done)

    def finished_or_stored(self, done: Completion) -> Results:
        """The final evaluation results of a training that has ended, computed or read from the
        record.
        """
        if done.results is not None and done.results.keys() == self._specs.keys():
            return self._stored(done, done.results)
        return self._finished(done)

    def _stored(self, done: Completion, records: Mapping[str, Any]) -> Results:
        logger.info(
            "Training is already complete (%s); returning its results. To continue, raise "
            "max_steps; to evaluate again, remove %s.",
            done.reason,
            os.path.join(self._model_dir, FILE),
        )
        return {
            label: recorded_result(record, self._model_dir) for label, record in records.items()
        }

    def prepared(self, start: int) -> list[str]:
        """Calls the hooks' `before_training`; returns their reasons not to train."""
        training = EvaluatedTraining(self._estimator, self._train_spec, self._specs, start)
        reasons = [hook.before_training(training) for hook in self.hooks]
        return [reason for reason in reasons if reason is not None]

    def _trained(self, start: int, reasons: list[str]) -> Completion:
        """Trains, unless there is a reason not to; returns the completion record."""
        max_steps = self._train_spec.max_steps
        if not reasons:
            config = self._estimator.config
            logger.info(
                "Start train and evaluate loop. The evaluate will happen after every checkpoint. "
                "Checkpoint frequency is determined based on RunConfig arguments: "
                "save_checkpoints_steps %s or save_checkpoints_secs %s.",
                config.save_checkpoints_steps,
                config.save_checkpoints_secs,
            )
            record = RecordHook(Completion(start, max_steps, None, ""), self._model_dir)
            listener = EvaluationListener(
                self._estimator,
                [
                    (each, EvaluationSchedule(each.spec.throttle_secs, start, max_steps))
                    for each in self.evaluations.values()
                ],
                self.hooks,
            )
            self._estimator.train(
                input_fn=self._train_spec.input_fn,
                max_steps=max_steps,
                hooks=[*self._train_spec.hooks, record],
                saving_listeners=[*self._train_spec.saving_listeners, listener],
            )
            reasons = [*listener.stop_reasons, *record.stop_reasons, "the input has ended"]
        latest = self._estimator._checkpoint_or_error()
        step = step_of(latest)
        if max_steps is not None and step >= max_steps:
            reasons = [f"step {max_steps} is reached"]
        return Completion(step, max_steps, reasons[0], os.path.basename(latest))

    def _finished(self, done: Completion) -> Results:
        """Evaluates the last checkpoint, restores the best, and exports."""
        logger.info("The training has ended at step %d: %s.", done.step, done.reason)
        best = None
        if done.restored is None:
            self._evaluate(os.path.join(self._model_dir, done.checkpoint))
            best = self._best()
            if best is not None and os.path.basename(best) != done.checkpoint:
                self._export(is_final=False)
                done = replace(done, restored=os.path.basename(best))
                done.write(self._model_dir)
        if done.restored is not None:
            best = best or self._best() or os.path.join(self._model_dir, done.restored)
            logger.info("Restoring the best checkpoint, %s.", done.restored)
            self._evaluate(go_back_to(self._model_dir, best))
        self._export(is_final=True)
        results: Results = {}
        for label, evaluation in self.evaluations.items():
            if evaluation.finished is not None:
                results[label] = dict(evaluation.finished.metrics), evaluation.export_results
        records = {
            label: result_record(metrics, exports, self._model_dir)
            for label, (metrics, exports) in results.items()
        }
        replace(done, results=records).write(self._model_dir)
        return results

    def _evaluate(self, checkpoint: str) -> list[str]:
        """Evaluates a checkpoint, unless just evaluated; returns reasons to stop."""
        reasons = []
        for evaluation in self.evaluations.values():
            if evaluation.finished is None or evaluation.finished.checkpoint_path != checkpoint:
                reasons += notify_hooks(self.hooks, evaluation.evaluate(checkpoint))
        return reasons

    def _best(self) -> str | None:
        best = [hook.best_checkpoint() for hook in self.hooks]
        return next((each for each in best if each is not None), None)

    def _export(self, is_final: bool) -> None:
        for evaluation in self.evaluations.values():
            evaluation.export(is_final)


class RecordHook(SessionRunHook):
    """Records the start of training, and collects the reasons for stopping."""

    def __init__(self, start: Completion, model_dir: str) -> None:
        self._start = start
        self._model_dir = model_dir
        self.stop_reasons: list[str] = []

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Writes the record now that the folder exists and is locked."""
        self._start.write(self._model_dir)

    def after_steps(self, steps: FinishedSteps) -> None:
        """Keeps a reference to the loop's list, to which later reasons are appended."""
        self.stop_reasons = steps.stop


def step_of(checkpoint: str | None) -> int:
    return 0 if checkpoint is None else saved_global_step(checkpoint)


# -- checking arguments
