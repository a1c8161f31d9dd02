"""The tests of `tests/premade/test_estimators.py` for the estimators of TensorFlow 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit
from estimatorkit.compat import estimators as version_1
from estimatorkit.core.graph import Graph
from estimatorkit.estimator.spec import ModeKeys
from estimatorkit.ops.variables.partitioned_variables import fixed_size_partitioner
from estimatorkit.ops.variables.variable_collections import trainable_variables
from estimatorkit.train.global_steps import get_or_create_global_step
from tests.premade.test_estimators import ESTIMATORS, check_arguments


@pytest.mark.parametrize("name", ESTIMATORS)
def test_constructor_arguments_match_tensorflow(name: str) -> None:
    check_arguments("v1", getattr(version_1, name))


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("DNNClassifier", "input_layer_partitioner"),
        ("LinearRegressor", "partitioner"),
        ("DNNLinearCombinedEstimator", "input_layer_partitioner"),
    ],
)
def test_version_1_partitioner_splits_input_tables(
    name: str, argument: str, tmp_path: Path
) -> None:
    words = estimatorkit.feature_column.categorical_column_with_hash_bucket("word", 5)
    deep = [estimatorkit.feature_column.embedding_column(words, 2)]
    arguments: dict[str, Any] = {
        "DNNClassifier": {"hidden_units": [2], "feature_columns": deep},
        "LinearRegressor": {"feature_columns": [words]},
        "DNNLinearCombinedEstimator": {
            "head": estimatorkit.estimator.RegressionHead(),
            "linear_feature_columns": [words],
            "dnn_feature_columns": deep,
            "dnn_hidden_units": [2],
        },
    }[name]
    arguments[argument] = fixed_size_partitioner(2)
    estimator = getattr(version_1, name)(model_dir=tmp_path, **arguments)
    with Graph().as_default() as graph:
        get_or_create_global_step()
        features = {"word": np.array(["a", "b"], object)}
        estimator.model_fn(features, np.array([0, 1]), ModeKeys.TRAIN, estimator.config)
        shapes = {each.op.name: each.shape.as_list() for each in trainable_variables()}
        slots = {each.op.name for each in graph.get_collection("variables")} - set(shapes)
    table = "dnn/input_from_feature_columns/input_layer/word_embedding/embedding_weights"
    weights = "linear/linear_model/word/weights"
    expected = {}
    if name != "LinearRegressor":
        expected |= {f"{table}/part_0": [3, 2], f"{table}/part_1": [2, 2]}
    if name != "DNNClassifier":
        expected |= {f"{weights}/part_0": [3, 1], f"{weights}/part_1": [2, 1]}
    assert {key: shape for key, shape in shapes.items() if "word" in key} == expected
    hidden = [key for key in shapes if key.startswith("dnn/hidden")]
    assert all(key.endswith("/part_0") for key in hidden)
    for key in expected:
        assert any(slot.startswith(f"{key}/") for slot in slots), key


def test_version_1_large_tables_are_split_by_parameter_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = {"type": "worker", "index": 0}
    cluster = {"chief": ["h:1"], "worker": ["h:2"], "ps": ["h:3", "h:4"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
    sizes = {"small": 5, "large": 32 << 20}
    columns = [
        estimatorkit.feature_column.categorical_column_with_hash_bucket(name, size)
        for name, size in sizes.items()
    ]
    estimator = version_1.LinearRegressor(columns, model_dir=tmp_path)
    with Graph().as_default():
        get_or_create_global_step()
        features = {name: np.array(["a", "b"], object) for name in sizes}
        estimator.model_fn(features, np.array([0, 1]), ModeKeys.TRAIN, estimator.config)
        shapes = {each.op.name: each.shape.as_list() for each in trainable_variables()}
    weights = "linear/linear_model"
    assert shapes[f"{weights}/large/weights/part_0"] == [16 << 20, 1]
    assert shapes[f"{weights}/large/weights/part_1"] == [16 << 20, 1]
    assert shapes[f"{weights}/small/weights/part_0"] == [5, 1]
