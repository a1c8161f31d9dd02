"""`Launch`: the processes of a cluster, each with its `TF_CONFIG`.

The chief's end is the end of all: whoever is left gets `grace` seconds to end by itself, then
SIGTERM, then SIGKILL. A process that a signal or the exit code 138 ended may be started again.
Ctrl-C comes by way of here, once. Where they run is the `places.Place`.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from estimatorkit.distribute.cluster_task import CHIEF, EVALUATOR, PS, WORKER
from estimatorkit.distribute.launch.launchers import Cluster, LocalLauncher, Place, Process

_RETRYABLE = 128
"""Exit codes from here on want another start: 138, by agreement, and those of signals."""

_KILL_SECS = 5.0
"""Seconds from SIGTERM to SIGKILL."""

_POLL_SECS = 0.05

_COLOURS = (36, 33, 32, 35, 34, 31)


def tasks_of(ps: int, workers: int, synchronous: bool = False) -> dict[str, int]:
    """How many tasks each job of a cluster has.

    Args:
        ps: how many processes hold parameters.
        workers: how many compute, the chief among them.
        synchronous: whether all are equal: workers, the first of which is the chief.
    """
    return {WORKER: workers} if synchronous else {CHIEF: 1, PS: ps, WORKER: workers - 1}


def local_cluster(ps: int, workers: int, synchronous: bool = False) -> Cluster:
    """A cluster on free ports of this machine (see `tasks_of`)."""
    return LocalLauncher().open(tasks_of(ps, workers, synchronous))


@dataclass(eq=False)
class _Member:
    """A task of the cluster, and the process that is it now.

    Attributes:
        job, index: which task.
        process: its newest process.
        restarts: how often it may still be started again.
        code: its exit code, once it has ended for good.
    """

    job: str
    index: int
    restarts: int
    process: Process | None = None
    code: int | None = None

    def __str__(self) -> str:
        return f"{self.job} {self.index}"


@dataclass(eq=False)
class Launch:
    """The processes of a cluster.

    Args:
        command: the program and its arguments, the same for each.
        tasks: how many there are of each job; the first of 'chief', or of 'worker' without one, is
            the chief.
        evaluator: whether there is an evaluator beside the cluster.
        restarts: how often each process may be started again.
        grace: seconds that the others have to end after the chief.
        out: where their lines go, each after its task's name.
        place: where they run.
    """

    command: Sequence[str]
    tasks: Mapping[str, int]
    evaluator: bool = False
    restarts: int = 0
    grace: float = 10.0
    out: IO[str] = field(default_factory=lambda: sys.stdout)
    place: Place = field(default_factory=LocalLauncher)

    def __post_init__(self) -> None:
        tasks = [(job, index) for job, count in self.tasks.items() for index in range(count)]
        tasks += [(EVALUATOR, 0)] * self.evaluator
        self._members = [_Member(*task, self.restarts) for task in tasks]
        self._cluster: Cluster = {}
        chief = CHIEF if CHIEF in self.tasks else WORKER
        self._chief = next(each for each in self._members if (each.job, each.index) == (chief, 0))
        self._width = max(len(str(each)) for each in self._members)
        self._writing = threading.Lock()
        self._readers: list[threading.Thread] = []
        self._signals: list[int] = []
        self._waits_for_room = False

    def run(self) -> int:
        """Starts all, and waits for their end.

        Returns:
            The chief's exit code, 128 and the signal's number where a signal ended it; or that of a
            process without which the others cannot go on.

        Raises:
            OSError: the program cannot be started.
            SystemExit: a signal came before all were started.
        """
        with self._signals_passed_on():
            try:
                self._start_all()
                code = self._wait()
            finally:
                self._stop()
                self.place.close()
        for reader in self._readers:
            reader.join()
        return code

    # -- processes

    def _start_all(self) -> None:
        evaluator = {EVALUATOR: 1} if self.evaluator else {}
        self._waits_for_room = True
        try:
            opened = self.place.open({**self.tasks, **evaluator})
        finally:
            self._waits_for_room = False
        self._cluster = {job: hosts for job, hosts in opened.items() if job != EVALUATOR}
        for member in self._members:
            if self._signals:
                raise SystemExit(128 + self._signals[0])
            self._start(member)

    def _start(self, member: _Member) -> None:
        config = {
            "cluster": self._cluster,
            "task": {"type": member.job, "index": member.index},
        }
        member.code = None
        member.process = self.place.start(
            member.job, member.index, self.command, {"TF_CONFIG": json.dumps(config)}
        )
        reader = threading.Thread(target=self._pass_on, args=(member, member.process))
        reader.start()
        self._readers.append(reader)

    def _wait(self) -> int:
        """Waits for the chief, or for a process that cannot be done without; its exit code."""
        while True:
            for member in self._members:
                if member.code is None and member.process is not None:
                    ended = member.process.poll()
                    if ended is not None:
                        self._ended(member, ended)
                if member.code is not None and self._is_the_end(member):
                    return member.code
            time.sleep(_POLL_SECS)

    def _ended(self, member: _Member, code: int) -> None:
        if code >= _RETRYABLE and member.restarts and not self._signals:
            member.restarts -= 1
            if self.place.is_lost(member.job, member.index):
                self._say(f"{member} is lost with its place; all are started again in new ones")
                self._send(signal.SIGKILL)
                self._left_after(_KILL_SECS)
                self._start_all()
            else:
                self._say(f"{member} ended with {code}; it is started again")
                self._start(member)
            return
        member.code = code
        if code:
            self._say(f"{member} ended with {code}")

    def _is_the_end(self, member: _Member) -> bool:
        """Whether the others cannot, or need not, go on without this one."""
        if member is self._chief:
            return True
        is_synchronous = self._chief.job == WORKER and not self.tasks.get(PS)
        return bool(member.code) and (member.job == PS or (is_synchronous and member.job == WORKER))

    def _stop(self) -> None:
        """Ends who is left: after a good end of the chief, or a signal that all have got and may
        be at work on, only once the grace is over."""
        patience = self.grace if self._chief.code == 0 or self._signals else 0.0
        left = self._left_after(patience)
        if left and patience:
            names = ", ".join(map(str, left))
            self._say(f"{names}: still running {self.grace:g} s after the chief's end; stopped")
        self._send(signal.SIGTERM)
        if self._left_after(_KILL_SECS):
            self._send(signal.SIGKILL)
            self._left_after(_KILL_SECS)

    def _left_after(self, seconds: float) -> list[_Member]:
        """Who still runs after at most so long."""
        end = time.monotonic() + seconds
        while left := [each for each in self._members if _runs(each)]:
            if time.monotonic() >= end:
                return left
            time.sleep(_POLL_SECS)
        return []

    def _send(self, number: int) -> None:
        for member in self._members:
            if member.process is not None and _runs(member):
                member.process.send(number)

    @contextlib.contextmanager
    def _signals_passed_on(self) -> Any:
        """SIGINT and SIGTERM go to every process; the second time as SIGKILL."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread may handle signals
            return

        def handle(number: int, frame: Any) -> None:
            self._signals.append(number)
            self._send(number if len(self._signals) == 1 else signal.SIGKILL)
            if self._waits_for_room:
                raise SystemExit(128 + number)

        before = {
            number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    # -- lines

    def _pass_on(self, member: _Member, process: Process) -> None:
        for line in process.lines():
            self._write(str(member), line)

    def _say(self, line: str) -> None:
        self._write("launch", line)

    def _write(self, name: str, line: str) -> None:
        head = f"[{name}]".ljust(self._width + 3)
        if self.out.isatty():
            places = {str(each): place for place, each in enumerate(self._members)}
            head = f"\x1b[{_COLOURS[places.get(name, 0) % len(_COLOURS)]}m{head}\x1b[0m"
        with self._writing:
            print(f"{head}{line}", file=self.out, flush=True)


def _runs(member: _Member) -> bool:
    return member.process is not None and member.process.poll() is None


__all__ = ["Launch", "local_cluster"]
