"""Monitored sessions: initialize or restore the model, run hooks and queue runners, and recover.

A session creator (`session_creators`) makes the plain session; `HookedSession` runs it with hooks,
and `_Attempt` is one such session with its coordinator. If a task is lost, a new attempt restarts
from the last checkpoint. Hooks are called as in the training loop (`training.run_hooked`): those
that override `next_control_step` only at that step, others around every run.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.compat.train.sessions.session_creators import ChiefSessionCreator, SessionCreator
from estimatorkit.core.errors import AbortedError, OutOfRangeError, UnavailableError
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.logger import ensure_visible, logger
from estimatorkit.train.global_steps import get_global_step
from estimatorkit.train.hooks.hooks import FinishedSteps, SessionRunHook, check_hooks
from estimatorkit.train.queues.queue_runner import start_queue_runners
from estimatorkit.train.sessions.coordinator import Coordinator
from estimatorkit.train.sessions.scaffold import Scaffold
from estimatorkit.train.training import losses_by_count, run_hooked

_LOST = (AbortedError, UnavailableError)
"""Errors of a lost task, after which a new session is created."""

_Path = str | os.PathLike[str]


class HookedSession:
    """A plain session whose runs are wrapped by hooks (`monitored_session._HookedSession`).

    `begin` and `after_create_session` of the hooks have already been called.
    """

    def __init__(self, sess: Any, hooks: Sequence[SessionRunHook]) -> None:
        self.session = sess
        self._hooks = hooks
        self._stop: list[str] = []
        counter = get_global_step(sess.graph) if hooks else None
        self._read_step = None if counter is None else sess.make_callable(counter)
        self._runs = 0
        self._reported: int | None = None  # the last global step reported to hooks
        self._called_at: dict[SessionRunHook, int] = {}
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
        """Runs the session with the hooks; RuntimeError after a hook has requested a stop."""
        if self._stop:
            raise RuntimeError("Run called even after should_stop requested.")
        before = self._step()
        if self._reported is None:
            self._reported = before
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
        before, self._reported = self._reported, self._step()
        if self._reported > before:
            self._report_steps(watched, before, self._reported - before)
        else:
            for hook in self._hooks:
                if hook.watches_runs:
                    hook.after_steps(FinishedSteps(before, np.empty(0), self.session, self._stop))
        return values

    def should_stop(self) -> bool:
        """Returns whether a hook has requested a stop."""
        return bool(self._stop)

    def close(self) -> None:
        """Closes the session."""
        self.session.close()

    def _step(self) -> int:
        """Returns the global step, or the number of runs if there is no step or no hook."""
        return self._runs if self._read_step is None else int(self._read_step())

    def _is_due(self, hook: SessionRunHook, step: int) -> bool:
        """Returns whether to call a hook around this run; one that names steps, once per step."""
        if not hook.takes_part_in_runs:
            return False
        if type(hook).next_control_step is SessionRunHook.next_control_step:
            return True
        at = hook.next_control_step(step)
        if at is None or at > step + 1 or self._called_at.get(hook) == step:
            return False
        self._called_at[hook] = step
        return True

    def _report_steps(self, watched: Sequence[SessionRunHook], before: int, moved: int) -> None:
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
    """A plain session from creation to close, with its coordinator and hooks.

    `creator` makes the session. `begin` of the hooks has already been called. `grace_secs` is the
    time for threads to end.
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
        """Same as `HookedSession.run`.

        The coordinator's stop does not abort runs, as in TensorFlow.
        """
        try:
            return self._hooked.run(*args, **kwargs)
        except Exception as error:  # a lost task may be the cause
            lost = self.coord.requested_exception
            if isinstance(lost, _LOST) and not isinstance(error, _LOST):
                raise lost from error
            raise

    def should_stop(self) -> bool:
        """Returns whether a hook or the coordinator has requested a stop.

        Raises a thread's exception.
        """
        self.coord.raise_requested_exception()
        return self.coord.should_stop() or self._hooked.should_stop()

    def close(self) -> None:
        """Stops the threads and closes the session; raises threads' exceptions."""
        self.coord.request_stop()
        try:
            self.coord.join(stop_grace_period_secs=self._grace_secs, ignore_live_threads=True)
        finally:
            self.session.close()


