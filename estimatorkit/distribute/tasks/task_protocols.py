"""Protocols: what a `ClusterState` requires of channels and tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from estimatorkit.distribute.tasks.serialized_partition import SerializedPartition
from estimatorkit.distribute.tasks.task_placement import TaskPlacer

ENDED = "the chief has ended the training"


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
        graph: SerializedPartition,
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


class Tasks(Protocol):
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
