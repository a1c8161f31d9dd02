"""Interrupted training resumes bit for bit."""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core.errors import FailedPreconditionError
from estimatorkit.data.dataset import Dataset
from estimatorkit.storage.checkpoint import latest_checkpoint, load_variable, read_checkpoint
from tests.estimator import models
from tests.train import toy
from tests.train.counting import Recorder

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    """A model folder with checkpoints of 0, 20, ..., 1000 steps, and the losses."""
    folder, recorder = tmp_path_factory.mktemp("uninterrupted"), Recorder()
    models.network(folder, save_steps=20).train(models.batches, [recorder], max_steps=1000)
    return folder, recorder.losses


def assert_same_checkpoint(folder: Path, other: Path, step: int) -> None:
    """Variables, random counters and the input's position are equal, to the bit."""
    one, two = (read_checkpoint(each / f"model.ckpt-{step}") for each in (folder, other))
    toy.assert_same_bits(dict(one.tensors), dict(two.tensors))
    assert one.state["random"] == two.state["random"]
    assert one.state["iterators"].keys() == two.state["iterators"].keys()


@pytest.mark.slow
def test_pain_point_35_training_in_parts(
    tmp_path: Path, uninterrupted: tuple[Path, list[float]]
) -> None:
    """Mid-epoch, with shuffling, dropout and momentum; each part is a graph of its own."""
    recorder = Recorder()
    for steps in (1, 13, 46):
        models.network(tmp_path).train(models.batches, [recorder], steps=steps)
    assert recorder.losses == uninterrupted[1][:60]
    assert_same_checkpoint(tmp_path, uninterrupted[0], 60)


@pytest.mark.slow
def test_resumes_from_any_checkpoint(
    tmp_path: Path, uninterrupted: tuple[Path, list[float]]
) -> None:
    """The position is that of the checkpoint's step, however far the input had been read."""
    shutil.copytree(uninterrupted[0] / "model.ckpt-500", tmp_path / "model.ckpt-500")
    recorder = Recorder()
    models.network(tmp_path, save_steps=1).train(models.batches, [recorder], max_steps=540)
    assert recorder.losses == uninterrupted[1][500:540]
    assert_same_checkpoint(tmp_path, uninterrupted[0], 520)
    assert_same_checkpoint(tmp_path, uninterrupted[0], 540)


# -- seeds


@pytest.fixture(scope="module")
def final_losses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """The loss after ten steps: twice with one seed, once with another, twice without."""
    losses = {}
    for name, seed in {"one": 1, "again": 1, "other": 2, "free": None, "as free": None}.items():
        recorder = Recorder()
        folder = tmp_path_factory.mktemp("seed")
        models.noisy(folder, seed).train(lambda: Dataset.range(50).shuffle(50), [recorder], 10)
        losses[name] = recorder.losses[-1]
    return losses


@pytest.mark.slow
def test_one_seed_gives_one_result(final_losses: dict[str, float]) -> None:
    assert final_losses["one"] == final_losses["again"]


@pytest.mark.slow
def test_other_seeds_give_other_results(final_losses: dict[str, float]) -> None:
    assert len(set(final_losses.values())) == 4


# -- killed


def start(code: str, *arguments: Any) -> subprocess.Popen[str]:
    """Runs Python code in a process of its own, in the repository's root."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=REPOSITORY,
    )


def kill(process: subprocess.Popen[str]) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


THOUSAND_STEPS = """
import sys
from tests.estimator import models
estimator = models.network(sys.argv[1])
estimator.train(models.batches, max_steps=1000, saving_listeners=[models.Tells(0.1)])
"""


@pytest.mark.slow
def test_killed_training_resumes_bit_for_bit(
    tmp_path: Path, uninterrupted: tuple[Path, list[float]]
) -> None:
    process = start(THOUSAND_STEPS, tmp_path)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 400:
            break
    time.sleep(random.random() * 0.2)
    kill(process)
    path = latest_checkpoint(tmp_path)
    assert path is not None
    step = int(load_variable(path, "global_step"))
    assert 400 <= step < 1000
    assert_same_checkpoint(tmp_path, uninterrupted[0], step)

    recorder = Recorder()
    models.network(tmp_path).train(models.batches, [recorder], max_steps=1000)
    assert recorder.losses == uninterrupted[1][step:]
    assert_same_checkpoint(tmp_path, uninterrupted[0], 1000)


FORKING = """
import json, os, sys
from tests.estimator import models
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        models.adder(json.loads(line), 3).train(models.numbers, saving_listeners=[models.Tells()])
    print("pid", pid, flush=True)
    os.waitpid(pid, 0)
    print("dead", flush=True)
"""


@pytest.fixture
def trainings(tmp_path: Path) -> Iterator[Any]:
    """Starts trainings that never end, each in a process forked by one that has imported JAX."""
    process = start(FORKING)
    assert process.stdin is not None
    assert process.stdout is not None

    orders, answers = process.stdin, process.stdout

    def train(secs: float) -> None:
        orders.write(json.dumps(str(tmp_path)) + "\n")
        orders.flush()
        pid = int(answers.readline().split()[1])
        assert answers.readline().strip().isdigit()  # a checkpoint is committed
        time.sleep(secs)
        os.kill(pid, signal.SIGKILL)
        while answers.readline().strip() != "dead":
            pass

    yield train
    process.communicate()


@pytest.mark.slow
def test_pain_point_35_killed_training_resumes_and_never_goes_back(
    tmp_path: Path, trainings: Any
) -> None:
    """A checkpoint every third step; each element of the input counts once, kill after kill."""
    generator, before = random.Random(0), -1
    for _ in range(6):
        trainings(generator.random() * 0.25)
        path = latest_checkpoint(tmp_path)
        assert path is not None
        step = int(load_variable(path, "global_step"))
        assert step > before
        assert load_variable(path, "total") == models.expected_total(step)
        before = step
    models.adder(tmp_path, 3).train(models.numbers, max_steps=before + 500)
    assert load_variable(tmp_path, "total") == models.expected_total(before + 500)


# -- other people's folders and damaged ones


HOLD = """
import sys
from estimatorkit.storage.directory_lock import DirectoryLock
with DirectoryLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_folder_in_use_by_another_process_raises(tmp_path: Path) -> None:
    process = start(HOLD, tmp_path)
    assert process.stdout is not None
    process.stdout.readline()
    estimator = models.adder(tmp_path, 3)
    with pytest.raises(
        FailedPreconditionError, match=rf"has a writer already(?s:.*)process {process.pid} on"
    ):
        estimator.train(models.numbers, steps=3)
    process.communicate()
    estimator.train(models.numbers, steps=3)


