"""Ctrl-C and SIGTERM end training after the current step and save it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import estimatorkit as ek
from estimatorkit.estimator.evaluation.completion import read_completion
from estimatorkit.storage.checkpoint import latest_checkpoint, load_variable

PROGRAM = """\
import signal, sys, time
import numpy as np
import estimatorkit as tf

signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests ignore it

def model_fn(features, labels, mode):
    loss = tf.reduce_mean(tf.layers.dense(features["x"], 1))
    step = tf.train.get_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

class Told(tf.train.SessionRunHook):
    def after_steps(self, steps):
        print("at", steps.last, flush=True)
        time.sleep(0.05 if sys.argv[2] == "quick" else 60)

def input_fn():
    return tf.data.Dataset.from_tensors({"x": np.ones((4, 3), np.float32)}).repeat()

estimator = tf.estimator.Estimator(model_fn, sys.argv[1])
if sys.argv[2] == "evaluated":
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(input_fn, 10**9, hooks=[Told()]),
        tf.estimator.EvalSpec(input_fn, steps=1, throttle_secs=0),
    )
else:
    estimator.train(input_fn, hooks=[Told()], max_steps=10**9)
print("not reached", flush=True)
"""


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Starts the program, and waits for its first steps."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("at ")
    return process


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143)]
)
def test_signal_saves_current_step(tmp_path: Path, number: signal.Signals, status: int) -> None:
    process = start(tmp_path, "quick")
    process.send_signal(number)
    printed, errors = process.communicate(timeout=60)
    assert process.returncode == status, errors
    assert f"{number.name}: the training ends after this step" in errors
    assert "not reached" not in printed
    steps = [int(line.split()[1]) for line in printed.splitlines()]
    saved = latest_checkpoint(str(tmp_path))
    assert saved is not None
    assert int(load_variable(saved, "global_step")) == steps[-1] if steps else True


@pytest.mark.slow
def test_second_signal_ends_at_once_and_keeps_last_checkpoint(tmp_path: Path) -> None:
    process = start(tmp_path, "slow")  # it now sleeps for a minute
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    saved = latest_checkpoint(str(tmp_path))
    assert saved is not None
    assert int(load_variable(saved, "global_step")) == 0


def test_train_and_evaluate_resumes_after_signal(tmp_path: Path) -> None:
    process = start(tmp_path, "evaluated")
    process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGTERM
    done = read_completion(str(tmp_path))
    assert done is not None
    assert done.reason is None  # it goes on where it was


def test_signal_handlers_of_program_stay(tmp_path: Path) -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))
    interrupt = signal.getsignal(signal.SIGINT)

    class Signalled(ek.train.SessionRunHook):
        def after_steps(self, steps: ek.train.FinishedSteps) -> None:
            if steps.first < 3:
                os.kill(os.getpid(), signal.SIGTERM)

    def model_fn(features: ek.Tensor, labels: None, mode: str) -> ek.estimator.EstimatorSpec:
        loss = ek.reduce_mean(ek.layers.dense(features, 1))
        step = ek.train.get_global_step()
        train_op = ek.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
        return ek.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    try:
        estimator = ek.estimator.Estimator(model_fn, str(tmp_path))
        estimator.train(
            lambda: ek.data.Dataset.from_tensors([[1.0, 2.0]]).repeat(),
            hooks=[Signalled()],
            steps=20,
        )
    finally:
        signal.signal(signal.SIGTERM, before)
    assert came
    assert estimator.get_variable_value("global_step") == 20
    assert signal.getsignal(signal.SIGINT) is interrupt
