"""Premade estimators: signatures, defaults, training and errors."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.data.dataset import Dataset
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import ModeKeys
from estimatorkit.layers.feature_column import numeric_column
from estimatorkit.ops.variables.variable_collections import (
    global_variables_initializer,
    trainable_variables,
)
from estimatorkit.premade import baseline, dnn, linear
from estimatorkit.runtime.session import Session
from estimatorkit.train.global_steps import get_or_create_global_step
from estimatorkit.train.hooks.hooks import SessionRunHook
from estimatorkit.train.optimizers.optimizers import AdamOptimizer

SIGNATURES = json.loads((Path(__file__).parents[1] / "golden" / "signatures.json").read_text())
HEADS = [
    *("BinaryClassHead", "LogisticRegressionHead", "MultiClassHead", "MultiHead"),
    *("MultiLabelHead", "PoissonRegressionHead", "RegressionHead"),
]
ESTIMATORS = [
    f"{kind}{task}"
    for kind in ("Baseline", "DNN", "DNNLinearCombined", "Linear")
    for task in ("Classifier", "Estimator", "Regressor")
]
COLUMNS = [numeric_column("x")]


OWN_ARGUMENTS = {"label_smoothing"}
"""Keywords that TensorFlow does not have."""


def check_arguments(version: str, cls: type) -> None:
    """Compares the arguments of a constructor with TensorFlow's."""
    found = []
    for parameter in inspect.signature(cls).parameters.values():
        if parameter.name in OWN_ARGUMENTS:
            assert parameter.kind is parameter.KEYWORD_ONLY
            continue
        default = None if parameter.default is parameter.empty else repr(parameter.default)
        if default is not None and default.startswith("<function"):
            default = f"<function {parameter.default.__name__}>"
        found.append([parameter.name, default, parameter.kind.name])
    assert found == SIGNATURES[version][cls.__name__]


@pytest.mark.parametrize("name", [*ESTIMATORS, *HEADS])
def test_constructor_arguments_match_tensorflow(name: str) -> None:
    check_arguments("v2", getattr(estimatorkit.estimator, name))


@pytest.mark.parametrize("name", ["BinaryClassHead", "MultiClassHead", "RegressionHead"])
@pytest.mark.parametrize(
    "method", ["loss", "predictions", "metrics", "update_metrics", "create_estimator_spec"]
)
def test_head_method_arguments_match_tensorflow(name: str, method: str) -> None:
    parameters = list(
        inspect.signature(getattr(getattr(estimatorkit.estimator, name), method)).parameters
    )[1:]
    expected = [parameter for parameter, *_ in SIGNATURES["v2"][f"{name}.{method}"]]
    assert parameters[: len(expected)] == expected


def input_of(labels: Any, **features: Any) -> Callable[[], Dataset]:
    def input_fn() -> Dataset:
        given = features or {"x": np.arange(len(labels), dtype=np.float32)}
        return Dataset.from_tensor_slices((given, labels)).batch(2)

    return input_fn


def test_classifier_trains_evaluates_and_predicts(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=200).astype(np.float32)
    labels = np.where(x > 0, "yes", "no").astype(object)
    estimator = dnn.DNNClassifier(
        [8],
        COLUMNS,
        tmp_path,
        label_vocabulary=["no", "yes"],
        optimizer=lambda: AdamOptimizer(0.03),
        dropout=0.1,
        config=RunConfig(tf_random_seed=1),
    )

    def input_fn() -> Dataset:
        return (
            Dataset.from_tensor_slices(({"x": x}, labels)).shuffle(200, seed=1).repeat().batch(20)
        )

    estimator.train(input_fn, steps=300)
    metrics = estimator.evaluate(input_of(labels, x=x))
    assert metrics["accuracy"] > 0.95
    assert metrics["auc"] > 0.98
    assert metrics["global_step"] == 300
    predictions = list(estimator.predict(input_of(labels[:4], x=x[:4])))
    assert [row["classes"][0].decode() for row in predictions] == labels[:4].tolist()
    assert predictions[0]["all_classes"].tolist() == [b"no", b"yes"]


@pytest.mark.slow
def test_invalid_labels_stop_training_before_saving(tmp_path: Path) -> None:
    estimator = linear.LinearClassifier(COLUMNS, tmp_path, n_classes=3)
    with pytest.raises(InvalidArgumentError, match="minimum 2, maximum 3"):
        estimator.train(input_of(np.array([0, 1, 2, 3])))
    saved = estimator.latest_checkpoint()
    assert saved is None or saved.endswith("-0")


@pytest.mark.slow
def test_invalid_labels_stop_evaluation(tmp_path: Path) -> None:
    estimator = linear.LinearClassifier(COLUMNS, tmp_path, n_classes=3)
    estimator.train(input_of(np.array([0, 1, 2, 0])))
    with pytest.raises(InvalidArgumentError, match="Labels must be <= n_classes - 1"):
        estimator.evaluate(input_of(np.array([0, 1, 2, 3])))


