"""`Estimator.summary`, and what notebooks show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.estimator.description import describe, lines
from estimatorkit.storage.checkpoint import write_checkpoint

fc = tf.feature_column

TENSORS: dict[str, Any] = {
    "dnn/hiddenlayer_0/kernel": np.zeros((3, 4), np.float32),
    "dnn/hiddenlayer_0/kernel/Adam": np.zeros((3, 4), np.float32),
    "dnn/hiddenlayer_0/kernel/Adam_1": np.zeros((3, 4), np.float32),
    "dnn/hiddenlayer_0/batchnorm_0/moving_mean": np.zeros(4, np.float32),
    "training/Adam/dnn/logits/bias/m": np.zeros(2, np.float32),
    "training/Adam/iter": np.zeros((), np.int64),
    "beta1_power": np.zeros((), np.float32),
    "dnn/logits/bias": np.zeros(2, np.float32),
    "global_step": np.int64(7),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_checkpoint(tmp_path, "model.ckpt-7", TENSORS, {"columns": {"dnn": ["age", "<b>"]}})
    return tmp_path


def test_weights_are_listed_apart_from_optimizer_slots(folder: Path) -> None:
    found = describe(folder, "model")
    assert {layer: [row.name for row in rows] for layer, rows in found.layers.items()} == {
        "dnn/hiddenlayer_0": ["kernel"],
        "dnn/hiddenlayer_0/batchnorm_0": ["moving_mean"],
        "dnn/logits": ["bias"],
    }
    assert found.parameters == 12 + 4 + 2
    assert found.slots == [
        *(("Adam", 1, 12), ("Adam_1", 1, 12), ("beta1_power", 1, 1), ("iter", 1, 1), ("m", 1, 2)),
    ]
    assert found.step == 7
    (moving,) = found.layers["dnn/hiddenlayer_0/batchnorm_0"]
    assert not moving.trained
    words = [line.split() for line in lines(found)]
    assert ["dnn/hiddenlayer_0", "kernel", "3", "x", "4", "float32", "12"] in words
    assert ["columns", "of", "dnn", "age,", "<b>"] in words


def test_estimator_repr_and_html(folder: Path) -> None:
    estimator = tf.estimator.LinearClassifier([fc.numeric_column("x")], str(folder))
    printed: list[str] = []
    estimator.summary(printed.append)
    assert printed[0] == f"LinearClassifier(model_dir={str(folder)!r})"
    assert any(line.split() == ["parameters", "18"] for line in printed)
    html = estimator._repr_html_()
    assert "<td>age, &lt;b&gt;</td>" in html
    assert "<b>" not in html


def test_summary_without_checkpoint(tmp_path: Path) -> None:
    estimator = tf.estimator.BaselineRegressor(str(tmp_path))
    printed: list[str] = []
    estimator.summary(printed.append)
    assert any(line.split() == ["checkpoint", "none", "yet"] for line in printed)


def test_subclass_may_override_summary(tmp_path: Path) -> None:
    class Own(tf.estimator.Estimator):  # type: ignore[misc]
        def summary(self) -> str:  # type: ignore[override]
            return "own"

    own = Own(lambda features, labels, mode: None, model_dir=str(tmp_path))
    assert own.summary() == "own"


def test_datasets_and_graphs_have_html() -> None:
    dataset = tf.data.Dataset.from_tensor_slices({"<b>": np.zeros((4, 2), np.float32)}).batch(3)
    html = dataset._repr_html_()
    assert "component [&#x27;&lt;b&gt;&#x27;]" in html
    assert "<td>float32</td>" in html
    with tf.Graph().as_default() as graph:
        tf.add(tf.constant(1), tf.constant(2))
    assert '<td>Const</td><td style="text-align: right">2</td>' in graph._repr_html_()


def test_training_plan_can_be_printed(tmp_path: Path) -> None:
    def input_fn() -> tf.data.Dataset:
        return tf.data.Dataset.from_tensor_slices(
            ({"x": np.ones(8, np.float32)}, np.ones(8))
        ).batch(4)

    estimator = tf.estimator.LinearRegressor([fc.numeric_column("x")], model_dir=str(tmp_path))
    text = estimator.plan(input_fn)
    for part in (
        *("the steps of a block of elements run in one XLA call", "segment 0 on the host"),
        *("IteratorGetNext = IteratorGetNext()", "segment 1 on the device", "writes: linear/"),
    ):
        assert part in text
    assert not list(tmp_path.iterdir())