class StepContext:
    """The argument of functions given to `run_step_fn`.

    Attributes:
        session: the plain session, without hooks.
    """

    def __init__(self, session: Any, run_with_hooks_fn: Callable[..., Any]) -> None:
        self.session = session
        self._run_with_hooks = run_with_hooks_fn

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """Same as `MonitoredSession.run`."""
        return self._run_with_hooks(*args, **kwargs)

    def request_stop(self) -> None:
        """Ends the function and the monitored session's `with` block, by raising StopIteration."""
        raise StopIteration("step_fn has requested the iterations to stop.")


class _MonitoredSession:
    """The base class of monitored sessions.

    Args:
        session_creator: makes the plain session; a `ChiefSessionCreator` by default.
        hooks: called around the runs.
        should_recover: whether to create a new session after a lost task.
        stop_grace_period_secs: seconds for threads to end after `close`.
    """

    StepContext = StepContext

    has_started_queue_runners = True
    """Tells `start_queue_runners` to do nothing."""

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
        """Same as `Session.run`, with hooks.

        Raises:
            RuntimeError: the session is closed, or a stop has been requested.
        """
        return self._with_recovery(
            lambda attempt: attempt.run(fetches, feed_dict, options, run_metadata)
        )

    def run_step_fn(self, step_fn: Callable[..., Any]) -> Any:
        """Calls a function with a `StepContext`, to run parts of a step without hooks.

        Args:
            step_fn: a function of `step_context`, or a method.

        Returns:
            The function's result.

        Raises:
            StopIteration: the function requested a stop; it ends the `with` block without an error.
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
        """Returns whether training is over: a hook or thread requested a stop, or it is closed."""
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
        """Returns the current attempt, creating it if needed."""
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
        """Closes the attempt, so that the next call creates a new one."""
        logger.info(
            "An error was raised. The current session will be closed and a new session will be "
            "created. Error: %s",
            error,
        )
        attempt, self._attempt = self._attempt, None
        if attempt is not None:
            self._close_attempt(attempt)

    def _close_attempt(self, attempt: _Attempt) -> None:
        """Closes an attempt; if the session recovers, lost tasks are only logged."""
        try:
            attempt.close()
        except _LOST as error:
            if not self._recovers:
                raise
            logger.error("An error occurred when closing the session: %s", error)

    def close(self) -> None:
        """Calls the hooks' `end`, stops the threads and closes the session.

        Raises:
            RuntimeError: it is closed already.
            Exception: a thread's exception.
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
        """Closes the attempt and the hooks; the graph is unfinalized unless it was final before."""
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

    The constructor calls the hooks' `begin`, finalizes the graph, creates a session, restores or
    initializes its model, starts queue runners, and calls the hooks' `after_create_session`. If a
    run raises `AbortedError` or `UnavailableError`, a new session is created in this way and the
    run is repeated. `close` calls the hooks' `end`, unless an error occurred, then stops threads
    and closes the session. As a context manager it suppresses the end of the input
    (`OutOfRangeError`).

    Args:
        session_creator: makes the plain session; a `ChiefSessionCreator` by default.
        hooks: called around the runs.
        stop_grace_period_secs: seconds for threads to end after `close`.
    """

    def __init__(
        self,
        session_creator: SessionCreator | None = None,
        hooks: Iterable[SessionRunHook] | None = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        super().__init__(session_creator, hooks, True, stop_grace_period_secs)


class SingularMonitoredSession(_MonitoredSession):
    """A monitored session that does not recover, and exposes the plain session.

    Source: `tf.compat.v1.train.SingularMonitoredSession`.

    Args:
        hooks: called around the runs.
        scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path: see
            `ChiefSessionCreator`.
        stop_grace_period_secs: seconds for threads to end after `close`.
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
        """Returns the plain session."""
        return self._tf_sess()
