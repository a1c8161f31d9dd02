"""`infer` in experiments: columns, missing values and scales, also in the exported model."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import estimatorkit as ek
from estimatorkit.experiment import document, inferred, predicting, runner, tables
from estimatorkit.experiment.load import load_experiment
from tests.experiment.commands import invoke, succeed

HOUSES = """\
name: houses
seed: 1
data: {train: {csv: houses.csv}, holdout: 0.25, label: price}
infer: true
estimator: {type: DNNRegressor, hidden_units: [16], optimizer: {type: Adam, learning_rate: 0.02}}
train: {epochs: 30, batch_size: 32}
evaluate: {every: 10 epochs}
export: [best, {type: final, inputs: examples}]
"""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["estimatorkit"])
    Path("houses.yaml").write_text(HOUSES)
    random = np.random.default_rng(0)
    lines = ["rooms,area,town,sold,price"]
    for row in range(400):
        area = random.normal(120, 40)
        town, month = ("Rome", "Oslo", "")[row % 3], 1 + row % 12
        price = 200_000 + 2000 * area + 50_000 * (town == "Oslo") + 5000 * month
        shown = "" if row % 8 == 0 else f"{area:.1f}"
        sold = "" if row % 50 == 7 else f"20{row % 20 + 10}-{month:02}-15"
        lines.append(f"{row % 5},{shown},{town},{sold},{price:.0f}")
    Path("houses.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.slow
def test_model_beats_reported_baseline() -> None:
    output = succeed("run", "houses.yaml")
    r2 = re.search(r"^  r2 +(-?[\d.]+)$", output, re.MULTILINE)
    assert r2 is not None, output
    assert float(r2[1]) > 0.6
    mean = re.search(
        r"^  the mean of the training labels has rmse (\d+)\.\d+, mae [\d.]+, r2 (-?[\d.]+)$",
        output,
        re.MULTILINE,
    )
    assert mean is not None, output
    assert 50_000 < float(mean[1]) < 200_000
    assert abs(float(mean[2])) < 0.05
    assert "no better" not in output

    # The columns that were chosen are printed as settings; pasted, they make the same model.
    shown = re.search(r"^The columns that infer chooses.*:\n((?:  .*\n)+)", output, re.MULTILINE)
    assert shown is not None
    chosen = document.to_data(document.parse(shown[1], "shown"))
    assert set(chosen) == {"features", "derive", "estimator"}
    assert chosen["derive"]["area_missing"] == {"missing": "area"}
    assert {"sold_year", "sold_month"} <= set(chosen["derive"])
    asked = document.to_data(document.parse(HOUSES, "asked"))
    del asked["infer"]
    asked["estimator"] |= chosen.pop("estimator")
    Path("pasted.yaml").write_text(document.dump(asked | chosen))
    assert load_experiment("pasted.yaml", ["name=houses"]) == inferred.resolve(
        load_experiment("houses.yaml")
    )


@pytest.mark.slow
def test_served_predictions_match_predict() -> None:
    experiment = load_experiment("houses.yaml")
    runner.train(experiment)
    table = tables.read_file("houses.csv").take(slice(60))
    expected = [each.value[0] for each in runner.predict(experiment, table, "houses.csv")]
    (best,) = Path("runs/houses/export/best").glob("[0-9]*")
    raw = {
        "rooms": table["rooms"].reshape(-1, 1).astype(np.int64),
        "area": table["area"].reshape(-1, 1).astype(np.float32),  # with NaN
        "town": table["town"].reshape(-1, 1),
        "sold": table["sold"].reshape(-1, 1),
    }
    assert np.isnan(raw["area"]).sum() == 8
    found = ek.load_predictor(str(best))(raw)["predictions"][:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-5)

    (final,) = Path("runs/houses/export/final").glob("[0-9]*")
    serialized = np.empty(60, object)
    for row in range(60):
        example = ek.train.Example()
        for key, column in raw.items():
            value = column[row, 0]
            if isinstance(value, bytes):
                example.features.feature[key].bytes_list.value.append(value)
            elif key == "rooms":
                example.features.feature[key].int64_list.value.append(int(value))
            elif not np.isnan(value):  # a number that is missing may be left out
                example.features.feature[key].float_list.value.append(float(value))
        serialized[row] = example.SerializeToString()
    found = ek.load_predictor(str(final))({"inputs": serialized})["outputs"][:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.slow
def test_predict_needs_no_training_data() -> None:
    experiment = load_experiment("houses.yaml")
    runner.train(experiment)
    shutil.copy("houses.csv", "rows.csv")
    before = succeed("predict", "houses.yaml", "--input", "rows.csv")
    lines = Path("houses.csv").read_text().splitlines()
    Path("houses.csv").write_text("\n".join([lines[0], *lines[200:]]) + "\n")
    assert succeed("predict", "houses.yaml", "--input", "rows.csv") == before
    Path("houses.csv").unlink()
    assert succeed("predict", "houses.yaml", "--input", "rows.csv") == before


def test_model_no_better_than_mean_warns() -> None:
    changes = "estimator={type: BaselineRegressor}", "infer=false", "features=[numeric: rooms]"
    output = succeed("run", "houses.yaml", *changes)
    assert "The model is no better than that: it has learnt nothing." in output


@pytest.mark.slow
def test_metrics_from_file() -> None:
    metrics = "[LogCoshError, {type: MeanAbsolutePercentageError, name: percent}]"
    results = runner.train(load_experiment("houses.yaml", [f"metrics={metrics}"])).metrics["eval"]
    assert 0 < results["percent"] < 20
    assert results["logcosh"] > 0

    names = ["estimator={type: DNNClassifier, hidden_units: [8], label_vocabulary: [Oslo, Rome]}"]
    names += ["data.label=town", "data.missing_labels=skip", "name=towns"]
    two = [*names, "metrics=[F1Score, {type: Precision, thresholds: 0.6}]"]
    results = runner.train(load_experiment("houses.yaml", two)).metrics["eval"]
    assert {"f1_score", "precision"} <= set(results)
    months = [
        "data.label=rooms",
        "estimator={type: DNNClassifier, hidden_units: [8], n_classes: 5}",
    ]
    months += ["name=rooms", "metrics=[F1Score, {type: SparseTopKCategoricalAccuracy, k: 2}]"]
    results = runner.train(load_experiment("houses.yaml", months)).metrics["eval"]
    assert 0 <= results["f1_score"] <= results["sparse_top_k_categorical_accuracy"] <= 1

    result = invoke("run", "houses.yaml", "metrics=[{type: LogCoshError, k: 2}]", "name=x")
    assert result.exit_code == 2
    assert "metrics: LogCoshError does not take its arguments" in result.stderr


@pytest.mark.slow
def test_boosted_trees_read_the_table_once_without_buckets_and_scales() -> None:
    trees = HOUSES.replace("name: houses", "name: trees").splitlines()
    trees[4] = "estimator: {type: BoostedTreesRegressor, n_trees: 30}"
    Path("trees.yaml").write_text("\n".join(trees))
    output = succeed("run", "trees.yaml")
    assert "bucketized" not in output
    assert "label_scaling" not in output
    assert "Training trees on houses.csv: read once\n" in output
    assert re.search("^evaluation loss .* examples/s$", output, re.MULTILINE)
    assert "epoch " not in output
    kept = predicting.trained(inferred.resolve(load_experiment("trees.yaml")))
    assert len(kept.get_variable_value("boosted_trees/root")) == 30
