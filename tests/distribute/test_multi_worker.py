"""Two processes train synchronously, like one with the doubled batch, and failures are handled."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import estimatorkit
from estimatorkit.distribute.addresses import host_and_port
from estimatorkit.storage.checkpoint import latest_checkpoint, load_variable
from tests.distribute.processes import Process, Processes, free_cluster
from tests.distribute.programs import mirrored
from tests.distribute.trainings import END_SECS
from tests.slides.data import data_dir

pytestmark = pytest.mark.multiprocess

PROGRAM = "from tests.distribute.programs.multi_worker import main; main()"

LOST = (138, -int(signal.SIGABRT))
"""How a process ends that others have left; the second where JAX notices it first."""


def environments(jobs: dict[str, int]) -> list[dict[str, str]]:
    """The environment of each process of a cluster on free ports, the chief's first."""
    cluster = {job: list(tasks.values()) for job, tasks in free_cluster(**jobs).items()}
    tasks = [{"type": job, "index": index} for job, count in jobs.items() for index in range(count)]
    return [{"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})} for task in tasks]


def start(
    processes: Processes, found: list[dict[str, str]], model_dir: Path, **options: Any
) -> list[Process]:
    """Starts a process for each environment."""
    words = json.dumps({"model_dir": str(model_dir), **options})
    return [
        processes.program(f"process {number}", PROGRAM, words, **environment)
        for number, environment in enumerate(found)
    ]


def step_of(model_dir: Path) -> int:
    """The global step of the newest checkpoint."""
    newest = latest_checkpoint(str(model_dir))
    assert newest is not None
    return int(load_variable(newest, "global_step"))


def expected(model_dir: Path, forever: bool, steps: int) -> list[float]:
    """The losses of the program's model, by hand."""
    batches = mirrored.cut(100, 8)
    given = [
        itertools.islice(itertools.cycle(batches) if forever else batches, part, None, 2)
        for part in range(2)
    ]
    found = [[each for own in given if (each := next(own, None)) is not None] for _ in range(steps)]
    return mirrored.by_hand(mirrored.first_values(str(model_dir)), found)


# -- what is trained is what one process trains with the doubled batch


@pytest.mark.slow
@pytest.mark.parametrize(
    ("forever", "chief_hook", "steps"),
    [(True, False, 40), (True, True, 40), (False, False, 7)],
    ids=["batches of several sizes", "a hook of the chief that fetches", "ends that differ"],
)
def test_losses(
    processes: Processes, tmp_path: Path, forever: bool, chief_hook: bool, steps: int
) -> None:
    model_dir = tmp_path / "model"
    both = start(
        processes,
        environments({"worker": 2}),
        model_dir,
        forever=forever,
        chief_hook=chief_hook,
        max_steps=steps if forever else None,
        evaluate=True,
    )
    answers = [process.answer() for process in both]
    wanted = expected(model_dir, forever, steps)
    for answer in answers:
        assert len(answer["losses"]) == steps
        np.testing.assert_allclose(answer["losses"], wanted, atol=1e-5)
        assert answer["metrics"] == pytest.approx(answer["alone"], abs=1e-6)
    assert step_of(model_dir) == steps


@pytest.mark.slow
@pytest.mark.slow
def test_mnist_by_launch(processes: Processes, tmp_path: Path) -> None:
    source = """
        import subprocess, sys

        launch = [sys.executable, "-m", "estimatorkit", "launch", "--sync", "2", "--"]
        program = [sys.executable, "-c", sys.argv[2], sys.argv[1]]
        raise SystemExit(subprocess.run([*launch, *program]).returncode)
        """
    folder = {"ESTIMATORKIT_DATA_DIR": str(data_dir("mnist").parent)}
    options = {"model_dir": str(tmp_path / "two"), "mnist": True, "max_steps": 100}
    lines = processes.program("launch", source, json.dumps(options), PROGRAM, **folder).join()
    starts = {"[worker 0]", "[worker 1]"}
    answers = [json.loads(line.partition("] ")[2]) for line in lines if '"losses"' in line]
    assert {line[:10] for line in lines if '"losses"' in line} == starts
    one = """
        import sys
        from tests.distribute.programs.mirrored import *

        def make(config):
            column = tf.feature_column.numeric_column("image", [784])
            return tf.estimator.DNNClassifier([256, 128], [column], n_classes=10, config=config)

        def dataset():
            (images, labels), _ = tf.datasets.mnist.load_data()
            features = {"image": images[:12800].reshape(-1, 784).astype(np.float32) / 255}
            data = tf.data.Dataset.from_tensor_slices((features, labels[:12800].astype(np.int32)))
            return data.repeat().batch(128)

        print(json.dumps(train(make, None, dataset, 100).losses.tolist()))
        """
    wanted = processes.program("one", one, **folder).answer()
    assert len(wanted) == 100
    for answer in answers:
        np.testing.assert_allclose(answer["losses"], wanted, atol=1e-5)


@pytest.mark.slow
def test_all_inputs_resume_after_restart(processes: Processes, tmp_path: Path) -> None:
    def losses(folder: str, steps: int) -> list[list[float]]:
        found = environments({"worker": 2})
        same = {"shuffle": True, "dropout": True, "max_steps": steps}
        both = start(processes, found, tmp_path / folder, **same)
        return [process.answer()["losses"] for process in both]

    whole = losses("whole", 30)
    parts = [*zip(losses("parts", 11), losses("parts", 30), strict=True)]
    assert [first + second for first, second in parts] == whole


# -- who takes part


@pytest.mark.slow
def test_chief_worker_and_evaluator(processes: Processes, tmp_path: Path) -> None:
    model_dir = tmp_path / "model"
    found = environments({"chief": 1, "worker": 1, "evaluator": 1})
    started = start(processes, found, model_dir, roles=True, delay=0.02)
    ends = []
    for process in started:
        process.join()
        ends.append(time.monotonic())
    assert max(ends) - min(ends) < END_SECS
    answers = [json.loads(process.lines[-1]) for process in started]
    assert [answer["metrics"] is None for answer in answers] == [True, True, False]
    assert answers[2]["metrics"]["global_step"] == 40
    # Whoever is started again finds that the work is done.
    again = start(processes, found, model_dir, roles=True)
    assert [process.answer()["losses"] for process in again] == [[], [], []]


def test_kubeflow_variables(processes: Processes, tmp_path: Path) -> None:
    (address,) = free_cluster(worker=1)["worker"].values()
    found = [
        {"JAX_COORDINATOR_ADDRESS": address, "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": number}
        for number in ("0", "1")
    ]
    both = start(processes, found, tmp_path / "model", max_steps=5)
    for number, process in enumerate(both):
        assert len(process.answer()["losses"]) == 5
        assert f"pipeline {number} of 2" in process.lines


@pytest.mark.slow
def test_coordinator_binds_given_address(processes: Processes, tmp_path: Path) -> None:
    both = start(processes, environments({"worker": 2}), tmp_path / "model", delay=0.05)
    for process in both:
        process.wait_for("step 5")
    hosts = {
        connection.laddr.ip
        for connection in psutil.Process(both[0].pid).net_connections()
        if connection.status == psutil.CONN_LISTEN
    }
    assert "127.0.0.1" in hosts
    assert hosts.isdisjoint({"0.0.0.0", "::"})  # noqa: S104 (it is not bound there)
    for process in both:
        process.join()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="only Linux has such policies")
def test_gloo_thread_does_not_interrupt_computation(processes: Processes, tmp_path: Path) -> None:
    both = start(processes, environments({"worker": 2}), tmp_path / "model", delay=0.05)
    for process in both:
        process.wait_for("step 5")
        threads = [each.id for each in psutil.Process(process.pid).threads()]
        assert os.SCHED_BATCH in [os.sched_getscheduler(each) for each in threads]
        assert os.sched_getscheduler(process.pid) == os.SCHED_OTHER
    for process in both:
        process.join()


@pytest.mark.slow
def test_different_models_raise(processes: Processes, tmp_path: Path) -> None:
    both = start(processes, environments({"worker": 2}), tmp_path / "model", layers=[1, 2])
    for process in both:
        process.wait_for("different programs")
        assert process.code() in (1, *LOST)


# -- waiting


@pytest.mark.slow
@pytest.mark.slow
def test_slow_input_is_waited_for(processes: Processes, tmp_path: Path) -> None:
    both = start(
        processes, environments({"worker": 2}), tmp_path / "model", sleep=[1, 3, 40.0], max_steps=8
    )
    for process in both:
        assert len(process.answer()["losses"]) == 8


@pytest.mark.slow
def test_worker_without_chief_ends(processes: Processes, tmp_path: Path) -> None:
    found = environments({"worker": 2})
    (worker,) = start(processes, found[1:], tmp_path / "model", seconds=2)
    line = worker.wait_for("process 0 cannot be reached")
    assert json.loads(found[1]["TF_CONFIG"])["cluster"]["worker"][0] in line
    worker.join(code=138)


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "words", "code"),
    [(0, "has a writer already", 1), (1, "process 1 cannot use its address", 138)],
)
def test_second_process_of_same_index_is_refused(
    processes: Processes, tmp_path: Path, number: int, words: str, code: int
) -> None:
    found = environments({"worker": 2})
    both = start(processes, found, tmp_path / "model", delay=0.01, max_steps=100_000)
    for process in both:
        process.wait_for("step 5")
    own = found[number : number + 1]
    (second,) = start(processes, own, tmp_path / "model", max_steps=100_000)
    second.wait_for(words)
    second.join(code=code)
    assert all(process.runs for process in both)


