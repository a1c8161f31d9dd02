"""`Training`: initializes, trains and saves an estimator's model."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from numpy.typing import NDArray

from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.variables import Variable
from estimatorkit.data.sharded_dataset import return_shards
from estimatorkit.distribute.exit_codes import Interrupted
from estimatorkit.distribute.replicas.strategies import Strategy, reported_loss
from estimatorkit.distribute.tasks.membership import TRAINING_ENDED
from estimatorkit.distribute.watchdog import Watchdog
from estimatorkit.estimator.built_model import BuiltModel
from estimatorkit.estimator.model_input import ModelInput
from estimatorkit.estimator.run_config import RunConfig, is_not_chief
from estimatorkit.estimator.spec import EstimatorSpec
from estimatorkit.estimator.training_cluster import LOST, TrainingCluster
from estimatorkit.estimator.warm_starting import WarmStartSettings
from estimatorkit.logger import logger, terminal
from estimatorkit.runtime.session import Session
from estimatorkit.storage.checkpoint import latest_checkpoint, read_checkpoint
from estimatorkit.storage.tensor_slice import TensorSlice
from estimatorkit.train.global_steps import get_global_step
from estimatorkit.train.hooks.checkpoint_hooks import CheckpointSaverHook, CheckpointSaverListener
from estimatorkit.train.hooks.hooks import (
    FinishedSteps,
    LossLogHook,
    NanTensorHook,
    SessionRunHook,
    StopAtStepHook,
)
from estimatorkit.train.hooks.interruption import InterruptionHook
from estimatorkit.train.hooks.progress import ProgressHook
from estimatorkit.train.hooks.records import RecordHook, has_summaries, recorded_scalars
from estimatorkit.train.hooks.session_hooks import CoordinatorHook
from estimatorkit.train.hooks.summary_hooks import SummarySaverHook
from estimatorkit.train.saving.saver import Saver, restore_checkpoint, restore_input, saved_items
from estimatorkit.train.sessions.coordinator import Coordinator, coordinated
from estimatorkit.train.sessions.scaffold import Scaffold
from estimatorkit.train.training import CheckedLoop, run_training, training_loop

_PAUSE_SECS = 0.5
"""Before one looks whether parameters that were lost are there again."""


class Training:
    """The training part of a built model, created in its graph and cached with it.

    Args:
        spec: the result of `model_fn`.
        config: the estimator's config, with its `model_dir`.
        warm_start: the warm-start settings, if any.
        cluster: the parameter servers and workers, if any.
        strategy: the distribution strategy, if any.
    """

    def __init__(
        self,
        spec: EstimatorSpec,
        config: RunConfig,
        warm_start: WarmStartSettings | None,
        cluster: TrainingCluster | None = None,
        strategy: Strategy | None = None,
    ) -> None:
        self._cluster = cluster
        self._replicas = None if strategy is None else strategy.replicas
        self._has_others = cluster is not None or (strategy is not None and strategy.has_others)
        self._is_chief = not is_not_chief(config) and all(
            each is None or each.is_chief for each in (cluster, strategy)
        )
        self._spec = spec
        self._loss = reported_loss(spec.loss)
        self._config = config
        self._model_dir = str(config.model_dir)
        self._loop: CheckedLoop | None = None
        if warm_start is not None:
            warm_start.apply()
        self._scaffold: Scaffold = spec.scaffold
        graph = spec.train_op.graph
        graph.add_to_collection(GraphKeys.LOSSES, spec.loss)  # hooks look it up there
        self._summarizes = self._scaffold.summary_op is not None or has_summaries(graph)
        alone = not self._summarizes and not self._has_others and self._replicas is None
        self._scalars = recorded_scalars(graph) if alone else {}
        if self._scaffold.saver is None and not graph.get_collection(GraphKeys.SAVERS):
            saver = Saver(
                max_to_keep=config.keep_checkpoint_max,
                keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
                defer_build=True,
            )
            graph.add_to_collection(GraphKeys.SAVERS, saver)

    def run(
        self,
        model: BuiltModel,
        given: ModelInput,
        hooks: Sequence[SessionRunHook],
        listeners: Sequence[CheckpointSaverListener],
        steps: int | None,
        max_steps: int | None,
        start: str | None,
    ) -> NDArray[Any] | None:
        """Trains.

        Args:
            model: its model.
            given: the input.
            hooks: hooks in addition to the spec's.
            listeners: `CheckpointSaverListener`s.
            steps, max_steps: see `Estimator.train`.
            start: the checkpoint to restore; None to initialize variables.

        Returns:
            The last loss; None if there was no step.
        """
        spec = self._spec
        model.scaffold = self._scaffold
        newest = partial(latest_checkpoint, self._model_dir)
        with model.graph.as_default(), ExitStack() as closing:
            all_given = [*model.chief_hooks, *hooks, *model.hooks]
            saving = self._saver_hooks(all_given)
            if saving:
                saving[0].add_listeners(listeners)
                closing.callback(saving[0].remove_listeners, listeners)
            elif listeners and self._is_chief:
                raise ValueError(
                    "There should be a CheckpointSaverHook to use saving_listeners. Please set one "
                    "of the RunConfig.save_checkpoints_steps or RunConfig.save_checkpoints_secs."
                )
            watch = NanTensorHook(self._loss, names=model.input_names, checkpoint=newest)
            all_hooks: list[SessionRunHook] = [watch]
            all_hooks += [hook for hook in all_given if not isinstance(hook, CheckpointSaverHook)]
            if steps is not None or max_steps is not None:
                all_hooks.append(StopAtStepHook(steps, max_steps))
            all_hooks += self._reports(steps, max_steps)
            if not self._has_others:
                all_hooks.append(interruption := InterruptionHook())
                closing.enter_context(interruption.watching())
            coord = closing.enter_context(coordinated())
            all_hooks.append(CoordinatorHook(coord))
            all_hooks += saving  # last: if a hook before them fails, nothing bad is saved
            for hook in all_hooks:
                closing.callback(hook.close)
            for hook in all_hooks:
                hook.begin()
            session = model.session
            model.start(given)
            if self._cluster is not None:
                closing.enter_context(self._cluster.heartbeats())
            if not self._prepare(model, start, saving):
                return None
            for hook in all_hooks:
                hook.after_create_session(session, coord)
            if self._loop is None:
                scalars = list(self._scalars.values())
                self._loop = training_loop(session, spec.train_op, self._loss, scalars)
            model.now_holds(None)
            loss = self._run(model, all_given, all_hooks, saving, newest, coord)
            _rest(all_hooks)
            if self._cluster is not None and self._is_chief and not self._loop.is_terminated:
                self._cluster.drain()  # updates still being sent are included
            for hook in all_hooks:
                hook.end(session)
            if self._cluster is not None:
                self._cluster.leave()
            if self._replicas is not None:
                self._replicas.wait_for_all()  # what the chief has saved is visible to all
            if self._loop.is_interrupted:
                raise Interrupted
            # If the last step was saved, the session holds exactly what was saved last.
            latest = newest()
            if latest is not None and saving and saving[0].saved_step == _step(session):
                model.now_holds(latest)
            return loss

    def _run(
        self,
        model: BuiltModel,
        given: Sequence[SessionRunHook],
        hooks: Sequence[SessionRunHook],
        saving: Sequence[CheckpointSaverHook],
        newest: Callable[[], str | None],
        coord: Coordinator,
    ) -> NDArray[Any] | None:
        """Runs the steps; rolls back to the last checkpoint if a parameter server is lost.

        As in TensorFlow, `after_create_session` of the given hooks is then called again.
        """
        spec = self._spec
        cluster = self._cluster
        while True:
            try:
                return run_training(
                    model.session, spec.train_op, self._loss, hooks, self._loop, list(self._scalars)
                )
            except LOST as error:
                if cluster is None:
                    raise
                if TRAINING_ENDED not in str(error):
                    logger.warning("Parameters were lost: %s", str(error).splitlines()[0])
                _rest(hooks)
                if not self._recover(cluster, model, given, saving, newest, coord):
                    return None

    def _recover(
        self,
        cluster: TrainingCluster,
        model: BuiltModel,
        given: Sequence[SessionRunHook],
        saving: Sequence[CheckpointSaverHook],
        newest: Callable[[], str | None],
        coord: Coordinator,
    ) -> bool:
        while True:
            time.sleep(_PAUSE_SECS)
            try:
                cluster.renew()
                return_shards(model.session.state)
                if not self._prepare(model, newest(), saving):
                    return False
                for hook in given:
                    if hook not in saving:
                        hook.after_create_session(model.session, coord)
                return True
            except LOST as error:
                logger.warning(
                    "Still waiting for the parameter servers: %s", str(error).splitlines()[0]
                )

    def _prepare(
        self,
        model: BuiltModel,
        start: str | None,
        saving: Sequence[CheckpointSaverHook],
    ) -> bool:
        """Initializes or restores the variables, or waits until the chief has; False if the
        training has ended.
        """
        cluster = self._cluster
        if self._replicas is not None:
            self._initialize(model, start if self._is_chief else None, saving)
            if model.session.state.sharded:
                self._restore_own_rows(model, self._replicas.broadcast_text(start or ""))
        elif cluster is None:
            self._initialize(model, start, saving)
        elif not cluster.is_chief:
            if not cluster.wait_until_ready(model.graph):
                return False
            model.initialize_local()
        elif cluster.begin(model.graph):
            logger.info("Continuing with the values on the parameter servers.")
            model.initialize_local()
        else:
            self._initialize(model, start, saving)
            cluster.announce_ready(model.graph)
        model.session.state.variables_set()
        return True

    def _restore_own_rows(self, model: BuiltModel, start: str) -> None:
        """Restores this process's rows of sharded variables, unless it is the chief, which has."""
        if start and not self._is_chief:
            items = getattr(self._scaffold.saver, "saved_items", None) or saved_items()
            own = {
                item.op.name: TensorSlice(key)
                for key, item in items.items()
                if isinstance(item, Variable)
            }
            model.session.state.restore(start, own)

    def _initialize(
        self,
        model: BuiltModel,
        start: str | None,
        saving: Sequence[CheckpointSaverHook],
    ) -> None:
        """Initializes the variables, or restores them from a checkpoint."""
        session, scaffold = model.session, self._scaffold
        if start is None:
            session.state.restart_random()
            session.run(scaffold.init_op, scaffold.init_feed_dict)
            if scaffold.init_fn is not None and (self._is_chief or session.state.sharded):
                scaffold.init_fn(session)
        else:
            items = getattr(scaffold.saver, "saved_items", None) or saved_items()
            if self._cluster is not None or session.state.sharded:
                scaffold.saver.restore(session, start)
            else:
                logger.info("Restoring parameters from %s", start)
                if model.holds(start):
                    restore_input(session, read_checkpoint(start, []))
                else:
                    restore_checkpoint(session, read_checkpoint(start), items)
            for hook in saving:
                hook.restored_at(_step(session))
        model.initialize_local()

    def _reports(self, steps: int | None, max_steps: int | None) -> list[SessionRunHook]:
        """The logging and summary hooks."""
        reports: list[SessionRunHook] = []
        if self._config.log_step_count_steps:
            reports.append(
                ProgressHook(steps, max_steps)
                if terminal()
                else LossLogHook(self._config.log_step_count_steps)
            )
        if self._has_others:
            reports.append(_ClusterHook(self._cluster, self._config.stuck_secs))
        if self._config.save_summary_steps and self._is_chief:
            every = self._config.save_summary_steps
            reports.append(record := RecordHook(self._model_dir, every))
            if self._summarizes:
                reports.append(
                    SummarySaverHook(every, summary_writer=record.events, scaffold=self._scaffold)
                )
        return reports

    def _saver_hooks(self, given: Sequence[SessionRunHook]) -> list[CheckpointSaverHook]:
        """The checkpoint hooks: those of the caller, or one by the config."""
        if not self._is_chief:
            return []
        savers = [hook for hook in given if isinstance(hook, CheckpointSaverHook)]
        secs, steps = self._config.save_checkpoints_secs, self._config.save_checkpoints_steps
        if not savers and (secs is not None or steps):
            savers.append(
                CheckpointSaverHook(
                    self._model_dir,
                    secs,
                    steps,
                    scaffold=self._scaffold,
                    save_graph_def=self._config.checkpoint_save_graph_def,
                )
            )
        return savers


