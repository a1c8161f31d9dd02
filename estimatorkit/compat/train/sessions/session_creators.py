"""Session creators: create the plain session of a monitored one, again after each loss."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any

from estimatorkit.compat.train.sessions.session_manager import SessionManager
from estimatorkit.runtime.session import Session
from estimatorkit.train.sessions.scaffold import Scaffold

_Path = str | os.PathLike[str]


class SessionCreator(ABC):
    """The base class of objects that create the sessions of a `MonitoredSession`.

    `create_session` is called at the start, and again whenever a session is lost.
    """

    @abstractmethod
    def create_session(self) -> Any:
        """Returns a session with a ready model."""


class ChiefSessionCreator(SessionCreator):
    """Creates sessions, and initializes or restores their model.

    Args:
        scaffold: the operations; by default those of the graph.
        master: the session's target.
        config: the session's `ConfigProto`.
        checkpoint_dir: the folder whose newest checkpoint is restored.
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
        """Returns a session with a ready model; finalizes the graph."""
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
    """Creates sessions, and waits for the chief to prepare the model.

    Args:
        scaffold: the operations; by default those of the graph.
        master: the session's target.
        config: the session's `ConfigProto`.
        max_wait_secs: the maximum time to wait, in seconds.
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
        """Returns a session with a ready model; finalizes the graph."""
        manager = _manager(self._scaffold.finalize())
        return manager.wait_for_session(self._master, self._config, self._max_wait_secs)


def _manager(scaffold: Scaffold) -> SessionManager:
    return SessionManager(
        local_init_op=scaffold.local_init_op,
        ready_op=scaffold.ready_op,
        ready_for_local_init_op=scaffold.ready_for_local_init_op,
        local_init_feed_dict=scaffold.local_init_feed_dict,
    )
