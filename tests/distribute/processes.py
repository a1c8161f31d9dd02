"""Real processes of a test: tasks of a cluster, and programs, on free ports of this machine.

All that a `Processes` has started is killed at the end of its `with` block. What a process prints
is read as it comes, so that a test can wait for a line; every wait ends with an error that shows
what was printed so far.

They are forked from a process that has imported JAX and the package, which takes longer than what
most of them do; but for that they are as `python program.py` would start them.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import multiprocessing
import os
import secrets
import signal
import socket
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[2]

TOKEN = secrets.token_hex(16)
"""What the processes of this run of the tests know each other by."""

Cluster = Mapping[str, Mapping[int, str]]
"""The addresses of tasks, by job and number."""

_LONG = 600.0
"""Seconds: a machine of two cores with much other work is done before."""

_TASK = """
    import json, os, sys, threading
    import estimatorkit as tf

    cluster = {
        job: {int(index): address for index, address in tasks.items()}
        for job, tasks in json.loads(sys.argv[1]).items()
    }
    server = tf.train.Server(cluster, job_name=sys.argv[2], task_index=int(sys.argv[3]))
    print("serving", server.target, flush=True)
    sys.stdin.read()  # ends with the process that started this one
    os._exit(0)
    """


def free_cluster(**tasks: int | Sequence[int]) -> dict[str, dict[int, str]]:
    """A cluster on free ports.

    Args:
        tasks: for each job how many tasks it has, or their numbers.
    """
    numbers = {
        job: range(given) if isinstance(given, int) else given for job, given in tasks.items()
    }
    with contextlib.ExitStack() as stack:  # all held at once, so that no port comes twice
        sockets = [stack.enter_context(socket.socket()) for each in numbers.values() for _ in each]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        addresses = iter([f"127.0.0.1:{each.getsockname()[1]}" for each in sockets])
        return {job: {index: next(addresses) for index in each} for job, each in numbers.items()}


def target(cluster: Cluster, job: str, index: int) -> str:
    """The target of a task's server."""
    return f"grpc://{cluster[job][index]}"


_FORKED = multiprocessing.get_context("forkserver")
_FORKED.set_forkserver_preload(
    [
        *("jax.numpy", "jax.experimental.multihost_utils"),  # not pyarrow, which starts a thread
        *("estimatorkit.ops.all_ops", "estimatorkit.estimator.training_and_evaluation"),
        *("estimatorkit.distribute.tasks.server", "estimatorkit.distribute.tasks.cluster_loop"),
        *("estimatorkit.distribute.tasks.task_service", "estimatorkit.interop.protos"),
        *("estimatorkit.distribute.tasks.reply_cache", "pydantic.main", "pydantic.type_adapter"),
    ]
)


def _run_program(
    path: Path,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    standard_input: Connection,
    output: Connection,
) -> None:
    """Does in a forked process what `python path arguments` does."""
    os.dup2(standard_input.fileno(), 0)
    for number in (1, 2):
        os.dup2(output.fileno(), number)
    standard_input.close()
    output.close()
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 (open to the end)
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(path.parent)
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.parent))
    if "JAX_NUM_CPU_DEVICES" in environment:
        import jax  # has read the environment of the process that this one was forked from

        jax.config.update("jax_num_cpu_devices", int(environment["JAX_NUM_CPU_DEVICES"]))
    # As the interpreter does it, its end included, which multiprocessing would leave out.
    source = f"import runpy; runpy.run_path({str(path)!r}, run_name='__main__')"
    failed = ctypes.pythonapi.PyRun_SimpleString(source.encode())
    ctypes.pythonapi.Py_Exit(1 if failed else 0)


