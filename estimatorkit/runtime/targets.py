"""Session targets: the resources that sessions opened on one target share.

The variables, tables and queues of a session with target '' are its own. Sessions of another
target, even of other graphs, share them by name, and they outlive the sessions. Targets 'local://'
live in this process, 'grpc://' ones may be servers of other processes.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Protocol

from estimatorkit.core.errors import NotFoundError
from estimatorkit.core.graph import Graph
from estimatorkit.lazy import Port
from estimatorkit.runtime.local_state import LocalState
from estimatorkit.runtime.resource_store import ResourceStore
from estimatorkit.runtime.state import State
from estimatorkit.runtime.xla.placement import Placer, available


class Cluster(Protocol):
    """The tasks of a session's cluster."""

    def open_state(self, graph: Graph, placer: Placer, held: ResourceStore) -> State:
        """The state of a new session on these tasks."""

    def clear(self) -> None:
        """Clears the shared resources of the other tasks."""

    def close(self) -> None:
        """Closes the connections."""


@dataclass(frozen=True, eq=False)
class Target:
    """The target of a session.

    Attributes:
        held: its resources in this process.
        cluster: the other tasks, or None.
        shared: whether other sessions of this process use it, too.
    """

    held: ResourceStore
    cluster: Cluster | None = None
    shared: bool = True

    def open_state(self, graph: Graph, placer: Placer) -> State:
        """The state of a new session."""
        if self.cluster is not None:
            return self.cluster.open_state(graph, placer, self.held)
        # Another session's values may be anywhere.
        anywhere = self.shared and len(available()) > 1
        return LocalState(graph, placer, self.held, anywhere)

    def leave(self) -> None:
        """Called by a session that closes."""
        if not self.shared:
            self.held.clear()
            if self.cluster is not None:
                self.cluster.close()

    def clear(self) -> None:
        """Clears the shared resources, including those of the other tasks."""
        self.held.clear()
        if self.cluster is not None:
            self.cluster.clear()


_targets: dict[str, Target] = {}
_numbers = itertools.count(1)
_servers = Port("servers")


def open_target() -> str:
    """A new, empty target."""
    name = f"local://{next(_numbers)}"
    _targets[name] = Target(ResourceStore())
    return name


def target_of(name: str, wait_secs: float = 0.0) -> Target:
    """Returns the target of a name; a new one each time for ''.

    Args:
        name: the target.
        wait_secs: how long to wait until it is reachable; 0 for the default.

    Raises:
        NotFoundError: there is no such target.
        DeadlineExceededError: it is not reachable.
    """
    if not name:
        return Target(ResourceStore(), shared=False)
    if name.startswith("grpc://"):
        opened: Target = _servers.open_server(name, wait_secs)
        return opened
    if name not in _targets:
        raise NotFoundError.explained(
            f"No session factory registered for the given session options: {{target: {name!r}}}",
            expected="'' (a local session), 'grpc://host:port', or the target of a server",
            received=repr(name),
            hint="use train.Server(...).target",
        )
    return _targets[name]
