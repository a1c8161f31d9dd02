"""`with_threshold`: the class that is predicted, in runs, evaluations and exports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf

ROWS = 400


def data() -> tf.data.Dataset:
    random = np.random.default_rng(0)
    is_rare = np.arange(ROWS) % 10 == 0
    x = random.normal(1.5 * is_rare).astype(np.float32)
    labels = np.where(is_rare, "yes", "no")
    return tf.data.Dataset.from_tensor_slices(({"x": x}, labels)).batch(50)


COLUMNS = [tf.feature_column.numeric_column("x")]
MODELS: dict[str, Callable[..., Any]] = {
    "linear": lambda **given: tf.estimator.LinearClassifier(COLUMNS, **given),
    "trees": lambda **given: tf.estimator.BoostedTreesClassifier(COLUMNS, n_trees=10, **given),
    "network": lambda **given: tf.estimator.DNNClassifier([8], COLUMNS, **given),
}


def outputs(estimator: Any) -> tuple[np.ndarray[Any, Any], ...]:
    found = list(estimator.predict(data))
    keys = ("probabilities", "class_ids", "classes")
    probabilities, ids, names = (np.stack([each[key] for each in found]) for key in keys)
    return probabilities[:, 1], ids[:, 0], names[:, 0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_classes_begin_at_the_threshold_everywhere(kind: str, tmp_path: Path) -> None:
    plain = MODELS[kind](label_vocabulary=["no", "yes"], model_dir=str(tmp_path / "model"))
    plain.train(data)
    likely = outputs(plain)[0]
    threshold = float(np.sort(likely)[-120:-118].mean())
    decided = tf.estimator.with_threshold(plain, threshold)
    probabilities, ids, names = outputs(decided)
    np.testing.assert_array_equal(probabilities, likely)
    np.testing.assert_array_equal(ids, likely > threshold)
    np.testing.assert_array_equal(names == b"yes", ids == 1)
    assert 0 < ids.sum() < ROWS

    truth = np.arange(ROWS) % 10 == 0
    metrics, before = decided.evaluate(data), plain.evaluate(data)
    assert metrics["precision"] == pytest.approx(truth[ids == 1].mean())
    assert metrics["recall"] == pytest.approx(ids[truth].mean())
    assert metrics["accuracy"] == pytest.approx((ids == truth).mean())
    for name in ("auc", "loss", "prediction/mean"):
        assert metrics[name] == before[name]

    receiver = tf.estimator.export.serving_input_receiver_fn_from_columns(COLUMNS)
    path = decided.export_saved_model(str(tmp_path / "export"), receiver)
    features = np.concatenate([part["x"] for part, _ in data().as_numpy_iterator()])
    exported = tf.estimator.load_predictor(path.decode())({"x": features}, "predict")
    np.testing.assert_array_equal(exported["class_ids"][:, 0], ids)
    np.testing.assert_array_equal(exported["classes"][:, 0], names)


def test_model_without_a_threshold_takes_the_more_probable_class() -> None:
    model = MODELS["linear"](label_vocabulary=["no", "yes"])
    with tf.Graph().as_default() as graph:
        spec = model.model_fn({"x": tf.zeros([2, 1])}, None, tf.estimator.ModeKeys.PREDICT, None)
        (chosen,) = (op for op in graph.get_operations() if op.name.endswith("/class_ids"))
        assert chosen.inputs[0].op.name.endswith("two_class_logits")  # nothing is added to it
        assert "class_ids" in spec.predictions


@pytest.mark.parametrize("threshold", [0.0, 1.0, -0.2, float("nan")])
def test_threshold_is_a_probability(threshold: float) -> None:
    with pytest.raises(ValueError, match="is a probability"):
        tf.estimator.with_threshold(MODELS["linear"](), threshold)


def test_other_models_have_no_threshold() -> None:
    for model in (
        tf.estimator.LinearRegressor(COLUMNS),
        tf.estimator.LinearClassifier(COLUMNS, n_classes=3),
    ):
        decided = tf.estimator.with_threshold(model, 0.2)
        with tf.Graph().as_default(), pytest.raises(ValueError, match="models of two classes"):
            decided.model_fn({"x": tf.zeros([2, 1])}, None, tf.estimator.ModeKeys.PREDICT, None)
