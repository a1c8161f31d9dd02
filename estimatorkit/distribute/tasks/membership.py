"""`Membership`: which process holds each task's name in a training.

A restarted process may join before its predecessor's connections time out, and a connection to a
dead host looks open. A process therefore holds a name while its heartbeats arrive; after
`SILENT_SECS` without one, another process may take it. Pure state without I/O.
"""

from __future__ import annotations

SILENT_SECS = 60.0
"""The heartbeat timeout: after it, nobody waits for a process, and another may take its name. Each
member sends three heartbeats per timeout, whatever it computes."""

TRAINING_ENDED = "the chief has ended the training"
"""Part of the error message of a worker's step after the chief has ended the training."""


class Membership:
    """The member processes, by task."""

    def __init__(self) -> None:
        self._holders: dict[str, str] = {}
        self._last_heartbeat: dict[str, float] = {}

    def heartbeat(self, name: str, process: str, now: float) -> float | None:
        """Handles a heartbeat.

        Args:
            name: the task's name.
            process: a unique name of the process.
            now: the time in seconds.

        Returns:
            None if the process holds the name, else the seconds since its holder's last heartbeat.
        """
        holder = self._holders.get(name, process)
        silent = now - self._last_heartbeat.get(name, now)
        if holder != process and silent < SILENT_SECS:
            return silent
        self._holders[name] = process
        self._last_heartbeat[name] = now
        return None

    def silent(self, now: float) -> list[str]:
        """The tasks without recent heartbeats."""
        return [name for name, last in self._last_heartbeat.items() if now - last >= SILENT_SECS]

    def left(self, name: str, process: str) -> None:
        """Releases the name of a process whose connection has closed."""
        if self._holders.get(name) == process:
            del self._holders[name], self._last_heartbeat[name]
