"""Logit functions, and what premade estimators require of optimizers and features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
import estimatorkit.compat.v1 as tf_v1
from estimatorkit.estimator.serving.predictor import load_predictor

experimental = tf.estimator.experimental
COLUMNS = [tf.feature_column.numeric_column("x")]


def values(*tensors: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(tensors)


def test_dnn_in_caller_scope() -> None:
    logit_fn = experimental.dnn_logit_fn_builder(2, (3,), COLUMNS, tf.nn.relu, None, None, False)
    with tf.variable_scope("dnn", initializer=tf.ones_initializer()):
        logits = logit_fn(features={"x": tf.constant([[1.0], [2.0]])}, mode="eval")
    assert [variable.name for variable in tf.trainable_variables()] == [
        *("dnn/hiddenlayer_0/kernel:0", "dnn/hiddenlayer_0/bias:0"),
        *("dnn/logits/kernel:0", "dnn/logits/bias:0"),
    ]
    assert logits.shape.as_list() == [2, 2]
    assert [each.op.name for each in tf.get_collection("summaries")][:2] == [
        "dnn/dnn/hiddenlayer_0/fraction_of_zero_values",
        "dnn/dnn/hiddenlayer_0/activation",
    ]


def test_linear_model_in_caller_scope() -> None:
    logit_fn = experimental.linear_logit_fn_builder(2, COLUMNS)
    with tf.variable_scope("linear"):
        logits = logit_fn(features={"x": tf.constant([[1.0], [2.0]])})
    weights, bias = tf.trainable_variables()
    assert weights.name == "linear/linear_model/x/weights:0"
    set_them = tf.group(weights.assign([[1.0, 2.0]]), bias.assign([5.0, 6.0]))
    with tf.Session() as session:
        session.run(set_them)
        assert session.run(logits).tolist() == [[6.0, 8.0], [7.0, 10.0]]


@pytest.mark.parametrize(
    "build",
    [
        lambda units: experimental.linear_logit_fn_builder(units, COLUMNS),
        lambda units: experimental.dnn_logit_fn_builder(
            units, [2], COLUMNS, None, None, None, True
        ),
    ],
)
@pytest.mark.parametrize("units", [1.0, "1", None, True])
def test_units_must_be_integer(build: Any, units: Any) -> None:
    with pytest.raises(ValueError, match="units must be an int"):
        build(units)


def test_logit_fn_gets_requested_arguments() -> None:
    features = {"a": tf.constant([[2.0]]), "b": tf.constant([[4.0]])}
    call = experimental.call_logit_fn
    assert call(lambda features, mode: features[mode], features, "b", {}, None) is features["b"]
    assert call(lambda features: features, features, "train", {}, None) == features
    scaled = call(lambda features, params: features["a"] * params["by"], features, "", {"by": 2}, 0)
    assert values(scaled)[0].tolist() == [[4.0]]
    for wrong in (lambda features: [features["a"]], lambda features: {"a": "text"}):
        with pytest.raises(ValueError, match="logit_fn should return a Tensor or a dictionary"):
            call(wrong, features, "train", {}, None)


def rows() -> Any:
    return tf.data.Dataset.from_tensors(({"x": [[1.0], [2.0]]}, [[1], [0]])).repeat(3)


def recording(calls: list[dict[str, Any]]) -> Any:
    """An optimizer that notes what `minimize` is given by name."""

    class Recording(tf_v1.train.GradientDescentOptimizer):
        def minimize(self, loss: Any, **given: Any) -> Any:  # type: ignore[override]
            calls.append(given)
            return super().minimize(loss, **given)

    return Recording(0.1)


@pytest.mark.slow
def test_minimize_arguments_match_tensorflow(tmp_path: Path) -> None:
    calls: list[dict[str, Any]] = []
    one = tf_v1.estimator.DNNClassifier([2], COLUMNS, tmp_path / "1", optimizer=recording(calls))
    one.train(rows)
    assert [set(given) for given in calls] == [{"global_step"}]
    assert one.get_variable_value("global_step") == 3
    calls.clear()
    both = tf_v1.estimator.DNNLinearCombinedClassifier(
        tmp_path / "2",
        linear_feature_columns=COLUMNS,
        linear_optimizer=recording(calls),
        dnn_feature_columns=COLUMNS,
        dnn_optimizer=recording(calls),
        dnn_hidden_units=[2],
    )
    both.train(rows)
    assert [set(given) for given in calls] == [{"var_list"}, {"var_list"}]
    scopes = [{variable.name.split("/")[0] for variable in given["var_list"]} for given in calls]
    assert scopes == [{"dnn"}, {"linear"}]
    assert both.get_variable_value("global_step") == 3


def test_optimizer_with_custom_updates(tmp_path: Path) -> None:
    class Counting(tf.keras.optimizers.legacy.Optimizer):
        def get_updates(self, loss: Any, params: Any) -> list[Any]:
            assert [each.op.name for each in params] == [
                "linear/linear_model/x/weights",
                "linear/linear_model/bias_weights",
            ]
            return [self.iterations.assign_add(1).op]

        def get_config(self) -> dict[str, Any]:
            return {}

    optimizer = Counting(name="mine")
    estimator = tf.estimator.LinearClassifier(COLUMNS, tmp_path, optimizer=optimizer)
    estimator.train(rows)
    assert estimator.get_variable_value(optimizer.iterations.name) == 3
    assert estimator.get_variable_value("linear/linear_model/bias_weights").tolist() == [0.0]


@pytest.mark.slow
def test_baseline_accepts_sparse_features(tmp_path: Path) -> None:
    def batch() -> Any:
        words = tf.SparseTensor([[0, 0], [1, 0]], ["a", "b"], [2, 1])
        return {"words": words}, tf.constant([[1], [0]])

    def receiver() -> Any:
        texts = tf.placeholder(tf.string, [None])
        features = tf.parse_example(texts, {"words": tf.VarLenFeature(tf.string)})
        return tf.estimator.export.ServingInputReceiver(features, {"examples": texts})

    estimator = tf.estimator.BaselineClassifier(tmp_path / "model")
    estimator.train(batch, steps=1)
    served = load_predictor(estimator.export_saved_model(tmp_path / "exported", receiver))
    scores = served({"inputs": [tf_v1.train.Example().SerializeToString()] * 3})["scores"]
    assert scores.shape == (3, 2)
    assert np.allclose(scores.sum(1), 1.0)


def test_saver_def_settings() -> None:
    tf.get_variable("v", [1])
    definition = tf.train.Saver(max_to_keep=3).saver_def
    assert (definition.max_to_keep, definition.version) == (3, definition.V2)
