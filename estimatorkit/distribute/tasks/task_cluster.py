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
from estimatorkit.runtime.placement import Placer
from estimatorkit.runtime.resource_store import ResourceStore
from estimatorkit.runtime.targets import Target, register_scheme

_logger = logging.getLogger("estimatorkit")

WAIT_SECS = 7200.0
"""How long a session waits for a task that is not there yet, as TensorFlow's RunConfig says."""

"""What a step hears that waits for something at the end of the training."""

_TELL_SECS = 30.0
_LOOK_SECS = 0.2
_PROOF_SECS = 10.0


def names_of(cluster: ClusterSpec) -> dict[str, str]:
    """The addresses of a cluster's tasks, by the tasks' names."""
    return {
        task_name(job, index): cluster.task_address(job, index)
        for job in cluster.jobs
        for index in cluster.task_indices(job)
    }


class TaskCluster:
    """The tasks that a session works with (`distribute.tasks.task_protocols.Tasks`).

    Args:
        addresses: `host:port` of the tasks, by their names.
        default: the task of operations that ask for none, `HERE` for this process.
        own: the name of the task that this process is; None where it is none.
        wait_secs: how long to wait for a task that is not there yet.
        bound: how many steps this process may be ahead of the slowest worker; None for any number.
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
        """The state of a session whose runs these tasks take part in."""
        state = ClusterState(graph, placer, held, self)
        state.step_loop = ClusterLoop
        return state

    def channel(self, task: str, raise_if_over: Callable[[], None] | None = None) -> Any:
        """A way to a task that nobody else uses; waits for one that is not there (yet).

        Args:
            task: its name.
            raise_if_over: called while it is waited for; what it raises ends the waiting.

        Raises:
            DeadlineExceededError: it did not come in time.
            UnavailableError: it is not there any more.
            UnauthenticatedError: it has another token.
        """
        return self._connection(task, raise_if_over).channel()

    def give_back(self, task: str, channel: Any) -> None:
        """Gives a channel back that is in order."""
        channel.connection.give_back(channel)

    def clear(self) -> None:
        """Lets the other tasks forget what sessions share."""
        for task in self._others():
            self._ask(task, "clear", {})

    def renew(self) -> None:
        """Lets go of all connections: the tasks may be other processes from now on."""
        self.close()
        with self._lock:
            self.generation += 1

    def close(self) -> None:
        """Lets go of all connections; they are made anew where they are needed."""
        with self._lock:
            connections, self._connections = list(self._connections.values()), {}
        for connection in connections:
            connection.close()

    def forget(self) -> None:
        """Lets the other tasks forget what they hold, so that all begin anew together."""
        for task in self._others():
            self._ask(task, "forget", {})
        self.renew()

    def tell(self, **news: Any) -> dict[str, dict[str, Any]]:
        """Tells the other tasks something of the training; what each knows of it.

        Raises:
            FailedPreconditionError: another process takes part as the task that this one is.
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
        """Tells the other tasks something, as far as they can be reached at once."""

        def give_up() -> None:
            raise UnavailableError(None, None, "It is not there.")

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
                        f"{task} did not come within {self._wait_secs:g} seconds",
                        received=error,
                        hint="start its process, or raise session_creation_timeout_secs",
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
        f"another process takes part as {name.removeprefix('/')}",
        expected="one process for each type and index",
        hint="give this process an index of its own in TF_CONFIG, or end the other",
    )


_served: dict[str, Target] = {}


def serve_target(address: str, target: Target) -> str:
    """Makes 'grpc://address' in this process the target of its own server; returns it."""
    _served[address] = target
    return f"grpc://{address}"


def stop_serving(target: str) -> None:
    """Forgets a target of `serve_target`."""
    _served.pop(target.removeprefix("grpc://"), None)


def _open(name: str, wait_secs: float) -> Target:
    """The target of a server: of this process, or of another."""
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


register_scheme("grpc", _open)
