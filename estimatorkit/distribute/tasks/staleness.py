"""`StalenessTracker`: which worker read and updated a task's parameters, and how stale they were.

A worker's step reads parameters, then updates them. Its staleness is the number of updates in
between, by others and by steps of its own that were in flight. Under a bound, a worker too far
ahead of the slowest one waits before it reads. Pure state without I/O, which tests and
`benchmarks/scaling.py` drive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class StalenessTracker:
    """The progress of a task's workers.

    Attributes:
        count: the number of updates.
        staleness: the number of updates by staleness.
    """

    count: int = 0
    staleness: Counter[int] = field(default_factory=Counter)
    _read_at: dict[str, list[int]] = field(default_factory=dict)
    _steps: dict[str, int] = field(default_factory=dict)

    def can_start(self, worker: str, bound: int | None) -> bool:
        """Whether a worker may start its next step.

        Args:
            worker: its name.
            bound: the most steps it may be ahead of the slowest worker; None for no bound.
        """
        if bound is None or worker not in self._steps:
            return True
        return self._steps[worker] - min(self._steps.values()) <= bound

    def read(self, worker: str, ahead: int = 0) -> None:
        """Records a read; the worker is active from now on.

        Args:
            worker: its name.
            ahead: how many of its steps have read, and updated nothing yet.
        """
        before = self._read_at.get(worker, [])
        self._read_at[worker] = [*before[len(before) - ahead :], self.count]
        self._take_part(worker)

    def updated(self, worker: str) -> int:
        """Records an update; returns its staleness."""
        read_at = self._read_at.get(worker)
        stale = self.count - (read_at.pop(0) if read_at else self.count)
        self.staleness[stale] += 1
        self.count += 1
        self._take_part(worker)
        self._steps[worker] += 1
        return stale

    def _take_part(self, worker: str) -> None:
        """Adds a worker, level with the slowest."""
        if worker not in self._steps:
            self._steps[worker] = min(self._steps.values(), default=0)

    def left(self, worker: str) -> None:
        """Removes a worker, so that nobody waits for it."""
        self._read_at.pop(worker, None)
        self._steps.pop(worker, None)

    @property
    def workers(self) -> Mapping[str, int]:
        """The steps of active workers, by name."""
        return dict(self._steps)

    def report(self) -> str:
        """A report of the staleness of updates; '' if there were none."""
        if not self.staleness:
            return ""
        total = self.staleness.total()
        mean = sum(stale * times for stale, times in self.staleness.items()) / total
        return f"{total} updates, stale by {mean:.2f} on average, {max(self.staleness)} at most"
