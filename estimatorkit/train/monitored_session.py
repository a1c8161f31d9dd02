"""Monitored sessions: sessions that initialize or restore their model, call hooks around each run,
start the queue runners, and begin anew from the last checkpoint where a task was lost.

`MonitoredTrainingSession` puts one together for a training. A session creator makes the plain
session; `_Attempt` is one such session with its coordinator and hooks. Hooks are those of the
training loop, asked by the same functions (`training.run_hooked`): one that says by
`next_control_step` when it needs control is asked just then, the others around every run.
"""

from __future__ import annotations

import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import AbortedError, OutOfRangeError, UnavailableError, explain
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.session import Session
from estimatorkit.train.coordinator import Coordinator
from estimatorkit.train.global_step import get_global_step
from estimatorkit.train.hooks import (
    CheckpointSaverHook,
    FinishedSteps,
    SessionRunHook,
    check_hooks,
)
from estimatorkit.train.log import ensure_visible, logger
from estimatorkit.train.queue_runner import start_queue_runners
from estimatorkit.train.scaffold import Scaffold
from estimatorkit.train.session_manager import SessionManager
from estimatorkit.train.summary_hooks import StepCounterHook, SummarySaverHook
from estimatorkit.train.training import losses_by_count, run_hooked

_LOST = (AbortedError, UnavailableError)
"""Errors after which a new session is made: a task went away."""

_Path = str | os.PathLike[str]


# -- what makes the plain session


class SessionCreator(ABC):
    """Makes sessions for a monitored session, again after each loss."""

    @abstractmethod
    def create_session(self) -> Any:
        """A session with a ready model."""


class ChiefSessionCreator(SessionCreator):
    """Makes sessions, and initializes or restores the model in them.

    Args:
        scaffold: the operations; by default those of the graph.
        master: the session's target.
        config: the session's `ConfigProto`.
        checkpoint_dir: whose newest checkpoint is restored.
        checkpoint_filename_with_path: the checkpoint to restore.
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: _Path | None = None,
        checkpoint_filename_with_path: _Path | None = None,
    ) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master = master
        self._config = config
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint = checkpoint_filename_with_path

    def create_session(self) -> Session:
        """A session with a ready model; finalizes the graph."""
        scaffold = self._scaffold.finalize()
        return _manager(scaffold).prepare_session(
            self._master,
            init_op=scaffold.init_op,
            saver=scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint,
            config=self._config,
            init_feed_dict=scaffold.init_feed_dict,
            init_fn=scaffold.init_fn,
        )


class WorkerSessionCreator(SessionCreator):
    """Makes sessions, and waits for the chief to make the model ready.

    Args:
        scaffold: the operations; by default those of the graph.
        master: the session's target.
        config: the session's `ConfigProto`.
        max_wait_secs: how long to wait at most.
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        max_wait_secs: float = 30 * 60,
    ) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master = master
        self._config = config
        self._max_wait_secs = max_wait_secs

    def create_session(self) -> Session:
        """A session with a ready model; finalizes the graph."""
        manager = _manager(self._scaffold.finalize())
        return manager.wait_for_session(self._master, self._config, self._max_wait_secs)


def _manager(scaffold: Scaffold) -> SessionManager:
    return SessionManager(
        local_init_op=scaffold.local_init_op,
        ready_op=scaffold.ready_op,
        ready_for_local_init_op=scaffold.ready_for_local_init_op,
        local_init_feed_dict=scaffold.local_init_feed_dict,
    )


# -- one session with its hooks


