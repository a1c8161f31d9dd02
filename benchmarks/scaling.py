"""Parameter servers past the machines at hand: a discrete-event simulation of the protocol.

    PYTHONPATH=. python benchmarks/scaling.py [--write]

Workers compute, then exchange with the servers that hold what their step needs: the update of this
step and the read for the next in one message, or in two. The first server may hold the global step
alone; it gets a message from each step, or one for many (`StepLeases`). Servers answer one message
at a time; what is stale, who waits under a bound, and how many steps a worker takes are decided by
the very classes that the servers have (`StalenessTracker`, `StepLeases`).
Times are the constants below, measured on one machine by `clusters.py`, and networks as they are
sold; the spread of a worker's steps is log-normal. The model is that of `mnist_dnn` unless said
otherwise.

It prints steps a second, staleness, traffic and how busy the servers are from 1 to 1,000 workers
and 1 to 100 servers, then, for each choice of the design, what changes.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import random
import sys
from collections import deque
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.report import keep, machine
from estimatorkit.distribute.tasks.staleness import StalenessTracker
from estimatorkit.distribute.tasks.step_leases import StepLeases
from estimatorkit.train.training import CALL_SECS

ROOT = Path(__file__).parents[1]

EVENTS = 200_000
"""Messages simulated for a row, at most: it takes some seconds."""

LEAST_STEPS = 12
"""Steps of each worker, at least; the first third is not counted."""


_LEASE = -1
"""The exchange that leases steps."""

_LEASE_MESSAGES = 3
"""What a call sends to the task that counts: its report, a read of the count, the next lease."""


@dataclass(frozen=True)
class Setting:
    """A cluster, a model and how they exchange.

    Attributes:
        workers, servers: how many.
        compute: seconds of a worker's own work a step.
        spread: the standard deviation of its logarithm.
        megabytes: parameters, of which each server has an equal share.
        sparse: megabytes a step that are exchanged; None where all are.
        message: seconds of a server for a message, whatever its size.
        per_megabyte: seconds of a server for a megabyte of update and of read: copies, the
            optimizer, the network's stack.
        latency: seconds that a message is under way.
        bandwidth: megabytes a second of a server's network, each way.
        round_trips: messages a step and server: 1 or 2.
        bound: how many steps a worker may be ahead of the slowest; None for any number.
        needs: how many of the servers, drawn at each step, hold what it needs; None for all.
        counted: where steps are counted: "with" parameters; at the first server, which holds
            nothing else, by "each" step; or there, "leased".
    """

    workers: int
    servers: int
    compute: float = 0.0016
    spread: float = 0.2
    megabytes: float = 0.94
    sparse: float | None = None
    message: float = 0.00035
    per_megabyte: float = 0.0006
    latency: float = 0.00005
    bandwidth: float = 3000.0  # 25 Gbit/s
    round_trips: int = 1
    bound: int | None = None
    needs: int | None = None
    counted: str = "with"

    @property
    def share(self) -> float:
        """Megabytes of an update, or of a read, of one server."""
        whole = self.megabytes if self.sparse is None else self.sparse
        return whole / (self.needs or len(self.holders))

    @property
    def holders(self) -> range:
        """The servers with parameters."""
        return range(int(self.counted != "with"), self.servers)


@dataclass
class Server:
    """A parameter server: it answers one message at a time."""

    updates: StalenessTracker = field(default_factory=StalenessTracker)
    leases: StepLeases = field(default_factory=StepLeases)
    count: int = 0
    waiting: deque[tuple[int, int]] = field(default_factory=deque)
    held_back: list[int] = field(default_factory=list)
    is_busy: bool = False
    busy: float = 0.0


@dataclass(frozen=True)
class Result:
    """What came of it.

    Attributes:
        rate: steps a second of all workers.
        stale_mean, stale_most: by how many updates of others an update was stale.
        traffic: megabytes a second in and out of each server.
        busy: the share of its time that a server worked.
    """

    rate: float
    stale_mean: float
    stale_most: int
    traffic: float
    busy: float


class Simulation:
    """Runs a setting for a while of simulated time."""

    def __init__(self, setting: Setting, seed: int = 0) -> None:
        self._setting = setting
        self._random = random.Random(seed)
        self._servers = [Server() for _ in range(setting.servers)]
        messages = setting.workers * (setting.needs or setting.servers) * setting.round_trips
        self._steps = max(LEAST_STEPS, min(2000, EVENTS // messages))
        self._done = [0] * setting.workers
        self._missing = [0] * setting.workers
        self._needed: list[list[int]] = [[] for _ in range(setting.workers)]
        self._leased = [0] * setting.workers
        self._left = [0] * setting.workers
        self._events: list[tuple[float, int, str, int, int, int]] = []
        self._numbers = itertools.count()
        self._now = 0.0

    def _at(self, delay: float, what: str, worker: int, server: int = 0, trip: int = 0) -> None:
        event = (self._now + delay, next(self._numbers), what, worker, server, trip)
        heapq.heappush(self._events, event)

    def run(self) -> Result:
        """Runs; the first third of the steps warms up."""
        setting = self._setting
        for worker in range(setting.workers):
            for server in self._servers:
                server.updates.read(str(worker))
            self._compute(worker)
        total = setting.workers * self._steps
        started = 0.0
        counted = finished = 0
        busy_before = 0.0
        while finished < total and self._events:
            self._now, _, what, worker, server, trip = heapq.heappop(self._events)
            if what == "computed":
                self._send(worker, 0)
            elif what == "arrived":
                self._servers[server].waiting.append((worker, trip))
                self._serve(server)
            elif what == "served":
                self._served(worker, server, trip)
            elif what == "leased":
                self._compute(worker)
            elif what == "answered" and self._answered(worker, trip):
                finished += 1
                if finished == total // 3:
                    started, busy_before = self._now, sum(each.busy for each in self._servers)
                counted += finished > total // 3
                if self._done[worker] < self._steps * 2:
                    self._next(worker)
        seconds = self._now - started
        stale = self._servers[-1].updates.staleness
        busy = (sum(each.busy for each in self._servers) - busy_before) / len(self._servers)
        # The share of the steps that need a server.
        needed = 1.0 if setting.needs is None else setting.needs / len(setting.holders)
        return Result(
            counted / seconds,
            sum(late * times for late, times in stale.items()) / max(stale.total(), 1),
            max(stale, default=0),
            2 * setting.share * counted / seconds * needed,
            busy / seconds,
        )

    def _compute(self, worker: int) -> None:
        spread = self._random.lognormvariate(0.0, self._setting.spread)
        self._at(self._setting.compute * spread, "computed", worker)

    def _next(self, worker: int) -> None:
        """Begins a step, or asks for the lease of more."""
        self._left[worker] -= 1
        if self._setting.counted == "leased" and self._left[worker] < 0:
            self._at(self._setting.latency, "arrived", worker, 0, _LEASE)
        else:
            self._compute(worker)

    def _lease(self, worker: int) -> None:
        server = self._servers[0]
        server.count += self._leased[worker]
        most = max(1, int(CALL_SECS / self._setting.compute))
        self._leased[worker] = server.leases.lease(str(worker), most, server.count, None)
        self._left[worker] = self._leased[worker] - 1
        self._at(self._setting.latency, "leased", worker)

    def _send(self, worker: int, trip: int) -> None:
        setting = self._setting
        if trip == 0:
            holders = setting.holders
            needed = list(holders)
            if setting.needs is not None:
                needed = self._random.sample(holders, setting.needs)
            self._needed[worker] = [0, *needed] if setting.counted == "each" else needed
        self._missing[worker] = len(self._needed[worker])
        carries_update = trip == 0
        transfer = setting.share / setting.bandwidth if carries_update else 0.0
        for server in self._needed[worker]:
            self._at(setting.latency + transfer, "arrived", worker, server, trip)

    def _serve(self, number: int) -> None:
        """Begins the next message, if the server is free."""
        server, setting = self._servers[number], self._setting
        if server.is_busy or not server.waiting:
            return
        worker, trip = server.waiting.popleft()
        carries = 2 if setting.round_trips == 1 else 1
        share = setting.share if number in setting.holders else 0.0
        work = setting.message + carries / 2 * share * setting.per_megabyte
        # The network of the server is shared by all answers: it is busy with this one.
        work = max(work, share / setting.bandwidth)
        if trip == _LEASE:
            work = _LEASE_MESSAGES * setting.message
        server.is_busy = True
        server.busy += work
        self._at(work, "served", worker, number, trip)

    def _served(self, worker: int, number: int, trip: int) -> None:
        server = self._servers[number]
        server.is_busy = False
        if trip == _LEASE:
            self._lease(worker)
            self._serve(number)
            return
        last = self._setting.round_trips - 1
        asking = [worker] if trip == last else []
        if trip == 0:
            server.updates.updated(str(worker))
            asking += server.held_back  # they may have waited for this update
            server.held_back = []
        if trip < last:
            self._at(self._setting.latency, "answered", worker, number, trip)
        for each in asking:
            self._read(each, number, last)
        self._serve(number)

    def _read(self, worker: int, number: int, last: int) -> None:
        server, setting = self._servers[number], self._setting
        if server.updates.can_start(str(worker), setting.bound):
            server.updates.read(str(worker))
            transfer = setting.share / setting.bandwidth
            self._at(setting.latency + transfer, "answered", worker, number, last)
        else:
            server.held_back.append(worker)

    def _answered(self, worker: int, trip: int) -> bool:
        """Whether this was the last answer of a worker's step."""
        self._missing[worker] -= 1
        if self._missing[worker]:
            return False
        if trip < self._setting.round_trips - 1:
            self._send(worker, trip + 1)
            return False
        self._done[worker] += 1
        return True


