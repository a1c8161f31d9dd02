"""`add_metrics` and `forward_features`: what they add, and what stays unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.compat.predictor import from_saved_model
from estimatorkit.data.dataset import Dataset
from estimatorkit.estimator.extenders import add_metrics, forward_features

FEATURES: dict[str, Any] = {
    "x": np.arange(8, dtype=np.float32).reshape(8, 1),
    "key": np.arange(100, 108),
    "weight": np.linspace(0.5, 2, 8, dtype=np.float32),
}
LABELS = np.arange(8) % 2


def examples() -> Dataset:
    return Dataset.from_tensor_slices((FEATURES, LABELS)).batch(4)


def linear(model_dir: str) -> Any:
    """A line through the labels; its metric 'accuracy' is the mean of the predictions."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        weight = tf.get_variable("weight", [], initializer=tf.constant_initializer(0.5))
        logits = features["x"] * weight
        predictions = {"logits": logits}
        outputs = {"predict": tf.estimator.export.PredictOutput(predictions)}
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions, export_outputs=outputs)
        loss = tf.reduce_mean((logits[:, 0] - tf.cast(labels, tf.float32)) ** 2)
        optimizer = tf.train.GradientDescentOptimizer(0.01)
        return tf.estimator.EstimatorSpec(
            mode,
            predictions,
            loss,
            optimizer.minimize(loss, tf.train.get_global_step()),
            {"accuracy": tf.metrics.mean(logits)},
        )

    config = tf.estimator.RunConfig(
        tf_random_seed=1, save_checkpoints_steps=50, save_summary_steps=None
    )
    return tf.estimator.Estimator(model_fn, model_dir, config)


@pytest.fixture(scope="module")
def estimator(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return linear(str(tmp_path_factory.mktemp("model"))).train(lambda: examples().repeat(), steps=3)


@pytest.fixture(scope="module")
def plain(estimator: Any) -> Any:
    """What the estimator itself gives: metrics and predictions."""
    return estimator.evaluate(examples), list(estimator.predict(examples))


def test_keras_model_weights_are_kept() -> None:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,), name="d")])
    model.compile("sgd", "mse")
    model.set_weights([np.array([[2.0]]), np.array([1.0])])
    made = tf.keras.estimator.model_to_estimator(model)
    extended = add_metrics(made, lambda predictions: {"mean": tf.metrics.mean(predictions["d"])})

    def ones() -> Dataset:
        return Dataset.from_tensor_slices((np.ones([4, 1], np.float32), np.ones([4, 1]))).batch(2)

    assert extended.evaluate(ones)["mean"] == 3.0  # before any training
    assert "mean" not in made.evaluate(ones)


def test_metrics_are_added_and_replaced(estimator: Any, plain: Any) -> None:
    def metric_fn(labels: Any, predictions: Any, features: Any, config: Any) -> dict[str, Any]:
        assert config.tf_random_seed == 1
        return {
            "mean_weight": tf.metrics.mean(features["weight"]),
            "accuracy": tf.metrics.mean(tf.cast(labels, tf.float32) * 0.0 + 7.0),
            "mean_logit": tf.metrics.mean(predictions["logits"]),
        }

    metrics, _ = plain
    extended = add_metrics(estimator, metric_fn)
    found = extended.evaluate(examples)
    assert found["mean_weight"] == pytest.approx(1.25)
    assert found["mean_logit"] == metrics["accuracy"]
    assert (found.pop("mean_weight"), found.pop("mean_logit")) != (0, 0)
    assert found == {**metrics, "accuracy": 7.0}
    assert extended.model_dir == estimator.model_dir


def test_extended_estimator_trains_same_model(estimator: Any, tmp_path: Path) -> None:
    extended = add_metrics(linear(str(tmp_path)), lambda: {"one": tf.metrics.mean(1.0)})
    extended.train(lambda: examples().repeat(), steps=3)
    for name in estimator.get_variable_names():
        np.testing.assert_array_equal(
            extended.get_variable_value(name), estimator.get_variable_value(name)
        )