def test_labels_outside_vocabulary_stop_training(tmp_path: Path) -> None:
    estimator = linear.LinearClassifier(
        COLUMNS, tmp_path, n_classes=3, label_vocabulary=["a", "b", "c"]
    )
    with pytest.raises(InvalidArgumentError, match="label 'd' is not in label_vocabulary"):
        estimator.train(input_of(np.array(["a", "b", "c", "d"], object)))


def test_baseline_uses_features_only_for_batch_size(tmp_path: Path) -> None:
    labels = np.array([1.0, 3.0, 5.0, 3.0], np.float32)
    words = np.array(["a", "b", "c", "d"], object)
    estimator = baseline.BaselineRegressor(tmp_path, optimizer="SGD")
    estimator.train(lambda: input_of(labels, words=words)().repeat(30))
    (row, *_) = estimator.predict(input_of(labels, words=words))
    assert abs(row["predictions"][0] - 3.0) < 0.7


def test_dropout_only_in_training(tmp_path: Path) -> None:
    estimator = dnn.DNNRegressor([64], COLUMNS, tmp_path, dropout=0.5, optimizer="SGD")
    features = {"x": np.array([1.0, 2.0], np.float32)}
    values = {}
    with Graph().as_default(), Session() as session:
        get_or_create_global_step()
        train = estimator.model_fn(features, np.zeros(2, np.float32), ModeKeys.TRAIN, None)
        for variable in trainable_variables():
            values[variable.op.name] = np.full(variable.shape.as_list(), 0.5, np.float32)
            variable.load(values[variable.op.name], session)
        assert len({session.run(train.loss).item() for _ in range(8)}) > 4
    with Graph().as_default(), Session() as session:
        spec = estimator.model_fn(features, None, ModeKeys.PREDICT, None)
        for variable in trainable_variables():
            variable.load(values[variable.op.name], session)
        found = session.run(spec.predictions["predictions"])
    np.testing.assert_allclose(found, [[64 * 0.5 + 0.5], [64 * 0.75 + 0.5]])


def test_activation_none_is_linear(tmp_path: Path) -> None:
    estimator = dnn.DNNRegressor([5], COLUMNS, tmp_path, activation_fn=None)
    with Graph().as_default(), Session() as session:
        features = {"x": np.array([-2.0, 0.0, 2.0], np.float32)}
        spec = estimator.model_fn(features, None, ModeKeys.PREDICT, None)
        session.run(global_variables_initializer())
        low, middle, high = session.run(spec.predictions["predictions"])[:, 0]
    np.testing.assert_allclose(low + high, 2 * middle, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dnn.DNNClassifier([], COLUMNS, n_classes=1), "n_classes must be > 2: 1."),
        (lambda: dnn.DNNClassifier(10, COLUMNS), "hint:     [10]"),
        (lambda: dnn.DNNClassifier([10, 0], COLUMNS), "hidden_units must be a list of positive"),
        (lambda: dnn.DNNClassifier(["10"], COLUMNS), "hidden_units must be a list of positive"),
        (
            lambda: dnn.DNNClassifier([10], COLUMNS, dropout=1.0),
            "dropout is not a valid probability",
        ),
        (lambda: dnn.DNNClassifier([10], []), "feature_columns must not be empty"),
        (lambda: dnn.DNNRegressor([10], ["x"]), "numeric_column('x')"),
        (lambda: dnn.DNNRegressor([10], COLUMNS, loss_reduction="avg"), "Invalid loss_reduction"),
        (
            lambda: linear.LinearRegressor(COLUMNS, sparse_combiner="x"),
            "sparse_combiner must be one of 'mean', 'sqrtn' or 'sum'",
        ),
        (lambda: linear.LinearClassifier(COLUMNS * 2), "Duplicate feature column name found"),
        (lambda: baseline.BaselineRegressor(label_dimension=0), "Invalid label_dimension 0."),
    ],
)
def test_constructors_validate_arguments(make: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        make()
    assert message in str(caught.value)


def test_combined_model_needs_columns(tmp_path: Path) -> None:
    make = estimatorkit.estimator.DNNLinearCombinedRegressor
    for arguments, message in (
        ({}, "Either linear_feature_columns or dnn_feature_columns must be defined."),
        ({"dnn_feature_columns": COLUMNS}, "dnn_hidden_units must be defined"),
        (
            {"linear_feature_columns": COLUMNS, "linear_sparse_combiner": "avg"},
            "sparse_combiner must be one of 'mean', 'sqrtn' or 'sum'",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            make(tmp_path, **arguments)
    with pytest.raises(ValueError, match="head is not a Head"):
        estimatorkit.estimator.BaselineEstimator("binary", tmp_path)


def test_operations_name_user_line(tmp_path: Path) -> None:
    class Sources(SessionRunHook):
        def begin(self) -> None:
            operations = get_default_graph().get_operations()
            self.files = {operation.source.file for operation in operations}

    sources = Sources()
    rows = ({"x": np.zeros([4, 1], np.float32)}, np.zeros(4, np.float32))
    baseline.BaselineRegressor(tmp_path).train(
        lambda: Dataset.from_tensor_slices(rows).batch(4), hooks=[sources], steps=1
    )
    assert sources.files == {__file__}
