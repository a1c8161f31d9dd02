"""`SavedModelEstimator` trains, evaluates, predicts with and re-exports an export."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
from estimatorkit.compat.v1 import contrib

TRAIN, EVAL, PREDICT = "train", "eval", "infer"
SavedModelEstimator = contrib.estimator.SavedModelEstimator


def dataset() -> Any:
    features = {"x": np.array([[1], [-2]], np.int64)}
    return tf.data.Dataset.from_tensors((features, np.array([[4], [-3]], np.float32))).repeat()


def features_only() -> Any:
    return tf.data.Dataset.from_tensors({"x": np.array([[5], [6]], np.int64)})


def receivers(*modes: str) -> dict[str, Callable[[], Any]]:
    """By mode what makes its receiver."""
    with tf.Graph().as_default():
        x = {"x": tf.placeholder(tf.int64, (2, 1), "feature_x")}
        truth = tf.placeholder(tf.float32, (2, 1), "truth")
        supervised = contrib.estimator.build_raw_supervised_input_receiver_fn(x, truth)
        serving = tf.estimator.export.build_raw_serving_input_receiver_fn(x)
    return {mode: serving if mode == PREDICT else supervised for mode in modes}


def model_of_constants(features: Any, labels: Any, mode: str) -> Any:
    """Other constants in each mode; predictions are a single tensor."""
    variable = tf.Variable(21, name="some_var")
    loss = tf.constant({TRAIN: 105, EVAL: 106, PREDICT: 107}[mode])
    predictions = tf.constant([{TRAIN: 501, EVAL: 502, PREDICT: 503}[mode]])
    step = tf.train.get_global_step()
    return tf.estimator.EstimatorSpec(
        mode,
        loss=loss,
        train_op=tf.group(tf.assign_add(step, 1), tf.assign_add(variable, 3)),
        eval_metric_ops={"abs_err": tf.metrics.mean_absolute_error(tf.constant(0), predictions)},
        predictions=predictions,
    )


def exported(folder: Path, *modes: str, model_fn: Any = model_of_constants) -> bytes:
    estimator = tf.estimator.Estimator(model_fn, folder / "first").train(dataset, steps=10)
    path: bytes = contrib.estimator.export_all_saved_models(
        estimator, folder / "exports", receivers(*(modes or (TRAIN, EVAL, PREDICT)))
    )
    return path


@pytest.mark.slow
def test_all_modes(tmp_path: Path) -> None:
    estimator = SavedModelEstimator(exported(tmp_path), tmp_path / "model")
    # Before a training, the values are the exported ones.
    results = {"global_step": 10, "loss": 106, "metrics/abs_err": 502}
    assert estimator.evaluate(dataset, steps=5) == results
    assert next(estimator.predict(features_only)) == {"output": 503}
    assert estimator.get_variable_value("some_var") == 51

    estimator.train(dataset, steps=1).train(dataset, steps=2)
    assert estimator.get_variable_value("global_step") == 13
    assert estimator.get_variable_value("some_var") == 60
    assert estimator.evaluate(dataset, steps=1) == {**results, "global_step": 13}

    again = estimator.experimental_export_all_saved_models(
        tmp_path / "again", receivers(TRAIN, EVAL, PREDICT)
    )
    second = SavedModelEstimator(again, tmp_path / "second")
    assert second.evaluate(dataset, steps=1) == {**results, "global_step": 13}
    assert second.train(dataset, steps=7).get_variable_value("some_var") == 81
    assert next(second.predict(features_only)) == {"output": 503}


def test_missing_modes_raise(tmp_path: Path) -> None:
    one = SavedModelEstimator(exported(tmp_path / "1", EVAL), tmp_path / "one")
    assert one.evaluate(dataset, steps=1)["loss"] == 106
    with pytest.raises(RuntimeError, match="train mode is not available"):
        one.train(dataset, steps=1)
    with pytest.raises(RuntimeError, match="infer mode is not available"):
        next(one.predict(features_only))
    other = SavedModelEstimator(exported(tmp_path / "2", TRAIN, PREDICT), tmp_path / "other")
    with pytest.raises(RuntimeError, match="eval mode is not available"):
        other.evaluate(dataset, steps=1)
    with pytest.raises(ValueError, match="Could not find variables in SavedModel directory"):
        SavedModelEstimator(tmp_path)


def test_mismatched_inputs_raise(tmp_path: Path) -> None:
    estimator = SavedModelEstimator(exported(tmp_path), tmp_path / "model")

    def given(x: Any, y: Any, key: str = "x") -> Callable[[], Any]:
        return lambda: tf.data.Dataset.from_tensors(({key: x}, y))

    truth = np.ones((2, 1), np.float32)
    with pytest.raises(ValueError, match=r"Expected shape: \(\?, 1\), Got: \(2,\)"):
        estimator.train(given(np.array([1, 2]), truth), steps=1)
    with pytest.raises(ValueError, match="Expected dtype"):
        estimator.train(given(np.ones((2, 1), np.int32), truth), steps=1)
    with pytest.raises(ValueError, match='Key "x" not found in features or labels'):
        estimator.train(given(np.ones((2, 1), np.int64), truth, "z"), steps=1)

    def with_step() -> Any:
        tf.train.get_or_create_global_step()
        return dataset()

    with pytest.raises(RuntimeError, match="Graph must not contain a global step tensor"):
        estimator.train(with_step, steps=1)


def test_model_initialization_is_kept(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        variable = tf.Variable(21, name="some_var")
        scaffold = tf.train.Scaffold(local_init_op=tf.assign_add(variable, -3).op)
        return tf.estimator.EstimatorSpec(
            mode,
            scaffold=scaffold,
            train_op=tf.assign_add(tf.train.get_global_step(), 1),
            loss=tf.identity(variable),
        )

    path = exported(tmp_path, TRAIN, EVAL, model_fn=model_fn)
    estimator = SavedModelEstimator(path, tmp_path / "model")
    assert estimator.evaluate(dataset, steps=2)["loss"] == 15
    assert estimator.train(dataset, steps=1).get_variable_value("some_var") == 15
    assert estimator.evaluate(dataset, steps=5)["loss"] == 12


def test_features_and_labels_reach_model(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        x = tf.cast(features["x"], tf.float32)
        with tf.control_dependencies([features["x"]]):
            loss = None if labels is None else tf.reduce_sum(labels + x)
        return tf.estimator.EstimatorSpec(
            mode,
            loss=loss,
            train_op=tf.assign_add(tf.train.get_global_step(), 1),
            predictions={"x": features["x"]},
        )

    estimator = SavedModelEstimator(exported(tmp_path, model_fn=model_fn), tmp_path / "model")
    assert estimator.evaluate(dataset, steps=1)["loss"] == 0
    assert [each["x"].tolist() for each in estimator.predict(features_only)] == [[5], [6]]


@pytest.mark.slow
def test_premade_estimator_is_trained_further(tmp_path: Path) -> None:
    """Optimizer and metrics are those of the export: training goes on as if it had not ended."""
    x = np.arange(12, dtype=np.float32).reshape(6, 2) / 10
    y = (x.sum(1, keepdims=True) > 1).astype(np.float32)
    columns = [tf.feature_column.numeric_column("x", [2])]

    def input_fn() -> Any:
        return tf.data.Dataset.from_tensors(({"x": x}, y)).repeat()

    def classifier(name: str) -> Any:
        config = tf.estimator.RunConfig(tf_random_seed=3)
        return tf.estimator.DNNClassifier([3], columns, str(tmp_path / name), config=config)

    whole = classifier("whole").train(input_fn, steps=6)
    half = classifier("half").train(input_fn, steps=3)
    with tf.Graph().as_default():
        features = {"x": tf.placeholder(tf.float32, [None, 2])}
        labels = tf.placeholder(tf.float32, [None, 1])
        receiver = contrib.estimator.build_raw_supervised_input_receiver_fn(features, labels)
    path = half.experimental_export_all_saved_models(
        tmp_path / "exports", {TRAIN: receiver, EVAL: receiver}
    )
    found = SavedModelEstimator(path, tmp_path / "found").train(input_fn, steps=3)
    for name in whole.get_variable_names():
        value, expected = found.get_variable_value(name), whole.get_variable_value(name)
        np.testing.assert_allclose(value, expected, rtol=1e-6, err_msg=name)
    metrics = found.evaluate(input_fn, steps=1)
    for name, value in whole.evaluate(input_fn, steps=1).items():
        key = name if name in ("loss", "global_step") else f"metrics/{name}"
        np.testing.assert_allclose(metrics[key], value, rtol=1e-6, err_msg=name)


def test_one_mode_is_exported(tmp_path: Path) -> None:
    estimator = tf.estimator.Estimator(model_of_constants, tmp_path / "model")
    estimator.train(dataset, steps=1)
    path = contrib.estimator.export_saved_model_for_mode(
        estimator, tmp_path / "exports", receivers(EVAL)[EVAL], mode=EVAL
    )
    with tf.Graph().as_default(), tf.Session() as session:
        found = tf.saved_model.loader.load(session, ["eval"], path)
    outputs = {"loss", "predictions", "metrics/abs_err/value", "metrics/abs_err/update_op"}
    assert set(found.signature_def["eval"].outputs) == outputs


def test_receivers_from_input_fn() -> None:
    build = contrib.estimator.build_supervised_input_receiver_fn_from_input_fn

    def input_fn(key: str = "x") -> Any:
        return {key: tf.constant([[1], [1]]), "y": tf.constant(["a", "b"])}, tf.constant([[1], [1]])

    with tf.Graph().as_default():
        receiver = build(input_fn, key="z")()
        other = build(dataset)()
    assert set(receiver.features) == {"z", "y"}
    assert {key: each.dtype.name for key, each in receiver.receiver_tensors.items()} == {
        **{"z": "int32", "y": "string"},
        "label": "int32",
    }
    assert set(other.receiver_tensors) == {"x", "label"}
    with pytest.raises(ValueError, match="len 2 tuple"):
        build(lambda: (1, 2, 3))