class Process:
    """A process that a test has started: a program, in the folder of its file.

    Attributes:
        name: for messages.
        pid: its number.
    """

    def __init__(
        self, name: str, program: Path, arguments: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        self.name = name
        standard_input, writer = _FORKED.Pipe(duplex=False)
        reader, output = _FORKED.Pipe(duplex=False)
        given = (program, arguments, {**os.environ, **environment}, standard_input, output)
        self._process = _FORKED.Process(target=_run_program, args=given)
        self._process.start()
        for ours in (standard_input, output):
            ours.close()
        self._writer, self._output = writer, reader
        self.pid = self._process.pid or 0
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._output, open(self._output.fileno(), closefd=False) as lines:
            for line in lines:
                with self._changed:
                    self._lines.append(line.rstrip("\n"))
                    self._changed.notify_all()

    @property
    def lines(self) -> list[str]:
        """What it has printed so far, errors included."""
        with self._changed:
            return list(self._lines)

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.is_alive()

    def wait_for(self, text: str, seconds: float = _LONG) -> str:
        """The first line with a text in it.

        Raises:
            AssertionError: it did not come in time, or the process ended without it.
        """
        deadline = time.monotonic() + seconds
        while True:
            ended = not self._reader.is_alive()
            with self._changed:
                found = next((line for line in self._lines if text in line), None)
                if found is not None:
                    return found
                if not ended:
                    self._changed.wait(0.1)
            if ended or time.monotonic() > deadline:
                raise AssertionError(self._told(f"did not print {text!r} in {seconds:g} s"))

    def code(self, seconds: float = _LONG) -> int:
        """Its exit code, at its end.

        Raises:
            AssertionError: it did not end in time.
        """
        self._process.join(seconds)
        found = self._process.exitcode
        assert found is not None, self._told(f"did not end in {seconds:g} s")
        self._reader.join()
        return found

    def join(self, seconds: float = _LONG, code: int = 0) -> list[str]:
        """Waits for its end; what it has printed.

        Raises:
            AssertionError: it did not end in time, or with another exit code.
        """
        found = self.code(seconds)
        assert found == code, self._told(f"ended with {found}")
        return self.lines

    def answer(self, seconds: float = _LONG) -> Any:
        """What its last line says as JSON, at its end."""
        return json.loads(self.join(seconds)[-1])

    def write(self, text: str) -> None:
        """Gives it something to read."""
        os.write(self._writer.fileno(), text.encode())

    def signal(self, number: int) -> None:
        """Sends it a signal."""
        if self.runs:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kills it, and waits until it is gone."""
        self._process.kill()
        self._process.join()
        self._reader.join()
        self._writer.close()

    def _told(self, problem: str) -> str:
        shown = "\n".join(f"    {line}" for line in self.lines[-60:])
        return f"{self.name} {problem}; it printed\n{shown}"


class Processes:
    """Starts processes, and kills them at the end of a `with` block.

    Args:
        folder: for the programs' files.
        environment: what all processes get besides this one's.
    """

    def __init__(self, folder: Path, **environment: str) -> None:
        self._folder = folder
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        self._environment = {
            "PYTHONPATH": path,
            "PYTHONUNBUFFERED": "1",
            "ESTIMATORKIT_TOKEN": TOKEN,
            **environment,
        }
        self._started: list[Process] = []

    def program(self, name: str, source: str, *arguments: object, **environment: str) -> Process:
        """Starts a program, in a folder of its own with a file `name`.

        Args:
            name: what it is called in messages.
            source: its lines; may be indented.
            arguments: of its command line.
            environment: what it gets besides.
        """
        folder = self._folder / f"{len(self._started)}-{name.replace(' ', '-')}"
        folder.mkdir()
        (folder / "name").write_text(name, encoding="utf-8")
        path = folder / "program.py"
        path.write_text(textwrap.dedent(source), encoding="utf-8")
        given = [*map(str, arguments)]
        process = Process(name, path, given, {**self._environment, **environment})
        self._started.append(process)
        return process

    def task(self, cluster: Cluster, job: str, index: int, **environment: str) -> Process:
        """Starts a task of a cluster, which serves until it is killed."""
        name = f"{job} {index}"
        return self.program(name, _TASK, json.dumps(cluster), job, index, **environment)

    def tasks(self, cluster: Cluster) -> dict[tuple[str, int], Process]:
        """Starts all tasks of a cluster, and waits until they serve."""
        started = {
            (job, index): self.task(cluster, job, index)
            for job, tasks in cluster.items()
            for index in tasks
        }
        for process in started.values():
            process.wait_for("serving")
        return started

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._started:
            if process.runs:
                process.signal(signal.SIGCONT)  # one that was stopped
            process.kill()


def until(condition: Callable[[], Any], problem: str, seconds: float = _LONG) -> Any:
    """Waits until a condition is true; what it gives.

    Raises:
        AssertionError: it was not in time; says `problem`.
    """
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{problem} in {seconds:g} s"
        time.sleep(0.02)
    return found


LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


def listening_hosts(parent: psutil.Process) -> set[str]:
    """The addresses at which the processes that a process has started listen."""
    hosts = set()
    for process in parent.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            sockets = process.net_connections("inet")
            hosts.update(each.laddr.ip for each in sockets if each.status == psutil.CONN_LISTEN)
    return hosts


@contextlib.contextmanager
def known_token() -> Iterator[None]:
    """Inside, this process has the token of those that it starts."""
    before = os.environ.get("ESTIMATORKIT_TOKEN")
    os.environ["ESTIMATORKIT_TOKEN"] = TOKEN
    try:
        yield
    finally:
        if before is None:
            del os.environ["ESTIMATORKIT_TOKEN"]
        else:
            os.environ["ESTIMATORKIT_TOKEN"] = before
