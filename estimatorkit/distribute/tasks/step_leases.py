"""`StepLeases`: workers take steps of the global step many at a time.

A worker leases steps before it runs them and reports how many it has run, so that a step needs no
message to the task that counts. The counter holds reported steps only: the steps of a worker that
dies with a lease are leased to others. Pure state without I/O, which tests and
`benchmarks/scaling.py` drive.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class StepLeases:
    """The steps that workers have leased and not yet reported."""

    _leased: dict[str, int] = field(default_factory=dict)

    def lease(self, worker: str, steps: int, count: int, until: int | None) -> int:
        """Leases steps to a worker, in place of what it had leased.

        Args:
            worker: its name.
            steps: the most to lease.
            count: the counter.
            until: the count to stop at; None for no limit.

        Returns:
            The number of steps, such that all leased ones together do not pass `until`. 0 if others
            have leased the rest: it is to ask again when they have reported or left. 1 if the count
            has arrived at `until` meanwhile, since the caller has begun a step, as in TensorFlow.
        """
        self._leased.pop(worker, None)
        if until is not None and count < until:
            steps = max(0, min(steps, until - count - sum(self._leased.values())))
        elif until is not None:
            steps = 1
        if steps:
            self._leased[worker] = steps
        return steps

    def left(self, worker: str) -> None:
        """Ends a worker's lease: it has reported, or is gone."""
        self._leased.pop(worker, None)

    def clear(self) -> None:
        """Ends all leases."""
        self._leased.clear()
