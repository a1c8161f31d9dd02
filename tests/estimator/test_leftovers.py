"""A training that is killed before a file operation leaves nothing behind when it is resumed.

The trainings are forked, before anything has run, by a process that has imported what they need.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TRAININGS = """
import os, signal, sys
import numpy as np
import estimatorkit as tf
import estimatorkit.premade.dnn

def train(folder, steps):
    def input_fn():
        x = np.arange(32, dtype=np.float32)[:, None] / 32
        return tf.data.Dataset.from_tensor_slices(({"x": x}, x > 0.5)).repeat().batch(8)
    columns = [tf.feature_column.numeric_column("x")]
    config = tf.estimator.RunConfig(save_checkpoints_steps=2, keep_checkpoint_max=2,
                                    tf_random_seed=1, save_summary_steps=None)
    estimator = tf.estimator.LinearClassifier(columns, folder, config=config)
    receive = tf.estimator.export.build_parsing_serving_input_receiver_fn(
        tf.feature_column.make_parse_example_spec(columns))
    exporters = [tf.estimator.BestExporter("best", receive, exports_to_keep=1),
                 tf.estimator.LatestExporter("latest", receive, exports_to_keep=1)]
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(input_fn, steps),
        tf.estimator.EvalSpec(input_fn, 1, exporters=exporters, throttle_secs=0),
    )

def run(folder, steps, moment):
    seen = 0
    def die(event, arguments):
        nonlocal seen
        if event == "open":
            changes = arguments[2] & (os.O_WRONLY | os.O_RDWR)
        else:
            changes = event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link")
        if changes and str(arguments[0]).startswith(folder):
            seen += 1
            if seen == moment:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(die)
    train(folder, steps)
    return seen

for line in sys.stdin:
    folder, steps, moment = line.split()
    pid = os.fork()
    if pid == 0:
        print(run(folder, int(steps), int(moment)), flush=True)
        os._exit(0)
    print("ended", os.waitpid(pid, 0)[1], flush=True)
"""


class Trainings:
    """Trains to a step, and is killed at a moment."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", TRAININGS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, folder: Path, steps: int, moment: int = 0) -> int:
        """Returns the number of file operations; 0 if it was killed before number `moment`."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{folder} {steps} {moment}\n")
        self.process.stdin.flush()
        first = self.process.stdout.readline()
        if first.startswith("ended"):
            assert int(first.split()[1]) == signal.SIGKILL
            return 0
        assert self.process.stdout.readline() == "ended 0\n"
        return int(first)

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


def files(folder: Path) -> list[str]:
    """The files of a model folder, without the times in the names of exports and event files."""
    names = [str(path.relative_to(folder)) for path in folder.rglob("*")]
    plain = [re.sub(r"/\d{10}\b", "/TIME", name) for name in names if "tfevents" not in name]
    return sorted(plain)


@pytest.fixture(scope="module")
def trainings() -> Iterator[Trainings]:
    started = Trainings()
    yield started
    started.close()


@pytest.fixture(scope="module")
def undisturbed(
    trainings: Trainings, tmp_path_factory: pytest.TempPathFactory
) -> tuple[int, list[str]]:
    """The number of file operations until step 4, and the files after step 6."""
    folder = tmp_path_factory.mktemp("whole") / "model"
    count = trainings.run(folder, 4)
    trainings.run(folder, 6)
    return count, files(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
@pytest.mark.slow
@pytest.mark.parametrize("share", [each / 16 for each in range(16)])
def test_killed_training_leaves_nothing(
    share: float, trainings: Trainings, undisturbed: tuple[int, list[str]], tmp_path: Path
) -> None:
    count, expected = undisturbed
    assert count > 100
    assert trainings.run(tmp_path, 4, 1 + int(share * (count - 1))) == 0
    trainings.run(tmp_path, 6)
    assert files(tmp_path) == expected
