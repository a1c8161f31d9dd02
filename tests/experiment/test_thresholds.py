"""`predict.threshold`: which threshold is chosen, where it is kept, and what uses it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import estimatorkit as ek
from estimatorkit.experiment import decisions, held_out, row_sets, runner, thresholds
from estimatorkit.experiment.decisions import Aim, Costs
from estimatorkit.experiment.errors import ConfigurationError, DataError
from estimatorkit.experiment.load import load_experiment
from estimatorkit.experiment.schema import Experiment
from tests.experiment.commands import invoke, succeed

CONFIG = """\
name: rare
seed: 1
data: {train: {csv: data.csv}, holdout: 0.25, holdout_stratified: true, label: kind}
features: [numeric: x]
estimator:
  type: LinearClassifier
  label_vocabulary: [stay, churn]
  optimizer: {type: Adam, learning_rate: 0.05}
train: {batch_size: 50, epochs: 4}
predict: {threshold: f1}
export: [best]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with 2,000 rows, a twentieth of which are 'churn' and overlap with the others."""
    monkeypatch.chdir(tmp_path)
    is_rare = np.arange(2000) % 20 == 0
    x = np.random.default_rng(0).normal(1.5 * is_rare)
    kinds = np.where(is_rare, "churn", "stay")
    pd.DataFrame({"x": x.round(3), "kind": kinds}).to_csv("data.csv", index=False)
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path


# -- the choice


def rows(seed: int, count: int = 300) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(seed)
    hits = random.random(count) < 0.15
    odds = random.normal(2.0 * hits, 1.0).round(1).astype(np.float32)  # some are equal
    return hits, odds, random.integers(1, 4, count).astype(float)


def costs(hits: Any, odds: Any, weights: Any, threshold: float) -> float:
    decided = odds > np.log(threshold / (1 - threshold))
    return float(4 * weights[hits & ~decided].sum() + weights[~hits & decided].sum())


def every_threshold(odds: Any) -> list[float]:
    limits = np.unique(odds).astype(float)
    between = [*((limits[1:] + limits[:-1]) / 2), limits[0] - 1, limits[-1] + 1]
    return [float(1 / (1 + np.exp(-each))) for each in between]


@pytest.mark.parametrize("seed", range(5))
def test_no_other_threshold_is_better(seed: int) -> None:
    given = rows(seed)
    others = [(each, decisions.quality(*given, each)) for each in every_threshold(given[1])]

    def found(rule: Any) -> decisions.Quality:
        return decisions.quality(*given, decisions.best(rule, *given))

    assert found("f1").f1 == max(each.f1 for _, each in others)
    precise = found(Aim(precision=0.7))
    assert precise.precision >= 0.7
    assert precise.recall == max(each.recall for _, each in others if each.precision >= 0.7)
    complete = found(Aim(recall=0.8))
    assert complete.recall >= 0.8
    assert complete.precision == max(each.precision for _, each in others if each.recall >= 0.8)
    cheap = decisions.best(Aim(cost=Costs(missed=4.0, false_alarm=1.0)), *given)
    assert costs(*given, cheap) == min(costs(*given, each) for each, _ in others)


def test_threshold_lies_between_scores_and_is_short() -> None:
    hits = np.array([False, False, True, True])
    odds = np.log(np.array([0.1, 0.2, 0.4, 0.9]) / np.array([0.9, 0.8, 0.6, 0.1]))
    given = hits, odds.astype(np.float32), np.ones(4)
    assert decisions.best("f1", *given) == 0.3
    assert decisions.best(0.77, *given) == 0.77


def test_extreme_rules_and_scores() -> None:
    hits, odds, weights = np.array([True, False]), np.float32([60.0, -60.0]), np.ones(2)
    assert 0 < decisions.best("f1", hits, odds, weights) < 1
    wrong = ~hits  # the model is the wrong way round
    never = decisions.best(Aim(cost=Costs(missed=1.0, false_alarm=9.0)), wrong, odds, weights)
    assert never > 0.999
    always = decisions.best(Aim(cost=Costs(missed=9.0, false_alarm=1.0)), wrong, odds, weights)
    assert always < 0.001
    none = decisions.best(Aim(precision=0.9), wrong, odds, weights)  # what is nearest to it
    assert decisions.quality(wrong, odds, weights, none).precision == 0.5


def experiment_with(*changes: str) -> Experiment:
    return load_experiment("config.yaml", [*changes])


def rows_named(experiment: Experiment, name: str) -> set[float]:
    return set(row_sets.evaluation_table(experiment, name)[0]["row"].tolist())


ENSEMBLE = "estimator={type: EnsembleClassifier, label_vocabulary: [stay, churn]}"


@pytest.mark.parametrize("estimator", ["", ENSEMBLE])
@pytest.mark.parametrize("measured", ["data.holdout=0.25", "data.evaluate={csv: test.csv}"])
@pytest.mark.parametrize("derive", ["run", "best of tune", "trial", "fold"])
def test_rows_that_choose_a_threshold_neither_train_nor_measure(
    estimator: str, measured: str, derive: str
) -> None:
    """Of each kind of model, however the rows are split."""
    pd.read_csv("data.csv").assign(row=np.arange(2000)).to_csv("data.csv", index=False)
    pd.read_csv("data.csv").assign(row=np.arange(5000, 7000)).to_csv("test.csv", index=False)
    changes = [each for each in (estimator, measured) if each]
    if measured.startswith("data.evaluate"):
        changes += ["data.holdout=null", "data.holdout_stratified=false"]
    if derive == "fold":
        changes.append("evaluate.folds=3")
    experiment = experiment_with(*changes)
    made = {
        "run": lambda: experiment,
        "best of tune": lambda: held_out.of_best_settings(experiment),
        "trial": lambda: held_out.trial(experiment),
        "fold": lambda: held_out.fold(experiment, 1),
    }[derive]()
    by = thresholds.rows_that_choose(made)
    chosen, trained = (rows_named(made, each) for each in (by, row_sets.TRAINING))
    assert len(chosen) > 100
    assert not chosen & (trained | rows_named(made, row_sets.MAIN))


def test_a_model_that_has_seen_all_rows_gets_no_threshold() -> None:
    experiment = experiment_with("predict.threshold=null")
    runner.write_description(experiment)
    assert thresholds.rows_that_choose(experiment_with("predict.threshold=0.3")) == row_sets.MAIN
    with pytest.raises(DataError, match="no rows are left to choose a threshold"):
        thresholds.rows_that_choose(experiment_with())


# -- what uses it


@pytest.mark.slow
def test_run_export_predictor_and_evaluation_have_the_same_classes() -> None:
    pd.read_csv("data.csv").assign(row=np.arange(2000)).to_csv("data.csv", index=False)
    output = succeed("run", "config.yaml", "metrics=[F1Score, {type: FBetaScore, threshold: 0.5}]")
    kept = json.loads(Path("runs/rare/threshold.json").read_text())
    assert (kept["rule"], kept["name"], kept["rows"]) == ("f1", "churn", "19% of data.csv")
    assert kept["quality"]["f1"] > kept["at_half"]["f1"]
    shown = f'"churn" is predicted from the probability {kept["threshold"]:.4g} on'
    assert shown in output

    succeed("predict", "runs/rare", "--input", "data.csv", "--output", "run.csv")
    found = pd.read_csv("run.csv")
    is_churn = found["probability_churn"] > kept["threshold"]
    np.testing.assert_array_equal(found["prediction"], np.where(is_churn, "churn", "stay"))
    assert ((found["probability_churn"] < 0.5) & is_churn).any()
    np.testing.assert_array_equal(  # that of the class which is predicted
        found["probability"],
        np.where(is_churn, found["probability_churn"], found["probability_stay"]),
    )

    (export,) = Path("runs/rare/export/best").glob("[0-9]*")
    assert (export / "assets.extra/threshold.json").is_file()
    succeed("predict", str(export), "--input", "data.csv", "--output", "export.csv")
    np.testing.assert_array_equal(pd.read_csv("export.csv")["prediction"], found["prediction"])
    x = pd.read_csv("data.csv")["x"].to_numpy(np.float32)
    answered = ek.load_predictor(str(export))({"x": x[:, None]}, "predict")
    np.testing.assert_array_equal(answered["classes"][:, 0].astype(str), found["prediction"])

    measured = dict(line.split() for line in output.splitlines() if line.startswith("  recall "))
    truth = (pd.read_csv("data.csv")["kind"] == "churn").to_numpy()
    experiment = load_experiment("runs/rare/config.yaml")
    rows = row_sets.evaluation_table(experiment)[0]["row"].astype(int)
    right, decided = truth[rows], is_churn.to_numpy()[rows]
    f1 = 2 * (right & decided).sum() / (right.sum() + decided.sum())
    for name in ("f1_score", "recall"):
        shown = re.findall(rf"^  {name} +([\d.]+)$", output, re.MULTILINE)[0]
        expected = f1 if name == "f1_score" else (right & decided).sum() / right.sum()
        assert float(shown) == pytest.approx(expected, abs=1e-4)
    again = succeed("evaluate", "runs/rare")
    assert f"f1_score              {f1:.4f}" in again
    assert f"recall                {float(measured['recall']):.4f}" in again
    assert shown in again


@pytest.mark.slow
@pytest.mark.parametrize(
    ("overrides", "by"),
    [
        (["data.select=0.2"], "15% of data.csv"),
        (
            ["data.holdout=null", "evaluate.folds=3"],
            "3 folds (their median)",
        ),
    ],
)
def test_thresholds_are_chosen_by_rows_that_models_have_not_seen(
    overrides: list[str], by: str
) -> None:
    output = succeed("run", "config.yaml", *overrides)
    assert f"(predict.threshold: f1, chosen by {by})" in output
    kept = json.loads(Path("runs/rare/threshold.json").read_text())
    assert kept["rows"] == by
    fits = sorted(Path("runs/rare").glob("folds/*/threshold.json"))
    if fits:
        assert len(fits) == 3
        chosen = [json.loads(each.read_text())["threshold"] for each in fits]
        assert kept["threshold"] == sorted(chosen)[1]


@pytest.mark.slow
def test_another_threshold_needs_no_training() -> None:
    succeed("run", "config.yaml")
    step = json.loads(Path("runs/rare/threshold.json").read_text())["checkpoint"]
    Path("few.csv").write_text("x\n-90\n0\n9\n")
    output = succeed("predict", "runs/rare", "predict.threshold=1.0e-4", "--input", "few.csv")
    assert output.count("churn") == 2
    output = succeed("evaluate", "runs/rare", "predict.threshold=1.0e-4")
    assert "  recall                1.0000" in output
    assert "is predicted from" not in output  # what was chosen by f1 does not apply
    output = succeed("run", "config.yaml", "predict.threshold={recall: 0.9}")
    assert "(predict.threshold: {recall: 0.9}, chosen by 19% of data.csv)" in output
    kept = json.loads(Path("runs/rare/threshold.json").read_text())
    assert kept["quality"]["recall"] >= 0.9
    assert kept["checkpoint"] == step
    exports = sorted(Path("runs/rare/export/best").glob("[0-9]*"))
    newest = json.loads((exports[-1] / "assets.extra/threshold.json").read_text())
    assert newest == kept


@pytest.mark.slow
def test_report_shows_the_threshold_and_the_area_of_the_table() -> None:
    succeed("run", "config.yaml", "train.epochs=1")
    Path("data.csv").rename("moved.csv")  # the choice is kept
    succeed("report", "runs/rare", "--data", "moved.csv")
    page = Path("runs/rare/report.html").read_text()
    assert "&quot;churn&quot; is predicted from the probability " in page


@pytest.mark.slow
def test_held_out_rows_without_the_class_choose_nothing() -> None:
    pd.DataFrame({"x": [0.5, 1.0], "kind": ["stay", "stay"]}).to_csv("test.csv", index=False)
    given = ("data.holdout=null", "data.holdout_stratified=false", "data.evaluate={csv: test.csv}")
    few = "data.select=0.001"
    result = invoke("run", "config.yaml", *given, few, "train.epochs=1", "export=[]")
    assert result.exit_code == 1
    assert "0% of data.csv: no threshold can be chosen" in result.stderr
    output = succeed("run", "config.yaml", *given, "export=[]", "predict.threshold=0.2", "name=n")
    assert "from the probability 0.2 on (predict.threshold: 0.2): precision 0.0000" in output


@pytest.mark.parametrize("text", ["{}", "[1]", "not JSON"])
def test_damaged_choice_is_named(text: str) -> None:
    experiment = load_experiment("config.yaml")
    assert thresholds.kept(experiment) is None
    path = Path(experiment.model_dir) / thresholds.FILE
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(DataError, match="holds no threshold"):
        thresholds.kept(experiment)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("predict.threshold=1.5", "predict.threshold"),
        ("predict.threshold=f2", "predict.threshold"),
        ("predict.threshold={cost: {missed: 2}}", "false_alarm"),
        ("predict.threshold={precision: 0.9, recall: 0.9}", "gives 2 keys"),
        ("estimator={type: LinearClassifier, n_classes: 3}", "has no two classes"),
        ("estimator={type: LinearRegressor}", "has no two classes"),
    ],
)
def test_wrong_settings_are_refused(change: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_experiment("config.yaml", [change])
    assert words in str(caught.value)
