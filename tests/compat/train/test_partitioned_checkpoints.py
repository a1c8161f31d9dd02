"""The tests of `tests/train/test_partitioned_checkpoints.py` that need names of TensorFlow 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
from estimatorkit.compat.train.optimizers.moving_average_optimizer import MovingAverageOptimizer
from tests.train.test_partitioned_checkpoints import table, whole


@pytest.mark.slow
def test_swapping_savers(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        variable = table(2)
        loss = tf.reduce_sum(tf.nn.embedding_lookup(variable, [0, 6], "div") ** 2)
        optimizer = MovingAverageOptimizer(tf.train.GradientDescentOptimizer(0.1), 0.5)
        step = optimizer.minimize(loss)
        session.run(tf.global_variables_initializer())
        session.run(step)
        path = optimizer.swapping_saver().save(session, tmp_path / "m")
        average = [each for each in tf.global_variables() if "ExponentialMoving" in each.name]
        wanted = np.concatenate(session.run(average))
    for parts in (3, None):
        with tf.Graph().as_default(), tf.Session() as session:
            variable = table(parts)
            tf.train.Saver().restore(session, path)
            np.testing.assert_array_equal(whole(session, variable), wanted)


@pytest.mark.slow
def test_estimators_predict_with_other_partitions(tmp_path: Path) -> None:
    """Trained with the partitioner of a cluster, used without one."""
    words = [f"w{number}" for number in range(40)]
    column = tf.feature_column.categorical_column_with_vocabulary_list("word", words)

    def estimator(parts: int) -> Any:
        return tf.estimator.LinearClassifier(
            [column],
            model_dir=str(tmp_path / "model"),
            partitioner=tf.min_max_variable_partitioner(parts, min_slice_size=4),
            config=tf.estimator.RunConfig(tf_random_seed=1),
        )

    def input_fn() -> Any:
        labels = np.arange(40) % 2
        return tf.data.Dataset.from_tensor_slices(({"word": words}, labels)).batch(8)

    def predicted(parts: int) -> list[float]:
        return [float(each["logits"][0]) for each in estimator(parts).predict(input_fn)]

    estimator(4).train(input_fn, steps=5)
    names = estimator(1).get_variable_names()
    assert "linear/linear_model/word/weights" in names
    assert not any("part_" in name for name in names)
    found = predicted(4)
    assert len(set(np.sign(found))) == 2
    assert predicted(1) == predicted(3) == found
    estimator(2).train(input_fn, steps=5)
    assert estimator(2).evaluate(input_fn)["accuracy"] == 1.0
