"""Which rows are held out: a random share, one of each class, or the latest."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from estimatorkit.data.datasets.splits import split_latest, split_stratified
from estimatorkit.experiment import row_sets, tables
from estimatorkit.experiment.errors import ConfigurationError, DataError
from estimatorkit.experiment.load import load_experiment

CONFIG = """\
name: holdout
data: {train: {csv: data.csv}, holdout: 0.2, label: kind}
features: [numeric: x]
estimator: {type: LinearClassifier, n_classes: 3, label_vocabulary: [a, b, c]}
train: {steps: 1}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    days = pd.date_range("2023-11-01", periods=50)
    order = np.random.default_rng(3).permutation(200)
    frame = pd.DataFrame(
        {
            "x": np.arange(200),
            "kind": ["a"] * 180 + ["b"] * 15 + ["c"] * 5,
            "iso": days.strftime("%Y-%m-%d")[np.arange(200) // 4],
            "local": days.strftime("%d/%m/%Y")[np.arange(200) // 4],
            "number": np.arange(200) // 4,
        }
    ).iloc[order]
    frame.loc[order[:3], ["iso", "local", "number"]] = None
    frame.to_csv("data.csv", index=False)
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path


def parts(*overrides: str) -> tuple[tables.Table, tables.Table]:
    experiment = load_experiment("config.yaml", overrides)
    return row_sets.training_table(experiment), row_sets.evaluation_table(experiment)[0]


def test_stratified_parts_have_the_same_share_of_each_class() -> None:
    first, second = parts("data.holdout_stratified=true")
    assert Counter(second["kind"]) == {b"a": 36, b"b": 3, b"c": 1}
    assert sorted([*first["x"], *second["x"]]) == list(range(200))
    again = parts("data.holdout_stratified=true")[1]
    np.testing.assert_array_equal(again["x"], second["x"])
    other = parts("data.holdout_stratified=true", "data.holdout_seed=1")[1]
    assert set(other["x"]) != set(second["x"])
    # Classes are mixed: the first rows of an unshuffled training are not of one class.
    assert len({*first["kind"][-40:]}) > 1


@pytest.mark.parametrize("seed", range(4))
def test_each_part_has_every_class_of_several_rows(seed: int) -> None:
    random = np.random.default_rng(seed)
    classes = random.choice(5, 60, p=[0.6, 0.3, 0.05, 0.04, 0.01])
    first, second = split_stratified(classes, 0.9, seed)
    counts = np.bincount(classes)
    for kind in np.flatnonzero(counts):
        there = [int((classes[part] == kind).sum()) for part in (first, second)]
        assert sum(there) == counts[kind]
        assert counts[kind] == 1 or min(there) >= 1
        assert counts[kind] < 2 or abs(there[0] - 0.9 * counts[kind]) <= 1


@pytest.mark.parametrize(
    "given",
    [
        ("data.holdout_latest=iso",),
        ("data.holdout_latest=number",),
        ("data.holdout_latest=local", "data.formats={local: {type: date, day_first: true}}"),
    ],
)
def test_latest_rows_are_held_out(given: tuple[str, ...]) -> None:
    first, second = parts(*given)
    gaps = len(first["x"]) - 160
    assert set(second["x"]) <= set(range(160, 200))
    assert 0 <= gaps <= 3  # rows without a date are trained on
    assert (np.diff(second["x"] // 4) >= 0).all()
    assert (np.diff(first["x"]) < 0).any()  # in random order


def test_rows_of_one_time_are_in_one_part() -> None:
    first, second = split_latest(np.array([3, 1, 2, 2, 5, 5, 5, 4, 1, 1]), 0.8, 0)
    assert sorted(first) == [0, 1, 2, 3, 7, 8, 9]
    assert second.tolist() == [4, 5, 6]
    with pytest.raises(ValueError, match="a part of the split is empty"):
        split_latest(np.zeros(10), 0.8, 0)


def test_columns_that_are_no_times_are_refused() -> None:
    with pytest.raises(DataError, match="rows cannot be ordered by the column 'local'") as caught:
        parts("data.holdout_latest=local")
    assert "formats: {local: {type: date, day_first: true}}" in str(caught.value)
    with pytest.raises(DataError, match="no column 'locale'"):
        parts("data.holdout_latest=locale")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["data.holdout=null", "data.evaluate={csv: b.csv}"], "no rows are held out"),
        (["data.holdout_latest=iso"], "is given beside holdout_latest"),
        (["estimator={type: LinearRegressor}"], "LinearRegressor has no classes"),
        (
            ["data.holdout_stratified=false", "data.holdout_latest=iso", "data.stream=true"],
            "cannot be told from chunks",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes: list[str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        load_experiment("config.yaml", ["data.holdout_stratified=true", *changes])
