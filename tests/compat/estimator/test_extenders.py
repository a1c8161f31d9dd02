"""The tests of `tests/estimator/test_extenders.py` that need names of TensorFlow 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.compat.predictor import from_saved_model
from estimatorkit.estimator.extenders import forward_features
from tests.estimator.test_extenders import FEATURES, estimator, plain

__all__ = ["estimator", "plain"]


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
