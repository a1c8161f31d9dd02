"""`TaskCluster`: the client's view of a cluster's tasks."""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from estimatorkit.core.errors import (
    AbortedError,
    DeadlineExceededError,
    FailedPreconditionError,
    UnavailableError,
)
from estimatorkit.core.graph import Graph
from estimatorkit.distribute.cluster_spec import ClusterSpec
from estimatorkit.distribute.tasks.cluster_loop import ClusterLoop
from estimatorkit.distribute.tasks.cluster_run import ClusterState
from estimatorkit.distribute.tasks.task_placement import HERE, TaskPlacer, task_name
from estimatorkit.distribute.tasks.token import cluster_token
from estimatorkit.runtime.loop import StepLoop, StepSpec
from estimatorkit.runtime.resource_store import ResourceStore
from estimatorkit.runtime.targets import Target
from estimatorkit.runtime.xla.placement import Placer

_logger = logging.getLogger("estimatorkit")

WAIT_SECS = 7200.0
"""How long a session waits for a task that is not there yet, as TensorFlow's RunConfig says."""

"""What a step hears that waits for something at the end of the training."""

_TELL_SECS = 30.0
_LOOK_SECS = 0.2
_PROOF_SECS = 10.0


def names_of(cluster: ClusterSpec) -> dict[str, str]:
    """The addresses of a cluster's tasks, by name."""
    return {
        task_name(job, index): cluster.task_address(job, index)
        for job in cluster.jobs
        for index in cluster.task_indices(job)
    }


