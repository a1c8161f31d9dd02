"""Shared fixtures of tests with real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import estimatorkit as tf
from tests.distribute.processes import (
    Cluster,
    Process,
    Processes,
    free_cluster,
    known_token,
    target,
)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Starts processes, which end with the test."""
    with known_token(), Processes(tmp_path) as started:
        yield started


class Running:
    """A running cluster.

    Attributes:
        cluster: the addresses.
        tasks: the processes, by job and number.
        master: the target of worker 7.
    """

    def __init__(self, cluster: Cluster, processes: Processes) -> None:
        self.cluster = cluster
        self.tasks: dict[tuple[str, int], Process] = processes.tasks(cluster)
        self.master = target(cluster, "worker", 7)

    def threads(self, job: str, index: int) -> int:
        """How many threads a task has."""
        found: int = psutil.Process(self.tasks[job, index].pid).num_threads()
        return found


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Two parameter servers and the workers 0 and 7, for all tests of a file."""
    with known_token(), Processes(tmp_path_factory.mktemp("cluster")) as processes:
        yield Running(free_cluster(ps=2, worker=[0, 7]), processes)


@pytest.fixture
def running(started: Running) -> Running:
    """The cluster with empty tasks."""
    tf.Session.reset(started.master)
    return started
