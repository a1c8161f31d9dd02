"""`RayLauncher`: runs the processes of a cluster as Ray actors.

Each task has an actor, which reserves cores and a port on a node and runs the program as a
subprocess, with its own signals, exit code and memory. Processes are restarted by their actor; if a
node with an actor is lost, all tasks are rescheduled. The Ray cluster is that of RAY_ADDRESS, or a
local one started for the launch, with token authentication, on 127.0.0.1, without the dashboard.
"""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from estimatorkit.core.errors import DeadlineExceededError
from estimatorkit.distribute.launch.launchers import Cluster, LocalProcess, Process
from estimatorkit.distribute.launch.ray_connection import LOCAL, connected_ray
from estimatorkit.distribute.tasks.token import VARIABLE, cluster_token
from estimatorkit.distribute.tls import INSECURE, VARIABLES as TLS_VARIABLES
from estimatorkit.logger import logger

_STORE_BYTES = 80 << 20
"""The size of Ray's object store, close to its minimum: arrays are not sent by Ray."""

_READ_SECS = 0.5
_LOG_SECS = 30.0
_LOST = 137


class TaskActor:
    """The actor that runs a task on a node.

    Args:
        variables: environment variables in addition to the node's.
        folder: the working directory, if it exists there.
    """

    def __init__(self, variables: Mapping[str, str], folder: str) -> None:
        self._variables = dict(variables)
        self._folder = folder if os.path.isdir(folder) else None
        self._process: LocalProcess | None = None
        self._lines: queue.Queue[str | None] = queue.Queue()

    def address(self) -> str:
        """A free address on this node."""
        import ray

        own = ray.get_runtime_context().get_node_id()
        nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
        host: str = next(node["NodeManagerAddress"] for node in nodes if node["NodeID"] == own)
        with socket.socket() as found:
            found.bind((host, 0))
            return f"{host}:{found.getsockname()[1]}"

    def start(self, command: Sequence[str], variables: Mapping[str, str]) -> None:
        """Starts the program."""
        environment = {**os.environ, **self._variables, "PYTHONUNBUFFERED": "1", **variables}
        self._lines = queue.Queue()
        self._process = LocalProcess(command, environment, self._folder)
        threading.Thread(target=self._read, args=(self._process, self._lines), daemon=True).start()

    @staticmethod
    def _read(process: LocalProcess, lines: queue.Queue[str | None]) -> None:
        for line in process.lines():
            lines.put(line)
        lines.put(None)

    def progress(self) -> tuple[list[str], int | None]:
        """New output lines, after waiting a while if there are none, and the exit code once the
        program has ended and all lines were returned.
        """
        found: list[str] = []
        timeout = _READ_SECS
        while True:
            try:
                line = self._lines.get(timeout=timeout)
            except queue.Empty:
                return found, None
            if line is None:
                while self._process is not None and self._process.poll() is None:
                    time.sleep(0.01)
                return found, None if self._process is None else self._process.poll()
            found.append(line)
            timeout = 0.0

    def send(self, number: int) -> None:
        """Sends a signal to the program."""
        if self._process is not None:
            self._process.send(number)


class RayLauncher:
    """Starts processes by Ray.

    Args:
        processors: the number of cores per task.
        wait_secs: how long to wait for available nodes.
    """

    def __init__(self, processors: float = 1.0, wait_secs: float = 7200.0) -> None:
        self._processors = processors
        self._wait_secs = wait_secs
        self._namespace = f"estimatorkit-{uuid.uuid4().hex[:8]}"
        self._actors: dict[tuple[str, int], Any] = {}
        self._is_connected = False

    def _connect(self, tasks: int) -> Any:
        address = os.environ.get("RAY_ADDRESS") or LOCAL
        options: dict[str, Any] = {"namespace": self._namespace, "log_to_driver": False}
        if address == LOCAL:
            options["object_store_memory"] = _STORE_BYTES
            options["num_cpus"] = max(1, int(self._processors * tasks + 0.5))
        self._is_connected = True
        return connected_ray(address, **options)

    def open(self, counts: Mapping[str, int]) -> Cluster:
        """Creates the actors, and returns their addresses.

        Raises:
            DeadlineExceededError: the cluster did not have enough resources in time.
        """
        ray = self._connect(sum(counts.values()))
        variables = {VARIABLE: cluster_token()}
        for name in ("ESTIMATORKIT_DATA_DIR", "PYTHONPATH", INSECURE, *TLS_VARIABLES):
            if name in os.environ:
                variables[name] = os.environ[name]
        for actor in self._actors.values():
            ray.kill(actor)
        made = ray.remote(TaskActor)
        self._actors = {
            (job, index): made.options(
                name=f"{job}-{index}-{uuid.uuid4().hex[:8]}",
                num_cpus=self._processors,
                scheduling_strategy="SPREAD",
                max_concurrency=4,  # signals are sent while `progress` waits
            ).remote(variables, os.getcwd())
            for job, count in counts.items()
            for index in range(count)
        }
        found = {task: actor.address.remote() for task, actor in self._actors.items()}
        self._wait(ray, found)
        return {
            job: [ray.get(found[job, index]) for index in range(count)]
            for job, count in counts.items()
            if count
        }

    def _wait(self, ray: Any, addresses: Mapping[tuple[str, int], Any]) -> None:
        started = time.monotonic()
        while True:
            _, missing = ray.wait(
                list(addresses.values()), num_returns=len(addresses), timeout=_LOG_SECS
            )
            if not missing:
                return
            names = ", ".join(
                f"{job} {at}" for (job, at), ref in addresses.items() if ref in missing
            )
            free = ray.available_resources().get("CPU", 0)
            if time.monotonic() - started > self._wait_secs:
                raise DeadlineExceededError.explained(
                    f"Ray has too few free CPUs for {names}",
                    expected=f"{self._processors:g} CPUs for each",
                    received=f"{free:g} free CPUs",
                    hint="add nodes, or use a smaller --cpus",
                )
            logger.info("Waiting until Ray can place %s: %g CPUs are free.", names, free)

    def start(
        self, job: str, index: int, command: Sequence[str], variables: Mapping[str, str]
    ) -> Process:
        """Starts a process by its task's actor."""
        import ray

        actor = self._actors[job, index]
        ray.get(actor.start.remote(list(command), dict(variables)))
        return RayProcess(actor)

    def is_lost(self, job: str, index: int) -> bool:
        """Whether the actor or its node has died."""
        import ray

        try:
            ray.get(self._actors[job, index].send.remote(0), timeout=_LOG_SECS)
        except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
            return True
        return False

    def close(self) -> None:
        """Kills the actors, and shuts Ray down if it was started for the launch."""
        if self._is_connected:
            import ray

            for actor in self._actors.values():
                ray.kill(actor)
            ray.shutdown()
            self._is_connected = False


class RayProcess:
    """A process that an actor runs.

    Args:
        actor: the actor.
    """

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code, once all lines are read; 137 if its node is lost."""
        return self._code

    def send(self, number: int) -> None:
        """Sends a signal."""
        self._actor.send.remote(number)

    def lines(self) -> Iterator[str]:
        """Its output lines."""
        import ray

        code = None
        while code is None:
            try:
                lines, code = ray.get(self._actor.progress.remote())
            except ray.exceptions.RayError:
                lines, code = [], _LOST
            yield from lines
        self._code = code