class _Attempt:
    """A plain session from its making to its end, with its coordinator and hooks.

    Args:
        creator: makes the session.
        hooks: already begun.
        grace_secs: seconds that threads have to end.
    """

    def __init__(
        self, creator: SessionCreator, hooks: Sequence[SessionRunHook], grace_secs: float
    ) -> None:
        self._hooks = hooks
        self._grace_secs = grace_secs
        self.stop: list[str] = []
        self.session = creator.create_session()
        self.coord = Coordinator(clean_stop_exception_types=[])
        try:
            if self.session.graph.get_collection(GraphKeys.QUEUE_RUNNERS):
                start_queue_runners(self.session, self.coord)
            for hook in hooks:
                hook.after_create_session(self.session, self.coord)
        except BaseException:
            self.close()
            raise
        counter = get_global_step(self.session.graph)
        self._read_step = None if counter is None else self.session.make_callable(counter)
        self._runs = 0
        self._asked_at: dict[SessionRunHook, int] = {}
        self._pending: list[NDArray[Any]] = []

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        """A run of the session with the hooks around it."""
        if self.should_stop():
            raise RuntimeError("Run called even after should_stop requested.")
        before = self._step()
        due = [hook for hook in self._hooks if self._is_due(hook, before)]
        watched = [hook for hook in self._hooks if hook.loss_tensor is not None]
        try:
            values, losses = run_hooked(
                self.session,
                [fetches, [hook.loss_tensor for hook in watched]],
                due,
                self.stop,
                feed_dict,
                options,
                run_metadata,
            )
        except Exception as error:  # whichever it is: a lost task may be what is behind it
            lost = self.coord.requested_exception
            if isinstance(lost, _LOST) and not isinstance(error, _LOST):
                raise lost from error
            raise
        self._runs += 1
        self._pending.append(np.array(losses, np.float64))
        moved = self._step() - before
        if moved > 0:
            self._tell_steps(watched, before, moved)
        return values

    def _step(self) -> int:
        """The global step; in a graph without one, how many runs there were."""
        return self._runs if self._read_step is None else int(self._read_step())

    def _is_due(self, hook: SessionRunHook, step: int) -> bool:
        """Whether a hook is asked around this run: at most once a step, where it names steps."""
        if not hook.takes_part_in_runs:
            return False
        if type(hook).next_control_step is SessionRunHook.next_control_step:
            return True
        at = hook.next_control_step(step)
        if at is None or at > step + 1 or self._asked_at.get(hook) == step:
            return False
        self._asked_at[hook] = step
        return True

    def _tell_steps(self, watched: Sequence[SessionRunHook], before: int, moved: int) -> None:
        """Calls `after_steps`, each hook with the values of its own loss."""
        rows = np.stack(self._pending)
        self._pending = []
        for hook in self._hooks:
            if hook in watched:
                losses = losses_by_count(rows[:, watched.index(hook)], moved)
            else:
                losses = np.full(moved, np.nan)
            hook.after_steps(FinishedSteps(before, losses, self.session, self.stop))

    def should_stop(self) -> bool:
        """Whether a hook or the coordinator asked for the end.

        Raises:
            Exception: what a thread reported.
        """
        self.coord.raise_requested_exception()
        return self.coord.should_stop() or bool(self.stop)

    def close(self) -> None:
        """Ends the threads and the session; raises what a thread reported."""
        self.coord.request_stop()
        try:
            self.coord.join(stop_grace_period_secs=self._grace_secs, ignore_live_threads=True)
        finally:
            self.session.close()


# -- monitored sessions


class StepContext:
    """Given to the function of `run_step_fn`.

    Attributes:
        session: the plain session, whose runs no hook sees.
    """

    def __init__(self, session: Any, run_with_hooks_fn: Callable[..., Any]) -> None:
        self.session = session
        self._run_with_hooks = run_with_hooks_fn

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """As `MonitoredSession.run`."""
        return self._run_with_hooks(*args, **kwargs)

    def request_stop(self) -> None:
        """Ends the function, and the `with` block of the monitored session.

        Raises:
            StopIteration: always.
        """
        raise StopIteration("step_fn has requested the iterations to stop.")


