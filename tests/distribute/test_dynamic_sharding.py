"""Dynamic sharding: properties of the shard queue, and training in real processes."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from estimatorkit.core.errors import FailedPreconditionError, UnavailableError
from estimatorkit.data.sharded_dataset import Order, Unit
from estimatorkit.distribute.dynamic_sharding import ClusterShards, ShardQueue, ShardQueues
from estimatorkit.distribute.tasks.rpc import (
    Message,
    Shard,
    ShardQueueState,
    ShardRequest,
    TakeShard,
    decode,
    encode,
)
from tests.distribute.processes import Process, Processes
from tests.distribute.trainings import END_SECS, Training, all_end

# -- the state of a queue

WORKERS = st.sampled_from(["a", "b", "c"])


class Turns(RuleBasedStateMachine):
    """Workers that come, train, die and are set back, in any order; then one that does the rest."""

    def __init__(self) -> None:
        super().__init__()
        self.order = Order("data", 5, 3, seed=1)
        self.dealing = ShardQueue(self.order)
        self.every = {(epoch, index) for epoch in range(3) for index in range(5)}
        self.held: dict[str, list[Unit]] = {}
        self.silent: dict[str, list[Unit]] = {}  # held by workers that are taken for gone
        self.given: Counter[Unit] = Counter()
        self.times: Counter[Unit] = Counter()  # trained, by the model as it is
        self.saved: tuple[Any, Counter[Unit]] | None = None
        self.is_disturbed = False

    @rule(worker=WORKERS)
    def take(self, worker: str) -> None:
        unit = self.dealing.take(worker)
        if unit is not None:
            self.held.setdefault(worker, []).append(unit)
            self.given[unit] += 1

    @rule(worker=WORKERS, count=st.integers(1, 3))
    def train(self, worker: str, count: int) -> None:
        done = self.held.get(worker, [])[:count]
        self.held[worker] = self.held.get(worker, [])[count:]
        self.times.update(done)
        self.dealing.trained(worker, done)

    @rule(worker=WORKERS)
    def leave(self, worker: str) -> None:
        self.is_disturbed |= bool(self.held.pop(worker, None))
        self.dealing.left(worker)

    @rule(worker=WORKERS)
    def fall_silent(self, worker: str) -> None:
        self.silent.setdefault(worker, []).extend(self.held.pop(worker, []))
        self.dealing.left(worker)

    @rule(worker=WORKERS)
    def be_heard_of(self, worker: str) -> None:
        done = self.silent.pop(worker, [])
        # It may have been given a unit again that it had: trained once, it is trained.
        self.held[worker] = [unit for unit in self.held.get(worker, []) if unit not in done]
        self.times.update(done)
        self.is_disturbed |= any(self.given[unit] > 1 for unit in done)
        self.dealing.trained(worker, done)

    @rule()
    def save(self) -> None:
        self.saved = json.dumps(self.dealing.state().as_json()), self.times.copy()

    @precondition(lambda self: self.saved is not None)
    @rule()
    def go_back(self) -> None:
        assert self.saved is not None
        state, times = self.saved
        before = self.held, self.held.copy()
        self.is_disturbed = True
        if not self.dealing.restore(ShardQueueState.of_json(json.loads(state))):
            assert set(times) == self.every  # all was trained: it begins anew
            times = Counter()
            self.given.clear()
        self.times, self.held = times.copy(), {}
        self.silent.clear()
        for worker, units in before[1].items():  # they have not heard of it yet
            self.dealing.trained(worker, units)

    @invariant()
    def nobody_holds_what_others_hold(self) -> None:
        held = [unit for units in self.held.values() for unit in units]
        assert len(held) == len(set(held))

    @invariant()
    def nothing_is_trained_that_is_not_there(self) -> None:
        assert set(self.times) <= self.every

    def teardown(self) -> None:
        for worker in list(self.held):
            if worker != "a":
                self.train(worker, len(self.held[worker]))
        while self.dealing.has_more:
            self.take("b")
            self.train("b", 1)
        if self.held.get("a"):
            assert self.dealing.has_more is None
            self.leave("a")
            self.is_disturbed = True
            assert self.dealing.has_more
            while self.dealing.has_more:
                self.take("b")
                self.train("b", 1)
        self.is_disturbed |= any(self.silent.values())
        assert self.dealing.has_more is False
        assert set(self.times) == self.every
        if not self.is_disturbed:
            assert set(self.times.values()) == {1}
        text = " ".join(self.dealing.report())
        assert all("5 of 5 units" in line for line in self.dealing.report()), text


TestTurns = pytest.mark.slow(Turns.TestCase)
TestTurns.settings = settings(max_examples=150, deadline=None)


@given(st.integers(1, 30), st.integers(0, 4), st.one_of(st.none(), st.integers()))
@settings(deadline=None)
def test_epoch_has_each_shard_once(count: int, epoch: int, seed: int | None) -> None:
    order = Order("data", count, None, seed)
    units = [order.unit(number) for number in range(epoch * count, (epoch + 1) * count)]
    assert {each for each, _ in units} == {epoch}
    assert sorted(index for _, index in units) == list(range(count))


def test_epochs_have_different_orders() -> None:
    order = Order("data", 50, 3, seed=1)
    first, second = ([order.unit(50 * epoch + each)[1] for each in range(50)] for epoch in (0, 1))
    assert first != second
    assert first != list(range(50))
    assert [Order("data", 50, 3, None).unit(each)[1] for each in range(50)] == list(range(50))


def test_report() -> None:
    dealing = ShardQueue(Order("data", 4, 5, None))
    assert dealing.report() == []
    for _ in range(10):
        unit = dealing.take("a")
        assert unit is not None
        dealing.trained("a", [unit])
    for _ in range(3):
        dealing.take("b")
        dealing.left("b")
    dealing.take("b")
    dealing.take("b")
    dealing.left("b")
    dealing.take("c")
    assert dealing.report() == [
        "epochs 0 to 1: 4 of 4 units",
        "epoch 2: 2 of 4 units, 1 three times or more",
    ]


def test_additional_epochs_continue() -> None:
    dealing = ShardQueue(Order("data", 2, 1, None))
    for _ in range(2):
        unit = dealing.take("a")
        assert unit is not None
        dealing.trained("a", [unit])
    longer = ShardQueue(Order("data", 2, 2, None))
    assert longer.restore(dealing.state())
    assert longer.take("a") == (1, 0)
    assert not ShardQueue(Order("data", 2, 1, None)).restore(dealing.state())
    assert not ShardQueue(Order("data", 3, 2, None)).restore(dealing.state())


def test_processes_with_other_shards_raise() -> None:
    queues = ShardQueues()

    def order(count: int, name: str = "data") -> Order:
        return Order(name, count, epochs=1, seed=None)

    assert queues.execute(TakeShard("a", order(2))) == Shard((0, 0))
    with pytest.raises(FailedPreconditionError, match=r"expected: 2 units.*\n.*received: 3 units"):
        queues.execute(TakeShard("b", order(3)))
    assert queues.execute(TakeShard("b", order(3, "others"))) == Shard((0, 0))
    assert queues.report() == ["data, epoch 0: 0 of 2 units", "others, epoch 0: 0 of 3 units"]


class Channel:
    """A channel to queues in this process.

    Args:
        queues: the queues.
        breaks: whether it breaks when it is used.
    """

    def __init__(self, queues: ShardQueues, breaks: bool) -> None:
        self._queues, self._breaks = queues, breaks
        self._workers: set[str] = set()

    def call(self, request: ShardRequest[Any], raise_if_cancelled: Any) -> Message:
        if self._breaks:
            raise UnavailableError(None, None, "It is gone.")
        request = decode(encode(request), (), type(request))
        self._workers.add(request.worker)
        reply = self._queues.execute(request)
        return decode(encode(reply), (), type(reply))

    def end(self) -> None:
        for worker in self._workers:
            self._queues.left(worker)


class Cluster:
    """Gives channels; each breaks that comes after one of these numbers."""

    worker = "worker"
    shard_server = "/job:ps/task:0"

    def __init__(self, *broken: int) -> None:
        self.queues = ShardQueues()
        self._broken = broken
        self.opened = 0

    def channel(self, task: str, raise_if_cancelled: Any) -> Channel:
        assert task == self.shard_server
        self.opened += 1
        return Channel(self.queues, self.opened - 1 in self._broken)


def test_worker_continues_on_another_channel() -> None:
    cluster = Cluster(1)
    shards = ClusterShards(Order("data", 3, 1, None), cluster, lambda: None)
    assert shards.take() == (0, 0)
    shards.trained([(0, 0)])
    assert shards.take() == (0, 1)
    shards.close()  # what it holds is given back, and no more its own
    with pytest.raises(UnavailableError):
        shards.take()
    shards.trained([(0, 1)])
    assert [shards.take(), shards.take(), shards.take()] == [(0, 1), (0, 2), None]
    assert shards.has_more() is None
    shards.trained([(0, 1), (0, 2)])
    assert shards.has_more() is False
    assert cluster.queues.report() == ["epoch 0: 3 of 3 units, 1 given out twice"]
    assert cluster.opened == 3


# -- processes


def counts_of(training: Training) -> list[int]:
    """How often the elements of each unit were trained, as the last checkpoint says."""
    found: list[int] = np.asarray(training.value("counts")).astype(int).tolist()
    return found


def covered(chief: Process) -> list[str]:
    """What the chief says of the data."""
    said = "Dynamic sharding: "
    return [line.partition(said)[2].rstrip(".") for line in chief.lines if said in line]


@pytest.mark.slow
@pytest.mark.multiprocess
@pytest.mark.slow
def test_every_shard_is_trained_once_without_failures(processes: Processes, tmp_path: Path) -> None:
    jobs = {"ps": 2, "chief": 1, "worker": 2}
    training = Training(processes, tmp_path, "dealing", jobs, secs=0.01)
    started = training.start_all()
    all_end(started)
    assert counts_of(training) == [2 * 5] * 12
    assert covered(started["chief 0"]) == ["epochs 0 to 1: 12 of 12 units"]


@pytest.mark.slow
@pytest.mark.multiprocess
@pytest.mark.slow
def test_waiting_process_gets_sigterm(processes: Processes, tmp_path: Path) -> None:
    jobs = {"ps": 1, "chief": 1, "worker": 1}
    training = Training(processes, tmp_path, "dealing", jobs, gates={"worker 0": [3]})
    started = training.start_all()
    started["worker 0"].wait_for("element 3")
    started["chief 0"].wait_for("which may return data shards")
    started["chief 0"].signal(signal.SIGTERM)
    started["chief 0"].join(END_SECS, 143)
    training.open(3)
    started["chief 0"] = training.start("chief 0")
    all_end(started)
    assert (np.array(counts_of(training)) >= 10).all()


@pytest.mark.slow
@pytest.mark.multiprocess
@pytest.mark.slow
def test_shards_of_silent_worker_are_reassigned(processes: Processes, tmp_path: Path) -> None:
    """Its connections look open, as those of a host do that is gone without a word."""
    jobs = {"ps": 1, "chief": 1, "worker": 1}
    gates = {"worker 0": [8]}
    training = Training(processes, tmp_path, "dealing", jobs, gates=gates, silent_secs=3.0)
    started = training.start_all()
    started["worker 0"].wait_for("element 7")
    started["worker 0"].signal(signal.SIGSTOP)
    started["chief 0"].join()
    assert (np.array(counts_of(training)) >= 10).all()
    started["worker 0"].signal(signal.SIGCONT)
    training.open(8)
    all_end(started)


TAKEN = 3
"""Units of a worker that may be trained once more: begun, taken ahead, or trained in the call of
the loop that has not ended (0.2 s: less than a unit of 5 elements of 0.05 s)."""


@pytest.mark.slow
@pytest.mark.multiprocess
@pytest.mark.slow
def test_shards_of_killed_workers_are_reassigned(processes: Processes, tmp_path: Path) -> None:
    """One dies in the midst of a unit and stays away, another one is started again."""
    jobs = {"ps": 1, "chief": 1, "worker": 2}
    gates = {"worker 0": [8], "worker 1": [13]}
    training = Training(processes, tmp_path, "dealing", jobs, secs=0.05, gates=gates)
    started = training.start_all()
    # Both wait in the midst of a unit, until the others are waiting for what they hold.
    lost, again = started.pop("worker 0"), started["worker 1"]
    lost.wait_for("element 8")
    again.wait_for("element 13")
    lost.kill()
    again.kill()
    training.open(8)
    training.open(13)
    started["worker 1"] = training.start("worker 1")
    all_end(started)
    counts = np.array(counts_of(training))
    assert (counts >= 10).all()
    assert counts.sum() <= 10 * 12 + 5 * TAKEN * 2
    lines = covered(started["chief 0"])
    assert all("12 of 12 units" in line for line in lines)
    assert any("given out twice" in line for line in lines)


@pytest.mark.slow
@pytest.mark.multiprocess
@pytest.mark.slow
@pytest.mark.parametrize("killed", [["ps 0"], ["chief 0"], ["ps 0", "chief 0", "worker 0"]])
def test_model_and_remaining_shards_are_restored_together(
    processes: Processes, tmp_path: Path, killed: list[str]
) -> None:
    jobs = {"ps": 1, "chief": 1, "worker": 1}
    gates = {"chief 0": [30], "worker 0": [30]}
    training = Training(processes, tmp_path, "dealing", jobs, secs=0.05, gates=gates)
    started = training.start_all()
    for role in ("chief 0", "worker 0"):
        started[role].wait_for("element 30")
    for role in killed:
        started[role].kill()
    training.open(30)
    for role in killed:
        started[role] = training.start(role)
    all_end(started)
    counts = np.array(counts_of(training))
    assert (counts >= 10).all()
    assert counts.sum() <= 10 * 12 + 5 * TAKEN * 2
    lines = covered(started["chief 0"])
    assert lines
    assert all("12 of 12 units" in line for line in lines)
