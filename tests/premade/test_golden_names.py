"""Names in the graphs of premade estimators match TensorFlow 2.15.1: hooks, servers and TensorBoard
use them.

Differs by intent: version 2's metrics have names of their own (`head/metrics/<key>/value`), where
TensorFlow numbers what Keras leaves unnamed; graphs of prediction have no summaries.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from tests.golden.golden_files import FOLDER
from tests.golden.snippets_premade_names import graphs

GOLDEN = json.loads((FOLDER / "premade_names.json").read_text())


def check_names(version: str, tf_v1: Any) -> None:
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


def test_names_match_tensorflow() -> None:
    check_names("v2", tf)


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
    values = {value.tag: value.simple_value for value in tf.Summary.FromString(merged).value}
    assert set(values) == {"loss", "loss/a", "loss/b", "regularization_loss"}
    assert values["loss"] == pytest.approx(loss)
    assert values["loss/a"] + values["loss/b"] + 0.5 == pytest.approx(loss)
