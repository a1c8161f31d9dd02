"""Lines of a training: epochs, speed, the time left, and the members of an ensemble."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from estimatorkit.estimator.evaluation.continuous_evaluation import (
    EvaluatedTraining,
    FinishedEvaluation,
)
from estimatorkit.experiment import row_sets, runner
from estimatorkit.experiment.epochs import EpochLines
from estimatorkit.experiment.load import load_experiment
from estimatorkit.experiment.report_html import write_report
from estimatorkit.experiment.schema import Experiment
from estimatorkit.premade import tabular
from estimatorkit.premade.member_hook import MemberEpoch
from estimatorkit.train.hooks.hooks import FinishedSteps
from tests.experiment.commands import invoke, succeed

POINTS = """\
name: points
seed: 1
data: {train: {csv: points.csv}, holdout: 0.25, label: side}
infer: true
estimator: {type: EnsembleClassifier, label_vocabulary: [left, right]}
train: {epochs: 256, batch_size: 16, early_stopping: {metric: auc, patience: 64}}
export: [best]
"""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["estimatorkit"])
    random = np.random.default_rng(0)
    points = random.normal(size=(120, 2))
    lines = [f"{x:.3f},{y:.3f},{'left' if x + y < 0 else 'right'}" for x, y in points]
    Path("points.csv").write_text("\n".join(["x,y,side", *lines]) + "\n")
    Path("points.yaml").write_text(POINTS)


class Clock:
    """A clock that is set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("estimatorkit.experiment.epochs.time", self)

    def monotonic(self) -> float:
        return self.now


def experiment(*changes: str) -> Experiment:
    return load_experiment("points.yaml", changes)


def evaluated(hook: EpochLines, first: int, last: int) -> None:
    """Trains some steps, and evaluates."""
    hook.after_steps(FinishedSteps(first, np.full(last - first, 0.25), None))
    hook.after_evaluation(FinishedEvaluation("eval", {"loss": 0.5, "accuracy": 0.75}, ""))


NETWORK = "estimator={type: TabularClassifier, label_vocabulary: [left, right]}"


def lines_of(monkeypatch: pytest.MonkeyPatch, rows: int, *changes: str) -> list[str]:
    """The lines of a training with evaluations after 8, 15 and 30 steps of 16 rows, by 2 s each."""
    told: list[str] = []
    clock = Clock(monkeypatch)
    hook = EpochLines(experiment(*changes), rows, 30, told.append)
    hook.before_training(EvaluatedTraining(None, None, {}, 0))  # type: ignore[arg-type]
    hook.after_create_session(None, None)
    for first, last in ((0, 8), (8, 15), (15, 30)):
        clock.now += 2.0
        evaluated(hook, first, last)
    return told


def test_epochs_are_whole_where_evaluations_are_by_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lines_of(monkeypatch, 120, NETWORK, "train.epochs=4") == [
        "epoch 1/4  loss 0.2500  evaluation loss 0.5000  accuracy 0.7500  64 examples/s",
        "epoch 2/4  loss 0.2500  evaluation loss 0.5000  accuracy 0.7500  56 examples/s  4 s left",
        "epoch 4/4  loss 0.2500  evaluation loss 0.5000  accuracy 0.7500  88 examples/s",
    ]


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        (["evaluate.every=7 steps", "train.epochs=4"], ["1.1/4", "2/4", "4/4"]),
        (["train.epochs=null", "train.max_steps=30"], ["1/4", "2/4", "4/4"]),
        (["train.epochs=4.5"], ["1/4.5", "2/4.5", "4.5/4.5"]),
    ],
)
def test_other_epochs(
    monkeypatch: pytest.MonkeyPatch, changes: list[str], shown: list[str]
) -> None:
    told = lines_of(monkeypatch, 120, NETWORK, *changes)
    assert [line.split()[1] for line in told] == shown


def test_models_that_read_once_have_no_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    trees = "estimator={type: BoostedTreesClassifier, label_vocabulary: [left, right]}"
    told = lines_of(monkeypatch, 120, trees)
    assert told[0] == "evaluation loss 0.5000  accuracy 0.7500  64 examples/s"