class _MonitoredSession:
    """What monitored sessions share.

    Args:
        session_creator: makes the plain session; a `ChiefSessionCreator` by default.
        hooks: called around the runs.
        should_recover: whether a new session is made where a task was lost.
        stop_grace_period_secs: seconds that threads have to end after `close`.
    """

    StepContext = StepContext

    def __init__(
        self,
        session_creator: SessionCreator | None,
        hooks: Iterable[SessionRunHook] | None,
        should_recover: bool,
        stop_grace_period_secs: float = 120,
    ) -> None:
        ensure_visible()
        self._graph: Graph = get_default_graph()
        self._was_finalized = self._graph.finalized
        self._hooks = check_hooks(list(hooks or ()))
        self._creator = session_creator or ChiefSessionCreator()
        self._recovers = should_recover
        self._grace_secs = stop_grace_period_secs
        self._attempt: _Attempt | None = None
        self._closed = False
        try:
            for hook in self._hooks:
                hook.begin()
            self._current()
        except BaseException:
            self._give_back()
            raise

    @property
    def graph(self) -> Graph | None:
        """The session's graph; None once it is closed."""
        return None if self._closed else self._graph

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        """As `Session.run`, with the hooks around it.

        Raises:
            RuntimeError: the session is closed, or a stop was requested.
        """
        return self._with_recovery(
            lambda attempt: attempt.run(fetches, feed_dict, options, run_metadata)
        )

    def run_step_fn(self, step_fn: Callable[..., Any]) -> Any:
        """Calls a function with a `StepContext`, to run parts of a step without hooks.

        Args:
            step_fn: a function of `step_context`, or a method.

        Returns:
            What it returns.

        Raises:
            StopIteration: the function requested a stop; the `with` block then ends quietly.
            ValueError: the function has other arguments.
        """
        names = tuple(inspect.signature(step_fn).parameters)
        if names not in (("step_context",), ("self", "step_context")):
            raise ValueError(
                "`step_fn` may either have one `step_context` argument, or `self` and "
                "`step_context` arguments if it's an instance method. Got "
                f"{names} instead."
            )
        return self._with_recovery(
            lambda attempt: step_fn(StepContext(attempt.session, attempt.run))
        )

    def should_stop(self) -> bool:
        """Whether the training is over: a hook or a thread asked for it, or it is closed."""
        if self._closed:
            return True
        attempt = self._current()
        error = attempt.coord.requested_exception
        if error is None or not self._recovers:
            return attempt.should_stop()
        if not isinstance(error, _LOST):
            return True  # the next run raises it, and so does `close`
        self._drop(error)
        return False

    def _with_recovery(self, act: Callable[[_Attempt], Any]) -> Any:
        while True:
            try:
                return act(self._current())
            except _LOST as error:
                if not self._recovers or self._closed:
                    raise
                self._drop(error)

    def _current(self) -> _Attempt:
        """The attempt that is on, made where there is none."""
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        while self._attempt is None:
            try:
                self._attempt = _Attempt(self._creator, self._hooks, self._grace_secs)
            except _LOST as error:
                if not self._recovers:
                    raise
                logger.info("An error was raised while a session was being created: %s", error)
        return self._attempt

    def _drop(self, error: Exception) -> None:
        """Ends the attempt, so that a new one is made."""
        logger.info(
            "An error was raised. The current session will be closed and a new session will be "
            "created. Error: %s",
            error,
        )
        attempt, self._attempt = self._attempt, None
        if attempt is not None:
            try:
                attempt.close()
            except _LOST as again:
                logger.error("An error occurred when closing the session: %s", again)

    # -- the end

    def close(self) -> None:
        """Calls the hooks' `end`, ends the threads and the session.

        Raises:
            RuntimeError: it is closed already.
            Exception: what a thread reported.
        """
        self._close(None)

    def _close(self, kind: Any) -> None:
        if self._closed:
            raise RuntimeError("Session is already closed.")
        try:
            if kind is None and self._attempt is not None:
                for hook in self._hooks:
                    hook.end(self._attempt.session)
        finally:
            self._give_back()

    def _give_back(self) -> None:
        """Closes what is held; the graph may then be added to as before."""
        attempt, self._attempt = self._attempt, None
        self._closed = True
        try:
            if attempt is not None:
                attempt.close()
        finally:
            for hook in self._hooks:
                hook.close()
            if not self._was_finalized:
                self._graph._finalized = False

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        if kind is not None and issubclass(kind, OutOfRangeError | StopIteration):
            kind = None
        self._close(kind)
        return kind is None

    def _is_closed(self) -> bool:
        return self._closed

    def _tf_sess(self) -> Any:
        return None if self._attempt is None else self._attempt.session


