"""`train_and_evaluate` in a cluster: the roles of processes.

The chief trains and saves; at the end it records completion in `model_dir` (`Completion`) and shuts
down the parameter servers, if any. Workers train until the requested step, or until the chief ends
the training. The evaluator evaluates checkpoints until the training is done, and then the last one.
A process that is restarted after completion exits.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from estimatorkit.core.errors import DeadlineExceededError, value_error
from estimatorkit.distribute.cluster_task import EVALUATOR, PS, WORKER, ClusterTask
from estimatorkit.distribute.exit_codes import RETRY, TERMINATED, Interrupted, on_sigterm
from estimatorkit.distribute.launch.cpu_budget import share_processors
from estimatorkit.distribute.tasks.server import bound_endpoint
from estimatorkit.distribute.tasks.task_cluster import addresses_of
from estimatorkit.distribute.tasks.task_placement import task_name
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.evaluation.completion import (
    Completion,
    completion_time,
    read_completion,
)
from estimatorkit.estimator.evaluation.continuous_evaluation import EvaluationSchedule, notify_hooks
from estimatorkit.estimator.evaluation.evaluated_training import (
    EvaluatedRun,
    RecordHook,
    Results,
    step_of,
)
from estimatorkit.estimator.train_spec import EvalSpec, TrainSpec
from estimatorkit.estimator.training_cluster import LOST
from estimatorkit.logger import logger
from estimatorkit.runtime.resource_store import ResourceStore
from estimatorkit.storage.atomic_files import read_plain, write_durably
from estimatorkit.train.hooks.hooks import FinishedSteps, SessionRunHook
from estimatorkit.train.training import SIGTERM_CAME

STOP_FILE = "stop_training"
"""The file in `model_dir` by which an evaluator, on request of a hook, tells the chief to stop."""

NO_CHECKPOINT_SECS = 600.0
"""The interval at which an evaluator warns that there is no new checkpoint; or twice the time
between checkpoints, if that is longer."""

_POLL_SECS = 1.0
_STOP_SECS = 5.0
_DELAY_SECS = 5


def run_role(
    estimator: Estimator, train_spec: TrainSpec, specs: Mapping[str, EvalSpec]
) -> Results | None:
    """Runs the role of this process.

    Returns:
        The results of the last evaluation in an evaluator, else None.

    Raises:
        SystemExit: 0 in a parameter server when the training is done; 138 if peers were lost or did
            not join; 143 after SIGTERM.
        ValueError: the cluster has several training processes but no parameter server.
    """
    task = estimator.config.task
    strategy = estimator.config.train_distribute
    synchronous = strategy is not None and strategy.has_others
    if task.type != EVALUATOR and not task.num_ps_replicas and not synchronous:
        raise value_error(
            "the processes of this cluster share no parameters: no job serves them",
            expected="a job 'ps' in TF_CONFIG, or RunConfig(train_distribute=...)",
            received=f"{task.cluster}",
            hint="use train_distribute=distribute.MultiWorkerMirroredStrategy() to train them "
            "synchronously",
        )
    # In a cluster without a chief, the first worker is the chief.
    kind = _Chief if task.is_chief else _ROLES[task.type]
    role = kind(estimator, train_spec, specs)
    results = None
    try:
        with on_sigterm(role.terminate):
            results = role.run()
    except Interrupted:
        if not role.terminated.is_set():
            raise
    except (*LOST, DeadlineExceededError) as error:
        logger.error("%s %d cannot continue: %s", task.type, task.index, error)
        raise SystemExit(RETRY) from error
    if role.terminated.is_set():
        raise SystemExit(TERMINATED)
    return results


class _Role:
    """The role of a process.

    Args:
        estimator: the `Estimator`.
        train_spec: its training.
        specs: its evaluations, by label.
    """

    def __init__(
        self, estimator: Estimator, train_spec: TrainSpec, specs: Mapping[str, EvalSpec]
    ) -> None:
        self._estimator = estimator
        self._task: ClusterTask = estimator.config.task
        self._train_spec = train_spec
        self._specs = specs
        self.terminated = threading.Event()

    def terminate(self) -> None:
        """Handles SIGTERM: makes `run` return soon."""
        self.terminated.set()
        if self._estimator.cluster is not None:
            self._estimator.cluster.terminate()

    def run(self) -> Results | None:
        """Runs the role."""
        raise NotImplementedError

    def _done(self) -> Completion | None:
        """The completion record of this training in `model_dir`, if any."""
        found = read_completion(self._estimator.model_dir)
        latest = self._estimator.latest_checkpoint()
        is_done = found is not None and found.is_of(self._train_spec.max_steps, latest)
        return found if is_done else None


class _Chief(_Role):
    def run(self) -> None:
        done, max_steps = self._done(), self._train_spec.max_steps
        if done is None or max_steps is None:
            done = self._trained(step_of(self._estimator.latest_checkpoint()), max_steps)
            if done is None:
                return
            done.write(self._estimator.model_dir)
        logger.info("Training ended at step %d: %s.", done.step, done.reason)
        if self._estimator.cluster is not None:
            self._estimator.cluster.announce_done()

    def _trained(self, start: int, max_steps: int | None) -> Completion | None:
        stop_file = Path(self._estimator.model_dir) / STOP_FILE
        stop_file.unlink(missing_ok=True)
        record = RecordHook(Completion(start, max_steps, None, ""), self._estimator.model_dir)
        self._estimator.train(
            input_fn=self._train_spec.input_fn,
            max_steps=max_steps,
            hooks=[*self._train_spec.hooks, record, _StopHook(self.terminated, stop_file)],
            saving_listeners=[*self._train_spec.saving_listeners],
        )
        if self.terminated.is_set():
            return None
        latest = self._estimator._checkpoint_or_error()
        step = step_of(latest)
        reason = [*record.stop_reasons, "the input has ended"][0]
        if max_steps is not None and step >= max_steps:
            reason = f"step {max_steps} is reached"
        return Completion(step, max_steps, reason, os.path.basename(latest))


class _Worker(_Role):
    def run(self) -> None:
        if self._train_spec.max_steps is not None and self._done() is not None:
            logger.info("Training has already finished: this worker has nothing to do.")
            return
        delay = self._estimator.config.experimental_max_worker_delay_secs
        if delay is not None:
            self.terminated.wait(min(delay, (self._task.index + 1) * _DELAY_SECS))
        self._estimator.train(
            input_fn=self._train_spec.input_fn,
            max_steps=self._train_spec.max_steps,
            hooks=[*self._train_spec.hooks, _StopHook(self.terminated, None)],
        )


class _ParameterServer(_Role):
    def run(self) -> None:
        started = time.time()
        share_processors(self._task.cluster, self._task.address)
        name = task_name(self._task.type, self._task.index)
        endpoint = bound_endpoint(
            str(self._task.address),
            name,
            ResourceStore(),
            addresses_of(self._task.cluster),
            str(self._estimator.model_dir),
        )
        logger.info("%s serves parameters at %s.", name, self._task.address)
        while not endpoint.service.wait_until_done(_POLL_SECS) and not self.terminated.is_set():
            done = self._done()
            # Without a last step, the record may be that of an earlier training.
            written = completion_time(self._estimator.model_dir)
            if done is not None and (done.max_steps is not None or written > started):
                break
        code = TERMINATED if self.terminated.is_set() else 0
        if not endpoint.stop(_STOP_SECS):
            # A stopped process that holds a channel open would keep this one alive.
            logging.shutdown()
            os._exit(code)
        raise SystemExit(code)


class _Evaluator(_Role):
    def run(self) -> Results | None:
        run = EvaluatedRun(self._estimator, self._train_spec, self._specs)
        done = self._done()
        start = 0 if done is None else done.step
        max_steps = self._train_spec.max_steps
        scheduled = [
            (each, EvaluationSchedule(each.spec.throttle_secs, 0, max_steps))
            for each in run.evaluations.values()
        ]
        run.prepared(start)
        started = changed = time.monotonic()
        known: str | None = None
        interval = self._estimator.config.save_checkpoints_secs or 0.0
        delay = min(spec.start_delay_secs for spec in self._specs.values())
        while not self.terminated.is_set():
            done = self._done()
            if done is not None:
                return run.finished_or_stored(done)
            now = time.monotonic()
            latest = self._estimator.latest_checkpoint()
            if latest != known:
                known, changed = latest, now
            patience = max(NO_CHECKPOINT_SECS, 0.0 if latest is None else 2.0 * interval)
            if now - changed > patience:
                changed = now
                logger.warning(
                    "There is still no %s in %s. Does the chief write to this folder, and is it on "
                    "shared storage?",
                    "checkpoint" if latest is None else f"checkpoint after {latest}",
                    self._estimator.model_dir,
                )
            if latest is not None and now - started >= delay:
                step = step_of(latest)
                for evaluation, schedule in scheduled:
                    if schedule.is_due(step):
                        schedule.started(step)
                        finished = evaluation.evaluate(latest)
                        evaluation.export(is_final=False)
                        self._stop(notify_hooks(run.hooks, finished))
            self.terminated.wait(_POLL_SECS)
        return None

    def _stop(self, reasons: list[str]) -> None:
        if reasons:
            write_durably(Path(self._estimator.model_dir) / STOP_FILE, reasons[0].encode())


class _StopHook(SessionRunHook):
    """Stops the training on SIGTERM, or on request of the evaluator."""

    def __init__(self, terminated: threading.Event, stop_file: Path | None) -> None:
        self._terminated = terminated
        self._stop_file = stop_file
        self._polled_at = 0.0

    def after_steps(self, steps: FinishedSteps) -> None:
        """Checks for a stop request; the file at most once per second."""
        self.while_waiting(steps.stop)

    def while_waiting(self, stop: list[str]) -> None:
        """Checks for a stop request while waiting."""
        if self._terminated.is_set():
            stop.append(SIGTERM_CAME)
        elif self._stop_file is not None and time.monotonic() - self._polled_at > _POLL_SECS:
            self._polled_at = time.monotonic()
            if self._stop_file.exists():
                stop.append(read_plain(self._stop_file).decode())


_ROLES: dict[str, type[_Role]] = {
    WORKER: _Worker,
    PS: _ParameterServer,
    EVALUATOR: _Evaluator,
}
