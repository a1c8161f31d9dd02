"""The tests of `tests/premade/test_golden_names.py` for the estimators of TensorFlow 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import estimatorkit.compat.v1 as tf
from tests.premade.test_golden_names import check_names


def test_names_match_tensorflow() -> None:
    check_names("v1", tf)


def rows() -> Any:
    return tf.data.Dataset.from_tensors(({"x": [[1.0], [2.0]]}, [[1], [0]])).repeat(4)


@pytest.mark.slow
def test_hooks_find_tensors_by_name(tmp_path: Path) -> None:
    columns = [tf.feature_column.numeric_column("x")]
    estimator = tf.estimator.DNNLinearCombinedClassifier(
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
            values = {v.tag: v.simple_value for v in tf.Summary.FromString(summary).value}
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
