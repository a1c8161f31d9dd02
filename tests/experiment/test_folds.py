"""Cross-validation: folds of rows, fits that do not see them, the model on all rows."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from estimatorkit.__main__ import cli  # noqa: F401 (adds commands)
from estimatorkit.experiment import compare, folds, held_out, row_sets
from estimatorkit.experiment.errors import ConfigurationError, DataError
from estimatorkit.experiment.load import load_experiment
from estimatorkit.experiment.report_html import write_experiment_report
from tests.experiment.commands import succeed

CONFIG = """\
name: numbers
seed: 1
data: {train: {csv: numbers.csv}, label: y}
features: [numeric: {key: x, normalizer: {type: standardize, mean: 60, deviation: 35}}]
estimator: {type: DNNClassifier, hidden_units: [4], n_classes: 2}
train: {batch_size: 16, epochs: 3, early_stopping: {metric: auc, patience: 2}}
evaluate: {folds: 3}
export: [best]
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{number},{number % 6 == 0:d}" for number in range(120)]
    Path("numbers.csv").write_text("\n".join(["x,y", *rows]) + "\n")
    Path("numbers.yaml").write_text(CONFIG)


@pytest.mark.parametrize("changes", [[], ["data.holdout=0.25"]])
def test_each_row_is_in_one_fold(changes: list[str]) -> None:
    experiment = load_experiment("numbers.yaml", changes)
    all_rows = row_sets.training_table(experiment)["x"].tolist()
    found: list[float] = []
    for number in (1, 2, 3):
        fit = held_out.fold(experiment, number)
        parts = {
            name: row_sets.evaluation_table(fit, name)[0]
            for name in (row_sets.MAIN, row_sets.SELECT, row_sets.TRAINING)
        }
        assert fit.selection is not None
        assert fit.selection.evaluation == row_sets.SELECT  # and not the fold
        rows = [each for part in parts.values() for each in part["x"].tolist()]
        assert sorted(rows) == sorted(all_rows)
        found += parts[row_sets.MAIN]["x"].tolist()
        counts = Counter(parts[row_sets.MAIN]["y"].tolist())
        assert abs(counts[1] / counts.total() - 1 / 6) < 0.05  # stratified
    assert sorted(found) == sorted(all_rows)


def test_folds_of_few_rows_and_rare_classes() -> None:
    Path("numbers.csv").write_text("x,y\n1,0\n2,0\n3,0\n4,0\n5,0\n6,1\n")
    experiment = load_experiment("numbers.yaml")
    held = [row_sets.evaluation_table(held_out.fold(experiment, number))[0] for number in (1, 2, 3)]
    assert [len(each["x"]) for each in held] == [2, 2, 2]
    Path("numbers.csv").write_text("x,y\n1,0\n2,1\n")
    with pytest.raises(DataError, match="fewer rows than folds"):
        row_sets.evaluation_table(held_out.fold(experiment, 1))


def test_settings_that_contradict() -> None:
    with pytest.raises(ConfigurationError, match=r"folds: 5.* is cross-validation"):
        load_experiment("numbers.yaml", ["evaluate.folds=null"])
    with pytest.raises(ConfigurationError, match=r"is given beside evaluate.folds"):
        load_experiment("numbers.yaml", ["data.select=0.2"])
    with pytest.raises(ConfigurationError, match="gives both evaluate and holdout"):
        load_experiment("numbers.yaml", ["data.holdout=0.2", "data.evaluate=iris_test"])
    with pytest.raises(ConfigurationError, match="is no fold"):
        load_experiment("numbers.yaml", ["data.part={fold: [4, 3]}"])


def test_folds_of_dated_rows_are_later_than_what_they_measure() -> None:
    given = ["data.holdout_latest=x"]
    for number in (1, 2):
        fit = held_out.fold(load_experiment("numbers.yaml", given), number)
        trained, held = row_sets.training_table(fit), row_sets.evaluation_table(fit)[0]
        assert max(trained["x"]) < min(held["x"])


def test_models_without_a_choice_use_all_rows_of_a_fit() -> None:
    experiment = load_experiment("numbers.yaml", ["train.early_stopping=null", "export=[]"])
    fit = held_out.fold(experiment, 2)
    assert fit.selection is None
    assert len(row_sets.training_table(fit)["x"]) == 80


def test_the_model_at_the_end_chooses_no_checkpoint() -> None:
    final = held_out.after_folds(load_experiment("numbers.yaml"), 2.5)
    assert final.train.stop_at == 2.5
    assert final.evaluate.every == "3 epochs"
    assert final.selection is None
    assert [(each.type, each.name) for each in final.export] == [("final", "best")]


def test_means_and_deviations(tmp_path: Path) -> None:
    found = folds.CrossValidation({"auc": [0.5, 0.75, 1.0], "loss": [1.0, 1.0, 1.0]})
    assert found.means == {"auc": 0.75, "loss": 1.0}
    assert np.allclose([*found.deviations.values()], [np.std([0.5, 0.75, 1.0]), 0.0])
    assert found.lines()[0] == "  auc   0.7500 ± 0.2041  (0.5000, 0.7500, 1.0000)"
    assert folds.read(tmp_path) is None
    (tmp_path / folds.FILE).write_text('{"metrics": {"auc": "x"}}')
    assert folds.read(tmp_path) is None


@pytest.mark.slow
def test_run_with_folds() -> None:
    shown = succeed("run", "numbers.yaml")
    for words in (
        "Cross-validation with 3 folds of numbers.csv:",
        "fold 3/3: auc 0.",
        "Cross-validation, mean ± standard deviation (of each fold):",
        "Evaluation on numbers.csv, on which the model was trained:",
    ):
        assert words in shown
    kept = json.loads(Path("runs/numbers/folds.json").read_text())
    assert len(kept["metrics"]["auc"]) == 3
    assert 0 < kept["epochs"] <= 3
    assert list(Path("runs/numbers/export/best").glob("*/saved_model.pb"))
    steps = f"global_step           {-(-120 * kept['epochs'] // 16):.0f}"
    assert steps in shown  # as long as the folds, on all rows

    again = succeed("evaluate", "numbers.yaml")
    assert "Cross-validation, mean" in again
    page = write_experiment_report(load_experiment("numbers.yaml"), "report.html")
    text = Path(page).read_text()
    assert "<h2>Cross-validation</h2>" in text
    assert "numbers.csv (the training rows)" in text
    [run] = compare.runs_in([Path("runs/numbers")])
    assert run.main["auc"] == np.mean(kept["metrics"]["auc"])


@pytest.mark.slow
def test_tune_with_folds() -> None:
    pytest.importorskip("optuna", reason="NOT TESTED: searches, for want of optuna")
    Path("numbers.yaml").write_text(
        f"{CONFIG}tune: {{estimator.hidden_units: {{choice: [[4], [8]]}}}}\n"
    )
    shown = succeed("tune", "numbers.yaml", "data.holdout=0.2", "--processes", "1")
    assert "2 trials" in shown
    assert "on the selection rows (3 folds of 80% of numbers.csv), which chose" in shown
    assert "on the test rows (20% of numbers.csv), which no trial saw" in shown
    best = folds.read("runs/numbers/tune/best")
    assert best is not None
    trials = [folds.read(f"runs/numbers/tune/trial-{number}") for number in (0, 1)]
    assert best in trials  # which were not trained again
