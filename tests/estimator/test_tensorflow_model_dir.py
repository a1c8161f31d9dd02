"""Model folders written by TensorFlow 2.15's estimators: evaluation, prediction, training."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf

GOLDEN = Path(__file__).parents[1] / "golden" / "tensorflow_checkpoints"
FACTS = json.loads((GOLDEN / "facts.json").read_text("utf-8"))["estimators"]


def batches() -> Any:
    """The data of `make_checkpoints.py`."""
    x = np.arange(12, dtype=np.float32).reshape(6, 2) / 6
    data = tf.data.Dataset.from_tensor_slices(({"x": x}, np.array([0, 1, 2, 0, 1, 2])))
    return data.batch(3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "arguments"),
    [
        ("dnn", tf.estimator.DNNClassifier, {"hidden_units": [4]}),
        ("linear", tf.estimator.LinearClassifier, {}),
    ],
)
def test_tensorflow_model_dir(name: str, kind: Any, arguments: Any, tmp_path: Path) -> None:
    folder = shutil.copytree(GOLDEN / f"{name}_classifier", tmp_path / "model")
    columns = [tf.feature_column.numeric_column("x", shape=(2,))]
    estimator = kind(feature_columns=columns, n_classes=3, model_dir=folder, **arguments)
    facts = FACTS[name]

    assert estimator.latest_checkpoint() == str(folder / "model.ckpt-2")
    assert estimator.get_variable_names() == sorted(facts["checkpoint"])
    for variable, (_, _, value) in facts["checkpoint"].items():
        assert estimator.get_variable_value(variable).tolist() == value

    metrics = estimator.evaluate(batches)
    assert metrics.keys() == facts["metrics"].keys()
    for key, value in facts["metrics"].items():
        assert metrics[key] == pytest.approx(value, rel=1e-5)
    predicted = [example["probabilities"] for example in estimator.predict(batches)]
    np.testing.assert_allclose(predicted, facts["probabilities"], rtol=1e-5)
    first = estimator.evaluate(batches, checkpoint_path=folder / "model.ckpt-0")
    assert first["global_step"] == 0

    # The optimizer's slots are found under their names of then, and training goes on.
    estimator.train(batches, steps=2)
    assert estimator.latest_checkpoint() == str(folder / "model.ckpt-4")
    assert estimator.evaluate(batches)["global_step"] == 4
    slot = {"dnn": "dnn/logits/bias/Adagrad", "linear": "linear/linear_model/bias_weights/Ftrl"}
    old = {"dnn": "Adagrad/dnn/logits/bias", "linear": "Ftrl/linear/linear_model/bias_weights"}
    before = facts["checkpoint"][f"training/{old[name]}/accumulator"][2]
    assert (estimator.get_variable_value(slot[name]) > before).all()
    assert (folder / "model.ckpt-2.index").exists()


def test_moved_model_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With spaces and letters of all kinds, behind a link, relative."""
    folder = shutil.copytree(GOLDEN / "linear_classifier", tmp_path / "größer als 日本")
    (tmp_path / "link").symlink_to(folder, target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    columns = [tf.feature_column.numeric_column("x", shape=(2,))]
    for place in (folder, "link", folder.name):
        estimator = tf.estimator.LinearClassifier(columns, model_dir=place, n_classes=3)
        latest = estimator.latest_checkpoint()
        assert latest is not None
        assert latest.endswith("model.ckpt-2")
        assert estimator.get_variable_value("global_step") == 2
        assert tf.train.load_checkpoint(place).get_tensor("global_step") == 2


def test_tables_are_restored_with_variables(tmp_path: Path) -> None:
    """Content of a `Saveable` goes from training to evaluation and to further training."""

    def model_fn(features: Any, labels: Any, mode: str) -> tf.estimator.EstimatorSpec:
        table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0, name="seen")
        step = tf.train.get_global_step()
        keys = tf.constant([7], tf.int64)
        seen = table.lookup(keys)
        with tf.control_dependencies([seen]):
            insert = table.insert(keys, seen + 1)
        loss = tf.reduce_sum(features["x"])
        with tf.control_dependencies([insert]):
            train_op = tf.assign_add(step, 1)
        counted = tf.metrics.mean(tf.cast(seen, tf.float32))
        return tf.estimator.EstimatorSpec(
            mode, loss=loss, train_op=train_op, eval_metric_ops={"seen": counted}
        )

    estimator = tf.estimator.Estimator(model_fn, tmp_path)
    estimator.train(batches, steps=2)
    assert estimator.evaluate(batches, steps=1)["seen"] == 2
    estimator.train(batches, steps=2)
    assert estimator.evaluate(batches, steps=1)["seen"] == 4
    assert estimator.get_variable_value("seen-values").tolist() == [4]
