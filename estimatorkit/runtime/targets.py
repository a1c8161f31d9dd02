"""Session targets: the resources that sessions opened on one target share.

A session of target '' has its variables, tables and queues for itself. The sessions of another
target, also of other graphs, share them by name, and they outlive the sessions. A target 'local://'
lives in this process; others are opened by what registered their scheme (`register_scheme`), and
may be tasks of a cluster.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from estimatorkit.core.errors import NotFoundError
from estimatorkit.core.graph import Graph
from estimatorkit.runtime.executor import State
from estimatorkit.runtime.loop import LocalStepLoop
from estimatorkit.runtime.placement import Placer
from estimatorkit.runtime.resource_store import ResourceStore


class Cluster(Protocol):
    """The tasks that a session works with."""

    def open_state(self, graph: Graph, placer: Placer, held: ResourceStore) -> State:
        """The state of a session whose runs these tasks take part in."""

    def clear(self) -> None:
        """Lets the other tasks forget what sessions share."""

    def close(self) -> None:
        """Lets go of the tasks."""


@dataclass(frozen=True, eq=False)
class Target:
    """What a session works with.

    Attributes:
        held: what this process holds for it.
        cluster: the other tasks; None where there are none.
        shared: whether other sessions of this process have it, too.
    """

    held: ResourceStore
    cluster: Cluster | None = None
    shared: bool = True

    def open_state(self, graph: Graph, placer: Placer) -> State:
        """The state of a new session."""
        if self.cluster is None:
            state = State(graph, placer, self.held)
            state.step_loop = LocalStepLoop
            return state
        return self.cluster.open_state(graph, placer, self.held)

    def leave(self) -> None:
        """Called by a session that closes."""
        if not self.shared:
            self.held.clear()
            if self.cluster is not None:
                self.cluster.close()

    def clear(self) -> None:
        """Forgets what the sessions share, also with the other tasks."""
        self.held.clear()
        if self.cluster is not None:
            self.cluster.clear()


_targets: dict[str, Target] = {}
_numbers = itertools.count(1)
_schemes: dict[str, Callable[[str, float], Target]] = {}


def register_scheme(scheme: str, opener: Callable[[str, float], Target]) -> None:
    """Says who opens the targets of a scheme ('grpc'), given also how many seconds to wait for one
    that is not there; 0 for as long as is usual.
    """
    _schemes[scheme] = opener


def open_target() -> str:
    """A new target that holds nothing."""
    name = f"local://{next(_numbers)}"
    _targets[name] = Target(ResourceStore())
    return name


def target_of(name: str, wait_secs: float = 0.0) -> Target:
    """What the sessions of a target share; something of its own for each session of ''.

    Args:
        name: the target.
        wait_secs: how long to wait for one that is not there; 0 for as long as is usual.

    Raises:
        NotFoundError: there is no such target.
        DeadlineExceededError: it cannot be reached.
    """
    if not name:
        return Target(ResourceStore(), shared=False)
    opener = _schemes.get(name.partition("://")[0])
    if opener is not None:
        return opener(name, wait_secs)
    if name not in _targets:
        raise NotFoundError.explained(
            f"No session factory registered for the given session options: {{target: {name!r}}}",
            expected="'' (a session by itself), 'grpc://host:port', or the target of a server",
            received=repr(name),
            hint="train.Server(...).target",
        )
    return _targets[name]
