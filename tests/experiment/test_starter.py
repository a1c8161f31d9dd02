"""`estimatorkit init` writes an experiment that runs."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from estimatorkit.experiment import defaults, document, examples, row_sets
from estimatorkit.experiment.load import load_experiment
from tests.experiment.commands import invoke, succeed


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["estimatorkit"])


def frame(rows: int = 120) -> pd.DataFrame:
    random = np.random.default_rng(0)
    age = random.integers(20, 70, rows)
    return pd.DataFrame(
        {
            "age": age,
            "town": [("Rome", "Oslo")[row % 2] for row in range(rows)],
            "rich": np.where(age > 45, "yes", "no"),
            "level": age // 20 - 1,
            "income": age * 1000.5,
        }
    )


@pytest.mark.parametrize(
    ("label", "estimator", "metric"),
    [
        ("rich", {"type": "TabularClassifier", "label_vocabulary": ["no", "yes"]}, "auc"),
        ("level", {"type": "TabularClassifier", "n_classes": 3}, "accuracy"),
        ("income", {"type": "TabularRegressor"}, "rmse"),
    ],
)
def test_label_decides_task(label: str, estimator: dict[str, object], metric: str) -> None:
    frame().to_csv("people.csv", index=False)
    output = succeed("init", "people.csv", "--label", label, "--time", "12")
    assert output.startswith("The columns of people.csv:\n")
    assert re.search(r"^  town: str, 2 distinct values, .* -> vocabulary, indicator$", output, re.M)
    assert output.endswith(
        "The experiment is in people.yaml. Next:\n  estimatorkit run people.yaml\n"
    )
    experiment = load_experiment("people.yaml")
    shown = experiment.estimator.model_dump(mode="json")
    assert {name: shown[name] for name in estimator} == estimator
    assert experiment.train.early_stopping is not None
    assert experiment.train.early_stopping.metric == metric

    # The columns in its comments are those that infer chooses.
    text = Path("people.yaml").read_text()
    comments = re.search(r"^infer: true.*\n((?:#.*\n)+)", text, re.MULTILINE)
    assert comments is not None
    pasted = "".join(line[2:] + "\n" for line in comments[1].splitlines())
    assert "features" in document.to_data(document.parse(pasted, "comments"))
    assert load_experiment("people.yaml", ["infer=false", "features=[numeric: age]"]).features


def test_estimator_is_chosen_for_a_time() -> None:
    rows, columns = 20_000, 15
    found = {
        seconds: defaults.chosen(rows, columns, 2, seconds) for seconds in (60.0, 25.0, 7.0, 1.0)
    }
    names = [each.name for each in found.values()]
    assert names == ["Ensemble", "Tabular", "BoostedTrees", "Linear"]
    assert "a linear model would take" in found[25.0].why
    assert found[60.0].why.startswith("A network, boosted trees and a linear model: about")


@pytest.mark.parametrize(
    ("rows", "columns", "seconds", "folds"),
    [(1_000, 20, 60.0, True), (1_000, 20, 25.0, False), (2_500, 80, 60.0, False)],
)
def test_small_tables_have_folds_if_there_is_time(
    rows: int, columns: int, seconds: float, folds: bool
) -> None:
    assert ("folds: 5" in defaults.chosen(rows, columns, 2, seconds).default.more) is folds


def test_free_text_takes_time() -> None:
    random = np.random.default_rng(0)
    words = np.array([f"w{each}" for each in range(200)])
    table = frame(1000)
    table["note"] = [" ".join(random.choice(words, 5)) for _ in range(len(table))]
    table.to_csv("people.csv", index=False)
    told = {}
    for text in ("drop", "hash", "embed"):
        succeed("init", "people.csv", "--label", "rich", "--text", text, "--time", "900", "--force")
        found = re.search(r"about (\d+) s on two cores", Path("people.yaml").read_text())
        assert found is not None
        told[text] = int(found[1])
    assert told["hash"] == told["embed"] >= told["drop"] + 1e-5 * 0.8 * len(table) * 512
    succeed("init", "people.csv", "--label", "rich", "--time", str(told["drop"]), "--force")
    assert "EnsembleClassifier" not in Path("people.yaml").read_text()


@pytest.mark.parametrize(("rows", "share"), [(100, 0.2), (16_000, 0.12), (50_000, 0.1)])
def test_large_tables_hold_out_a_smaller_share(rows: int, share: float) -> None:
    pd.DataFrame({"x": np.arange(rows) % 97 / 7, "y": np.arange(rows) % 2}).to_csv("t.csv")
    succeed("init", "t.csv", "--label", "y")
    assert load_experiment("t.yaml").data.holdout == share


def test_without_ydf_a_network_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defaults, "find_spec", lambda name: None)
    found = defaults.chosen(20_000, 15, 2, 60.0)
    assert found.name == "Tabular"
    assert "pip install 'estimatorkit[trees]'" in found.why


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [60, 12, 3.4, 0.1])
def test_estimator_of_each_time_runs(seconds: float) -> None:
    frame().to_csv("people.csv", index=False)
    succeed("init", "people.csv", "--label", "rich", "--time", str(seconds))
    output = succeed("run", "people.yaml", "train.epochs=1")
    assert output.count("Prediction is ") == 3
    assert "tune" in load_experiment("people.yaml").model_dump()


@pytest.mark.slow
def test_written_experiment_runs() -> None:
    table = frame()
    table.loc[3, "rich"] = None
    Path("data").mkdir()
    table.to_csv("data/my people.csv", index=False, sep=";")
    given = ("--label", "rich", "-o", "people.yaml", "--time", "12")
    succeed("init", "data/my people.csv", *given)
    text = Path("people.yaml").read_text()
    assert "name: my-people\n" in text
    assert "missing_labels: skip      # 1 rows have no rich\n" in text
    output = succeed("run", "people.yaml", "train.epochs=2")
    assert output.count("Prediction is ") == 3
    assert re.search(r"^epoch 1/2 .* accuracy .* examples/s", output, re.MULTILINE), output


def test_parquet_and_existing_files() -> None:
    pytest.importorskip("pyarrow")
    frame().to_parquet("people.parquet")
    succeed("init", "people.parquet", "--label", "income")
    assert load_experiment("people.yaml").data.train.parquet  # type: ignore[union-attr]
    result = invoke("init", "people.parquet", "--label", "rich")
    assert result.exit_code == 2
    assert "people.yaml exists; --force replaces it" in result.stderr
    succeed("init", "people.parquet", "--label", "rich", "--force")


def test_missing_label_raises() -> None:
    frame().to_csv("people.csv", index=False)
    result = invoke("init", "people.csv")
    assert "--label with one of age, town, rich, level, income" in result.stderr
    result = invoke("init", "people.csv", "--label", "ritch")
    assert "did you mean 'rich'?" in result.stderr
    result = invoke("init", "peple.csv", "--label", "rich")
    assert "did you mean 'people.csv'?" in result.stderr


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (["no", "no", None], "has one value only.\n  expected: two different ones, or more\n"),
        ([7, 7, 7], "has one value only.\n"),
        ([None, None, None], "has no values.\n"),
    ],
)
def test_label_of_one_value_raises(values: list[object], problem: str) -> None:
    pd.DataFrame({"age": [1, 2, 3], "rich": values}).to_csv("people.csv", index=False)
    result = invoke("init", "people.csv", "--label", "rich")
    assert result.exit_code == 1
    assert f"error: people.csv: column 'rich' {problem}" in result.stderr
    assert "--label names another column" in result.stderr
    assert not Path("people.yaml").exists()


@pytest.mark.parametrize(("rare", "told"), [(9, "9.0%"), (10, None)])
@pytest.mark.parametrize("classes", [("0", "1"), ("no", "yes")])
def test_rare_class_is_named(rare: int, told: str | None, classes: tuple[str, str]) -> None:
    labels = [classes[0]] * (100 - rare) + [classes[1]] * rare
    pd.DataFrame({"age": range(100), "left": labels}).to_csv("people.csv", index=False)
    output = succeed("init", "people.csv", "--label", "left")
    written = Path("people.yaml").read_text()
    if told is None:
        assert "class_weights" not in written + output
        return
    found = f"class {classes[1]} is {told} of the rows"
    assert f"Of left, {found}: accuracy says little." in output
    assert f"  # class_weights: balanced   # {found}" in written
    assert load_experiment("people.yaml").predict.threshold == "f1"
    Path("people.yaml").write_text(written.replace("# class_weights", "class_weights"))
    assert load_experiment("people.yaml").train.class_weights == "balanced"


@pytest.mark.parametrize(
    ("classes", "vocabulary"),
    [((0, 1), ("1", "0")), (("churn", "stay"), ("stay", "churn"))],
)
def test_rare_class_is_the_second(classes: tuple[object, object], vocabulary: object) -> None:
    labels = [classes[0]] * 5 + [classes[1]] * 95
    pd.DataFrame({"age": range(100), "left": labels}).to_csv("people.csv", index=False)
    succeed("init", "people.csv", "--label", "left")
    experiment = load_experiment("people.yaml")
    assert experiment.estimator.label_vocabulary == vocabulary
    held_out, _ = row_sets.evaluation_table(experiment)
    counts = Counter(examples.labels_of(experiment, held_out, ""))
    assert counts == {vocabulary[0]: 19, vocabulary[1]: 1}


def test_split_by_time_is_offered_where_there_are_dates() -> None:
    table = frame().assign(joined=pd.date_range("2024-01-01", periods=120).strftime("%d.%m.%Y"))
    for label in ("income", "rich"):
        table.to_csv("people.csv", index=False)
        output = succeed("init", "people.csv", "--label", label, "--force")
        assert "To measure with the latest rows by joined: see holdout_latest" in output
        written = Path("people.yaml").read_text().replace("# holdout_latest", "holdout_latest")
        written = re.sub("  holdout_stratified: true.*\n", "", written)
        Path("people.yaml").write_text(written)
        experiment = load_experiment("people.yaml")
        assert experiment.data.holdout_latest == "joined"
        later, origin = row_sets.evaluation_table(experiment)
        assert origin == "the latest 20% of people.csv"
        np.testing.assert_array_equal(later["age"], table["age"][96:])


def test_errors_name_options_where_there_is_no_file_yet() -> None:
    Path("people.csv").write_bytes(b"town,rich\nOslo,1\nK\xf8ge,0\n")
    result = invoke("init", "people.csv", "--label", "rich", "--encoding", "utf-8")
    assert "hint:     give the file's encoding, for example --encoding latin-1" in result.stderr
    result = invoke("init", "nobody.csv", "--label", "rich")
    assert "expected: a CSV file\n" in result.stderr
    result = invoke("init", "people.csv", "--label", "rich")
    assert result.stderr.startswith("error: people.csv: a part of the split is empty.")
