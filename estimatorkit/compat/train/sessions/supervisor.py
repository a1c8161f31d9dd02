"""`Supervisor`: a session with services in threads (`tf.compat.v1.train.Supervisor`).

The predecessor of `MonitoredTrainingSession`: threads save checkpoints and summaries periodically,
while the program runs its own loop. The session is a plain one, without hooks.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from estimatorkit.compat.train.sessions.session_manager import SessionManager
from estimatorkit.core.dtypes import int32, int64
from estimatorkit.core.errors import AbortedError, value_error
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.interop.graph_util import write_graph
from estimatorkit.logger import ensure_visible, logger
from estimatorkit.ops.files.summary import merge_all
from estimatorkit.ops.variables.variable_collections import (
    global_variables_initializer,
    report_uninitialized_variables,
)
from estimatorkit.runtime.session import Session
from estimatorkit.train.queues.queue_runner import QueueRunner
from estimatorkit.train.saving.meta_graph import export_meta_graph
from estimatorkit.train.saving.saver import Saver
from estimatorkit.train.sessions.coordinator import Coordinator, LooperThread
from estimatorkit.train.sessions.scaffold import Scaffold

_DEFAULT: Any = 0


class Supervisor:
    """Prepares a session, and saves checkpoints and summaries during training.

    The default of arguments that may be None (to disable) is `Supervisor.USE_DEFAULT`.

    Args:
        graph: the graph, which is finalized; the default graph by default.
        ready_op, ready_for_local_init_op, init_op, init_feed_dict, local_init_op: see `Scaffold`;
            `ready_for_local_init_op` is None by default.
        is_chief: whether this process initializes, restores and saves.
        logdir: the folder of checkpoints and summaries; none are written without it.
        summary_op: all summaries as one; `summary.merge_all()` by default.
        saver: a `Saver`; by default that of the SAVERS collection, or one of all variables.
        global_step: counts the steps; by default that of the GLOBAL_STEP collection, or the
            variable of that name.
        save_summaries_secs: seconds between summaries; 0 for none.
        save_model_secs: seconds between checkpoints; 0 for none.
        recovery_wait_secs: see `SessionManager`.
        stop_grace_secs: seconds for threads to end after `stop`.
        checkpoint_basename: the name prefix of checkpoints.
        session_manager: a `SessionManager`.
        summary_writer: a `FileWriter`; one for `logdir` by default.
        init_fn: called with the session after `init_op`.
        local_init_run_options: `RunOptions` for `local_init_op`.

    Raises:
        ValueError: this is not the chief, and a global variable has no device, so the chief's
            session would not hold it.
    """

    USE_DEFAULT = _DEFAULT

    def __init__(
        self,
        graph: Graph | None = None,
        ready_op: Any = _DEFAULT,
        ready_for_local_init_op: Any = _DEFAULT,
        is_chief: bool = True,
        init_op: Any = _DEFAULT,
        init_feed_dict: Mapping[Any, Any] | None = None,
        local_init_op: Any = _DEFAULT,
        logdir: str | os.PathLike[str] | None = None,
        summary_op: Any = _DEFAULT,
        saver: Any = _DEFAULT,
        global_step: Any = _DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 30,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: SessionManager | None = None,
        summary_writer: Any = _DEFAULT,
        init_fn: Callable[[Any], Any] | None = None,
        local_init_run_options: Any = None,
    ) -> None:
        ensure_visible()
        self._graph = get_default_graph() if graph is None else graph
        with self._graph.as_default():
            self.ready_op = _given(ready_op, GraphKeys.READY_OP, report_uninitialized_variables)
            self.ready_for_local_init_op = _given(
                ready_for_local_init_op, GraphKeys.READY_FOR_LOCAL_INIT_OP, lambda: None
            )
            self.init_op = _given(init_op, GraphKeys.INIT_OP, global_variables_initializer)
            self.local_init_op = _given(
                local_init_op, GraphKeys.LOCAL_INIT_OP, Scaffold.default_local_init_op
            )
            self.saver = _given(saver, GraphKeys.SAVERS, _default_saver)
            self.summary_op = _given(summary_op, GraphKeys.SUMMARY_OP, merge_all)
            self.global_step = _default_step() if global_step is _DEFAULT else global_step
        if not is_chief:
            _check_devices(self._graph)
        self.init_feed_dict = init_feed_dict
        self.is_chief = is_chief
        self.coord = Coordinator()
        self.save_summaries_secs = save_summaries_secs if is_chief else None
        self.save_model_secs = save_model_secs if is_chief else None
        self._logdir = os.fspath(logdir) if logdir and is_chief else None
        self.save_path = os.path.join(self._logdir, checkpoint_basename) if self._logdir else None
        self._init_fn = init_fn
        self._stop_grace_secs = stop_grace_secs
        self.summary_writer = self._writer(summary_writer)
        self._graph_written = False
        self.session_manager = session_manager or SessionManager(
            local_init_op=self.local_init_op,
            ready_op=self.ready_op,
            ready_for_local_init_op=self.ready_for_local_init_op,
            graph=self._graph,
            recovery_wait_secs=recovery_wait_secs,
            local_init_run_options=local_init_run_options,
        )
        self._graph.finalize()

    def _writer(self, given: Any) -> Any:
        if not self.is_chief:
            return None
        if given is not _DEFAULT or self._logdir is None:
            return given or None
        from estimatorkit.interop.summary_writer import FileWriter

        return FileWriter(self._logdir)

    @contextmanager
    def managed_session(
        self,
        master: str = "",
        config: Any = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Session]:
        """A context manager of a ready session.

        At its end, the threads are stopped and the session is closed. An exception of the block or
        of a thread is raised, except for the end of the input (`OutOfRangeError`).

        Args:
            master: the session's target.
            config: its `ConfigProto`.
            start_standard_services: whether to start the services and the queue runners.
            close_summary_writer: whether to close the writer at the end.
        """
        session: Session | None = None
        try:
            with self.coord.stop_on_exception():
                session = self.prepare_or_wait_for_session(
                    master, config, start_standard_services=start_standard_services
                )
                yield session
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                if session is not None:
                    session.close()

    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: Any = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Session:
        """Returns a ready session, restored from the last checkpoint in `logdir` if there is one.

        Args:
            master: its target.
            config: its `ConfigProto`.
            wait_for_checkpoint: whether to wait for a checkpoint.
            max_wait_secs: the maximum time to wait, in seconds.
            start_standard_services: whether to start the services and the queue runners.
        """
        self.coord.clear_stop()
        if self.summary_writer is not None:
            self.summary_writer.reopen()
        if self.is_chief:
            session = self.session_manager.prepare_session(
                master,
                init_op=self.init_op,
                saver=self.saver,
                checkpoint_dir=self._logdir,
                wait_for_checkpoint=wait_for_checkpoint,
                max_wait_secs=max_wait_secs,
                config=config,
                init_feed_dict=self.init_feed_dict,
                init_fn=self._init_fn,
            )
            self._write_graph()
            if start_standard_services:
                self.start_standard_services(session)
        else:
            session = self.session_manager.wait_for_session(master, config, max_wait_secs)
        if start_standard_services:
            self.start_queue_runners(session)
        return session

    def _write_graph(self) -> None:
        if self._logdir is None or self._graph_written:
            return
        self._graph_written = True
        try:
            write_graph(self._graph, self._logdir, "graph.pbtxt")
            if self.summary_writer is not None:
                self.summary_writer.add_graph(self._graph)
                saver_def = getattr(self.saver, "saver_def", None)
                self.summary_writer.add_meta_graph(
                    export_meta_graph(graph=self._graph, saver_def=saver_def)
                )
        except (TypeError, ValueError) as error:  # training does not need the graph
            logger.warning("The graph was not written to %s: %s", self._logdir, error)

    def start_standard_services(self, sess: Session) -> list[threading.Thread] | None:
        """Starts the threads that save summaries, the step rate, and checkpoints.

        Returns:
            The threads; None without a `logdir`.

        Raises:
            RuntimeError: this is not the chief.
        """
        if not self.is_chief:
            raise RuntimeError(
                "Only chief supervisor can start standard services. Because only chief "
                "supervisors can write events."
            )
        if self._logdir is None:
            logger.warning("Standard services need a 'logdir' passed to the SessionManager")
            return None
        self._log_session("START", sess)
        threads: list[threading.Thread] = []
        secs = self.save_summaries_secs
        if secs and self.summary_writer is not None:
            if self.summary_op is not None:
                threads.append(self.loop(secs, self._save_summaries, [sess]))
            if self.global_step is not None:
                counter = _StepCounter(self, sess, self.global_step)
                threads.append(self.loop(secs, counter.write))
        if self.saver is not None and self.save_model_secs:
            threads.append(self.loop(self.save_model_secs, self._save_model, [sess]))
        return threads

    def start_queue_runners(
        self, sess: Session, queue_runners: Iterable[QueueRunner] | None = None
    ) -> list[threading.Thread]:
        """Starts the threads of queue runners.

        Args:
            queue_runners: by default those of the QUEUE_RUNNERS collection, which the session has
                already started.
        """
        if queue_runners is None:
            queue_runners = self._graph.get_collection(GraphKeys.QUEUE_RUNNERS)
        return [
            thread
            for runner in queue_runners
            for thread in runner.create_threads(sess, self.coord, daemon=True, start=True)
        ]

    def loop(
        self,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> LooperThread:
        """Starts a thread that calls a function repeatedly (see `LooperThread`)."""
        return LooperThread.loop(self.coord, timer_interval_secs, target, args, kwargs)

    def _save_summaries(self, session: Session) -> None:
        self.summary_computed(session, session.run(self.summary_op))

    def _save_model(self, session: Session) -> None:
        logger.info("Saving checkpoint to path %s", self.save_path)
        self.saver.save(session, self.save_path, global_step=self.global_step)
        self._log_session("CHECKPOINT", session, checkpoint_path=self.save_path)

    def _log_session(self, status: str, session: Session | None, **fields: Any) -> None:
        if self.summary_writer is None:
            return
        from estimatorkit.interop.protos import SessionLog

        log = SessionLog(status=SessionLog.SessionStatus.Value(status), **fields)
        self.summary_writer.add_session_log(log, session and self._step(session))

    def _step(self, session: Session) -> int | None:
        return None if self.global_step is None else _number(session, self.global_step)

    def stop(
        self,
        threads: Iterable[threading.Thread] | None = None,
        close_summary_writer: bool = True,
        ignore_live_threads: bool = False,
    ) -> None:
        """Stops the threads, and raises their first exception. The session stays open.

        Args:
            threads: threads to join, besides the supervisor's own.
            close_summary_writer: whether to close the writer.
            ignore_live_threads: whether to ignore threads that still run after the grace period.
        """
        self.coord.request_stop()
        try:
            self.coord.join(
                threads,
                stop_grace_period_secs=self._stop_grace_secs,
                ignore_live_threads=ignore_live_threads,
            )
        finally:
            if close_summary_writer and self.summary_writer is not None:
                self._log_session("STOP", None)
                self.summary_writer.close()
                self._graph_written = False  # the next event file gets it, too

    def request_stop(self, ex: Any = None) -> None:
        """Requests the threads to stop (see `Coordinator.request_stop`)."""
        self.coord.request_stop(ex)

    def should_stop(self) -> bool:
        """Returns whether a stop has been requested."""
        return self.coord.should_stop()

    def stop_on_exception(self) -> AbstractContextManager[None]:
        """Returns a context whose exceptions request a stop; see `Coordinator`."""
        return self.coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        """Waits until a stop is requested."""
        self.coord.wait_for_stop()

    def summary_computed(self, sess: Session, summary: Any, global_step: int | None = None) -> None:
        """Writes a summary.

        Args:
            summary: a `Summary`, possibly serialized.
            global_step: its step; the current one by default.

        Raises:
            RuntimeError: there is no summary writer.
        """
        if self.summary_writer is None:
            raise RuntimeError("Writing a summary requires a summary writer.")
        step = self._step(sess) if global_step is None else global_step
        self.summary_writer.add_summary(summary, step)

    PrepareSession = prepare_or_wait_for_session
    StartQueueRunners = start_queue_runners
    StartStandardServices = start_standard_services
    Loop = loop
    Stop = stop
    RequestStop = request_stop
    ShouldStop = should_stop
    StopOnException = stop_on_exception
    WaitForStop = wait_for_stop
    SummaryComputed = summary_computed


class _StepCounter:
    """Writes the steps per second since the last call."""

    def __init__(self, supervisor: Supervisor, session: Session, global_step: Any) -> None:
        self._supervisor = supervisor
        self._session = session
        self._global_step = global_step
        self._tag = f"{global_step.op.name}/sec"
        self._step = _number(session, global_step)
        self._time = time.monotonic()

    def write(self) -> None:
        """Writes the summary."""
        from estimatorkit.interop.protos import Summary

        now, step = time.monotonic(), _number(self._session, self._global_step)
        rate = (step - self._step) / max(now - self._time, 1e-9)
        self._step, self._time = step, now
        logger.info("%s: %g", self._tag, rate)
        summary = Summary(value=[Summary.Value(tag=self._tag, simple_value=rate)])
        self._supervisor.summary_computed(self._session, summary, step)


def _number(session: Session, global_step: Any) -> int:
    return int(np.ravel(session.run(global_step))[0])


def _default_saver() -> Saver | None:
    """Returns a saver of all variables; None if there are none."""
    return (
        Saver(allow_empty=True)
        if get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES)
        else None
    )


def _default_step() -> Any:
    """Returns the graph's global step, which may be non-scalar here, or None."""
    graph = get_default_graph()
    found = graph.get_collection(GraphKeys.GLOBAL_STEP) or [
        each
        for each in graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        if each.op.name == GraphKeys.GLOBAL_STEP and each.dtype in (int32, int64)
    ]
    return found[0] if found else None


