"""A DataFrame, with whatever dtypes, and its CSV file give the same features and predictions."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from estimatorkit.experiment import examples, inferred, row_sets, sniffing, tables
from estimatorkit.experiment.load import load_experiment
from estimatorkit.feature_columns import InferredColumns, infer, read_cells
from estimatorkit.sklearn import SKLinearClassifier
from tests.experiment.commands import invoke, succeed
from tests.experiment.test_messy_tables import (
    ALL,
    EUROPEAN,
    FILES as FILE_VARIANTS,
    Change,
    clean,
    text_of,
)
from tests.sweep import sweep

LABEL = "bought"
CHANGES: dict[str, Change] = {"clean": {}, "all": ALL, "European": EUROPEAN}
CONFIG = """
name: table
data:
  {train: {csv: table.csv, delimiter: ;}, holdout: 0.001, label: bought, formats: {bought: word}}
infer: {without: [note]}
estimator: {type: DNNClassifier, hidden_units: [4], label_vocabulary: ['no', 'yes']}
train: {steps: 1}
"""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["estimatorkit"])


def frame_of(name: str) -> pd.DataFrame:
    """What pandas reads of a file."""
    Path("table.csv").write_text(text_of(clean(), CHANGES[name], ";"))
    return pd.read_csv("table.csv", sep=";", keep_default_na=False, na_values=[""])


def in_dtypes(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Columns in other dtypes that hold the same values, one of those that fit."""
    random = np.random.default_rng(seed)
    made = frame.copy()
    for key in frame:
        column = frame[key]
        fitting: list[Any] = ["object", "category" if key != "town" else "string"]
        if column.dtype.kind in "iuf":
            fitting = ["Float64", "string", "object", "float[pyarrow]", "double[pyarrow]"]
        elif key == "day" and column.str.fullmatch(r"\d{4}-\d\d-\d\d").all():
            fitting += ["datetime64[ns]", "datetime64[s]", "timestamp[ms][pyarrow]"]
        made[key] = column.astype(fitting[random.integers(len(fitting))])
    return made


def features(made: InferredColumns, frame: Any) -> dict[str, Any]:
    return {str(key): column.to_numpy() for key, column in made.prepare(frame).items()}


def words(column: Any) -> list[str]:
    return [each.decode() if isinstance(each, bytes) else str(each) for each in column]


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for key, column in expected.items():
        if column.dtype.kind in "OSU":
            assert words(found[key]) == words(column), key
        else:
            np.testing.assert_allclose(found[key], column, rtol=1e-5, err_msg=key)


@pytest.mark.parametrize("name", CHANGES)
def test_a_frame_has_the_features_of_its_file(name: str) -> None:
    frame = frame_of(name)
    Path("table.yaml").write_text(CONFIG)
    resolved = inferred.resolve(load_experiment("table.yaml"))
    table = row_sets.training_table(resolved)
    read, _ = examples.examples_of(resolved, table, "table.csv")
    rows = tables.read_file("table.csv", resolved.data.train)["day"].tolist()
    assert len(set(rows)) == len(rows)
    frame = frame.iloc[[rows.index(each) for each in table["day"]]]
    found = features(infer(frame.drop(columns="note"), LABEL), frame)
    assert found.keys() >= {"amount", "rate", "weight", "active", "town", "day_month"}
    assert found.keys() <= read.keys()
    if found["active"].dtype.kind == "i":  # pandas reads true and false as booleans
        found["active"] = np.where(found["active"] == 1, "true", "false")
    assert_same(found, {key: read[key] for key in found})


@sweep(("name", "seed"), [(name, seed) for name in CHANGES for seed in range(5)], quick=3)
def test_dtypes_do_not_matter(name: str, seed: int) -> None:
    frame = frame_of(name).drop(columns="note")
    other = in_dtypes(frame, seed)
    assert other.dtypes.tolist() != frame.dtypes.tolist()
    one, two = infer(frame, LABEL), infer(other, LABEL)
    expected = features(one, frame)
    assert_same(features(two, other), expected)
    assert_same(features(one, other), expected)  # columns of one read the other


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_wrappers_predict_alike(name: str) -> None:
    frame = frame_of(name).drop(columns="note")
    labels = read_cells(frame.pop(LABEL), "word").to_numpy(str)
    model = SKLinearClassifier(epochs=3, random_state=0).fit(frame, labels)
    expected = model.predict_proba(frame)
    assert np.ptp(expected[:, 1]) > 0.3
    np.testing.assert_allclose(model.predict_proba(in_dtypes(frame, 1)), expected, rtol=1e-5)
    trained = SKLinearClassifier(epochs=3, random_state=0).fit(in_dtypes(frame, 2), labels)
    np.testing.assert_allclose(trained.predict_proba(frame), expected, rtol=1e-4)


def _sqlite(frame: pd.DataFrame, name: str) -> None:
    with sqlite3.connect(name) as connection:
        frame.to_sql("orders", connection, index=False, if_exists="replace")


def _excel(frame: pd.DataFrame, name: str) -> None:
    pytest.importorskip("openpyxl")
    frame.to_excel(name, index=False)