class MonitoredSession(_MonitoredSession):
    """A session with initialization, hooks and recovery (`tf.compat.v1.train.MonitoredSession`).

    When it is made: hooks' `begin`; the graph is finalized; a session is made, its model restored
    or initialized; queue runners start; hooks' `after_create_session`. Where a run raises
    `AbortedError` or `UnavailableError`, a new session is made so and the run done again. At the
    end: hooks' `end`, unless an error ended it; threads and session end. As a context manager it
    ends quietly where the input has ended (`OutOfRangeError`).

    Args:
        session_creator: makes the plain session; a `ChiefSessionCreator` by default.
        hooks: called around the runs.
        stop_grace_period_secs: seconds that threads have to end after `close`.
    """

    def __init__(
        self,
        session_creator: SessionCreator | None = None,
        hooks: Iterable[SessionRunHook] | None = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        super().__init__(session_creator, hooks, True, stop_grace_period_secs)


class SingularMonitoredSession(_MonitoredSession):
    """A monitored session that does not recover, and shows the plain session.

    Source: `tf.compat.v1.train.SingularMonitoredSession`.

    Args:
        hooks: called around the runs.
        scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path: see
            `ChiefSessionCreator`.
        stop_grace_period_secs: seconds that threads have to end after `close`.
    """

    def __init__(
        self,
        hooks: Iterable[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: _Path | None = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: _Path | None = None,
    ) -> None:
        creator = ChiefSessionCreator(
            scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path
        )
        super().__init__(creator, hooks, False, stop_grace_period_secs)

    def raw_session(self) -> Any:
        """The plain session."""
        return self._tf_sess()


class _Default:
    """Stands for an argument that was not given, where None means: do not."""

    def __repr__(self) -> str:
        return "<default>"


USE_DEFAULT: Any = _Default()


def MonitoredTrainingSession(
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: _Path | None = None,
    scaffold: Scaffold | None = None,
    hooks: Iterable[SessionRunHook] | None = None,
    chief_only_hooks: Iterable[SessionRunHook] | None = None,
    save_checkpoint_secs: Any = USE_DEFAULT,
    save_summaries_steps: Any = USE_DEFAULT,
    save_summaries_secs: Any = USE_DEFAULT,
    config: Any = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: Any = USE_DEFAULT,
    summary_dir: _Path | None = None,
    save_graph_def: bool = True,
) -> MonitoredSession:
    """A `MonitoredSession` that saves checkpoints and summaries.

    Source: `tf.compat.v1.train.MonitoredTrainingSession`.

    Args:
        master: the session's target.
        is_chief: whether this process initializes, restores and saves; others wait for it.
        checkpoint_dir: where checkpoints are; the newest one there is gone on from.
        scaffold: the operations; by default those of the graph.
        hooks: called around the runs.
        chief_only_hooks: the same, where this is the chief.
        save_checkpoint_secs: seconds between checkpoints; 600 by default, None or 0 for none.
        save_summaries_steps: steps between summaries; 100 by default, None or 0 for none.
        save_summaries_secs: seconds between summaries.
        config: the session's `ConfigProto`.
        stop_grace_period_secs: seconds that threads have to end after `close`.
        log_step_count_steps: steps between values of 'global_step/sec'; None or 0 for none.
        max_wait_secs: how long at most to wait for the chief.
        save_checkpoint_steps: steps between checkpoints, in place of seconds.
        summary_dir: where summaries go; `checkpoint_dir` by default.
        save_graph_def: whether the graph is written beside each checkpoint.
    """
    scaffold = scaffold or Scaffold()
    given = list(hooks or ())
    if not is_chief:
        worker = WorkerSessionCreator(scaffold, master, config, max_wait_secs)
        return MonitoredSession(worker, given, stop_grace_period_secs)
    summary_steps, summary_secs = _cadence(save_summaries_steps, save_summaries_secs, (100, None))
    save_steps, save_secs = _cadence(save_checkpoint_steps, save_checkpoint_secs, (None, 600))
    chief_hooks: list[SessionRunHook] = list(chief_only_hooks or ())
    summaries = summary_dir or checkpoint_dir
    if summaries and log_step_count_steps:
        chief_hooks.append(StepCounterHook(log_step_count_steps, output_dir=summaries))
    if summaries and (summary_steps or summary_secs):
        chief_hooks.append(
            SummarySaverHook(summary_steps, summary_secs, summaries, scaffold=scaffold)
        )
    if checkpoint_dir and (save_steps or save_secs):
        chief_hooks.append(
            CheckpointSaverHook(
                os.fspath(checkpoint_dir),
                save_secs=save_secs,
                save_steps=save_steps,
                scaffold=scaffold,
                save_graph_def=save_graph_def,
            )
        )
    creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    return MonitoredSession(creator, [*chief_hooks, *given], stop_grace_period_secs)


def _cadence(steps: Any, secs: Any, default: tuple[Any, Any]) -> tuple[Any, Any]:
    """Steps and seconds: what was given alone puts the default of the other out of force."""
    if steps is USE_DEFAULT and secs is USE_DEFAULT:
        return default
    chosen = tuple((None if each is USE_DEFAULT else each) or None for each in (steps, secs))
    if None not in chosen:
        raise ValueError(
            explain(
                "Can not provide both steps and seconds between checkpoints or summaries",
                received=f"{steps} steps and {secs} seconds",
                hint="give None for one of them",
            )
        )
    return chosen[0], chosen[1]