def _check_devices(graph: Graph) -> None:
    for variable in graph.get_collection(GraphKeys.GLOBAL_VARIABLES):
        if not variable.device:
            raise value_error(
                "When using replicas, all Variables must have their device set: "
                f"{variable.op.name}",
                made_at=variable.op.source,
                hint="create the model under tf.device(tf.train.replica_device_setter(...))",
            )


def _given(given: Any, collection: str, make: Callable[[], Any]) -> Any:
    """Returns the given value, or by default an item of a collection, added if missing."""
    if given is not _DEFAULT:
        return given
    graph = get_default_graph()
    found = graph.get_collection(collection)
    if found:
        return found[0]
    made = make()
    if made is not None:
        graph.add_to_collection(collection, made)
    return made


def basic_train_loop(
    supervisor: Supervisor,
    train_step_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    master: str = "",
) -> None:
    """Calls a function repeatedly in a supervisor's session, until a stop is requested.

    After an `AbortedError` it continues in a new session. Source:
    `tf.compat.v1.train.basic_train_loop`.

    Args:
        train_step_fn: called with the session, `args` and `kwargs`; calls
            `supervisor.request_stop()` to end the loop.
        master: the session's target.
    """
    aborted = True
    while aborted:
        aborted = False
        try:
            with supervisor.managed_session(master) as session:
                while not supervisor.should_stop():
                    train_step_fn(session, *(args or ()), **(kwargs or {}))
        except AbortedError:  # a task is lost; the next session waits for it
            aborted = True
