"""Launchers of cluster processes: on this host (`LocalLauncher`) or on Ray (`RayLauncher`)."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from estimatorkit.distribute.launch import die_with_parent as wrapper

Cluster = dict[str, list[str]]


class Process(Protocol):
    """A started process."""

    def poll(self) -> int | None:
        """Its exit code (128 + signal number if a signal ended it); None while it runs."""

    def send(self, number: int) -> None:
        """Sends a signal to it and its children."""

    def lines(self) -> Iterator[str]:
        """Its output lines, until it has ended."""


class Launcher(Protocol):
    """Starts processes."""

    def open(self, counts: Mapping[str, int]) -> Cluster:
        """Allocates resources for tasks, given their number by job; returns addresses by job."""

    def start(
        self, job: str, index: int, command: Sequence[str], variables: Mapping[str, str]
    ) -> Process:
        """Starts the process of a task with additional environment variables."""

    def is_lost(self, job: str, index: int) -> bool:
        """Whether a task's address is lost, so that all tasks must be reopened."""

    def close(self) -> None:
        """Releases the resources."""


class LocalLauncher:
    """Starts processes on this machine, each with a free port of 127.0.0.1."""

    def open(self, counts: Mapping[str, int]) -> Cluster:
        """The tasks' addresses."""
        with contextlib.ExitStack() as stack:  # all open at once, so that ports are unique
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
        """Always False."""
        return False

    def close(self) -> None:
        """No effect."""


class LocalProcess:
    """A local process in its own process group, which receives only signals sent by `send`.

    It is killed when this process ends for any reason, also by SIGKILL.

    Args:
        command: the program and its arguments.
        environment: the complete environment.
        folder: the working directory; the current one by default.

    Raises:
        FileNotFoundError: there is no such program.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], folder: str | None = None
    ) -> None:
        program = os.path.join(folder or "", command[0]) if os.sep in command[0] else command[0]
        if shutil.which(program, path=environment.get("PATH")) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
        self._process = subprocess.Popen(  # noqa: S603 - the user's own program
            [sys.executable, "-S", wrapper.__file__, *command],
            env=environment,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def poll(self) -> int | None:
        """Its exit code; None while it runs. Kills children that it leaves behind."""
        was_running = self._process.returncode is None
        code = self._process.poll()
        if code is not None and was_running:
            self.send(signal.SIGKILL)  # else they might keep the output pipe open
            if self._process.stdin is not None:
                self._process.stdin.close()
        return 128 - code if code is not None and code < 0 else code

    def send(self, number: int) -> None:
        """Sends a signal."""
        with contextlib.suppress(ProcessLookupError):  # it has ended since
            os.killpg(self._process.pid, number)

    def lines(self) -> Iterator[str]:
        """Its output lines."""
        if self._process.stdout is None:
            return
        with self._process.stdout as lines:
            for line in lines:
                yield line.decode(errors="replace").rstrip("\r\n")
