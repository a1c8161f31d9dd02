"""`TaskCluster`: the client's view of a cluster's tasks."""

from __future__ import annotations

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
from estimatorkit.distribute.tasks import rpc
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
"""How long a session waits for a task that has not started, as TensorFlow's RunConfig says."""

_FIRST_LOG_SECS, _LOG_SECS = 5.0, 30.0
_POLL_SECS = 0.2
_TAKEN_SECS = 10.0
"""How long to wait for a heartbeat of the process that holds this one's name: it may be dead."""


def addresses_of(cluster: ClusterSpec) -> dict[str, str]:
    """`host:port` of a cluster's tasks, by name."""
    return {
        task_name(job, index): cluster.task_address(job, index)
        for job in cluster.jobs
        for index in cluster.task_indices(job)
    }


class TaskCluster:
    """The tasks of a session's cluster.

    Args:
        addresses: `host:port` of the tasks, by name.
        default: the task of operations that request none; `HERE` for this process.
        own: the name of this process's task, or None.
        wait_secs: how long to wait for a task that has not started yet.
        bound: the most steps this process may be ahead of the slowest worker; None for no bound.
        ahead: how many further steps read parameters while one is computed: 0 or 1.

    Attributes:
        worker: this process's name as a worker.
        generation: increases whenever a task may have been restarted.
    """

    def __init__(
        self,
        addresses: Mapping[str, str],
        default: str,
        own: str | None,
        wait_secs: float = WAIT_SECS,
        bound: int | None = None,
        ahead: int = 0,
    ) -> None:
        names = dict.fromkeys([*addresses, *filter(None, [own])])
        self.placer = TaskPlacer(names, default, own)
        self._addresses = dict(addresses)
        self._own = own
        self._wait_secs = wait_secs
        self.worker = own or f"client {uuid.uuid4().hex}"
        self._process = uuid.uuid4().hex
        self.bound = bound
        self.ahead = ahead
        self.shard_server: str | None = None
        """The task with the queues of `dynamic_sharding`; None if each process reads all shards."""
        self.raise_if_cancelled: Callable[[], None] = lambda: None
        """Called while waiting for a task; may raise to cancel."""
        self.generation = 0
        self._connections: dict[str, Any] = {}
        self._lock = threading.Lock()

    def open_state(self, graph: Graph, placer: Placer, held: ResourceStore) -> ClusterState:
        """The state of a new session on these tasks."""
        return ClusterState(graph, placer, held, self)

    def step_loop(self, state: ClusterState, spec: StepSpec) -> StepLoop:
        """The loop of many steps on these tasks."""
        return ClusterLoop(state, spec)

    def channel(self, task: str, raise_if_cancelled: Callable[[], None] | None = None) -> Any:
        """Acquires a channel to a task, waiting until it has started.

        Args:
            task: its name.
            raise_if_cancelled: called while waiting; may raise to cancel.

        Raises:
            DeadlineExceededError: it did not start in time.
            UnavailableError: it is no longer reachable.
            UnauthenticatedError: it has another token.
        """
        return self._connection(task, raise_if_cancelled).channel()

    def give_back(self, task: str, channel: Any) -> None:
        """Returns a working channel to the pool."""
        channel.connection.give_back(channel)

    def clear(self) -> None:
        """Clears the shared resources of the other tasks."""
        for task in self._others():
            self._call(task, rpc.ClearResources())

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

    def reset(self) -> None:
        """Resets the state of the other tasks, for a common restart."""
        for task in self._others():
            self._call(task, rpc.ResetTask())
        self.renew()

    def heartbeat(self, **changes: Any) -> dict[str, rpc.TrainingStatus]:
        """Sends a heartbeat to the other tasks, and returns the training's status on each.

        Args:
            **changes: of the status (see `rpc.Heartbeat`).

        Raises:
            FailedPreconditionError: another process has joined as this task.
        """
        began = time.monotonic()
        while True:
            found = {task: self._status(task, changes) for task in self._others()}
            taken = [secs for each in found.values() if (secs := each.name_taken_secs) is not None]
            if not taken:
                return found
            if _TAKEN_SECS < time.monotonic() - began > min(taken):
                raise _taken(self.worker)
            self.raise_if_cancelled()
            time.sleep(_POLL_SECS)

    def heartbeat_reachable(self, **changes: Any) -> None:
        """Sends a heartbeat to each task that is reachable, and does not wait for the others."""

        def give_up() -> None:
            raise UnavailableError(None, None, "The task is not reachable.")

        for task in self._others():
            with suppress(AbortedError, UnavailableError):
                self._status(task, changes, give_up)

    def _others(self) -> list[str]:
        return [task for task in self._addresses if task != self._own]

    def _status(
        self,
        task: str,
        changes: Mapping[str, Any],
        raise_if_cancelled: Callable[[], None] | None = None,
    ) -> rpc.TrainingStatus:
        request = rpc.Heartbeat(self.worker, self._process, **changes)
        return self._call(task, request, raise_if_cancelled)

    def _call(
        self,
        task: str,
        request: rpc.Request[rpc.R],
        raise_if_cancelled: Callable[[], None] | None = None,
    ) -> rpc.R:
        channel = self.channel(task, raise_if_cancelled)
        reply: rpc.R = channel.call(request)
        self.give_back(task, channel)
        return reply

    def _connection(self, task: str, raise_if_cancelled: Callable[[], None] | None = None) -> Any:
        with self._lock:
            found = self._connections.get(task)
        return found if found is not None else self._wait_for(task, raise_if_cancelled)

    def _wait_for(self, task: str, raise_if_cancelled: Callable[[], None] | None) -> Any:
        from estimatorkit.distribute.tasks.task_channel import TaskConnection

        def drop() -> None:
            with self._lock:
                if self._connections.pop(task, None) is not None:
                    self.generation += 1

        connection = TaskConnection(
            self._addresses[task], task, cluster_token(), drop, lambda: self.raise_if_cancelled()
        )
        started = time.monotonic()
        due = started + _FIRST_LOG_SECS
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
                self.raise_if_cancelled()
                if raise_if_cancelled is not None:
                    raise_if_cancelled()
                if now > due:
                    due = now + _LOG_SECS
                    _logger.warning("Waiting for %s at %s: %s", task, self._addresses[task], error)
                time.sleep(_POLL_SECS)
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
    client = TaskCluster({name: address}, HERE, None, wait_secs or WAIT_SECS)
    channel = client.channel(name)
    handshake = channel.handshake
    channel.end()
    client.close()
    cluster = TaskCluster(handshake.addresses, handshake.task, None)
    return Target(ResourceStore(), cluster, shared=False)
