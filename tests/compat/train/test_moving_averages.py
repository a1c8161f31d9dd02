"""The tests of `tests/train/test_moving_averages.py` that need names of TensorFlow 1."""

from __future__ import annotations

import pytest

import estimatorkit as tf
from estimatorkit.train.optimizers.moving_averages import weighted_moving_average


def test_weighted_averages() -> None:
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        value, weight = v1.placeholder(v1.float32, []), v1.placeholder(v1.float32, [])
        average = weighted_moving_average(value, 0.5, weight)
        names = [each.op.name for each in v1.global_variables()]
        assert names == ["WeightedMovingAvg/value_x_weight", "WeightedMovingAvg/weight"]
        assert v1.trainable_variables() == []
        session.run(v1.global_variables_initializer())
        assert session.run(average, {value: 10.0, weight: 1.0}) == 10.0
        # (10 / 4 + 2 * 3 / 2) / (1 / 4 + 3 / 2)
        assert session.run(average, {value: 2.0, weight: 3.0}) == pytest.approx(5.5 / 1.75)
