"""Long-standing complaints about `tf.estimator`, each as a test.

Others are beside what they are about: 2, 3 and 5 in `test_kept_models`, 6 and 35 in `test_resume`,
7 to 10 and 38 with exporters and early stopping, 26 to 28, 30 and 33 with the premade estimators.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.data.dataset import Dataset
from estimatorkit.train.hooks.hooks import NanLossDuringTrainingError


class TestPainPoint29NanWithoutAClue:
    """NaN losses told nothing but that they were NaN."""

    def estimator(self, model_dir: Path) -> Any:
        columns = [tf.feature_column.numeric_column(key) for key in ("age", "pay")]
        return tf.estimator.DNNClassifier([4], columns, model_dir)

    def input_fn(self, **wrong: tuple[int, float]) -> Any:
        rows = {key: np.linspace(0, 1, 320, dtype=np.float32) for key in ("age", "pay")}
        for key, (row, value) in wrong.items():
            rows[key][row] = value
        labels = (np.arange(320) % 2).astype(np.int32)
        return lambda: Dataset.from_tensor_slices((rows, labels)).batch(32)

    @pytest.mark.slow
    def test_error_names_feature_step_and_previous_checkpoint(self, tmp_path: Path) -> None:
        made = self.estimator(tmp_path)
        with pytest.raises(NanLossDuringTrainingError) as caught:
            made.train(self.input_fn(pay=(100, float("nan"))))
        message = str(caught.value)
        assert "NaN at step 4 (the step before it: 0." in message
        assert "feature 'pay' (1 values)" in message
        assert "'age'" not in message
        assert f"the checkpoint before it: {tmp_path}/model.ckpt-0" in message

    def test_infinite_features(self, tmp_path: Path) -> None:
        with pytest.raises(NanLossDuringTrainingError, match=r"feature 'age' \(1 values\)"):
            self.estimator(tmp_path).train(self.input_fn(age=(40, float("inf"))))

    @pytest.mark.parametrize("row", [40, 300])
    def test_infinite_feature_with_finite_loss(self, row: int, tmp_path: Path) -> None:
        """Its gradient is NaN, and with it the next loss."""

        def model_fn(features: Any, labels: Any, mode: str) -> Any:
            weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
            loss = weight + tf.reduce_mean(1.0 / (1.0 + tf.nn.relu(features["age"])))
            largest = tf.reduce_max(features["age"])
            change = tf.assign_add(weight, largest - largest)
            train_op = tf.group(change, tf.assign_add(tf.train.get_global_step(), 1))
            return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

        data = self.input_fn(age=(row, float("inf")))
        made = tf.estimator.Estimator(model_fn, tmp_path)
        with pytest.raises(NanLossDuringTrainingError) as caught:
            made.train(lambda: data().repeat())
        assert f"NaN at step {row // 32 + 2}" in str(caught.value)
        assert "the batch before it: feature 'age' (1 values)" in str(caught.value)

    def test_finite_batches_are_reported_as_such(self, tmp_path: Path) -> None:
        def model_fn(features: Any, labels: Any, mode: str) -> Any:
            step = tf.train.get_global_step()
            weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
            loss = tf.log(weight) + tf.reduce_mean(features["age"])
            train_op = tf.group(tf.assign_sub(weight, 1.0), tf.assign_add(step, 1))
            return tf.estimator.EstimatorSpec(mode, loss=loss * 0.0, train_op=train_op)

        made = tf.estimator.Estimator(model_fn, tmp_path)
        with pytest.raises(NanLossDuringTrainingError, match="all numbers of the batch") as caught:
            made.train(self.input_fn())
        assert "NaN at step 2" in str(caught.value)
