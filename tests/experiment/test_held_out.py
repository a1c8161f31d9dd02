"""Rows that measure a model have not chosen it: trials, best settings, cross-validation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from estimatorkit.experiment import held_out, row_sets
from estimatorkit.experiment.load import load_experiment
from estimatorkit.experiment.schema import Experiment, Selection

CONFIG = """\
name: numbers
seed: 1
data: {train: {csv: numbers.csv}, holdout: 0.2, label: y}
features: [numeric: x]
estimator: {type: DNNClassifier, hidden_units: [4], n_classes: 2}
train: {batch_size: 16, epochs: 4, early_stopping: {metric: auc, patience: 2}}
export: [best]
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [f"{number},{number % 5 == 0:d}" for number in range(200)]
    (tmp_path / "numbers.csv").write_text("\n".join(["x,y", *rows]) + "\n")
    path = tmp_path / "numbers.yaml"
    path.write_text(CONFIG)
    return path


def rows(experiment: Experiment, name: str) -> set[Any]:
    """The values of x in an evaluation's rows."""
    table, _ = row_sets.evaluation_table(experiment, name)
    assert len(set(table["x"])) == len(table["x"])
    return set(table["x"].tolist())


def test_trials_do_not_see_test_rows(config: Path) -> None:
    experiment = load_experiment(config)
    trial, final = held_out.trial(experiment), held_out.of_best_settings(experiment)
    test = rows(experiment, row_sets.MAIN)
    assert len(test) == 40
    assert rows(final, row_sets.MAIN) == test
    selecting = rows(trial, row_sets.MAIN)
    assert rows(final, row_sets.SELECT) == selecting
    assert len(selecting) == 32
    for each in (trial, final):
        assert rows(each, row_sets.TRAINING) == set(range(200)) - test - selecting
    assert final.selection == Selection("auc", "auto", "select")
    assert row_sets.evaluation_source(final, row_sets.SELECT) == "16% of numbers.csv"
    assert row_sets.evaluation_source(final) == "20% of numbers.csv"
    assert row_sets.evaluation_source(final, row_sets.TRAINING) == "64% of numbers.csv"


def test_rows_of_another_file_measure_at_the_end(config: Path) -> None:
    (config.parent / "test.csv").write_text("x,y\n900,1\n901,0\n")
    experiment = load_experiment(config, ["data.holdout=null", "data.evaluate={csv: test.csv}"])
    trial, final = held_out.trial(experiment), held_out.of_best_settings(experiment)
    assert rows(final, row_sets.MAIN) == {900, 901}
    assert len(rows(trial, row_sets.MAIN)) == 40
    assert rows(trial, row_sets.MAIN) == rows(final, row_sets.SELECT)
    other = load_experiment(
        config,
        ["data.also_evaluate={dev: {csv: test.csv}}", "train.early_stopping.evaluation=dev"],
    )
    assert held_out.trial(other) == held_out.of_best_settings(other) == other


@pytest.mark.parametrize(
    "changes",
    [
        ["train.early_stopping=null", "export=[]"],
        ["features=[vocabulary: x]", "estimator={type: EnsembleClassifier, n_classes: 2}"],
    ],
)
def test_models_that_choose_no_checkpoint_train_on_all(config: Path, changes: list[str]) -> None:
    experiment = load_experiment(config, changes)
    final = held_out.of_best_settings(experiment)
    assert final.selection is None
    assert rows(final, row_sets.TRAINING) == rows(experiment, row_sets.TRAINING)
    assert [each.name for each in final.export] == [each.name for each in experiment.export]
    assert rows(held_out.trial(experiment), row_sets.MAIN) < rows(experiment, row_sets.TRAINING)


def test_select_keeps_rows_for_the_choice(config: Path) -> None:
    experiment = load_experiment(config, ["data.select=0.25"])
    assert experiment.selection is not None
    assert experiment.selection.evaluation == row_sets.SELECT
    assert row_sets.evaluation_names(experiment) == ("eval", "select")
    assert len(rows(experiment, "select")) == 40
    assert rows(held_out.trial(experiment), "eval") == rows(experiment, "select")
