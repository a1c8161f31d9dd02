"""`SyncReplicasHook`: a replica's part in a synchronous training, from its beginning to its end.

The chief's thread (`SynchronizingRunner`) waits for gradients most of the time. It ends with its
coordinator, and whoever waits for tokens at that time is woken, so that nobody waits for a chief
that has failed to apply their gradients. `sync_replicas_optimizer` describes the algorithm.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from estimatorkit.core.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    UnavailableError,
)
from estimatorkit.logger import logger
from estimatorkit.runtime.session import Session
from estimatorkit.runtime.xla.at_exit import idle
from estimatorkit.train.hooks.hooks import SessionRunArgs, SessionRunContext, SessionRunHook
from estimatorkit.train.queues.queue_runner import QueueRunner
from estimatorkit.train.sessions.coordinator import Coordinator

if TYPE_CHECKING:
    from estimatorkit.compat.train.optimizers.sync_replicas_optimizer import SyncReplicasOptimizer

_TELLING_SECS = 2.0
"""How long one who ends tries to tell it to others, who may be gone."""

_ENDING_SECS = 15.0
"""How long to wait for the chief's threads: a lost task is noticed after ten seconds."""

_GONE = (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    UnavailableError,
)
"""Errors of requests to tasks that have ended, or lost the training's state."""


class SynchronizingRunner(QueueRunner):
    """The chief's thread, which ends with its coordinator, also while it waits for gradients.

    If the session's target has several sessions, the thread has its own, whose closing
    ends what it waits for.

    Args:
        queue, enqueue_ops, close_op, cancel_op: see `QueueRunner`; `cancel_op` is run once the
            coordinator has stopped.
    """

    def cancel_by(self, op: Any) -> None:
        """Runs another operation once the coordinator has stopped."""
        self._cancel_op = op

    def create_threads(
        self, sess: Any, coord: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """See `QueueRunner.create_threads`."""
        own = sess
        if coord is not None and sess.sess_str:
            own = Session(sess.sess_str, sess.graph, sess.config)
            atexit.register(own.close)  # a program may end without stopping its coordinator
        return super().create_threads(own, coord, daemon, start)

    @staticmethod
    def _fill(session: Any, enqueue: Callable[[], Any], coord: Coordinator | None) -> None:
        def raise_if_stopped() -> None:
            if coord is not None and coord.should_stop():
                raise CancelledError(None, None, "Training has ended.")

        try:
            with session.state.cancellation.watched(raise_if_stopped):
                QueueRunner._fill(session, enqueue, coord)
        except CancelledError:
            if coord is None or not coord.should_stop():
                raise

    def _close_on_stop(self, session: Any, coord: Coordinator) -> None:
        with idle():
            coord.wait_for_stop()
        _tell(session, self.cancel_op)
        if session.sess_str:
            session.close()
            atexit.unregister(session.close)


def _tell(session: Any, op: Any) -> None:
    """Runs an operation that others learn something by, if they are still there."""
    try:
        with suppress(*_GONE), session.state.cancellation.deadline(_TELLING_SECS):
            session.run(op)
    except RuntimeError as error:
        logger.debug("%s was not run: %s", op.name, error)  # the session is closed


class SyncReplicasHook(SessionRunHook):
    """Begins and ends a replica's part in a synchronous training.

    Args:
        optimizer: the `SyncReplicasOptimizer`.
        is_chief: whether this replica applies the gradients of all.
        num_tokens: see `SyncReplicasOptimizer.get_init_tokens_op`.
    """

    def __init__(self, optimizer: SyncReplicasOptimizer, is_chief: bool, num_tokens: int) -> None:
        self._optimizer = optimizer
        self._is_chief = is_chief
        self._num_tokens = num_tokens
        self._made: Any = None
        self._init_ops: list[Any] = []
        self._is_monitored = False
        self._runner: SynchronizingRunner | None = None
        self._rounds = Coordinator()
        self._threads: list[threading.Thread] = []
        self._session: Any = None
        self._has_token = False

    def begin(self) -> None:
        """Takes what the optimizer has made.

        Raises:
            ValueError: it has made nothing yet.
        """
        optimizer, self._runner = self._optimizer, None
        self._made = optimizer._synchronized(
            "SyncReplicasOptimizer.apply_gradient should be called before using the hook"
        )
        self._init_ops = [optimizer.local_step_init_op]
        if self._is_chief:
            tokens = optimizer.get_init_tokens_op(self._num_tokens)
            self._init_ops = [optimizer.chief_init_op, self._made.reopen, tokens]

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Gives the replica its step, and starts the chief's thread.

        Raises:
            RuntimeError: a variable has no value.
        """
        self._end_rounds()
        missing = session.run(self._optimizer.ready_for_local_init_op)
        if len(missing):
            names = ", ".join(name.decode() for name in np.ravel(missing))
            raise RuntimeError(
                "Init operations did not make model ready for SyncReplicasOptimizer local_init. "
                f"Init op: {self._init_ops[0].name}, error: Variables not initialized: {names}"
            )
        for op in self._init_ops:
            session.run(op)
        self._session, self._has_token = session, True
        self._is_monitored = coord is not None
        if self._is_chief:
            # Waiting runs are woken where the thread ends: their next step finds out why.
            made = self._made
            runner = SynchronizingRunner(made.tokens, [made.sync_op], made.close, made.wake)
            self._rounds = Coordinator()
            self._threads = runner.create_threads(session, self._rounds, daemon=True, start=True)
            self._runner = runner

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Raises what has ended the chief's thread. A call of the loop is one step, so that no
        step is begun after the last one.
        """
        self._rounds.raise_requested_exception()
        self._has_token = True
        return None

    def while_waiting(self, stop: list[str]) -> None:
        """Lets the others have the token that this replica does not use now: its input waits."""
        if self._has_token:
            _tell(self._session, self._made.give_back)
            self._has_token = False

    def end(self, session: Any) -> None:
        """Lets the others end, or continue without this replica."""
        if self._runner is None:
            self.while_waiting([])
        elif self._is_monitored:  # an estimator's training ends the others by itself
            self._runner.cancel_by(self._made.close)
        self._end_rounds()

    def close(self) -> None:
        """Ends the chief's thread."""
        self._end_rounds()

    def _end_rounds(self) -> None:
        self._rounds.request_stop()
        for thread in self._threads:
            thread.join(_ENDING_SECS)
        self._threads = []


__all__ = ["SyncReplicasHook", "SynchronizingRunner"]
