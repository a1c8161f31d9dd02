"""`Launch`: the processes of a cluster, each with its `TF_CONFIG`.

When the chief exits, the others get `grace` seconds to exit, then SIGTERM, then SIGKILL. A process
that ended by a signal or exit code 138 may be restarted. Ctrl-C is forwarded. A
`launchers.Launcher` starts the processes.
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
from estimatorkit.distribute.launch.launchers import Cluster, Launcher, LocalLauncher, Process

_RETRYABLE = 128
"""Exit codes from here on allow a restart: 138, by agreement, and those of signals."""

_KILL_SECS = 5.0
"""Seconds from SIGTERM to SIGKILL."""

_POLL_SECS = 0.05

_COLOURS = (36, 33, 32, 35, 34, 31)


def tasks_of(ps: int, workers: int, synchronous: bool = False) -> dict[str, int]:
    """The number of tasks by job.

    Args:
        ps: the number of parameter servers.
        workers: the number of workers, including the chief.
        synchronous: whether there is no separate chief job: the first worker is the chief.
    """
    return {WORKER: workers} if synchronous else {CHIEF: 1, PS: ps, WORKER: workers - 1}


def local_cluster(ps: int, workers: int, synchronous: bool = False) -> Cluster:
    """Returns the addresses, by job, of a new cluster on free ports of this machine.

    Args:
        ps: the number of parameter servers.
        workers: the number of workers, including the chief.
        synchronous: whether there is no separate chief job: the first worker is the chief.
    """
    return LocalLauncher().open(tasks_of(ps, workers, synchronous))


@dataclass(eq=False)
class _Member:
    """A task of the cluster and its current process.

    Attributes:
        job, index: the task.
        process: its current process.
        restarts: the number of restarts left.
        code: its final exit code.
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
        command: the program and its arguments, the same for all.
        tasks: the number of tasks by job; the first of 'chief', or else of 'worker', is the chief.
        evaluator: whether to start an evaluator in addition to the cluster.
        restarts: how often each process may be restarted.
        grace: how many seconds the others have to exit after the chief has.
        out: receives the output lines, prefixed with the task's name.
        launcher: starts the processes.
    """

    command: Sequence[str]
    tasks: Mapping[str, int]
    evaluator: bool = False
    restarts: int = 0
    grace: float = 10.0
    out: IO[str] = field(default_factory=lambda: sys.stdout)
    launcher: Launcher = field(default_factory=LocalLauncher)

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
        self._is_opening = False

    def run(self) -> int:
        """Starts all processes and waits for them.

        Returns:
            The exit code of the chief, or of another indispensable process;
            128 + signal number if a signal ended it.

        Raises:
            OSError: the program cannot be started.
            SystemExit: a signal was received before all were started.
        """
        with self._forwarding_signals():
            try:
                self._start_all()
                code = self._wait()
            finally:
                self._stop()
                self.launcher.close()
        for reader in self._readers:
            reader.join()
        return code

    # -- processes

    def _start_all(self) -> None:
        evaluator = {EVALUATOR: 1} if self.evaluator else {}
        self._is_opening = True
        try:
            opened = self.launcher.open({**self.tasks, **evaluator})
        finally:
            self._is_opening = False
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
        member.process = self.launcher.start(
            member.job, member.index, self.command, {"TF_CONFIG": json.dumps(config)}
        )
        reader = threading.Thread(target=self._copy_lines, args=(member, member.process))
        reader.start()
        self._readers.append(reader)

    def _wait(self) -> int:
        """Waits for the chief, or another indispensable process; returns its exit code."""
        while True:
            for member in self._members:
                if member.code is None and member.process is not None:
                    ended = member.process.poll()
                    if ended is not None:
                        self._ended(member, ended)
                if member.code is not None and self._ends_cluster(member):
                    return member.code
            time.sleep(_POLL_SECS)

    def _ended(self, member: _Member, code: int) -> None:
        if code >= _RETRYABLE and member.restarts and not self._signals:
            member.restarts -= 1
            if self.launcher.is_lost(member.job, member.index):
                self._log(f"{member} is lost with its place; all are started again in new ones")
                self._send(signal.SIGKILL)
                self._running_after(_KILL_SECS)
                self._start_all()
            else:
                self._log(f"{member} ended with {code}; it is started again")
                self._start(member)
            return
        member.code = code
        if code:
            self._log(f"{member} ended with {code}")
            if member is not self._chief and self._ends_cluster(member):
                used = f" after {self.restarts} restarts" if self.restarts else ""
                self._log(f"the others cannot go on without {member}{used}; they are stopped")

    def _ends_cluster(self, member: _Member) -> bool:
        """Whether the cluster ends with this process."""
        if member is self._chief:
            return True
        is_synchronous = self._chief.job == WORKER and not self.tasks.get(PS)
        return bool(member.code) and (member.job == PS or (is_synchronous and member.job == WORKER))

    def _stop(self) -> None:
        """Stops the remaining processes; after a successful chief, or a signal sent to all, only
        after the grace period.
        """
        grace = self.grace if self._chief.code == 0 or self._signals else 0.0
        left = self._running_after(grace)
        if left and grace:
            names = ", ".join(map(str, left))
            self._log(f"{names}: still running {self.grace:g} s after the chief's end; stopped")
        self._send(signal.SIGTERM)
        if self._running_after(_KILL_SECS):
            self._send(signal.SIGKILL)
            self._running_after(_KILL_SECS)

    def _running_after(self, seconds: float) -> list[_Member]:
        """The processes still running after a timeout."""
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
    def _forwarding_signals(self) -> Any:
        """A context manager that forwards SIGINT and SIGTERM, and sends SIGKILL the second time."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread may handle signals
            return

        def handle(number: int, frame: Any) -> None:
            self._signals.append(number)
            self._send(number if len(self._signals) == 1 else signal.SIGKILL)
            if self._is_opening:
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

    def _copy_lines(self, member: _Member, process: Process) -> None:
        for line in process.lines():
            self._write(str(member), line)

    def _log(self, line: str) -> None:
        self._write("launch", line)

    def _write(self, name: str, line: str) -> None:
        head = f"[{name}]".ljust(self._width + 3)
        if self.out.isatty():
            numbers = {str(each): number for number, each in enumerate(self._members)}
            head = f"\x1b[{_COLOURS[numbers.get(name, 0) % len(_COLOURS)]}m{head}\x1b[0m"
        with self._writing:
            print(f"{head}{line}", file=self.out, flush=True)


def _runs(member: _Member) -> bool:
    return member.process is not None and member.process.poll() is None


__all__ = ["Launch", "local_cluster"]