def simulate(setting: Setting) -> Result:
    """What a setting gives."""
    return Simulation(setting).run()


def synchronous_rate(setting: Setting) -> float:
    """Steps a second of all workers by a ring of all-reduces, each waiting for the slowest.

    The slowest of `n` log-normal times is taken from 2,000 draws; a ring moves twice the model
    through each worker's network, in 2 (n - 1) exchanges.
    """
    draws = random.Random(0)
    count = max(20, 20_000 // setting.workers)
    slowest = sum(
        max(draws.lognormvariate(0.0, setting.spread) for _ in range(setting.workers))
        for _ in range(count)
    )
    compute = setting.compute * slowest / count
    others = setting.workers - 1
    ring = 2 * others * setting.latency
    ring += 2 * others / setting.workers * setting.megabytes / setting.bandwidth
    return setting.workers / (compute + (ring if others else 0.0))


def row(label: str, setting: Setting) -> str:
    """A line of a table."""
    found = simulate(setting)
    perfect = setting.workers / setting.compute
    cells = (
        *(label, f"{found.rate:,.0f}", f"{100 * found.rate / perfect:.0f} %"),
        *(f"{found.stale_mean:.1f}", f"{found.stale_most}", f"{found.traffic:,.0f}"),
        f"{100 * found.busy:.0f} %",
    )
    return f"| {' | '.join(cells)} |"


HEAD = [
    "| {} | steps a second | of perfect | stale | at most | MB/s a server | busy |",
    "| --- | --- | --- | --- | --- | --- | --- |",
]


def tables() -> list[tuple[str, list[str]]]:
    """The tables: what each is about, and its lines."""
    sizes = [
        (1, 1),
        *((4, 1), (16, 1), (16, 4), (64, 4), (64, 16), (256, 16), (256, 64), (1000, 64)),
        (1000, 100),
    ]
    grid = [row(f"{w} workers, {p} servers", Setting(w, p)) for w, p in sizes]
    base = Setting(64, 8)
    slow = replace(base, bandwidth=120.0)  # 1 Gbit/s
    table = replace(base, megabytes=640.0)  # 10 million rows of 16 numbers
    choices = [
        row("one round trip a step", base),
        row("two", replace(base, round_trips=2)),
        row("no bound on staleness", replace(base, spread=0.6)),
        row("4 steps ahead at most", replace(base, spread=0.6, bound=4)),
        row("none ahead", replace(base, spread=0.6, bound=0)),
        row("1 Gbit/s", slow),
        row("table of 640 MB, all of it", table),
        row("table of 640 MB, rows of the batch (0.13 MB)", replace(table, sparse=0.13)),
        row("steps of 50 ms, 100 MB of parameters", replace(base, compute=0.05, megabytes=100)),
    ]
    shards = replace(Setting(1, 1), sparse=0.01)  # 160 rows of 16 numbers
    counting = [
        row(f"{needs} of {p - 1} servers, {w} workers, {label}", setting)
        for w, p, needs in ((16, 5, 1), (64, 17, 1), (256, 65, 1), (256, 65, 4), (1000, 101, 1))
        for label, counted in (("each step counted", "each"), ("leased", "leased"))
        for setting in [replace(shards, workers=w, servers=p, needs=needs, counted=counted)]
    ]
    synchronous = [
        f"| {workers} | {simulate(setting).rate:,.0f} | {synchronous_rate(setting):,.0f} |"
        for workers in (2, 8, 32, 128, 512)
        for setting in [Setting(workers, max(1, workers // 8), compute=0.05, megabytes=25)]
    ]
    return [
        ("How far it goes", [HEAD[0].format("cluster"), HEAD[1], *grid]),
        (
            "What the choices do: 64 workers, 8 servers",
            [HEAD[0].format("choice"), HEAD[1], *choices],
        ),
        (
            "Where a server more holds the global step alone: steps that need rows of few servers",
            [HEAD[0].format("a step needs"), HEAD[1], *counting],
        ),
        (
            "Asynchronous (a server for 8 workers) and synchronous (a ring): steps of 50 ms, 25 MB",
            [
                "| workers | asynchronous, steps a second | synchronous |",
                "| --- | --- | --- |",
                *synchronous,
            ],
        ),
    ]


def main(write: bool) -> int:
    """Prints the tables, and keeps them where asked for."""
    parts = []
    for title, lines in tables():
        parts.append(f"### {title} (simulated by `benchmarks/scaling.py`)\n\n" + "\n".join(lines))
        print(parts[-1], end="\n\n", flush=True)
    if write:
        keep(ROOT / "benchmarks" / "RESULTS.md", machine(), parts)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the tables in RESULTS.md")
    sys.exit(main(parser.parse_args().write))
