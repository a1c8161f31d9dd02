"""The tests of `tests/estimator/test_stopping_hooks.py` that need names of TensorFlow 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.compat.v1.python.estimator import early_stopping, estimator as private_estimator


@pytest.mark.parametrize(("threshold", "stops"), [(0.6, True), (0.8, False)])
def test_hook_checks_after_runs_without_a_step(
    tmp_path: Path, threshold: float, stops: bool
) -> None:
    eval_dir = str(tmp_path / "eval")
    metrics = {"accuracy": np.float32(0.7), "global_step": 5}
    private_estimator._write_dict_to_summary(eval_dir, metrics, 5)
    assert early_stopping.read_eval_metrics(eval_dir) == {5: {"accuracy": pytest.approx(0.7)}}
    estimator = tf.estimator.Estimator(lambda features, labels: None, str(tmp_path))
    hook = tf.estimator.experimental.stop_if_higher_hook(estimator, "accuracy", threshold)
    with tf.Graph().as_default():
        tf.train.create_global_step()
        nothing = tf.no_op()
        with tf.train.SingularMonitoredSession(hooks=[hook]) as session:
            session.run(nothing)
            assert session.should_stop() is stops