class _ClusterHook(SessionRunHook):
    """Stops a worker when the chief has ended the training, or a peer is stuck."""

    def __init__(self, cluster: TrainingCluster | None, stuck_secs: float) -> None:
        self._cluster = cluster
        self._stuck_secs = stuck_secs
        self._watchdog: Watchdog | None = None

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Starts the watchdog with the first steps."""
        self._watchdog = Watchdog(self._stuck_secs, "this process")

    def after_steps(self, steps: FinishedSteps) -> None:
        """Polls a parameter server after each call of the loop."""
        if self._watchdog is not None:
            self._watchdog.beat()
        self._ask(steps.stop)

    def while_waiting(self, stop: list[str]) -> None:
        """Polls a parameter server; waiting for data is not being stuck."""
        self.rest()
        self._ask(stop)

    def _ask(self, stop: list[str]) -> None:
        cluster = self._cluster
        if cluster is not None and not cluster.is_chief and cluster.is_ending:
            stop.append(TRAINING_ENDED)

    def rest(self) -> None:
        """Pauses the watchdog, while waiting for lost parameters."""
        if self._watchdog is not None:
            self._watchdog.rest()

    def end(self, session: Any) -> None:
        """Stops the watchdog at the end of training."""
        self.close()

    def close(self) -> None:
        """Stops the watchdog."""
        if self._watchdog is not None:
            self._watchdog.stop()


def _rest(hooks: Sequence[SessionRunHook]) -> None:
    """Pauses the watchdog, as there are no steps now."""
    for hook in hooks:
        if isinstance(hook, _ClusterHook):
            hook.rest()


def _step(session: Session) -> int:
    return int(session.run(get_global_step(session.graph)))


__all__ = ["Training"]
