"""Trainings with parameter servers by real processes, each of which a test may start and kill."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from estimatorkit.storage.checkpoint import latest_checkpoint, load_variable
from tests.distribute.processes import Process, Processes, free_cluster

PROGRAMS = Path(__file__).parent / "programs"

END_SECS = 50.0
"""How long processes may take to end after the chief: less than any time limit of a training, and
more than a machine with other work needs."""


class Training:
    """The processes of a training.

    Args:
        processes: starts and kills.
        folder: where the model's folder goes.
        program: the name of one of `programs`, or the path of another without its '.py'. It takes
            options as JSON, among them 'model_dir'.
        jobs: how many tasks each job has.
        options: of the program.

    Attributes:
        roles: what it has processes for: 'ps 0', 'worker 1'.
        cluster: the addresses, by job.
        model_dir: the model's folder.
    """

    def __init__(
        self,
        processes: Processes,
        folder: Path,
        program: str,
        jobs: Mapping[str, int],
        **options: Any,
    ) -> None:
        self._processes = processes
        self._source = (PROGRAMS / f"{program}.py").read_text("utf-8")
        self.model_dir = folder / "model"
        self.cluster = {job: [*each.values()] for job, each in free_cluster(**jobs).items()}
        self._options = {**options, "model_dir": str(self.model_dir)}
        self.roles = [f"{job} {index}" for job, count in jobs.items() for index in range(count)]

    def start(
        self, role: str, cluster: Mapping[str, list[str]] | None = None, **options: Any
    ) -> Process:
        """Starts a process ('worker 1'), with other addresses and options where they are given."""
        job, index = role.split()
        task = {"cluster": cluster or self.cluster, "task": {"type": job, "index": int(index)}}
        words = json.dumps({**self._options, **options})
        return self._processes.program(role, self._source, words, TF_CONFIG=json.dumps(task))

    def start_all(self) -> dict[str, Process]:
        """Starts all processes; by role."""
        return {role: self.start(role) for role in self.roles}

    def open(self, gate: int) -> None:
        """Lets the inputs go on that wait at this gate."""
        self.model_dir.mkdir(exist_ok=True)
        (self.model_dir / f"open-{gate}").touch()

    def value(self, name: str) -> Any:
        """A variable of the last checkpoint."""
        path = latest_checkpoint(str(self.model_dir))
        assert path is not None
        return load_variable(path, name)


def all_end(processes: Mapping[str, Process], chief: str = "chief 0") -> None:
    """Waits for the chief's end, and that all others follow soon."""
    processes[chief].join()
    deadline = time.monotonic() + END_SECS
    for process in processes.values():
        process.join(max(0.1, deadline - time.monotonic()))


def spread(training: Training) -> float:
    """By how much the counters of `asynchronous` differ from the global step at most."""
    step = int(training.value("global_step"))
    counts = [float(np.ravel(training.value(f"count_{index}"))[0]) for index in range(3)]
    return max(abs(step - each) for each in counts)
