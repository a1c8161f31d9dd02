"""Ctrl-C at any moment of exports, `fit` and searches: all end, and their files are whole."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from estimatorkit import keras
from estimatorkit.estimator.serving.predictor import load_predictor
from estimatorkit.storage.checkpoint import read_latest

PROGRAM = """
import signal, sys
import numpy as np
import estimatorkit as tf

signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests ignore it
kind, folder = sys.argv[1:]
x = np.linspace(0, 1, 64, dtype=np.float32).reshape(32, 2)
columns = [tf.feature_column.numeric_column("x", 2)]

def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x[:, 0] > 0.5)).batch(16).repeat()

def estimator(name):
    config = tf.estimator.RunConfig(save_checkpoints_steps=5, log_step_count_steps=None)
    return tf.estimator.LinearClassifier(columns, f"{folder}/{name}", config=config)

def export():
    model = estimator("model").train(input_fn, steps=5)
    receive = tf.estimator.export.serving_input_receiver_fn_from_columns(columns)
    while True:
        model.export_saved_model(f"{folder}/exports", receive)
        print("at", flush=True)

def fit():
    class Told(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            print("at", flush=True)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
    model.compile("adam", "mse")
    saved = tf.keras.callbacks.ModelCheckpoint(f"{folder}/model.keras")
    model.fit(x, x[:, 0], epochs=10**6, verbose=0, callbacks=[saved, Told()])

def tune():
    def objective(settings, report):
        print("at", flush=True)
        spec = tf.estimator.EvalSpec(lambda: input_fn().take(2), 2, throttle_secs=0)
        return estimator(f"trial-{report.number}"), tf.estimator.TrainSpec(input_fn, 10), spec
    tf.tune(objective, {"rate": {"uniform": [0, 1]}}, trials=10**6, folder=f"{folder}/search")

globals()[kind]()
"""


def check_files(kind: str, folder: Path) -> None:
    assert not [path for path in folder.rglob("*") if ".tmp-" in path.name]
    if kind == "export":
        for version in (folder / "exports").iterdir():
            load_predictor(version).close()
    elif kind == "fit":
        keras.models.load_model(str(folder / "model.keras"))
    else:
        for trial in folder.glob("trial-*/checkpoint"):
            read_latest(trial.parent)


def interrupted(words: list[str], moment: float) -> tuple[int, str]:
    """The exit code and the errors of a program that gets Ctrl-C so long after it printed 'at'."""
    process = subprocess.Popen(
        [sys.executable, "-c", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "at\n"
    time.sleep(moment)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    return process.returncode, told


def raised(told: str) -> set[str]:
    """The names of the exceptions that were raised, but those that were being handled when another
    was, such as the KeyError of a missing entry of a cache.
    """
    *handled, last = told.split("\nDuring handling of the above exception, another")
    last_line = re.compile(r"^\w+(?:Error|Exception)\b.*\n*\Z", re.M)
    parts = [*(last_line.sub("", each) for each in handled), last]
    return set(re.findall(r"^(\w+(?:Error|Interrupt|Exception))\b", "\n".join(parts), re.M))


def test_handled_exceptions_do_not_count() -> None:
    chain = "KeyError: 3\n\nDuring handling of the above exception, another exception occurred:\n\n"
    assert raised(f"{chain}KeyboardInterrupt\n") == {"KeyboardInterrupt"}
    again = chain.replace("KeyError: 3", "KeyboardInterrupt")
    assert raised(f"{again}KeyError: 3\n") == {"KeyboardInterrupt", "KeyError"}


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0.0, 0.13, 0.41, 0.77])
@pytest.mark.parametrize("kind", ["export", "fit", "tune"])
def test_interrupted_work_leaves_whole_files(kind: str, moment: float, tmp_path: Path) -> None:
    code, told = interrupted([PROGRAM, kind, str(tmp_path)], moment)
    assert code == -signal.SIGINT, told
    assert raised(told) <= {"KeyboardInterrupt"}, told
    check_files(kind, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0.0, 0.5, 1.5, 3.0])
def test_interrupted_command_ends_with_130(moment: float, tmp_path: Path) -> None:
    """At moments from the first import to the export."""
    config = Path(__file__).parents[2] / "configs" / "iris_dnn.yaml"
    change = ["--model-dir", str(tmp_path / "model"), "train.steps=1000000"]
    program = """
        import signal
        signal.signal(signal.SIGINT, signal.default_int_handler)
        from estimatorkit.__main__ import main
        print("at", flush=True)
        main()
        """
    code, told = interrupted([textwrap.dedent(program), "run", str(config), *change], moment)
    assert code == 130, told
    assert "\nInterrupted." in f"\n{told}"
    assert "Traceback" not in told
