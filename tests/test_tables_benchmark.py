"""`benchmarks/tables.py`: scores, standings, results that are kept, and runs on small tables."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score, roc_auc_score

from benchmarks import tables
from benchmarks.driver import Entrant, FailedRunError
from benchmarks.programs.tables_data import plain, score
from benchmarks.programs.tables_peers import with_categories
from benchmarks.tables_report import Results, Standing, report, standings

LOADER = """
from types import SimpleNamespace
import numpy as np
import pandas as pd

SOURCES = {"numbers": "r2", "words": "auc", "sorts": "accuracy"}
TASKS = {"r2": "regression", "auc": "binary", "accuracy": "multiclass"}

def tables(names, most):
    for name in names:
        random = np.random.default_rng(0)
        frame = pd.DataFrame({
            "size": random.normal(size=200),
            "colour": random.choice(["red", "green", None], 200),
            "day": [f"2024-0{1 + row % 9}-03 10:00:00" for row in range(200)],
        })
        labels = 100 * frame["size"] + 50 * (frame["colour"] == "red")
        metric = SOURCES[name]
        if metric != "r2":
            words = ["no", "yes"] if metric == "auc" else ["ape", "bee", "cow"]
            labels = pd.qcut(labels, len(words), labels=words).astype(str)
        frame.loc[::7, "size"] = None
        frame = frame.assign(label=labels)
        yield SimpleNamespace(
            name=name, train=frame[:120], valid=frame[120:150], test=frame[150:], label="label",
            task=TASKS[metric], metric=metric, dates=("day",),
        )
