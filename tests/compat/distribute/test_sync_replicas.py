"""Synchronous replicas as processes: results, lost replicas, and shutdown.

Each replica of `programs/synchronous.py` says of which step it has computed which batches, so that
one process can compute the same after them.
"""

from __future__ import annotations

import json
import signal
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from tests.compat.distribute.programs import synchronous
from tests.distribute.processes import Cluster, Process, Processes, free_cluster
from tests.distribute.trainings import END_SECS, Training, all_end

pytestmark = pytest.mark.multiprocess


PROGRAMS = Path(__file__).parent / "programs"

AND_ONE_MORE = (0, 1)
"""With backups, the last runs of all may be enough gradients for another update."""


class Replicas:
    """A parameter server, and replicas of `programs/synchronous.py`.

    Args:
        processes: starts and kills.
        count: of replicas.
        options: of the program, the same for all.
    """

    def __init__(self, processes: Processes, count: int, **options: Any) -> None:
        self.cluster: Cluster = free_cluster(ps=1, worker=count)
        self._processes = processes
        self._options = {"total": count, **options}
        processes.task(self.cluster, "ps", 0).wait_for("serving")

    def start(self, index: int, **options: Any) -> Process:
        """Starts a replica; 0 is the chief."""
        given = {**self._options, **options, "cluster": self.cluster, "index": index}
        source = (PROGRAMS / "synchronous.py").read_text("utf-8")
        return self._processes.program(f"replica {index}", source, json.dumps(given))


def said(process: Process) -> dict[str, Any]:
    """What a replica says at its end, by its name: the rest is log."""
    lines = process.join()
    found: dict[str, Any] = json.loads(next(line for line in lines if line.startswith('{"runs"')))
    return found


def replayed(batches: Mapping[int, list[int]], steps: int) -> dict[str, Any]:
    """The variables after the mean of each step's gradients was applied, one step after the other.

    Args:
        batches: the numbers of the batches, by the step that they were used for.
        steps: how many.
    """
    with tf.Graph().as_default():
        model = synchronous.Model(tf)
        gradients = tf.gradients(model.loss, [model.weights, model.table])
        mean, rows = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int64, [None])
        values = tf.placeholder(tf.float32, [None, 2])
        slices = tf.IndexedSlices(values, rows, tf.constant([6, 2]))
        pairs = [(mean, model.weights), (slices, model.table)]
        update = synchronous.optimizer(tf).apply_gradients(pairs, model.step)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for step in range(steps):
                dense: list[Any] = []
                by_row: dict[int, list[Any]] = defaultdict(list)
                for number in batches[step]:
                    found, sparse = session.run(gradients, model.feeds(number))
                    dense.append(found)
                    for row in set(sparse.indices.tolist()):
                        by_row[row].append(sparse.values[sparse.indices == row].sum(0))
                session.run(
                    update,
                    {
                        mean: np.mean(dense, 0),
                        rows: list(by_row),
                        values: [np.mean(each, 0) for each in by_row.values()],
                    },
                )
            found = session.run(model.variables)
            return {name: value.tolist() for name, value in found.items()}


def used(*replicas: Mapping[str, Any]) -> dict[int, list[int]]:
    """The batches of all replicas, by step."""
    found: dict[int, list[int]] = defaultdict(list)
    for replica in replicas:
        for step, number in replica["runs"]:
            found[step].append(number)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["monitored", "supervised"])
def test_replicas_match_one_process_with_mean_gradient(processes: Processes, kind: str) -> None:
    replicas = Replicas(processes, 2, aggregate=2, last_step=12, kind=kind)
    chief, other = said_by_all = [said(each) for each in [replicas.start(0), replicas.start(1)]]
    batches = used(*said_by_all)
    assert {step: len(numbers) for step, numbers in batches.items()} == dict.fromkeys(range(12), 2)
    assert {step for step, _ in chief["runs"]} & {step for step, _ in other["runs"]}
    expected = replayed(batches, 12)
    assert chief["variables"].keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(chief["variables"][name], value, atol=1e-6, err_msg=name)


@pytest.mark.slow
def test_late_gradients_are_dropped(processes: Processes) -> None:
    """Its gradients are a million times as large as others'."""
    replicas = Replicas(processes, 3, aggregate=2, last_step=20)
    started = [replicas.start(0), replicas.start(1), replicas.start(2, behind=2, scale=1e6)]
    chief, _, slow = (said(each) for each in started)
    assert chief["variables"]["global_step"] - 20 in AND_ONE_MORE
    assert len(slow["runs"]) >= 2
    for value in chief["variables"].values():
        assert np.abs(value).max() <= 100


