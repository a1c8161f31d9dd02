"""A disk that is full in mid-training: an error that says so, and whole checkpoints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from estimatorkit.storage.checkpoint import latest_checkpoint, read_latest

PROGRAM = """
import resource, sys
import numpy as np
import estimatorkit as tf
from estimatorkit.core.errors import ResourceExhaustedError
from estimatorkit.experiment.report_html import write_report

folder = sys.argv[1]

def model_fn(features, labels, mode):
    loss = tf.reduce_mean((tf.layers.dense(features["x"], 1) - 1) ** 2)
    tf.summary.text("words", tf.constant("x" * 10_000))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

def input_fn():
    return tf.data.Dataset.from_tensors({"x": np.ones((4, 3), np.float32)}).repeat()

def trained(steps, **config):
    config = tf.estimator.RunConfig(save_checkpoints_steps=5, log_step_count_steps=None, **config)
    tf.estimator.Estimator(model_fn, folder, config).train(input_fn, max_steps=steps)

def limited(size, action):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        action()
    except ResourceExhaustedError as error:
        print(error, flush=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, before)

limited(200_000, lambda: trained(1000, save_summary_steps=1))
print(tf.train.latest_checkpoint(folder), flush=True)
trained(30, save_summary_steps=None)
write_report(folder, None, folder + "/report.html")
limited(5_000, lambda: write_report(folder, None, folder + "/report.html"))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files")
def test_full_disk_in_events_and_reports(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert f"could not write at '{folder}/events.out.tfevents." in done.stdout
    assert f"could not write at '{folder}/report.html" in done.stdout
    assert done.stdout.count("free space, or raise the quota or limit") == 2
    latest = latest_checkpoint(folder)
    assert latest is not None
    assert latest.endswith("-30")
    assert read_latest(folder).step == 30
    assert (folder / "report.html").read_text().rstrip().endswith("</html>")
    assert not list(folder.glob("*.tmp-*"))
