"""Staleness tracking as a pure state machine: reads, updates, and how stale updates are."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from benchmarks.scaling import Setting, simulate, synchronous_rate
from estimatorkit.distribute.tasks.staleness import StalenessTracker


@given(
    turns=st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=200),
    bound=st.one_of(st.none(), st.integers(0, 3)),
)
def test_steps_in_any_order(turns: list[tuple[str, bool]], bound: int | None) -> None:
    """Each reads, where it may, and updates, or leaves: what others did between is stale."""
    updates = StalenessTracker()
    history: list[str] = []  # who has updated
    read_at: dict[str, int] = {}
    steps: dict[str, int] = {}
    for worker, leaves in turns:
        if leaves:
            updates.left(worker)
            read_at.pop(worker, None)
            steps.pop(worker, None)
        elif worker in read_at:
            expected = len(history) - read_at.pop(worker)
            assert updates.updated(worker) == expected
            history.append(worker)
            steps[worker] += 1
        else:
            ahead = steps.get(worker, 0) - min(steps.values(), default=0)
            may = bound is None or worker not in steps or ahead <= bound
            assert updates.can_start(worker, bound) == may
            if may:
                updates.read(worker)
                read_at[worker] = len(history)
                steps.setdefault(worker, min(steps.values(), default=0))
        assert updates.workers == steps
    assert updates.count == len(history) == updates.staleness.total()


def test_steps_in_flight_are_stale_by_those_between() -> None:
    updates = StalenessTracker()
    updates.read("a")
    updates.read("a", 1)
    assert updates.updated("a") == 0
    updates.read("a", 1)
    assert [updates.updated("a"), updates.updated("a")] == [1, 1]
    updates.read("a")  # of a step that failed
    updates.read("b")
    updates.updated("b")
    updates.read("a")
    assert updates.updated("a") == 0


def test_slowest_worker_can_always_start() -> None:
    updates = StalenessTracker()
    for worker in "abc":
        updates.read(worker)
    for _ in range(3):
        updates.updated("a")
        updates.read("a")
    assert not updates.can_start("a", 2)
    assert updates.can_start("b", 0)
    updates.left("b")
    updates.left("c")  # nobody waits for those who have gone
    assert updates.can_start("a", 0)


def test_returning_worker_catches_up_on_update() -> None:
    updates = StalenessTracker()
    for worker in "ab":
        updates.read(worker)
    for _ in range(5):
        for worker in "ab":
            updates.updated(worker)
            updates.read(worker)
    updates.left("a")  # its connection was cut, in the midst of a step
    updates.updated("a")
    assert updates.workers == {"a": 6, "b": 5}
    assert updates.can_start("b", 0)


def test_late_worker_starts_level_with_slowest() -> None:
    updates = StalenessTracker()
    updates.read("a")
    for _ in range(5):
        updates.updated("a")
        updates.read("a")
    updates.read("late")
    assert updates.workers == {"a": 5, "late": 5}
    assert updates.report() == "5 updates, stale by 0.00 on average, 0 at most"


@pytest.mark.slow
def test_simulation_matches_closed_form() -> None:
    alone = Setting(1, 1, spread=0.0)
    service = alone.message + alone.megabytes * alone.per_megabyte
    transfers = 2 * (alone.latency + alone.megabytes / alone.bandwidth)
    found = simulate(alone)
    assert found.rate == pytest.approx(1 / (alone.compute + service + transfers), rel=0.02)
    assert found.stale_most == 0
    crowded = simulate(Setting(64, 1, spread=0.0))  # a server that never rests
    assert crowded.rate == pytest.approx(1 / service, rel=0.02)
    assert crowded.busy == pytest.approx(1.0, abs=0.02)
    assert crowded.stale_mean == pytest.approx(63, rel=0.1)
    bounded = simulate(Setting(16, 1, spread=1.0, bound=0))
    assert bounded.stale_most <= 2 * 16
    assert bounded.rate < simulate(Setting(16, 1, spread=1.0)).rate
    two = simulate(Setting(1, 1, spread=0.0, round_trips=2))
    assert two.rate < found.rate
    assert synchronous_rate(Setting(1, 1, spread=0.0)) == pytest.approx(1 / alone.compute)
