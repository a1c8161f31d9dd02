"""TensorFlow 1's queue inputs, and models without input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core import errors
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import EstimatorSpec
from tests.threads import StartedThreads


def estimator(folder: Path, of: Callable[[Any], Any] = lambda features: features["x"]) -> Estimator:
    """Its loss and its metric 'mean' are the mean of what `of` makes of the features."""

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        values = of(features)
        loss = tf.reduce_mean(values) + tf.get_variable(
            "zero", [], initializer=tf.zeros_initializer()
        )
        return EstimatorSpec(
            mode,
            {"x": values},
            loss,
            tf.assign_add(tf.train.get_global_step(), 1),
            {"mean": tf.metrics.mean(values), "sum": sums(values)},
        )

    def sums(values: Any) -> Any:
        total = tf.get_variable(
            "sum", [], initializer=tf.zeros_initializer(), collections=["local_variables"]
        )
        return total.value(), tf.assign_add(total, tf.reduce_sum(values))

    config = RunConfig(save_summary_steps=None, log_step_count_steps=None)
    return Estimator(model_fn, folder, config)


def queued(epochs: int | None = 1) -> dict[str, Any]:
    (x,) = tf.train.slice_input_producer(
        [np.arange(8, dtype=np.float32)], num_epochs=epochs, shuffle=False
    )
    return {"x": tf.train.batch([x], 2)}


@pytest.mark.slow
def test_queues_are_read_until_they_end(tmp_path: Path, threads: StartedThreads) -> None:
    made = estimator(tmp_path)
    made.train(queued)
    assert made.get_variable_value("global_step") == 4
    made.train(lambda: queued(None), steps=3)
    assert made.get_variable_value("global_step") == 7
    assert made.evaluate(queued)["mean"] == 3.5
    assert made.evaluate(queued, steps=3)["mean"] == 2.5
    assert [row["x"] for row in made.predict(queued)] == list(range(8))
    assert not threads.running()


def test_thread_errors_are_raised(tmp_path: Path) -> None:
    def broken() -> dict[str, Any]:
        name = tf.train.string_input_producer([str(tmp_path / "missing")], num_epochs=1).dequeue()
        return {"x": tf.train.batch([tf.strings.length(tf.io.read_file(name))], 1)}

    made = estimator(tmp_path, lambda features: tf.cast(features["x"], tf.float32))
    with pytest.raises(errors.NotFoundError, match="missing"):
        made.train(broken)


@pytest.mark.slow
def test_model_without_input_is_evaluated_for_steps(tmp_path: Path) -> None:
    made = estimator(tmp_path, lambda features: tf.constant([1.0, 2.0]))

    def no_input() -> dict[str, Any]:
        return {"x": tf.constant([0.0])}

    made.train(no_input, steps=2)
    for steps, expected in ((None, 3.0), (None, 3.0), (40, 120.0), (None, 3.0)):
        assert made.evaluate(no_input, steps=steps)["sum"] == expected
    dataset = tf.data.Dataset.from_tensor_slices({"x": np.zeros(4, np.float32)}).batch(2)
    for _ in range(3):  # a model that is kept, and does not look at its input
        assert made.evaluate(lambda: dataset)["sum"] == 3.0