def test_lines_of_members(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    clock = Clock(monkeypatch)
    hook = EpochLines(experiment(), 120, 1, told.append)
    hook.before_member("network", 1200, 3)
    for number in (1, 2, 3):
        clock.now += 60.0
        metrics = {"loss": 0.5, "auc": 0.75, "recall": 1.0}
        hook.after_epoch(MemberEpoch(number, 3, 1200, 0.25, metrics))
    hook.after_member("network", 0.5, 181.0)
    hook.before_member("trees", 1200, None)
    hook.after_members({"network": 0.25, "trees": 0.75}, 0.125)
    assert told == [
        "network: training on 1,200 rows, at most 3 epochs",
        "epoch 1/3  loss 0.2500  validation loss 0.5000  auc 0.7500  20 examples/s",
        "epoch 2/3  loss 0.2500  validation loss 0.5000  auc 0.7500  20 examples/s  60 s left",
        "epoch 3/3  loss 0.2500  validation loss 0.5000  auc 0.7500  20 examples/s",
        "network: validation loss 0.5000 after 181.0 s",
        "trees: training on 1,200 rows",
        "weights: network 0.25, trees 0.75; validation loss 0.1250",
    ]


@pytest.mark.slow
def test_run_shows_the_members_of_an_ensemble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabular, "_LEAST_EPOCHS", 3)
    monkeypatch.setattr(tabular, "_MOST_EPOCHS", 3)
    result = invoke("run", "points.yaml")
    assert result.exit_code == 0, result.output
    shown = result.stdout
    assert "Training points on points.csv: read once\n" in shown
    assert "EarlyStopping" not in result.stderr
    patterns = [
        r"network: training on 90 rows, at most 3 epochs",
        *(rf"epoch {number}/3  loss .* validation loss .*" for number in (1, 2, 3)),
        r"network: validation loss [\d.]+ after [\d.]+ s",
        r"trees: training on 90 rows",
        r"trees: validation loss .*",
        r"linear: training on 90 rows",
        r"linear: validation loss .*",
        r"weights: network [\d.]+, trees [\d.]+, linear [\d.]+; validation loss ([\d.]+)",
        r"Evaluation on 25% of points.csv \(by these rows, epochs and weights of the members were "
        r"chosen\):",
    ]
    found = re.search("\n".join(f"^{each}$" for each in patterns), shown, re.MULTILINE)
    assert found, shown
    loss = re.search(r"average_loss +([\d.]+)", shown)
    assert loss is not None
    assert float(loss[1]) == pytest.approx(float(found[1]), abs=2e-4)

    page = Path(write_report("runs/points", None, "report.html")).read_text()
    titles = re.findall("<h2>(Learning curves[^<]*)", page)
    assert titles == ["Learning curves: network", "Learning curves: trees"]


@pytest.mark.slow
def test_an_ensemble_splits_its_rows_where_nothing_is_selected() -> None:
    members = "estimator.members=[linear]"
    shown = succeed("run", "points.yaml", members, "train.early_stopping=null", "export=[]")
    assert "linear: training on 76 rows" in shown  # 85 % of them
    assert "Evaluation on 25% of points.csv:" in shown


@pytest.mark.slow
def test_rows_that_measure_are_predicted_by_members_that_have_not_seen_them() -> None:
    changes = ["estimator.members=[linear]", "estimator.folds=3"]
    shown = succeed("run", "points.yaml", *changes)
    assert "Evaluation on 25% of points.csv (each predicted by the members that have " in shown
    first = runner.evaluate(experiment(*changes))["eval"]
    table, _ = row_sets.evaluation_table(experiment(*changes))
    measured = set(zip(table["x"].tolist(), table["y"].tolist(), strict=True))
    lines = Path("points.csv").read_text().splitlines()
    other = {"left": "right", "right": "left"}
    for number, (x, y, side) in enumerate(each.split(",") for each in lines[1:]):
        if (np.float32(x), np.float32(y)) in measured:
            lines[1 + number] = f"{x},{y},{other[side]}"
    Path("points.csv").write_text("\n".join(lines) + "\n")
    given = experiment(*changes, "name=again")
    second = runner.train(given, print).metrics["eval"]
    assert second["prediction/mean"] == first["prediction/mean"]
    assert second["accuracy"] == pytest.approx(1 - first["accuracy"])
    page = Path(write_report("runs/again", None, "report.html")).read_text()
    assert "ensemble fold" not in page


@pytest.mark.slow
def test_rows_of_a_file_of_their_own_are_in_no_fold() -> None:
    lines = Path("points.csv").read_text().splitlines()
    Path("other.csv").write_text("\n".join(lines[:31]) + "\n")
    changes = ["data.holdout=null", "data.evaluate={csv: other.csv}"]
    members = ["estimator.members=[linear]", "estimator.folds=3"]
    shown = succeed("run", "points.yaml", *changes, *members)
    assert "linear: training on 120 rows" in shown
    assert "Evaluation on other.csv:" in shown


@pytest.mark.slow
def test_evaluation_that_selects_gives_the_held_out_rows() -> None:
    lines = Path("points.csv").read_text().splitlines()
    Path("other.csv").write_text("\n".join(lines[:31]) + "\n")
    changes = [
        "data.also_evaluate={other: {csv: other.csv}}",
        "train.early_stopping.evaluation=other",
        "estimator.members=[linear]",
    ]
    shown = succeed("run", "points.yaml", *changes)
    assert "Evaluation on 25% of points.csv:" in shown
    assert "Evaluation on other.csv (by these rows, " in shown
    told: list[str] = []
    given = load_experiment("points.yaml", [*changes, "name=again"])
    trained = runner.train(given, told.append)
    loss = float(told[-1].rsplit(" ", 1)[1])
    assert trained.metrics["other"]["average_loss"] == pytest.approx(loss, abs=2e-4)
