"""Premade estimators with Keras optimizers match TensorFlow: losses, variables and names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from estimatorkit.keras import optimizers
from estimatorkit.train.optimizers.optimizer import Optimizer
from tests.premade import model_graphs as graphs
from tests.premade.test_golden import ABOUT, ARRAYS, CASES, data_of, estimator_of, golden

MADE = {
    "dnn_classifier_adam": optimizers.Adam(),
    "dnn_classifier_ftrl": optimizers.Ftrl(),
    "linear_classifier_binary_weighted_sum": optimizers.Adagrad(0.2),
}


@pytest.mark.parametrize("name", MADE)
def test_training_matches_tensorflow(name: str, tmp_path: Path) -> None:
    case, optimizer = CASES[name], MADE[name]
    assert isinstance(optimizer, Optimizer)
    case = {**case, "arguments": {**case["arguments"], "optimizer": lambda: optimizer}}
    estimator = estimator_of({**case, "api": "v2 with an optimizer"}, tmp_path)
    trained = graphs.train(
        *(estimator, *data_of(case, "train"), ARRAYS["data/batches"][: ABOUT["steps"]]),
        lambda shapes: golden(name, "initial"),
    )
    np.testing.assert_allclose(trained.losses, ARRAYS[f"{name}/losses"], rtol=2e-5, atol=1e-6)
    expected = golden(name, "final")
    hyperparameters = set(case["other_variables_at_start"]) - set(expected)
    assert set(trained.final) - hyperparameters == set(expected)
    for key, value in expected.items():
        np.testing.assert_allclose(trained.final[key], value, rtol=1e-4, atol=2e-5, err_msg=key)