def damage(path: Path) -> None:
    """Changes one byte in the middle of the largest file."""
    file = max(path.iterdir(), key=lambda each: each.stat().st_size)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def test_damaged_checkpoint_is_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    models.adder(tmp_path, 10).train(models.numbers, steps=30)
    damage(tmp_path / "model.ckpt-30")
    with caplog.at_level(logging.INFO, "estimatorkit"):
        models.adder(tmp_path, 10).train(models.numbers, max_steps=40)
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert any("skipping" in text and "model.ckpt-30" in text for text in warnings)
    assert f"Restoring parameters from {tmp_path / 'model.ckpt-20'}" in caplog.text
    assert load_variable(tmp_path, "total") == models.expected_total(40)


def test_model_of_other_shapes_is_detected(tmp_path: Path) -> None:
    models.network(tmp_path, units=8).train(models.batches, steps=1)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        models.network(tmp_path, units=9).train(models.batches, steps=1)
    message = str(caught.value)
    assert message.startswith("Assign requires shapes of both tensors to match. lhs shape= [")
    assert f"the checkpoint {tmp_path / 'model.ckpt-1'} does not fit" in message
    assert "0 variables missing, 6 different, 0 unexpected" in message
    rows = [line.split() for line in message.splitlines() if line.strip().startswith("different")]
    assert ["different", "hidden/kernel", "(4,", "9)", "float32", "(4,", "8)", "float32"] in rows
    assert "another model_dir" in message
    assert latest_checkpoint(tmp_path) == str(tmp_path / "model.ckpt-1")


def test_other_model_is_detected(tmp_path: Path) -> None:
    models.adder(tmp_path, 10).train(models.numbers, steps=1)
    with pytest.raises(tf.errors.NotFoundError, match="4 variables missing, 0 different, 1 unex"):
        models.network(tmp_path).train(models.batches, steps=1)


# -- the input


class Elements:
    """What trainings of `adder` saw: the losses are the elements."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def train(self, data: Dataset, steps: int | None = None) -> list[float]:
        recorder = Recorder()
        models.adder(self._folder, 1000).train(lambda: data, [recorder], steps)
        return recorder.losses


def test_consecutive_trainings_continue_the_epoch(tmp_path: Path) -> None:
    elements, data = Elements(tmp_path), Dataset.range(10).repeat().batch(1)
    seen = [elements.train(data, steps=4) for _ in range(3)]
    assert seen == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]


@pytest.mark.parametrize("steps", [5, None])
def test_ended_input_restarts(
    tmp_path: Path, steps: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether its end was noticed or it was used up to its last element."""
    elements, data = Elements(tmp_path), Dataset.range(5).batch(1)
    with caplog.at_level(logging.INFO, "estimatorkit"):
        assert elements.train(data, steps) == [0, 1, 2, 3, 4]
        assert "The input restarts from the beginning" not in caplog.text
        assert elements.train(data, steps=3) == [0, 1, 2]
    assert "The input restarts from the beginning" in caplog.text
    assert load_variable(tmp_path, "global_step") == 8


def test_other_data_start_at_the_beginning(tmp_path: Path) -> None:
    elements = Elements(tmp_path)
    elements.train(Dataset.range(100).batch(1), steps=7)
    assert elements.train(Dataset.range(50).batch(1), steps=2) == [0, 1]


def test_pain_point_06_second_pass_is_reshuffled(tmp_path: Path) -> None:
    elements, data = Elements(tmp_path), Dataset.range(30).shuffle(30).repeat().batch(1)
    epochs = [elements.train(data, steps=30) for _ in range(2)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(30))] * 2
    assert epochs[0] != epochs[1]


@pytest.mark.slow
def test_evaluation_does_not_move_training_input(tmp_path: Path) -> None:
    estimator, recorder = models.adder(tmp_path, 1000), Recorder()
    for _ in range(2):
        estimator.train(models.numbers, [recorder], steps=3)
        estimator.evaluate(models.numbers, steps=2)
    assert recorder.losses == [sum(range(4 * n, 4 * n + 4)) for n in range(6)]


@pytest.mark.parametrize("saved", [True, False])
def test_graph_is_written_beside_checkpoints_if_configured(saved: bool, tmp_path: Path) -> None:
    estimator = models.network(tmp_path, checkpoint_save_graph_def=saved)
    estimator.train(models.batches, steps=1)
    assert estimator.latest_checkpoint() is not None
    assert len(list(tmp_path.rglob("*.meta"))) == 2 * saved


def test_pain_point_06_saved_position_is_small(tmp_path: Path) -> None:
    data = Dataset.from_tensor_slices(np.arange(100_000)).shuffle(100_000).repeat().batch(4)
    Elements(tmp_path).train(data, steps=3)
    assert len(json.dumps(dict(read_checkpoint(tmp_path / "model.ckpt-3").state))) < 3000