@pytest.mark.slow
@pytest.mark.slow
def test_address_in_use_is_named(processes: Processes, tmp_path: Path) -> None:
    found = environments({"worker": 2})
    address = json.loads(found[0]["TF_CONFIG"])["cluster"]["worker"][0]
    with socket.create_server(host_and_port(address)):
        (chief,) = start(processes, found[:1], tmp_path / "model")
        assert address in chief.wait_for("process 0 cannot use its address")
        chief.join(code=138)


# -- processes that end before their time


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_all_restart_at_last_checkpoint_after_kill(
    processes: Processes, tmp_path: Path, victim: int
) -> None:
    source = """
        import subprocess, sys

        launch = [sys.executable, "-m", "estimatorkit", "launch", "--sync", "2"]
        program = ["--restarts", "3", "--", sys.executable, "-c", sys.argv[2], sys.argv[1]]
        raise SystemExit(subprocess.run([*launch, *program]).returncode)
        """
    model_dir = tmp_path / "model"
    options = {"model_dir": str(model_dir), "delay": 0.02, "end": [victim, 25, "kill"]}
    lines = processes.program("launch", source, json.dumps(options), PROGRAM).join()
    assert sum("it is started again" in line for line in lines) >= 2
    assert any(f"worker {victim} ended with 137" in line for line in lines)
    restored = [line for line in lines if "Restoring parameters from" in line]
    assert restored
    assert step_of(model_dir) == 40
    wanted = expected(model_dir, True, 40)
    for answer in (json.loads(line.partition("] ")[2]) for line in lines if '"losses"' in line):
        first = 40 - len(answer["losses"])
        assert first in (20, 30)
        assert restored[-1].endswith(f"model.ckpt-{first}")
        np.testing.assert_allclose(answer["losses"], wanted[first:], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize(("how", "code"), [("error", 1), ("exit", 3), ("kill", -9)])
def test_end_of_one_process_ends_all(
    processes: Processes, tmp_path: Path, victim: int, how: str, code: int
) -> None:
    both = start(
        processes,
        environments({"worker": 2}),
        tmp_path / "model",
        delay=0.02,
        end=[victim, 15, how],
    )
    assert both[victim].code() == code
    gone = time.monotonic()
    assert both[1 - victim].code() in LOST
    assert time.monotonic() - gone < END_SECS


@pytest.mark.slow
def test_dynamic_table_is_refused(processes: Processes, tmp_path: Path) -> None:
    both = start(processes, environments({"worker": 2}), tmp_path / "model", dynamic=True)
    lines = both[0].join(code=1)
    assert any("is trained by several processes in step" in line for line in lines)
    assert any("EmbeddingTable(rows=1_000_000, hashes=2)" in line for line in lines)


@pytest.mark.slow
def test_hanging_process_times_out(processes: Processes, tmp_path: Path) -> None:
    found = environments({"worker": 2})
    both = start(processes, found, tmp_path / "model", delay=0.02, stuck=1.0, max_steps=100_000)
    both[0].wait_for("step 15")
    both[1].signal(signal.SIGSTOP)
    both[0].wait_for("another process may be stuck")
    both[0].join(code=138)


@pytest.mark.slow
@pytest.mark.parametrize("who", [(0,), (1,), (0, 1)], ids=["chief", "worker", "both"])
def test_sigterm_saves(processes: Processes, tmp_path: Path, who: tuple[int, ...]) -> None:
    model_dir = tmp_path / "model"
    both = start(
        processes,
        environments({"worker": 2}),
        model_dir,
        delay=0.02,
        roles=True,
        max_steps=100_000,
    )
    both[0].wait_for("step 15")
    for number in who:
        both[number].signal(signal.SIGTERM)
    for number, process in enumerate(both):
        process.join(code=143 if number in who else 138)
    last = max(int(line.split()[1]) for line in both[0].lines if line.startswith("step "))
    assert step_of(model_dir) == last


# -- refusals


def test_parameter_servers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    config = environments({"chief": 1, "ps": 1})[0]["TF_CONFIG"]
    monkeypatch.setenv("TF_CONFIG", config)
    with pytest.raises(ValueError, match="synchronous training has no parameter servers"):
        estimatorkit.distribute.MultiWorkerMirroredStrategy()


def test_no_cluster_is_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    strategy = estimatorkit.distribute.MultiWorkerMirroredStrategy()
    assert (strategy.has_others, strategy.is_chief) == (False, True)
    assert strategy.input_context.num_input_pipelines == 1


def test_evaluator_joins_no_rendezvous(monkeypatch: pytest.MonkeyPatch) -> None:
    config = json.loads(environments({"worker": 2})[0]["TF_CONFIG"])
    config["task"] = {"type": "evaluator", "index": 0}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    strategy = estimatorkit.distribute.MultiWorkerMirroredStrategy()
    assert (strategy.has_others, strategy.replicas) == (False, None)


@pytest.mark.slow
def test_jax_must_initialize_after_rendezvous(processes: Processes) -> None:
    source = """
        import jax.numpy
        import estimatorkit as tf

        jax.numpy.zeros(3).block_until_ready()
        try:
            tf.distribute.MultiWorkerMirroredStrategy().connect()
        except RuntimeError as error:
            print(str(error).splitlines()[0])
        """
    lines = processes.program("late", source, **environments({"worker": 2})[0]).join()
    assert lines[-1].startswith("JAX was used before this process joined the others")
