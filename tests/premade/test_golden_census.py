"""The premade estimators on census columns against TensorFlow 2.15.1.

The programs are those of `tests/golden/snippets_premade.py`: 100 steps from the same weights and
batches; losses, variables, metrics and predictions are compared with `tests/golden/premade.json`.
Names of optimizer variables differ by intent, see `SLOTS`. Most of the time is XLA's compilations,
so cases that differ in training only are not evaluated again.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import estimatorkit as tf
from estimatorkit.keras import optimizers as keras_optimizers
from tests.golden import snippets_premade as snippets
from tests.premade import model_graphs as graphs
from tests.sweep import sweep

FACTS = json.loads((Path(__file__).parents[1] / "golden" / "premade.json").read_text())
ROWS = FACTS["rows"]
TF = SimpleNamespace(
    feature_column=tf.feature_column,
    estimator=tf.estimator,
    keras=SimpleNamespace(optimizers=keras_optimizers),
    compat=SimpleNamespace(v1=tf),
)
# What this package calls a slot that Keras calls so.
SLOTS = {
    "Adagrad/accumulator": "Adagrad",
    "Adam/m": "Adam",
    "Adam/v": "Adam_1",
    "Ftrl/accumulator": "Ftrl",
    "Ftrl/linear": "Ftrl_1",
    "RMSprop/rms": "RMSProp",
    "SGD/momentum": "Momentum",
}
# Evaluated and used for predictions; the others would compile the same once more.
EVALUATED = (
    *("dnn_classifier_names_weighted", "dnn_regressor_two"),
    *("linear_classifier_mean_none", "linear_regressor_rmsprop", "combined_classifier_keras"),
    *("combined_classifier_batch_norm", "baseline_classifier_adam", "baseline_regressor_weighted"),
    *("dnn_estimator_multi_label", "dnn_estimator_multi_head", "linear_estimator_poisson"),
    *("baseline_estimator_logistic", "combined_estimator_thresholds"),
    *("v1_dnn_classifier", "v1_linear_regressor", "v1_combined_classifier"),
    *("rnn_lstm_clipped", "rnn_gru_stacked_steps"),
)


def canonical(name: str) -> str | None:
    """A variable's name without what differs by intent; None for hyperparameters."""
    if re.match(r"beta\d_power", name):
        return None
    if not name.startswith("training"):
        # The partitioners of TensorFlow 1's estimators cut names of slots.
        return re.sub("/(part|t)_0/", "/", name)
    _, optimizer, *rest = name.split("/")
    if len(rest) == 1:
        return None
    return "/".join([*rest[:-1], SLOTS[f"{optimizer}/{rest[-1]}"]])


def taken(values: Any, rows: Any) -> Any:
    if isinstance(values, dict):
        return {key: each[rows] for key, each in values.items()}
    return values[rows]


@sweep("name", [name for name in snippets.CASES if not name.startswith("v1_")], quick=1)
def test_training_matches_tensorflow(name: str, tmp_path: Path) -> None:
    check_case(name, tmp_path, TF)


def check_case(name: str, folder: Path, module: Any) -> None:
    """Asserts that an estimator of a module trains as TensorFlow's."""
    case, facts = snippets.CASES[name], FACTS["cases"][name]
    estimator = case.build(module, folder)
    data = snippets.data_of(case, ROWS)
    trained = graphs.train(
        *(estimator, data.features, data.labels, data.batches), snippets.initial_values
    )
    assert trained.trainable == facts["trainable"]
    np.testing.assert_allclose(trained.losses[0], facts["losses"][0], rtol=1e-6)
    np.testing.assert_allclose(trained.losses, facts["losses"], rtol=1e-4, atol=1e-6)
    final = {canonical(key): value for key, value in trained.final.items()}
    expected = {canonical(key): value for key, value in facts["variables"].items()}
    assert set(final) | {None} == set(expected) | {None}
    for key, (dtype, shape, total, magnitude) in expected.items():
        if key is None:
            continue
        value = final[key].astype(np.float64)
        assert (str(final[key].dtype), list(value.shape)) == (dtype, shape), key
        np.testing.assert_allclose(
            [value.sum(), np.abs(value).sum()],
            [total, magnitude],
            rtol=1e-4,
            atol=1e-5 * max(magnitude, 1.0),
            err_msg=key,
        )
    if name in EVALUATED:
        check_evaluation(estimator, data, trained.final, facts["metrics"])
        check_predictions(estimator, data, trained.final, facts["predictions"])


def check_evaluation(
    estimator: Any, data: snippets.Data, values: graphs.Values, expected: dict[str, float]
) -> None:
    found, _ = graphs.evaluate(
        *(estimator, taken(data.features, data.test), taken(data.labels, data.test)),
        *(snippets.EVAL_BATCH_SIZE, values),
    )
    assert set(found) == set(expected)
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-5, atol=1e-5, err_msg=key)


def check_predictions(
    estimator: Any, data: snippets.Data, values: graphs.Values, facts: dict[str, Any]
) -> None:
    rows = data.test[: snippets.PREDICT_ROWS]
    predictions = graphs.predict(estimator, taken(data.features, rows), values)
    found = {
        "|".join(key) if isinstance(key, tuple) else key: value
        for key, value in predictions.items()
    }
    assert list(found) == list(facts)
    for key, expected in facts.items():
        assert list(found[key].shape) == expected["shape"], key
        if expected["dtype"] == "bytes":
            texts = [[each.decode() for each in row.ravel()] for row in found[key]]
            assert texts == expected["values"]
            continue
        assert str(found[key].dtype) == expected["dtype"], key
        values_here = found[key].reshape(len(rows), -1)
        np.testing.assert_allclose(
            values_here, expected["values"], rtol=1e-5, atol=1e-5, err_msg=key
        )
