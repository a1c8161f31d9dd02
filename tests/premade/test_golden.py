"""The premade estimators on iris against TensorFlow 2.15.1: 100 steps from the same weights and
batches.

Each case builds the estimator's model function in a graph, feeds the batches, and compares losses,
final variables, slots, metrics and predictions with `tests/golden/estimators.*`. Intended
differences, besides rounding: optimizer variables have TensorFlow 1's names (`<variable>/Adagrad`
for `training/Adagrad/<variable>/accumulator`), and hyperparameters are constants, not variables.
Nearly all of the time here is XLA's compilations, so evaluation and prediction are left out where
another case has the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import estimatorkit as tf
import estimatorkit.compat.v1 as tf_v1
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.layers.feature_column import NumericColumn, numeric_column
from estimatorkit.train.optimizers.optimizers_by_name import get_optimizer_by_name
from tests.premade import model_graphs as graphs
from tests.sweep import sweep

GOLDEN = Path(__file__).parents[1] / "golden"
FACTS = json.loads((GOLDEN / "estimators.json").read_text())
ARRAYS = np.load(GOLDEN / "estimators.npz")
ABOUT = FACTS["about"]
CASES = FACTS["cases"]
# Batch normalization with the learning rate of TensorFlow 1 and a sum of losses is chaotic: weights
# moved by 1e-7 move the third loss by 2e-4 of it, and the eighth by 1e-2.
STEPS = {"v1_dnn_classifier_batch_norm": 2}
# Evaluated as TensorFlow was, in batches of 7 and one of 2.
BATCHED = ("dnn_classifier_multiclass", "dnn_classifier_binary_weighted")
# Evaluated in one batch of all 30 rows. The rest would compile the same evaluations once more.
WHOLE = (
    *("dnn_classifier_batch_norm", "dnn_classifier_shaped_columns", "dnn_classifier_vocabulary"),
    *("dnn_regressor", "dnn_regressor_two_weighted", "linear_regressor_two"),
    *("baseline_classifier_multiclass", "dnn_linear_combined_regressor"),
    *("v1_dnn_classifier_binary_weighted", "v1_linear_classifier_binary"),
    *("v1_dnn_classifier_batch_norm", "v1_dnn_regressor_two_weighted"),
)
# Cases that differ in training only.
TRAINED_ONLY = [
    name
    for name, case in CASES.items()
    if case["api"] == "v1" or {"optimizer", "loss_reduction"} & set(case["arguments"])
]
# What this package calls a slot that Keras calls so.
SLOTS = {
    ("Adagrad", "accumulator"): "Adagrad",
    ("Adam", "m"): "Adam",
    ("Adam", "v"): "Adam_1",
    ("Ftrl", "accumulator"): "Ftrl",
    ("Ftrl", "linear"): "Ftrl_1",
    ("RMSprop", "rms"): "RMSProp",
}


def normalizer(column: Mapping[str, Any]) -> Callable[[Any], Any] | None:
    if "normalizer" not in column:
        return None
    subtract, divide = column["normalizer"]
    return lambda values: (values - subtract) / divide


def columns_of(case: Mapping[str, Any]) -> list[NumericColumn]:
    return [
        numeric_column(
            column["key"], tuple(column.get("shape", (1,))), None, "float32", normalizer(column)
        )
        for column in case["feature_columns"]
    ]


def data_of(case: Mapping[str, Any], part: str) -> tuple[graphs.Values, Any]:
    """Features and labels of all rows of the training or the test set."""
    measurements, species = ARRAYS[f"data/{part}_measurements"], ARRAYS[f"data/{part}_species"]
    known = {key: measurements[:, index] for index, key in enumerate(ABOUT["columns"])}
    known |= {"sepal": measurements[:, :2], "petal": measurements[:, 2:]}
    known["weight"] = (0.25 + 0.5 * (np.arange(len(species)) % 5)).astype(np.float32)
    labels = {
        "species": species,
        "species_name": np.array(ABOUT["species"], object)[species],
        "is_versicolor": (species == 1).astype(np.int64),
        "is_versicolor_name": np.where(species == 1, "versicolor", "other").astype(object),
        "petal_width": measurements[:, 3],
        "petal": measurements[:, 2:4],
    }
    return {key: known[key] for key in case["features"]}, labels[case["labels"]]


def estimator_of(case: Mapping[str, Any], model_dir: Path) -> Estimator:
    arguments = dict(case["arguments"])
    name = case["estimator"]
    if "Combined" in name:
        columns = columns_of(case)
        arguments |= {"linear_feature_columns": columns, "dnn_feature_columns": columns}
    elif not name.startswith("Baseline"):
        arguments["feature_columns"] = columns_of(case)
    if name.startswith("DNN") and "Combined" not in name and case["api"] == "v2":
        # The default rate differs by intent (docs/differences.md): TensorFlow 2.15's is taken here.
        usual = arguments.get("optimizer", "Adagrad")
        arguments["optimizer"] = lambda: get_optimizer_by_name(usual)
    module = tf_v1.estimator if case["api"] == "v1" else tf.estimator
    estimator: Estimator = getattr(module, name)(model_dir=model_dir, **arguments)
    return estimator


def golden(name: str, part: str) -> dict[str, Any]:
    start = f"{name}/{part}/"
    return {key.removeprefix(start): ARRAYS[key] for key in ARRAYS.files if key.startswith(start)}


def as_here(name: str) -> str | None:
    """What this package calls a variable of TensorFlow's; None for hyperparameters."""
    if not name.startswith("training"):
        # The partitioners of TensorFlow 1's estimators cut names: 'part_0', and in slots 't_0'.
        return re.sub("/(part|t)_0/", "/", name)
    _, optimizer, *rest = name.split("/")
    if len(rest) == 1:
        return None
    return "/".join([*rest[:-1], SLOTS[optimizer, rest[-1]]])


