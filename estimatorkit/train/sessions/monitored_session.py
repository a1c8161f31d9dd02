"""Monitored sessions: sessions that initialize or restore their model, call hooks around each run,
start the queue runners, and begin anew from the last checkpoint where a task was lost.

A session creator (`session_creators`) makes the plain session; `HookedSession` runs it with hooks
around each run, and `_Attempt` is one such session with its coordinator. Hooks are those of the
training loop, asked by the same functions (`training.run_hooked`): one that says by
`next_control_step` when it needs control is asked just then, the others around every run.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import AbortedError, OutOfRangeError, UnavailableError
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.logger import ensure_visible, logger
from estimatorkit.train.global_steps import get_global_step
from estimatorkit.train.hooks.hooks import FinishedSteps, SessionRunHook, check_hooks
from estimatorkit.train.queues.queue_runner import start_queue_runners
from estimatorkit.train.sessions.coordinator import Coordinator
from estimatorkit.train.sessions.scaffold import Scaffold
from estimatorkit.train.sessions.session_creators import ChiefSessionCreator, SessionCreator
from estimatorkit.train.training import losses_by_count, run_hooked

_LOST = (AbortedError, UnavailableError)
"""Errors after which a new session is made: a task went away."""

_Path = str | os.PathLike[str]


# -- one session with its hooks


class HookedSession:
    """A plain session whose runs have hooks around them (`monitored_session._HookedSession`).

    Args:
        sess: the session.
        hooks: already begun, and told of the session.
    """

    def __init__(self, sess: Any, hooks: Sequence[SessionRunHook]) -> None:
        self.session = sess
        self._hooks = hooks
        self._stop: list[str] = []
        counter = get_global_step(sess.graph) if hooks else None
        self._read_step = None if counter is None else sess.make_callable(counter)
        self._runs = 0
        self._told: int | None = None  # up to which global step hooks know of steps
        self._asked_at: dict[SessionRunHook, int] = {}
        self._pending: list[NDArray[Any]] = []

    @property
    def graph(self) -> Graph:
        """The session's graph."""
        graph: Graph = self.session.graph
        return graph

    @property
    def _should_stop(self) -> bool:
        return bool(self._stop)

    @_should_stop.setter
    def _should_stop(self, stop: bool) -> None:
        self._stop[:] = ["it was asked for"] if stop else []

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        """A run of the session with the hooks around it.

        Raises:
            RuntimeError: a hook asked for the end before.
        """
        if self._stop:
            raise RuntimeError("Run called even after should_stop requested.")
        before = self._step()
        if self._told is None:
            self._told = before
        due = [hook for hook in self._hooks if self._is_due(hook, before)]
        watched = [hook for hook in self._hooks if hook.loss_tensor is not None]
        values, losses = run_hooked(
            self.session,
            [fetches, [hook.loss_tensor for hook in watched]],
            due,
            self._stop,
            feed_dict,
            options,
            run_metadata,
        )
        self._runs += 1
        self._pending.append(np.array(losses, np.float64))
        told, self._told = self._told, self._step()
        if self._told > told:
            self._tell_steps(watched, told, self._told - told)
        else:
            for hook in self._hooks:
                if hook.watches_runs:
                    hook.after_steps(FinishedSteps(told, np.empty(0), self.session, self._stop))
        return values

    def should_stop(self) -> bool:
        """Whether a hook asked for the end."""
        return bool(self._stop)

    def close(self) -> None:
        """Closes the session."""
        self.session.close()

    def _step(self) -> int:
        """The global step; if there is none, or no hook to ask, how many runs there were."""
        return self._runs if self._read_step is None else int(self._read_step())

    def _is_due(self, hook: SessionRunHook, step: int) -> bool:
        """Whether a hook is asked around this run: at most once per step, where it names steps."""
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
            hook.after_steps(FinishedSteps(before, losses, self.session, self._stop))


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
        self._grace_secs = grace_secs
        self.session = creator.create_session()
        self.coord = Coordinator(clean_stop_exception_types=[])
        try:
            if self.session.graph.get_collection(GraphKeys.QUEUE_RUNNERS):
                start_queue_runners(self.session, self.coord)
            for hook in hooks:
                hook.after_create_session(self.session, self.coord)
            self._hooked = HookedSession(self.session, hooks)
        except BaseException:
            self.close()
            raise

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """As `HookedSession.run`; the coordinator's stop ends no run, as in TensorFlow."""
        try:
            return self._hooked.run(*args, **kwargs)
        except Exception as error:  # whichever it is: a lost task may be what is behind it
            lost = self.coord.requested_exception
            if isinstance(lost, _LOST) and not isinstance(error, _LOST):
                raise lost from error
            raise

    def should_stop(self) -> bool:
        """Whether a hook or the coordinator asked for the end.

        Raises:
            Exception: what a thread reported.
        """
        self.coord.raise_requested_exception()
        return self.coord.should_stop() or self._hooked.should_stop()

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

    has_started_queue_runners = True
    """`start_queue_runners` has nothing to do for it."""

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
            return True  # `close` raises it
        self._drop(error)
        self._current()
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
        """The attempt that is on, made if there is none."""
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
            self._close_attempt(attempt)

    def _close_attempt(self, attempt: _Attempt) -> None:
        """Closes a session; ignores that a task was lost if a new session can be created."""
        try:
            attempt.close()
        except _LOST as error:
            if not self._recovers:
                raise
            logger.error("An error occurred when closing the session: %s", error)

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
                self._close_attempt(attempt)
        finally:
            for hook in self._hooks:
                hook.close()
            if not self._was_finalized:
                self._graph.unfinalize()

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