class TaskCluster:
    """The tasks of a session's cluster (`distribute.tasks.task_protocols.Tasks`).

    Args:
        addresses: `host:port` of the tasks, by name.
        default: the task of operations that request none; `HERE` for this process.
        own: the name of this process's task, or None.
        wait_secs: how long to wait for a task that has not started yet.
        bound: the most steps this process may be ahead of the slowest worker; None for no bound.
    """

    def __init__(
        self,
        addresses: Mapping[str, str],
        default: str,
        own: str | None,
        wait_secs: float = WAIT_SECS,
        bound: int | None = None,
    ) -> None:
        names = dict.fromkeys([*addresses, *filter(None, [own])])
        self.placer = TaskPlacer(names, default, own)
        self._addresses = dict(addresses)
        self._own = own
        self._wait_secs = wait_secs
        self.worker = own or f"client {uuid.uuid4().hex}"
        self._member = self.worker, uuid.uuid4().hex
        self.bound = bound
        self.dealer: str | None = None
        """The task that gives out units of data (see `dealing`); None where each process does."""
        self.raise_if_over: Callable[[], None] = lambda: None
        """Called while a task is waited for; what it raises ends the waiting."""
        self.generation = 0
        self._connections: dict[str, Any] = {}
        self._lock = threading.Lock()

    def open_state(self, graph: Graph, placer: Placer, held: ResourceStore) -> ClusterState:
        """The state of a new session on these tasks."""
        return ClusterState(graph, placer, held, self)

    def step_loop(self, state: ClusterState, spec: StepSpec) -> StepLoop:
        """The loop of many steps on these tasks."""
        return ClusterLoop(state, spec)

    def channel(self, task: str, raise_if_over: Callable[[], None] | None = None) -> Any:
        """Acquires a channel to a task, waiting until it has started.

        Args:
            task: its name.
            raise_if_over: called while waiting; may raise to cancel.

        Raises:
            DeadlineExceededError: it did not start in time.
            UnavailableError: it is no longer reachable.
            UnauthenticatedError: it has another token.
        """
        return self._connection(task, raise_if_over).channel()

    def give_back(self, task: str, channel: Any) -> None:
        """Returns a working channel to the pool."""
        channel.connection.give_back(channel)

    def clear(self) -> None:
        """Clears the shared resources of the other tasks."""
        for task in self._others():
            self._ask(task, "clear", {})

    def renew(self) -> None:
        """Closes all connections, as tasks may have been restarted."""
        self.close()
        with self._lock:
            self.generation += 1

    def close(self) -> None:
        """Closes all connections; they are reopened on demand."""
        with self._lock:
            connections, self._connections = list(self._connections.values()), {}
        for connection in connections:
            connection.close()

    def forget(self) -> None:
        """Resets the state of the other tasks, for a common restart."""
        for task in self._others():
            self._ask(task, "forget", {})
        self.renew()

    def tell(self, **news: Any) -> dict[str, dict[str, Any]]:
        """Sends training status to the other tasks, and returns theirs.

        Raises:
            FailedPreconditionError: another process has joined as this task.
        """
        began = time.monotonic()
        while True:
            told = {task: self._status(task, news) for task in self._others()}
            silent = [each["taken"] for each in told.values() if "taken" in each]
            if not silent:
                return told
            # One whose process was killed is not heard from again.
            if _PROOF_SECS < time.monotonic() - began > min(silent):
                raise _taken(self.worker)
            self.raise_if_over()
            time.sleep(_LOOK_SECS)

    def tell_if_there(self, **news: Any) -> None:
        """Sends training status to the tasks that are reachable now."""

        def give_up() -> None:
            raise UnavailableError(None, None, "The task is not reachable.")

        for task in self._others():
            with suppress(AbortedError, UnavailableError):
                self._status(task, news, give_up)

    def _others(self) -> list[str]:
        return [task for task in self._addresses if task != self._own]

    def _status(
        self,
        task: str,
        news: Mapping[str, Any],
        raise_if_over: Callable[[], None] | None = None,
    ) -> dict[str, Any]:
        header = {"tell": news, "member": self._member}
        found: dict[str, Any] = json.loads(
            bytes(self._ask(task, "status", header, raise_if_over)[0])
        )
        return found

    def _ask(
        self,
        task: str,
        question: str,
        header: dict[str, Any],
        raise_if_over: Callable[[], None] | None = None,
    ) -> list[Any]:
        channel = self.channel(task, raise_if_over)
        channel.ask(question, header)
        found: list[Any] = channel.answer()
        self.give_back(task, channel)
        return found

    def _connection(self, task: str, raise_if_over: Callable[[], None] | None = None) -> Any:
        with self._lock:
            found = self._connections.get(task)
        return found if found is not None else self._wait_for(task, raise_if_over)

    def _wait_for(self, task: str, raise_if_over: Callable[[], None] | None) -> Any:
        from estimatorkit.distribute.tasks.task_channel import TaskConnection

        def drop() -> None:
            with self._lock:
                if self._connections.pop(task, None) is not None:
                    self.generation += 1

        connection = TaskConnection(
            self._addresses[task], task, cluster_token(), drop, lambda: self.raise_if_over()
        )
        started = told = time.monotonic()
        while True:
            try:
                connection.give_back(connection.channel())
                break
            except UnavailableError as error:
                now = time.monotonic()
                if now - started > self._wait_secs:
                    raise DeadlineExceededError.explained(
                        f"{task} did not become reachable within {self._wait_secs:g} seconds",
                        received=error,
                        hint="start its process, or increase session_creation_timeout_secs",
                    ) from error
                self.raise_if_over()
                if raise_if_over is not None:
                    raise_if_over()
                if now - told > _TELL_SECS:
                    told = now
                    _logger.warning("Waiting for %s at %s.", task, self._addresses[task])
                time.sleep(_LOOK_SECS)
        with self._lock:
            return self._connections.setdefault(task, connection)


def _taken(name: str) -> FailedPreconditionError:
    return FailedPreconditionError.explained(
        f"another process already runs as {name.removeprefix('/')}",
        expected="one process for each type and index",
        hint="give this process a unique index in TF_CONFIG, or stop the other one",
    )


_served: dict[str, Target] = {}


def serve_target(address: str, target: Target) -> str:
    """Registers and returns the target of this process's own server at an address."""
    _served[address] = target
    return f"grpc://{address}"


def stop_serving(target: str) -> None:
    """Unregisters a target of `serve_target`."""
    _served.pop(target.removeprefix("grpc://"), None)


def open_server(name: str, wait_secs: float) -> Target:
    """Opens the target of a server, in this or another process.

    Args:
        name: 'grpc://host:port'.
        wait_secs: how long to wait for it; 0 for the default.
    """
    address = name.removeprefix("grpc://")
    if address in _served:
        return _served[address]
    asking = TaskCluster({name: address}, HERE, None, wait_secs or WAIT_SECS)
    channel = asking.channel(name)
    about = channel.about
    channel.end()
    asking.close()
    cluster = TaskCluster(names_of(ClusterSpec(about["cluster"])), about["task"], None)
    return Target(ResourceStore(), cluster, shared=False)
