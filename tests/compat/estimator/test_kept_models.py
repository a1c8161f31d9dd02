"""The tests of `tests/estimator/test_kept_models.py` that need names of TensorFlow 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import estimatorkit as tf
from estimatorkit.data.dataset import Dataset
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from tests.estimator.test_kept_models import counted, estimator

__all__ = ["counted", "estimator"]


def test_datasets_of_sparse_tensors(tmp_path: Path) -> None:
    """What `parse_example` makes of a `VarLenFeature`; a second call takes the kept model."""

    def input_fn() -> Dataset:
        places = [[0, 0], [0, 2], [1, 1], [3, 0]]
        values = np.array([1, 2, 3, 4], np.float32)
        return Dataset.from_tensor_slices({"x": tf.SparseTensor(places, values, [4, 3])}).batch(2)

    built: list[str] = []

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        built.append(mode)
        total = tf.sparse_reduce_sum(features["x"], 1)
        zero = tf.get_variable("zero", [], initializer=tf.zeros_initializer())
        step = tf.assign_add(tf.train.get_global_step(), 1)
        return EstimatorSpec(mode, {"sum": total}, tf.reduce_sum(total) + zero, step)

    estimator = Estimator(model_fn, tmp_path, RunConfig(save_summary_steps=None))
    for steps in (2, 4):
        estimator.train(input_fn)
        assert estimator.evaluate(input_fn)["loss"] == 5.0
        assert [float(row["sum"]) for row in estimator.predict(input_fn)] == [3, 3, 0, 4]
        assert estimator.get_variable_value("global_step") == steps
    assert sorted(built) == [ModeKeys.EVAL, ModeKeys.PREDICT, ModeKeys.TRAIN]
