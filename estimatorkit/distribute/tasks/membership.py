"""`Membership`: which process holds each task's name in a training.

A restarted process may arrive before its predecessor's connections are seen to be broken, and a
connection to a dead host looks open. So a name belongs to its holder while heartbeats arrive; after
`SILENT_SECS` without one, the next process that asks takes it. Pure state without I/O.
"""

from __future__ import annotations

SILENT_SECS = 60.0
"""The heartbeat timeout: after it, nobody waits for a process, and another may take its name. Each
member sends three heartbeats per timeout, whatever it computes."""


class Membership:
    """The processes that take part, by their tasks' names."""

    def __init__(self) -> None:
        self._holders: dict[str, str] = {}
        self._heard: dict[str, float] = {}

    def heard(self, name: str, process: str, now: float) -> float | None:
        """A process says that it is a task.

        Args:
            name: the task's.
            process: what no other process is called.
            now: seconds of a clock.

        Returns:
            None where it is; for how many seconds the process that is it was silent otherwise.
        """
        holder = self._holders.get(name, process)
        silent = now - self._heard.get(name, now)
        if holder != process and silent < SILENT_SECS:
            return silent
        self._holders[name] = process
        self._heard[name] = now
        return None

    def silent(self, now: float) -> list[str]:
        """The names of those who were not heard from for long."""
        return [name for name, heard in self._heard.items() if now - heard >= SILENT_SECS]

    def left(self, name: str, process: str) -> None:
        """A connection of a process has ended: another may have its name."""
        if self._holders.get(name) == process:
            del self._holders[name], self._heard[name]
