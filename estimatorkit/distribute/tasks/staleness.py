"""`StalenessTracker`: which worker read and updated a task's parameters, and how stale they were.

A worker's step reads, then changes. Changes by others between the two make its update stale by
their number. Under a bound, a worker that is ahead of the slowest one waits before it reads. Pure
state, without a network: what the tests and `benchmarks/scaling.py` turn over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class StalenessTracker:
    """What the workers of a task have done.

    Attributes:
        count: how many updates there were.
        staleness: how often an update was stale by how many others.
    """

    count: int = 0
    staleness: Counter[int] = field(default_factory=Counter)
    _read_at: dict[str, int] = field(default_factory=dict)
    _steps: dict[str, int] = field(default_factory=dict)

    def can_start(self, worker: str, bound: int | None) -> bool:
        """Whether a worker may begin its next step.

        Args:
            worker: its name.
            bound: how many steps it may be ahead of the slowest worker; None for any number.
        """
        if bound is None or worker not in self._steps:
            return True
        return self._steps[worker] - min(self._steps.values()) <= bound

    def read(self, worker: str) -> None:
        """A worker reads, and takes part from now on."""
        self._read_at[worker] = self.count
        self._take_part(worker)

    def updated(self, worker: str) -> int:
        """A worker has changed what it had read; returns by how many others it was stale."""
        stale = self.count - self._read_at.get(worker, self.count)
        self.staleness[stale] += 1
        self.count += 1
        self._take_part(worker)
        self._steps[worker] += 1
        return stale

    def _take_part(self, worker: str) -> None:
        """One that is new, or was taken for gone, is level with the slowest."""
        if worker not in self._steps:
            self._steps[worker] = min(self._steps.values(), default=0)

    def left(self, worker: str) -> None:
        """A worker takes part no more: nobody waits for it."""
        self._read_at.pop(worker, None)
        self._steps.pop(worker, None)

    @property
    def workers(self) -> Mapping[str, int]:
        """The steps of those who take part, by name."""
        return dict(self._steps)

    def report(self) -> str:
        """How stale the updates were, in words; '' where there were none."""
        if not self.staleness:
            return ""
        total = self.staleness.total()
        mean = sum(stale * times for stale, times in self.staleness.items()) / total
        return f"{total} updates, stale by {mean:.2f} on average, {max(self.staleness)} at most"
