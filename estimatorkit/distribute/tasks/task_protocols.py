"""Protocols: what a `ClusterState` requires of channels and tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from estimatorkit.distribute.tasks.serialized_partition import SerializedPartition
from estimatorkit.distribute.tasks.task_placement import TaskPlacer
from estimatorkit.runtime.loop import StepLoop, StepSpec

ENDED = "the chief has ended the training"


class Channel(Protocol):
    """An ordered stream of requests to another task, one at a time."""

    def ask(
        self,
        question: str,
        header: dict[str, Any],
        arrays: Sequence[Any] = (),
        borrowed: bool = False,
    ) -> None:
        """Sends a request; `answer` must be called before the next.

        Args:
            question: the kind of request.
            header: serializable as JSON.
            arrays: the arrays to send.
            borrowed: whether the reply's arrays are only valid until the next request, so that
                their memory can be reused.
        """

    def answer(self, raise_if_over: Callable[[], None] | None = None) -> list[Any]:
        """Waits for the reply's arrays.

        Args:
            raise_if_over: called periodically; may raise to cancel.

        Raises:
            OpError: the task's error; `AbortedError` if the task has lost its state,
                `UnavailableError` if it is unreachable.
        """

    def program(
        self,
        graph: SerializedPartition,
        fresh: Sequence[str] = (),
        raise_if_over: Callable[[], None] | None = None,
    ) -> str:
        """Sends a graph to the task, and returns its name there.

        Args:
            graph: the graph.
            fresh: the names of the random operations to reset.
            raise_if_over: see `answer`.
        """

    def close(self) -> None:
        """Closes the channel, and cancels its current request."""


class Tasks(Protocol):
    """The tasks of a session's cluster."""

    placer: TaskPlacer
    worker: str
    """What this process is called where others count its steps."""
    bound: int | None
    """How many steps it may be ahead of the slowest worker; None for any number."""

    @property
    def generation(self) -> int:
        """Increases whenever a task may have been restarted."""

    def channel(self, task: str, raise_if_over: Callable[[], None] | None = None) -> Channel:
        """Acquires a channel to a task, new or from the pool.

        Args:
            task: its name.
            raise_if_over: called while waiting; may raise to cancel.
        """

    def give_back(self, task: str, channel: Channel) -> None:
        """Returns a working channel to the pool."""

    def step_loop(self, state: Any, spec: StepSpec) -> StepLoop:
        """The loop of many steps of a `ClusterState` on these tasks."""

    def clear(self) -> None:
        """Clears the shared resources of the other tasks."""

    def close(self) -> None:
        """Closes the connections."""