"""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "load_tables.py").write_text(LOADER)
    monkeypatch.setenv("ESTIMATORKIT_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("ESTIMATORKIT_BENCH_TABLES", sys.executable)


def row(method: str, table: str, value: float, seed: int = 1) -> dict[str, Any]:
    figures = {"metric": "auc", "score": value, "seconds": 2.0, "cpu_seconds": 3.0}
    named = {"method": method, "table": table, "seed": seed, "day": "2026-01-02"}
    return named | figures | {"versions": {"numpy": "1"}}


def test_scores_are_scikit_learns() -> None:
    random = np.random.default_rng(1)
    truth, found = random.integers(0, 2, 50), random.integers(0, 9, 50) / 9
    assert score("auc", truth, found) == pytest.approx(roc_auc_score(truth, found))
    assert score("r2", truth, found) == pytest.approx(r2_score(truth, found))
    assert score("accuracy", [0, 1, 2, 2], [0, 1, 2, 0]) == 0.75
    with pytest.raises(ValueError, match="finite"):
        score("r2", [0, 1], [0, np.nan])


def test_standings_with_equals_and_failures() -> None:
    found = standings({"linear": 0.5, "a": 0.75, "b": 0.75, "bad": -9.0, "c": None, "d": None})
    assert found == {
        "linear": Standing(3.0, 0.0, False),
        "a": Standing(1.5, 1.0, True),
        "b": Standing(1.5, 1.0, True),
        "bad": Standing(4.0, -1.0, False),
        "c": Standing(5.5, 0.0, False),
        "d": Standing(5.5, 0.0, False),
    }


@pytest.mark.parametrize("other", [0.25, 0.505])
def test_nothing_is_scaled_where_the_best_gains_little(other: float) -> None:
    found = standings({"linear": 0.5, "a": other})
    assert [each.normalized for each in found.values()] == [None, None]


def test_report(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    results.add(row("estimatorkit run", "words", 0.5) | {"commit": "abc"})
    for seed, value in ((1, 0.75), (2, 1.0)):
        results.add(row("forest", "words", value, seed))
    results.add(row("linear", "words", 0.625))
    results.add(row("linear", "sorts", 0.625))
    failed = {"method": "forest", "table": "sorts", "seed": 1, "day": "2026-01-03"}
    results.add(failed | {"failed": "too many sorts"})
    lines = report(Results(results.path)).splitlines()
    assert "| forest | 2 | 1.50 | 1.000 | 1 | 1 | 2.0 | 3.0 | numpy 1 |" in lines
    assert (
        "| estimatorkit run | 1 | 3.00 | -0.500 | 0 | 0 | 2.0 | 3.0 | numpy 1, commit abc |"
        in lines
    )
    assert "| words | auc | **0.875** ± 0.177 | 0.625 | 0.500 |" in lines
    assert "| sorts | auc | failed | **0.625** |  |" in lines
    assert "* forest, sorts, seed 1: too many sorts" in lines


def test_known_fits_do_not_run_again(
    data: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    def run(entrant: Entrant, *words: str, limit: float) -> dict[str, object]:
        asked.append(words)
        if words[0] == "YDF":
            raise FailedRunError("no such thing")
        return {key: value for key, value in row("", "", 0.5).items() if key not in NAMED}

    monkeypatch.setattr(Entrant, "run", run)
    file = tmp_path / "results.jsonl"
    words = ["--results", str(file), "--methods", "linear,YDF", "--tables", "words"]
    for _ in range(2):
        assert tables.main([*words, "--ours", ","]) == 0
    assert asked == [("linear", "words", "1"), ("YDF", "words", "1")]
    assert Results(file).rows["YDF", "words", 1]["failed"] == "no such thing"
    tables.main([*words, "--ours", "run", "--seeds", "1,2"])
    assert asked[2:] == [
        ("run", "words", "1"),
        *((method, "words", "2") for method in ("linear", "YDF", "run")),
    ]
    tables.main([*words, "--ours", ",", "--again"])
    assert asked[6:] == asked[:2]
    assert len(file.read_text().splitlines()) == 8
    assert len(Results(file).rows) == 6


NAMED = ("method", "table", "seed", "day")


@pytest.mark.parametrize(
    "words", [["--methods", "Forest"], ["--tables", "chairs"], ["--ours", "DNNs"]]
)
def test_unknown_names_are_refused(
    words: list[str], data: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        tables.main(["--results", "none.jsonl", *words])
    assert words[1] in capsys.readouterr().err


def test_dates_and_truth_values_become_numbers() -> None:
    frame = pd.DataFrame({"when": ["2024-02-29 13:45:00", None], "is": [True, False]})
    found = plain(frame, ("when",))
    assert list(found) == ["is", *(f"when_{part}" for part in PARTS)]
    assert found.iloc[0].tolist() == [1, 2024, 2, 29, 3, 13]
    assert found.iloc[1, 1:].isna().all()


PARTS = ("year", "month", "day", "day_of_week", "hour")


def test_rare_categories_are_one_and_unseen_ones_missing() -> None:
    class Model:
        def fit(self, features: Any, labels: Any) -> Model:
            self.fitted = features["word"]
            return self

        def predict(self, tested: Any) -> Any:
            return tested["word"].cat.codes

    model = Model()
    features = pd.DataFrame({"word": ["a", "a", "b", "b", "c", "d", None]})
    tested = pd.DataFrame({"word": ["a", "c", "e", None]})
    few = with_categories(model, "regression", most=3)(features, None, tested)
    assert list(model.fitted.cat.categories) == ["a", "b", "other"]
    assert list(few) == [0, 2, 2, -1]
    all_of_them = with_categories(model, "regression")(features, None, tested)
    assert list(model.fitted.cat.categories) == ["a", "b", "c", "d"]
    assert list(all_of_them) == [0, 2, -1, -1]


@pytest.mark.slow
def test_methods_on_small_tables(data: None, tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    for words in (
        ["--methods", "linear,HistGradientBoosting", "--ours", ","],
        ["--methods", ",", "--ours", "run", "--tables", "words,sorts"],
        ["--methods", ",", "--ours", "DNN", "--tables", "numbers"],
    ):
        assert tables.main(["--results", str(file), *words]) == 0
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [each.get("failed") for each in rows] == [None] * 9
    least = {"r2": 0.3, "auc": 0.7, "accuracy": 0.45}
    assert not [each for each in rows if each["score"] < least[each["metric"]]]
