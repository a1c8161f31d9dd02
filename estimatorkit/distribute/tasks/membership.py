"""`Members`: which process each task of a training is, so that no two take one place.

A process that was started again may come before the connections of the one before it are found
broken, and a connection to a host that is gone without a word looks open. So who holds a name keeps
it while it is heard from; one that is silent for long loses it to the next who asks. Pure state,
without a network: what the tests turn over.
"""

from __future__ import annotations

SILENT_SECS = 60.0
"""After so long without a word nobody waits for a process, and it loses its name to another that
asks for it. Who takes part says so three times in that time, whatever it computes."""


class Members:
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
