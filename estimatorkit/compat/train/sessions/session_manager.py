"""`SessionManager`: prepares sessions (`tf.compat.v1.train.SessionManager`).

A session is ready if its model is restored or initialized, local variables and tables are
initialized, and `ready_op` names nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from estimatorkit.core.errors import DeadlineExceededError, FailedPreconditionError, explain
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.data.iterator_ops import resuming
from estimatorkit.logger import logger
from estimatorkit.runtime.session import Session
from estimatorkit.storage.checkpoint import latest_checkpoint
from estimatorkit.storage.checkpoint_state import get_checkpoint_state
from estimatorkit.train.saving.saver import Saver

_Path = str | os.PathLike[str]

_FIRST_PAUSE_SECS = 0.1


class SessionManager:
    """Creates sessions, and initializes or restores their model.

    Args:
        local_init_op: run in every session; None for nothing.
        ready_op: a vector with the names of uninitialized variables; None skips the check.
        ready_for_local_init_op: the same, as a precondition of `local_init_op`.
        graph: the model's graph; the default graph by default.
        recovery_wait_secs: the maximum polling interval, in seconds, for a checkpoint or another
            process's model; polling starts faster.
        local_init_run_options: `RunOptions` for `local_init_op`.
        local_init_feed_dict: the feeds of `local_init_op`.

    Raises:
        ValueError: there is a `ready_for_local_init_op` without a `local_init_op`.
    """

    def __init__(
        self,
        local_init_op: Any = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        graph: Graph | None = None,
        recovery_wait_secs: float = 30,
        local_init_run_options: Any = None,
        local_init_feed_dict: Mapping[Any, Any] | None = None,
    ) -> None:
        if ready_for_local_init_op is not None and local_init_op is None:
            raise ValueError(
                "If you pass a ready_for_local_init_op you must also pass a local_init_op "
                f", ready_for_local_init_op [{ready_for_local_init_op}]"
            )
        self._local_init_op = local_init_op
        self._ready_op = ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._graph = get_default_graph() if graph is None else graph
        self._recovery_wait_secs = recovery_wait_secs
        self._local_init_run_options = local_init_run_options
        self._local_init_feed_dict = local_init_feed_dict

    def prepare_session(
        self,
        master: str,
        init_op: Any = None,
        saver: Saver | None = None,
        checkpoint_dir: _Path | None = None,
        checkpoint_filename_with_path: _Path | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
        init_feed_dict: Mapping[Any, Any] | None = None,
        init_fn: Callable[[Any], Any] | None = None,
    ) -> Session:
        """Returns a session with a ready model, restored from a checkpoint if there is one.

        Args:
            master: the session's target.
            init_op: initializes the variables if nothing is restored.
            checkpoint_dir: the folder whose newest checkpoint is restored.
            checkpoint_filename_with_path: the checkpoint to restore.
            wait_for_checkpoint: whether to wait for a checkpoint.
            max_wait_secs: the maximum time to wait, in seconds.
            config: the session's `ConfigProto`.
            init_feed_dict: the feeds of `init_op`.
            init_fn: called with the session after `init_op`.

        Raises:
            RuntimeError: the model is not ready afterwards.
            ValueError: both a directory and a checkpoint are given.
        """
        session, restored = self._restored(
            master,
            saver,
            checkpoint_dir,
            checkpoint_filename_with_path,
            wait_for_checkpoint,
            max_wait_secs,
            config,
        )
        try:
            if not restored:
                if init_op is None and not init_fn and self._local_init_op is None:
                    raise RuntimeError(
                        "Model is not initialized and no init_op or init_fn or local_init_op was "
                        "given"
                    )
                if init_op is not None:
                    session.run(init_op, init_feed_dict)
                if init_fn:
                    init_fn(session)
            how = f"Init op: {_name(init_op)}, init fn: {init_fn}"
            problem = self._initialize_locally(session)
            if problem:
                raise RuntimeError(
                    f"Init operations did not make model ready for local_init. {how}, error: "
                    f"{problem}"
                )
            problem = _not_ready(session, self._ready_op)
            if problem:
                raise RuntimeError(
                    explain(
                        f"Init operations did not make model ready. {how}, local_init_op: "
                        f"{_name(self._local_init_op)}, error: {problem}",
                        hint="the checkpoint has no values for them"
                        if restored
                        else "let init_op or init_fn give them values",
                    )
                )
        except BaseException:
            session.close()
            raise
        return session

    def recover_session(
        self,
        master: str,
        saver: Saver | None = None,
        checkpoint_dir: _Path | None = None,
        checkpoint_filename_with_path: _Path | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
    ) -> tuple[Session, bool]:
        """Returns a session, and whether its model was restored and is ready.

        See `prepare_session` for the arguments.

        Raises:
            ValueError: both a directory and a checkpoint are given.
        """
        session, restored = self._restored(
            master,
            saver,
            checkpoint_dir,
            checkpoint_filename_with_path,
            wait_for_checkpoint,
            max_wait_secs,
            config,
        )
        problem = self._initialize_locally(session)
        if restored and not problem:
            problem = _not_ready(session, self._ready_op)
        if restored and problem:
            logger.info("Restoring the model did not make it ready: %s", problem)
        return session, restored and not problem

    def wait_for_session(
        self, master: str, config: Any = None, max_wait_secs: float | None = None
    ) -> Session:
        """Returns a session whose model another process prepares.

        Args:
            master: the session's target.
            config: the session's `ConfigProto`.
            max_wait_secs: the maximum time to wait, in seconds; None waits forever.

        Raises:
            DeadlineExceededError: the model was not ready in time; at once for a local session,
                whose variables no other process can reach.
        """
        deadline = float("inf") if max_wait_secs is None else time.monotonic() + max_wait_secs
        for pause in self._pauses():
            session = Session(master, self._graph, config)
            try:
                problem = self._initialize_locally(session) or _not_ready(session, self._ready_op)
            except BaseException:
                session.close()
                raise
            if not problem:
                return session
            session.close()
            if not master or time.monotonic() + pause > deadline:
                raise DeadlineExceededError.explained(
                    "Session was not ready"
                    + (f" after waiting {max_wait_secs:g} secs" if max_wait_secs else ""),
                    received=problem,
                    hint="is_chief=True initializes the variables; a session without a "
                    "master is local to this process",
                )
            logger.info("Waiting for model to be ready. %s", problem)
            time.sleep(pause)
        raise AssertionError("the pauses do not end")

    def _pauses(self) -> Iterator[float]:
        """Yields growing polling intervals, in seconds."""
        pause = min(_FIRST_PAUSE_SECS, self._recovery_wait_secs)
        while True:
            yield pause
            pause = min(2 * pause, self._recovery_wait_secs)

    def _restored(
        self,
        master: str,
        saver: Saver | None,
        directory: _Path | None,
        path: _Path | None,
        wait: bool,
        max_wait_secs: float,
        config: Any,
    ) -> tuple[Session, bool]:
        """Returns a session, and whether a checkpoint was restored into it."""
        if directory and path:
            raise ValueError(
                "Can not provide both checkpoint_dir and checkpoint_filename_with_path."
            )
        session = Session(master, self._graph, config)
        if saver is None or not (directory or path):
            return session, False
        found = path
        deadline = time.monotonic() + max_wait_secs
        pauses = self._pauses()
        while found is None and directory:
            found = latest_checkpoint(directory)
            if found is None and (not wait or time.monotonic() >= deadline):
                return session, False
            if found is None:
                logger.info("Waiting for checkpoint to be available.")
                time.sleep(next(pauses))
        try:
            saver.restore(session, found)
        except BaseException:
            session.close()
            raise
        state = get_checkpoint_state(directory) if directory else None
        if state is not None:
            saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
        return session, True

    def _initialize_locally(self, session: Session) -> str:
        """Runs `local_init_op` if it is ready; returns what it waits for, or ''."""
        if self._local_init_op is None:
            return ""
        problem = _not_ready(session, self._ready_for_local_init_op)
        if not problem:
            logger.info("Running local_init_op.")
            with resuming(session.state):
                session.run(
                    self._local_init_op, self._local_init_feed_dict, self._local_init_run_options
                )
            logger.info("Done running local_init_op.")
        return problem


def _not_ready(session: Session, ready_op: Any) -> str:
    """Returns what a ready operation reports as missing, or ''."""
    if ready_op is None:
        return ""
    try:
        names = session.run(ready_op)
    except FailedPreconditionError as error:
        return str(error)
    # As in TensorFlow, an operation without a value, or a number, means ready.
    if names is None or np.asarray(names).dtype == np.int32 or np.size(names) == 0:
        return ""
    return "Variables not initialized: " + ", ".join(
        name.decode() if isinstance(name, bytes) else str(name) for name in np.ravel(names)
    )


def _name(op: Any) -> Any:
    return getattr(op, "name", op)