@pytest.mark.slow
def test_backup_replaces_killed_replica(processes: Processes) -> None:
    replicas = Replicas(processes, 3, aggregate=2, last_step=200)
    chief, other, killed = (replicas.start(index) for index in range(3))
    killed.wait_for("step 20")
    killed.kill()
    assert said(chief)["variables"]["global_step"] - 200 in AND_ONE_MORE
    other.join(END_SECS)


@pytest.mark.slow
def test_killed_replica_without_backup_is_waited_for(processes: Processes) -> None:
    replicas = Replicas(processes, 2, aggregate=2, last_step=100)
    chief, killed = replicas.start(0), replicas.start(1)
    killed.wait_for("step 20")
    killed.kill()
    again = replicas.start(1)
    assert said(chief)["variables"]["global_step"] == 100
    again.join(END_SECS)


@pytest.mark.slow
def test_ended_replica_leaves_work_to_others(processes: Processes) -> None:
    replicas = Replicas(processes, 2, aggregate=2, last_step=30)
    chief, other = replicas.start(0), replicas.start(1, most_runs=5)
    assert len(said(other)["runs"]) == 5
    assert said(chief)["variables"]["global_step"] == 30


@pytest.mark.slow
def test_end_of_chief_ends_all(processes: Processes) -> None:
    """Others would go on for ever: they know no last step."""
    replicas = Replicas(processes, 2, aggregate=2, last_step=None)
    chief, other = replicas.start(0, most_runs=10), replicas.start(1)
    said(chief)
    other.join(END_SECS)


# -- estimators


def training_of(
    processes: Processes, folder: Path, jobs: Mapping[str, int], **options: Any
) -> Training:
    return Training(processes, folder, str(PROGRAMS / "synchronous_estimator"), jobs, **options)


def trained(training: Training) -> tuple[int, list[float]]:
    """The global step and the weights of the last checkpoint."""
    return int(training.value("global_step")), np.asarray(training.value("weights")).tolist()


def check_trained_with_backups(training: Training, steps: int) -> None:
    """Raises AssertionError where the last checkpoint has another step, or other weights."""
    step, weights = trained(training)
    assert step - steps in AND_ONE_MORE
    assert weights == [-step, -2 * step]


def test_estimators_train_together(processes: Processes, tmp_path: Path) -> None:
    jobs = {"ps": 1, "chief": 1, "worker": 1}
    training = training_of(processes, tmp_path, jobs, max_steps=150, aggregate=2, total=2)
    all_end(training.start_all())
    assert trained(training) == (150, [-150.0, -300.0])


@pytest.mark.slow
def test_paused_replica_is_waited_for(processes: Processes, tmp_path: Path) -> None:
    jobs = {"ps": 1, "chief": 1, "worker": 1}
    training = training_of(processes, tmp_path, jobs, max_steps=300, aggregate=2, total=2)
    started = training.start_all()
    started["worker 0"].wait_for("step = 100")
    started["worker 0"].signal(signal.SIGSTOP)
    time.sleep(40)
    assert started["chief 0"].runs
    started["worker 0"].signal(signal.SIGCONT)
    all_end(started)
    assert trained(training) == (300, [-300.0, -600.0])


@pytest.mark.slow
def test_estimator_backup_replaces_killed_worker(processes: Processes, tmp_path: Path) -> None:
    jobs = {"ps": 1, "chief": 1, "worker": 2}
    training = training_of(processes, tmp_path, jobs, max_steps=1500, aggregate=2, total=3)
    started = training.start_all()
    started["worker 1"].wait_for("step = ")
    started.pop("worker 1").kill()
    all_end(started)
    check_trained_with_backups(training, 1500)


@pytest.mark.slow
def test_estimators_restore_together_after_lost_server(
    processes: Processes, tmp_path: Path
) -> None:
    jobs = {"ps": 2, "chief": 1, "worker": 1}
    training = training_of(processes, tmp_path, jobs, max_steps=400, aggregate=2, total=2)
    started = training.start_all()
    started["chief 0"].wait_for("Saving checkpoints for 2")  # steps that are told depend on load
    started["ps 1"].kill()
    started["ps 1"] = training.start("ps 1")
    started["chief 0"].wait_for("Restoring parameters from")
    all_end(started)
    assert trained(training) == (400, [-400.0, -800.0])


@pytest.mark.slow
def test_late_backup_finds_training_over(processes: Processes, tmp_path: Path) -> None:
    """The others do not wait for it for long, nor it for them."""
    jobs = {"ps": 1, "chief": 1, "worker": 2}
    training = training_of(processes, tmp_path, jobs, max_steps=1500, aggregate=2, total=3)
    started = training.start_all()
    late = started.pop("worker 1")
    late.wait_for("step = ")
    late.signal(signal.SIGSTOP)
    all_end(started)
    late.signal(signal.SIGCONT)
    late.join(3 * END_SECS)
    check_trained_with_backups(training, 1500)
