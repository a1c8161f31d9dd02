"""Launchers of cluster processes: on this host (`LocalLauncher`) or on Ray (`RayLauncher`)."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from estimatorkit.distribute.launch import die_with_parent as tether

Cluster = dict[str, list[str]]


class Process(Protocol):
    """A process that was started somewhere."""

    def poll(self) -> int | None:
        """Its exit code, 128 and the number of the signal that ended it; None while it runs."""

    def send(self, number: int) -> None:
        """Sends a signal to it and to its children."""

    def lines(self) -> Iterator[str]:
        """What it prints, until it has ended."""


class Place(Protocol):
    """Where processes are started."""

    def open(self, counts: Mapping[str, int]) -> Cluster:
        """Takes what so many tasks of each job need; their addresses, by job."""

    def start(
        self, job: str, index: int, command: Sequence[str], variables: Mapping[str, str]
    ) -> Process:
        """Starts the process of a task, with these variables in its environment."""

    def is_lost(self, job: str, index: int) -> bool:
        """Whether a task's address is lost, so that all must be opened anew."""

    def close(self) -> None:
        """Gives back what was taken."""


class LocalLauncher:
    """This machine: each task has a free port of 127.0.0.1."""

    def open(self, counts: Mapping[str, int]) -> Cluster:
        """The tasks' addresses."""
        with contextlib.ExitStack() as stack:  # all held at once, so that no port comes twice
            sockets = [stack.enter_context(socket.socket()) for _ in range(sum(counts.values()))]
            for each in sockets:
                each.bind(("127.0.0.1", 0))
            addresses = iter([f"127.0.0.1:{each.getsockname()[1]}" for each in sockets])
            return {
                job: [next(addresses) for _ in range(count)]
                for job, count in counts.items()
                if count
            }

    def start(
        self, job: str, index: int, command: Sequence[str], variables: Mapping[str, str]
    ) -> Process:
        """Starts a process.

        Raises:
            OSError: the program cannot be started.
        """
        return LocalProcess(command, {"PYTHONUNBUFFERED": "1", **os.environ, **variables})

    def is_lost(self, job: str, index: int) -> bool:
        """Never: this machine is what it is."""
        return False

    def close(self) -> None:
        """Nothing."""


class LocalProcess:
    """A process of this machine, in a group of its own: a signal reaches its children, and none
    but those that are sent here.

    Args:
        command: the program and its arguments.
        environment: all of it.
        folder: where it runs; here by default.
        tethered: whether it is killed where this process ends, however that does.

    Raises:
        OSError: the program cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: str | None = None,
        tethered: bool = False,
    ) -> None:
        if tethered:
            command = [sys.executable, "-S", tether.__file__, *command]
        self._process = subprocess.Popen(  # noqa: S603 (the user's own program is what is asked)
            command,
            env=environment,
            cwd=folder,
            stdin=subprocess.PIPE if tethered else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def poll(self) -> int | None:
        """Its exit code; None while it runs. Children that it leaves behind are killed."""
        was_running = self._process.returncode is None
        code = self._process.poll()
        if code is not None and was_running:
            self.send(signal.SIGKILL)  # else they might hold the pipe of its lines for ever
        return 128 - code if code is not None and code < 0 else code

    def send(self, number: int) -> None:
        """Sends a signal."""
        with contextlib.suppress(ProcessLookupError):  # it has ended since
            os.killpg(self._process.pid, number)

    def lines(self) -> Iterator[str]:
        """What it prints."""
        if self._process.stdout is None:
            return
        with self._process.stdout as lines:
            for line in lines:
                yield line.decode(errors="replace").rstrip("\r\n")