@sweep("name", CASES, quick=2)
def test_training_evaluation_and_prediction_match_tensorflow(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    estimator = estimator_of(case, tmp_path)
    steps = STEPS.get(name, ABOUT["steps"])
    trained = graphs.train(
        *(estimator, *data_of(case, "train"), ARRAYS["data/batches"][:steps]),
        lambda shapes: golden(name, "initial"),
    )
    assert trained.trainable == case["trainable_variables"]
    np.testing.assert_allclose(
        trained.losses, ARRAYS[f"{name}/losses"][:steps], rtol=2e-5, atol=1e-6
    )
    expected = {
        here: value
        for there, value in golden(name, "final").items()
        if (here := as_here(there)) is not None
    }
    final = trained.final
    # Adam's powers of beta are variables here and in TensorFlow 1, computed in TensorFlow 2.
    assert set(final) - {"beta1_power", "beta2_power"} == set(expected)
    for key, value in expected.items():
        assert final[key].shape == value.shape, key
        assert final[key].dtype == value.dtype, key
        if name not in STEPS:
            np.testing.assert_allclose(final[key], value, rtol=1e-4, atol=2e-5, err_msg=key)
    if name in STEPS:
        final = expected
    if name in BATCHED or name in WHOLE:
        size = ABOUT["eval_batch_size"] if name in BATCHED else len(ARRAYS["data/test_species"])
        check_evaluation(estimator, case, final, size)
    if name not in TRAINED_ONLY:
        check_predictions(estimator, case, final, name)


def check_evaluation(
    estimator: Estimator, case: Mapping[str, Any], values: Mapping[str, Any], size: int
) -> None:
    features, labels = data_of(case, "test")
    found, places = graphs.evaluate(estimator, features, labels, size, values)
    # In one batch a sum is that of all rows; TensorFlow's loss is the mean over its five batches.
    batches = -(-len(labels) // ABOUT["eval_batch_size"])
    scale = 1 / batches if size == len(labels) and case["api"] == "v1" else 1.0
    if scale != 1.0 or size != len(labels):
        np.testing.assert_allclose(found["loss"] * scale, case["metrics"]["loss"], rtol=1e-5)
    assert set(found) == set(case["metrics"])
    for key, value in found.items():
        if key != "loss":
            expected = case["metrics"][key]
            np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-5, err_msg=key)
    # Labels that are strings are looked up on the host; nothing else is, no names of classes.
    assert places == (["host"] if labels.dtype == object else []) + ["device"]


def check_predictions(
    estimator: Estimator, case: Mapping[str, Any], values: Any, name: str
) -> None:
    features, _ = data_of(case, "test")
    rows = {key: value[: ABOUT["predict_rows"]] for key, value in features.items()}
    found = graphs.predict(estimator, rows, values)
    numbers = golden(name, "predict")
    assert set(found) == set(case["predictions"])
    for key, expected in case["predictions"].items():
        if "values" in expected:
            texts = [[text.encode() for text in row] for row in expected["values"]]
            assert found[key].tolist() == texts, key
        else:
            assert str(found[key].dtype) == expected["dtype"], key
            assert found[key].shape == numbers[key].shape, key
            np.testing.assert_allclose(found[key], numbers[key], rtol=1e-5, atol=1e-5, err_msg=key)
