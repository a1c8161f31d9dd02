"""`predict --explain`: of a run, its export and a server, the same contributions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from estimatorkit.estimator.serving.predictor import load_predictor
from estimatorkit.experiment import predicting
from estimatorkit.experiment.serving import rest
from estimatorkit.experiment.tables import Table
from estimatorkit.premade.folds import FOLD
from tests.experiment.commands import succeed

CONFIG = """\
name: flowers
seed: 1
data: {train: {csv: flowers.csv}, holdout: 0.2, label: kind}
features: [numeric: size, {indicator: {vocabulary_list: {key: color, words: [red, blue]}}}]
estimator: {type: DNNClassifier, hidden_units: [4], n_classes: 2, label_vocabulary: [big, small]}
train: {batch_size: 16, epochs: 4}
export: [final]
"""


@pytest.mark.slow
def test_run_export_and_server_explain_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{n / 50},{'red' if n % 3 else 'blue'},{'big' if n > 50 else 'small'}" for n in range(100)
    ]
    Path("flowers.csv").write_text("\n".join(["size,color,kind", *rows]) + "\n")
    Path("flowers.yaml").write_text(CONFIG)
    succeed("train", "flowers.yaml")
    Path("new.csv").write_text("size,color\n1.5,red\n0.25,blue\n")

    shown = succeed("predict", "runs/flowers", "--input", "new.csv", "--explain")
    assert "example 1: the probability of small, 0." in shown
    assert "= baseline 0." in shown
    assert "  size = 1.5" in shown
    assert "  color = blue" in shown
    assert "contribution" not in shown

    frames = []
    for model in ("runs/flowers", "runs/flowers/export/final"):
        succeed("predict", model, "--input", "new.csv", "--explain", "--output", "found.csv")
        frames.append(pd.read_csv("found.csv"))
    own, exported = (each.drop(columns="prediction") for each in frames)
    assert list(own)[-3:] == ["baseline", "contribution_size", "contribution_color"]
    np.testing.assert_allclose(own, exported[list(own)], atol=1e-5)
    total = own[["baseline", "contribution_size", "contribution_color"]].sum(axis=1)
    np.testing.assert_allclose(total, own["probability_small"], atol=1e-4)

    folder = next(Path("runs/flowers/export/final").iterdir())
    content = {"instances": [{"size": 1.5, "color": "red"}, {"size": 0.25, "color": "blue"}]}
    with load_predictor(str(folder)) as predictor:
        answer = rest.ACTIONS[":predict"](predictor, content | {"explain": True})
        assert "explanations" not in rest.ACTIONS[":predict"](predictor, content)
        many = {"instances": content["instances"] * 20, "explain": True}
        with pytest.raises(ValueError, match="at most 32"):
            rest.ACTIONS[":predict"](predictor, many)
    with pytest.raises(ValueError, match="must be true or false"):
        rest.explains({"explain": "yes"})
    for row, each in enumerate(answer["explanations"]):
        assert abs(each["baseline"] - own["baseline"][row]) < 1e-5
        for key, value in each["contributions"].items():
            assert abs(value - own[f"contribution_{key}"][row]) < 1e-5


def test_rows_of_a_fold_are_explained_by_the_members_that_predict_them() -> None:
    """The report of an ensemble explains rows of its first fold."""
    table = Table({"size": np.array([2.0, 5.0])})

    def outputs(inputs: Mapping[str, Any]) -> dict[str, Any]:
        assert set(inputs[FOLD]) == {3}
        assert len(inputs[FOLD]) == len(inputs["size"])
        return {"predictions": 10 * inputs["size"]}

    model = predicting.Model(
        lambda table, origin: {"size": table["size"], FOLD: np.full(2, 3)},
        outputs,
        lambda found, table, origin: {"prediction": found["predictions"]},
        lambda: {"size": np.array([1.0, 3.0])},
    )
    found = model.explained(table, "rows")
    np.testing.assert_allclose(found["prediction"], [20.0, 50.0])
    np.testing.assert_allclose(found["baseline"], [20.0, 20.0])
    np.testing.assert_allclose(found["contribution_size"], [0.0, 30.0])
    assert list(found) == ["prediction", "baseline", "contribution_size"]