def test_params_reach_input_fn(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
        loss = tf.reduce_mean(features) * params["scale"]
        train_op = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    config = tf.estimator.RunConfig(save_checkpoints_steps=5, save_summary_steps=None)
    estimator = tf.estimator.Estimator(model_fn, str(tmp_path), config, {"scale": 3.0})
    extended = add_metrics(estimator, lambda: {"one": tf.metrics.mean(1.0)})
    extended.train(lambda params: Dataset.from_tensors([float(params["scale"])]).repeat(), steps=1)
    found = extended.evaluate(lambda: Dataset.from_tensors([2.0]))
    assert (found["loss"], found["one"]) == (6.0, 1.0)


def test_invalid_arguments_raise(estimator: Any) -> None:
    with pytest.raises(ValueError, match=r"following not expected args: \['weights'\]"):
        add_metrics(estimator, lambda labels, weights: {})


@pytest.mark.parametrize("keys", ["key", ["key", "weight"], None])
def test_features_are_forwarded_to_predictions(keys: Any, estimator: Any, plain: Any) -> None:
    wanted = {"key"} if keys == "key" else set(keys or FEATURES)
    metrics, predictions = plain
    extended = forward_features(estimator, keys)
    found = list(extended.predict(examples))
    assert found[0].keys() == {"logits"} | wanted
    for name in wanted:
        np.testing.assert_array_equal([each[name] for each in found], FEATURES[name])
    for ours, theirs in zip(found, predictions, strict=True):
        np.testing.assert_array_equal(ours["logits"], theirs["logits"])
    if keys == "key":
        assert extended.evaluate(examples) == metrics


def test_forwarded_features_are_exported(estimator: Any, plain: Any, tmp_path: Path) -> None:
    def receiver() -> Any:
        features = {
            "x": tf.placeholder(tf.float32, [None, 1], "x"),
            "key": tf.placeholder(tf.int64, [None], "key"),
        }
        return tf.estimator.export.ServingInputReceiver(features, features)

    made = forward_features(estimator, "key").export_saved_model(str(tmp_path), receiver)
    predict = from_saved_model(made.decode(), signature_def_key="predict")
    found = predict({"x": FEATURES["x"], "key": FEATURES["key"]})
    np.testing.assert_array_equal(found["key"], FEATURES["key"])
    logits = [each["logits"] for each in plain[1]]
    np.testing.assert_allclose(found["logits"], logits, rtol=1e-6)


def test_sparse_features_become_dense(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        total = tf.sparse_reduce_sum(features["words"], 1)
        loss = tf.reduce_sum(total)
        train_op = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        return tf.estimator.EstimatorSpec(mode, {"total": total}, loss, train_op)

    def words() -> Any:
        return {"words": tf.SparseTensor([[0, 0], [1, 1]], [5.0, 7.0], [2, 2])}

    config = tf.estimator.RunConfig(save_checkpoints_steps=5, save_summary_steps=None)
    estimator = tf.estimator.Estimator(model_fn, str(tmp_path), config).train(words, steps=1)
    found = list(forward_features(estimator, None, {"words": -1.0}).predict(words))
    np.testing.assert_array_equal([each["words"] for each in found], [[5, -1], [-1, 7]])
    np.testing.assert_array_equal([each["total"] for each in found], [5, 7])
    with pytest.raises(ValueError, match=r"Feature \(words\) should be a Tensor"):
        next(forward_features(estimator).predict(words))
    with pytest.raises(ValueError, match=r"Key 'word' is not there(.|\n)*did you mean 'words'"):
        next(forward_features(estimator, "word").predict(words))


def test_unsupported_features_raise(estimator: Any) -> None:
    with pytest.raises(ValueError, match="should be string"):
        forward_features(estimator, ["a", 3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="should be unique"):
        forward_features(estimator, ["a", "a"])
    with pytest.raises(ValueError, match=r"Feature \(key\) should be a SparseTensor"):
        next(forward_features(estimator, "key", {"key": 0}).predict(examples))

    def clashing() -> Dataset:
        return examples().map(lambda features, labels: ({**features, "logits": labels}, labels))

    with pytest.raises(ValueError, match=r"Cannot forward feature key \(logits\)"):
        next(forward_features(estimator).predict(clashing))
