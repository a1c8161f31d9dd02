"""`ExponentialMovingAverage` against TensorFlow: names, values, what a Saver restores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.train.optimizers.moving_averages import (
    ExponentialMovingAverage,
    assign_moving_average,
)

FOLDER = Path(__file__).parents[1] / "golden" / "tensorflow_checkpoints"
FACTS = json.loads((FOLDER / "facts.json").read_text("utf-8"))["moving_averages"]


@pytest.mark.parametrize("case", FACTS)
def test_names_and_values_match_tensorflow(case: str) -> None:
    expected = FACTS[case]
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("v", initializer=tf.constant([1.0, 2.0]))
        average = tf.train.ExponentialMovingAverage(**expected["arguments"])
        with tf.control_dependencies([variable.assign_add([1.0, 0.5])]):
            tensor = tf.multiply(variable.read_value(), 3.0, name="t")
            update = average.apply([variable, tensor])
        names = sorted(each.op.name for each in tf.global_variables())
        assert names == expected["variables"]
        both = [variable, tensor]
        assert [average.average_name(each) for each in both] == expected["average_names"]
        restored = {name: each.op.name for name, each in average.variables_to_restore().items()}
        assert restored == expected["to_restore"]
        assert tf.moving_average_variables() == [variable]
        session.run(tf.global_variables_initializer())
        for step in expected["steps"]:
            session.run(update)
            found = session.run([average.average(each) for each in both])
            np.testing.assert_allclose(found, step, rtol=2e-6)


def test_saver_restores_averages(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("v", initializer=tf.constant([1.0, 2.0]))
        other = tf.get_variable("other", initializer=tf.constant(7.0), trainable=False)
        average = ExponentialMovingAverage(0.5)
        update = average.apply()
        saver = tf.train.Saver(average.variables_to_restore())
        plain = tf.train.Saver()
        session.run(tf.global_variables_initializer())
        session.run(variable.assign([3.0, 4.0]))
        session.run(update)
        path = plain.save(session, tmp_path / "m")
        session.run([variable.assign([0.0, 0.0]), other.assign(0.0)])
        saver.restore(session, path)
        assert session.run(variable).tolist() == [2.0, 3.0]
        assert session.run(other) == 7.0


def test_assign_moving_average() -> None:
    """With the correction the first average is the first value; TensorFlow's figures."""
    with tf.Graph().as_default(), tf.variable_scope("s"), tf.Session() as session:
        x = tf.get_variable("x", initializer=tf.zeros(2))
        corrected = assign_moving_average(x, tf.constant([1.0, 3.0]), 0.9)
        assert corrected.op.name == "s/AssignMovingAvg"
        names = [each.op.name for each in tf.global_variables()]
        assert names == ["s/x", "s/s/x/biased", "s/s/x/local_step"]
        y = tf.get_variable("y", initializer=tf.zeros(2))
        plain = assign_moving_average(y, [1.0, 3.0], tf.constant(0.75), zero_debias=False)
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(corrected), [1.0, 3.0], rtol=1e-6)
        np.testing.assert_allclose(session.run(corrected), [1.0, 3.0], rtol=1e-6)
        assert session.run(plain).tolist() == [0.25, 0.75]


def test_variables_without_average_raise() -> None:
    with tf.Graph().as_default():
        average = ExponentialMovingAverage(0.9)
        whole = tf.get_variable("n", initializer=tf.constant(1))
        with pytest.raises(TypeError, match="must be half, float, or double: n:0"):
            average.apply([whole])
        assert average.average(whole) is None
        assert average.average_name(whole) == "n/ExponentialMovingAverage"


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_dtypes(dtype: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x: Any = tf.placeholder(dtype, [None])
        average = ExponentialMovingAverage(0.5)
        update = average.apply([x])
        shadow = average.average(x)
        session.run(tf.global_variables_initializer(), {x: [0.0, 0.0]})
        session.run(update, {x: [4.0, 2.0]})
        assert shadow is not None
        assert shadow.dtype.name == dtype
        assert session.run(shadow).tolist() == [2.0, 1.0]


def averaged_line(features: Any, labels: Any, mode: str) -> Any:
    """A model whose averages are what is evaluated, predicts and is exported."""
    logits = tf.layers.dense(features["x"], 1, name="line")
    average = ExponentialMovingAverage(0.9)

    def train_op(loss: Any) -> Any:
        step = tf.train.AdamWOptimizer(0.3).minimize(loss, tf.train.get_global_step())
        with tf.control_dependencies([step]):
            return average.apply()

    head = tf.estimator.RegressionHead()
    spec = head.create_estimator_spec(
        features, mode, logits=logits, labels=labels, train_op_fn=train_op
    )
    if mode == tf.estimator.ModeKeys.TRAIN:
        return spec
    saver = tf.train.Saver(average.variables_to_restore())
    return spec._replace(scaffold=tf.train.Scaffold(saver=saver))


def test_averages_are_evaluated_and_exported(tmp_path: Path) -> None:
    x = np.linspace(-1, 1, 16, dtype=np.float32)[:, None]
    estimator = tf.estimator.Estimator(averaged_line, tmp_path / "model")

    def rows() -> Any:
        return tf.data.Dataset.from_tensor_slices(({"x": x}, 2 * x)).batch(16)

    def receive() -> Any:
        given = {"x": tf.placeholder(tf.float32, [None, 1], name="x")}
        return tf.estimator.export.ServingInputReceiver(given, given)

    estimator.train(lambda: rows().repeat(5))
    raw, averages = (
        x * estimator.get_variable_value(f"line/kernel{suffix}")
        + estimator.get_variable_value(f"line/bias{suffix}")
        for suffix in ("", "/ExponentialMovingAverage")
    )
    assert abs(raw - averages).max() > 0.1
    loss = estimator.evaluate(rows)["loss"]
    assert loss == pytest.approx(np.square(averages - 2 * x).mean(), rel=1e-5)
    predictor = tf.load_predictor(estimator.export_saved_model(tmp_path / "export", receive))
    np.testing.assert_allclose(predictor({"x": x})["predictions"], averages, rtol=1e-5, atol=1e-6)
