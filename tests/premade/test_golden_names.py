"""Names in the graphs of premade estimators match TensorFlow 2.15.1: hooks, servers and TensorBoard
use them.

Differs by intent: version 2's metrics have names of their own (`head/metrics/<key>/value`), where
TensorFlow numbers what Keras leaves unnamed; graphs of prediction have no summaries.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
import estimatorkit.compat.v1 as tf_v1
from tests.golden.golden_files import FOLDER
from tests.golden.snippets_premade_names import graphs

GOLDEN = json.loads((FOLDER / "premade_names.json").read_text())


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_names_match_tensorflow(version: str) -> None:
    found = json.loads(json.dumps(graphs(tf, tf_v1, version)))
    golden = GOLDEN[version]
    assert set(found) == set(golden)
    for name, modes in golden.items():
        for mode, expected in modes.items():
            parts = set(expected) - ({"metrics"} if version == "v2" else set())
            parts -= {"summaries"} if mode == "infer" else set()
            for part in parts - {"operations"}:
                assert found[name][mode][part] == expected[part], (name, mode, part)
            # Divisions of metrics and optimizers are other operations here.
            mean_loss = [op for op in expected["operations"] if op.endswith("head/truediv")]
            assert set(mean_loss) <= set(found[name][mode]["operations"]), (name, mode)


def rows() -> Any:
    return tf.data.Dataset.from_tensors(({"x": [[1.0], [2.0]]}, [[1], [0]])).repeat(4)


@pytest.mark.slow
def test_hooks_find_tensors_by_name(tmp_path: Path) -> None:
    columns = [tf.feature_column.numeric_column("x")]
    estimator = tf_v1.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=columns,
        dnn_feature_columns=columns,
        dnn_hidden_units=[2],
        model_dir=tmp_path,
    )
    losses: list[Any] = []

    class Hook(tf.train.SessionRunHook):
        def begin(self) -> None:
            self.merged = tf.summary.merge_all()

        def before_run(self, run_context: Any) -> Any:
            names = {"average_loss": "head/truediv:0", "loss": "head/weighted_loss/Sum:0"}
            return tf.train.SessionRunArgs([names, self.merged])

        def after_run(self, run_context: Any, run_values: Any) -> None:
            fetched, summary = run_values.results
            values = {v.tag: v.simple_value for v in tf_v1.Summary.FromString(summary).value}
            losses.append((fetched, values))

    shown: list[Any] = []
    logging = tf.train.LoggingTensorHook(
        {"average_loss": "head/truediv"}, every_n_iter=1, formatter=lambda v: str(shown.append(v))
    )
    estimator.train(rows, hooks=[Hook(), logging])
    assert len(losses) == 4
    for fetched, values in losses:
        assert fetched["loss"] == pytest.approx(2 * fetched["average_loss"])
        assert values["loss"] == pytest.approx(fetched["loss"])
        assert values["average_loss"] == pytest.approx(fetched["average_loss"])
        assert {"dnn/dnn/hiddenlayer_0/fraction_of_zero_values", "linear/bias"} <= set(values)
    assert [each["average_loss"] for each in shown] == [each["average_loss"] for each, _ in losses]


def test_each_head_has_a_loss_summary() -> None:
    head = tf.estimator.MultiHead(
        [tf.estimator.BinaryClassHead(name="a"), tf.estimator.RegressionHead(name="b")]
    )
    logits = tf.constant(np.ones((2, 2), np.float32))
    spec = head.create_estimator_spec(
        {"x": logits},
        "train",
        logits,
        {"a": tf.constant([[1], [0]]), "b": tf.constant([[1.0], [2.0]])},
        train_op_fn=lambda loss: tf.no_op(),
        regularization_losses=[tf.constant(0.5)],
    )
    with tf.Session() as session:
        merged, loss = session.run([tf.summary.merge_all(), spec.loss])
    values = {value.tag: value.simple_value for value in tf_v1.Summary.FromString(merged).value}
    assert set(values) == {"loss", "loss/a", "loss/b", "regularization_loss"}
    assert values["loss"] == pytest.approx(loss)
    assert values["loss/a"] + values["loss/b"] + 0.5 == pytest.approx(loss)
