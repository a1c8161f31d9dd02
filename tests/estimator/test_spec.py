"""`EstimatorSpec`: validation of its arguments."""

from __future__ import annotations

from typing import Any

import pytest

import estimatorkit as tf
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys

EVAL, PREDICT, TRAIN = ModeKeys.EVAL, ModeKeys.PREDICT, ModeKeys.TRAIN


def spec(mode: str = TRAIN, **given: Any) -> EstimatorSpec:
    parts = {"loss": tf.constant(1.0), "train_op": tf.no_op(), "predictions": tf.constant(1.0)}
    return EstimatorSpec(mode, **{**parts, **given})


def mean(*values: float) -> Any:
    metric = tf.keras.metrics.Mean()
    for value in values:
        metric.update_state(tf.constant(value))
    return metric


@pytest.mark.parametrize("mode", [TRAIN, EVAL, PREDICT])
def test_scaffold_default_and_argument(mode: str) -> None:
    assert isinstance(spec(mode).scaffold, tf.train.Scaffold)
    given = tf.train.Scaffold()
    assert spec(mode, scaffold=given).scaffold is given


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"scaffold": object()}, TypeError, r"scaffold must be tf\.train\.Scaffold"),
        ({"training_hooks": [object()]}, TypeError, "All hooks must be SessionRunHook instances"),
        ({"training_chief_hooks": ["hook"]}, TypeError, "All hooks must be SessionRunHook"),
        ({"evaluation_hooks": [1]}, TypeError, "All hooks must be SessionRunHook instances"),
        ({"prediction_hooks": [1]}, TypeError, "All hooks must be SessionRunHook instances"),
        ({"predictions": {"number": 1.0}}, TypeError, r"predictions\[number\] must be Tensor"),
        ({"predictions": 1.0}, TypeError, "predictions must be Tensor"),
        ({"loss": 1.0}, TypeError, "loss must be Tensor"),
        ({"train_op": "x"}, TypeError, "train_op must be Operation or Tensor"),
        ({"eval_metric_ops": []}, TypeError, "eval_metric_ops must be a dict"),
        (
            {"eval_metric_ops": {"m": [1, 2]}},
            TypeError,
            r"Values of eval_metric_ops must be \(metric_value, update_op\) tuples",
        ),
    ],
)
def test_wrong_types_raise(given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        spec(**given)


@pytest.mark.parametrize("part", ["loss", "train_op", "predictions", "metric", "metric object"])
def test_tensors_of_another_graph_raise(part: str) -> None:
    with tf.Graph().as_default():
        value = tf.constant(1.0)
        metric: Any = (value, tf.no_op()) if part == "metric" else mean(1.0)
    given = {"eval_metric_ops": {"m": metric}} if part.startswith("metric") else {part: value}
    with pytest.raises(ValueError, match="must be from the default graph"):
        spec(EVAL, **given)


def test_variables_stand_for_their_values() -> None:
    variable = tf.get_variable("v", [])
    made = spec(EVAL, loss=variable, predictions={"v": variable})
    assert isinstance(made.loss, tf.Tensor)
    assert isinstance(made.predictions["v"], tf.Tensor)


def test_metric_objects_are_updated() -> None:
    value, update = spec(EVAL, eval_metric_ops={"m": mean(1.0, 3.0)}).eval_metric_ops["m"]
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run(update)
        assert session.run(value) == 2.0
    with pytest.raises(ValueError, match=r'Please call update_state\(...\) on the "mean'):
        spec(EVAL, eval_metric_ops={"m": mean()})


def test_metric_values_may_be_nested() -> None:
    value = ((tf.constant(1), tf.constant(2.0)), tf.constant(3))
    found = spec(EVAL, eval_metric_ops={"m": (value, tf.no_op())}).eval_metric_ops["m"][0]
    assert found == value


def test_export_outputs() -> None:
    export = tf.estimator.export
    one = export.RegressionOutput(tf.constant([1.0]))
    default = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    assert spec(PREDICT, export_outputs={"own": one}).export_outputs == {default: one, "own": one}
    made: Any = spec(PREDICT, predictions={"a": tf.constant(1.0)}).export_outputs
    assert list(made) == [default]
    assert list(made[default].outputs) == ["a"]
    assert spec(TRAIN).export_outputs is None
    with pytest.raises(ValueError, match="none of them are specified as the default"):
        spec(PREDICT, export_outputs={"a": one, "b": one})
    with pytest.raises(TypeError, match="must be dict"):
        spec(PREDICT, export_outputs=one)
    with pytest.raises(TypeError, match="must be ExportOutput objects"):
        spec(PREDICT, export_outputs={"a": tf.constant(1.0)})


def test_replace_validates() -> None:
    made = spec(EVAL)
    other = tf.constant(2.0)
    assert made._replace(loss=other, mode=EVAL).loss is other
    with pytest.raises(ValueError, match="Loss must be scalar"):
        made._replace(loss=tf.constant([1.0, 2.0]))
    with pytest.raises(ValueError, match="mode of EstimatorSpec cannot be changed"):
        made._replace(mode=TRAIN)
