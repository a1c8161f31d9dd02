"""Targets: what sessions share that were opened on the same one.

A session of target '' has its variables, tables and queues for itself. The sessions of another
target, also of other graphs, share them by name, and they outlive the sessions. A target 'local://'
lives in this process; others are opened by what registered their scheme (`register_scheme`), and
may be tasks of a cluster.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from estimatorkit.core.errors import NotFoundError, explain
from estimatorkit.core.part_graph import PartGraph
from estimatorkit.core.task_placement import TaskPlacer


@dataclass(eq=False)
class Held:
    """What sessions hold between runs.

    Attributes:
        values: variables by name, and the counters of random operations.
        resources: host objects by name (queues, tables, ...).
        lock: held while values change.
        making: held while a resource is made.
    """

    values: dict[str, Any] = field(default_factory=dict)
    resources: dict[Any, Any] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    making: threading.RLock = field(default_factory=threading.RLock)
    _being_read: Counter[int] = field(default_factory=Counter)

    def clear(self) -> None:
        """Forgets all and closes what can be closed."""
        with self.lock:
            self.values.clear()
        for resource in list(self.resources.values()):
            close = getattr(resource, "close", None)
            if close is not None:
                close()
        self.resources.clear()

    def read(self, take: Callable[[], Sequence[Any]]) -> list[Any]:
        """Values of variables as NumPy arrays that later runs leave as they are.

        The lock is held while they are taken, so that they are of one moment, but not while they
        are computed and copied: runs go on meanwhile.

        Args:
            take: gives the values; called under the lock.
        """
        with self.lock:
            values = take()
            self._being_read.update(map(id, values))
        try:
            return [
                np.array(value) if isinstance(value, np.ndarray) else np.asarray(value)
                for value in values
            ]
        finally:
            with self.lock:
                self._being_read.subtract(map(id, values))
                self._being_read = +self._being_read

    def to_donate(self, values: Sequence[Any]) -> list[Any]:
        """The values of variables that a run may give away: copies of those that others read.

        The caller holds the lock.
        """
        if not self._being_read:
            return list(values)
        return [value.copy() if id(value) in self._being_read else value for value in values]


class Channel(Protocol):
    """A way to another task on which one question is asked at a time, in order."""

    def ask(
        self,
        question: str,
        header: dict[str, Any],
        arrays: Sequence[Any] = (),
        borrowed: bool = False,
    ) -> None:
        """Sends a question; `answer` must be called before the next.

        Args:
            question: what is asked.
            header: what JSON can hold.
            arrays: what is sent.
            borrowed: whether the answer's arrays are not needed any more when the next question is
                asked, so that their memory may be used again.
        """

    def answer(self, raise_if_over: Callable[[], None] | None = None) -> list[Any]:
        """Waits for the answer: arrays.

        Args:
            raise_if_over: called every now and then; what it raises ends the waiting.

        Raises:
            OpError: what went wrong there; `AbortedError` where the task has lost what it held,
                `UnavailableError` where it cannot be reached.
        """

    def program(
        self,
        graph: PartGraph,
        fresh: Sequence[str] = (),
        raise_if_over: Callable[[], None] | None = None,
    ) -> str:
        """Gives the task a graph; what it calls that.

        Args:
            graph: the graph.
            fresh: the names of its random operations that are to begin anew.
            raise_if_over: see `answer`.
        """

    def close(self) -> None:
        """Ends the channel, and a question that is being worked on."""


class Cluster(Protocol):
    """The tasks that a session works with."""

    placer: TaskPlacer
    worker: str
    """What this process is called where others count its steps."""
    bound: int | None
    """How many steps it may be ahead of the slowest worker; None for any number."""

    @property
    def generation(self) -> int:
        """Another number whenever a task may have become another process."""

    def channel(self, task: str, raise_if_over: Callable[[], None] | None = None) -> Channel:
        """A way to a task that nobody else uses; opened, or one that was given back.

        Args:
            task: its name.
            raise_if_over: called while the task is waited for; what it raises ends the waiting.
        """

    def give_back(self, task: str, channel: Channel) -> None:
        """Gives a channel back that is in order."""

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

    held: Held
    cluster: Cluster | None = None
    shared: bool = True

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
    _targets[name] = Target(Held())
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
        return Target(Held(), shared=False)
    opener = _schemes.get(name.partition("://")[0])
    if opener is not None:
        return opener(name, wait_secs)
    if name not in _targets:
        raise NotFoundError(
            None,
            None,
            explain(
                "No session factory registered for the given session options: "
                f"{{target: {name!r}}}",
                expected="'' (a session by itself), 'grpc://host:port', or the target of a server",
                received=repr(name),
                hint="train.Server(...).target",
            ),
        )
    return _targets[name]