def _duckdb(frame: pd.DataFrame, name: str) -> None:
    Path(name).unlink(missing_ok=True)
    with pytest.importorskip("duckdb").connect(name) as connection:
        connection.register("given", frame)
        connection.execute('CREATE TABLE "the ""orders""" AS SELECT * FROM given')


FILES: dict[str, Callable[[pd.DataFrame, str], None]] = {
    "csv": lambda frame, name: frame.to_csv(name, index=False),
    "jsonl": lambda frame, name: frame.to_json(name, orient="records", lines=True),
    "jsonl.gz": lambda frame, name: frame.to_json(name, orient="records", lines=True),
    "parquet": lambda frame, name: frame.to_parquet(name),
    "db": _sqlite,
    "duckdb": _duckdb,
    "xlsx": _excel,
}


def _predicted(ending: str) -> dict[str, Any]:
    """Predictions of a run and of its export for a file that has no label."""
    frame = frame_of("all")
    for name, table in (("table", frame), ("new", frame.drop(columns=LABEL)[:50])):
        FILES[ending](table, f"{name}.{ending}")
    succeed("init", f"table.{ending}", "--label", LABEL, "--force")
    given = (
        "estimator={type: LinearClassifier, label_vocabulary: ['no', 'yes']}",
        "export=[final]",
    )
    succeed("run", "table.yaml", *given, "train={steps: 20}", "--restart")
    found = {}
    for model in ("runs/table", "runs/table/export/final"):
        succeed("predict", model, "--input", f"new.{ending}", "--output", "found.csv")
        found[model] = pd.read_csv("found.csv")["probability_yes"].to_numpy()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("ending", [each for each in FILES if each != "csv"])
def test_files_of_other_kinds_are_read_alike(ending: str) -> None:
    expected = _predicted("csv")["runs/table"]
    assert np.ptp(expected) > 0.01
    for model, found in _predicted(ending).items():
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5, err_msg=model)


def test_files_that_cannot_be_read_are_errors() -> None:
    for name, text in (
        ("a.jsonl", "no json"),
        ("a.db", "none"),
        ("a.duckdb", "none"),
        ("b.jsonl", ""),
    ):
        Path(name).write_text(text)
        assert f"error: {name}" in invoke("init", name, "--label", "y").stderr
    assert "error: none.db: no such file" in invoke("init", "none.db", "--label", "y").stderr
    frame = pd.DataFrame({"x": [1, 2], "y": [0, 1]})
    with sqlite3.connect("two.db") as connection:
        frame.to_sql("one", connection)
        frame.to_sql("other", connection)
    message = invoke("init", "two.db", "--label", "y").stderr
    assert "two.db: which table?" in message
    assert "expected: table: one of one, other" in message


def _alike(one: Any, other: Any) -> bool:
    if one.dtype.kind in "iuf" and other.dtype.kind in "iuf":
        return np.allclose(one, other)
    booleans = {"1": "true", "0": "false"}  # pandas reads true as a boolean, and YES as text
    words = [
        [booleans.get(each.lower(), each.lower().strip()) for each in map(str, c)]
        for c in (one, other)
    ]
    return words[0] == words[1]


@pytest.mark.parametrize("name", FILE_VARIANTS)
def test_infer_sees_of_a_file_what_init_sees(name: str) -> None:
    """However a file is written: its features are those of the clean one, and code() says how."""
    Path("clean.csv").write_text(text_of(clean(), {}))
    Path("messy.csv").write_bytes(FILE_VARIANTS[name]())
    expected = infer("clean.csv", LABEL).prepare("clean.csv")
    made = infer("messy.csv", LABEL)
    found = made.prepare("messy.csv")
    assert list(found) == list(expected)
    for key in expected:
        assert _alike(found[key], expected[key]), key
    assumed = sniffing.settings(Path("messy.csv"))[1]
    head = " ".join(made.code().partition("import")[0].replace("#", "").split())
    assert all(each in head for each in assumed)


@pytest.mark.parametrize("ending", [each for each in FILES if each != "jsonl.gz"])
def test_infer_reads_files_of_all_kinds(ending: str) -> None:
    frame = frame_of("all")
    FILES[ending](frame, f"table.{ending}")
    made, expected = infer(f"table.{ending}", LABEL), infer(frame, LABEL)
    assert made.source == f"the 601 rows of table.{ending}"
    assert_same(features(made, f"table.{ending}"), features(expected, frame))
    assert len(infer(f"table.{ending}", LABEL, sample_rows=200).prepare(frame)) == 601


def test_names_are_found_where_there_are_none_and_below_notes() -> None:
    rows = "".join(f"{n};1.{n:03};{'ab'[n % 2]}\n" for n in range(200))
    notes = 'Sales by region\n\n"made; on"\n'
    for text, names in (
        (rows, ["column_1", "column_2", "column_3"]),
        (f"{notes}n;amount;kind\n{rows}", ["n", "amount", "kind"]),
        (f"Sales;;\n;;of;\nn;amount;kind\n{rows}", ["n", "amount", "kind"]),
    ):
        Path("t.csv").write_text(text)
        made = infer("t.csv", names[2])
        assert list(made.notes) == names[:2]
        assert len(made.prepare("t.csv")) == 200
