"""Data sources: the table that each gives, and its errors."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from pydantic import TypeAdapter

import estimatorkit as ek
from estimatorkit.experiment import examples, inferred, row_sets, tables
from estimatorkit.experiment.errors import DataError
from estimatorkit.experiment.load import load_experiment
from estimatorkit.experiment.sources import FILE_SOURCES, DataSetName, Source

DATA = os.environ.get("ESTIMATORKIT_DATA_DIR") or str(Path(__file__).parents[3] / "shared" / "data")


def source(folder: Path, **given: Any) -> Any:
    return TypeAdapter(Source).validate_python(given, context={"folder": folder})


def lists(table: tables.Table) -> dict[str, list[Any]]:
    return {name: column.tolist() for name, column in table.items()}


def test_each_source_has_reader() -> None:
    assert set(tables.READERS) == set(FILE_SOURCES.values())


def test_csv_files_by_wildcard_with_compression(tmp_path: Path) -> None:
    (tmp_path / "day-1.csv").write_text("a,b\n1,x\n2,\n")
    with gzip.open(tmp_path / "day-2.csv.gz", "wt") as stream:
        stream.write("a,b\n3,7\n")
    files = source(tmp_path, csv=["day-?.csv", "day-2.csv.gz"], defaults={"b": "none"})
    assert lists(tables.read_source(files)) == {"a": [1, 2, 3], "b": [b"x", b"none", b"7"]}
    number = source(tmp_path, csv="day-1.csv", defaults={"b": 3})
    assert lists(tables.read_source(number))["b"] == [b"x", b"3"]
    assert lists(tables.read_source(source(tmp_path, csv="day-1.csv", rows=1)))["a"] == [1]
    with pytest.raises(DataError, match=r"night-\*\.csv: no file matches"):
        tables.read_source(source(tmp_path, csv="night-*.csv"))
    with pytest.raises(DataError, match=r"no column 'c' to have a default"):
        tables.read_source(source(tmp_path, csv="day-1.csv", defaults={"c": 1.0}))
    (tmp_path / "cut.csv.gz").write_bytes((tmp_path / "day-2.csv.gz").read_bytes()[:-9])
    with pytest.raises(DataError, match=r"cut\.csv\.gz cannot be decompressed"):
        tables.read_source(source(tmp_path, csv="cut.csv.gz"))
    (tmp_path / "day-3.csv").write_text("a,c\n1,2\n")
    with pytest.raises(DataError, match=r"(?s)other columns than in.*expected: a, b.*a, c"):
        tables.read_source(source(tmp_path, csv="day-?.csv"))


def test_csv_without_header_and_with_missing_markers(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1; ?\n2; 5\n")
    given = {"columns": ["a", "b"], "delimiter": ";", "na_values": ["?"], "defaults": {"b": 0.5}}
    table = tables.read_source(source(tmp_path, csv="a.txt", skip_initial_space=True, **given))
    assert lists(table) == {"a": [1, 2], "b": [0.5, 5.0]}


def test_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": [0.5, None]})
    frame.to_parquet(tmp_path / "a.parquet")
    table = tables.read_source(source(tmp_path, parquet=["a.parquet", "a.parquet"], rows=3))
    assert table["a"].tolist() == [1, 2, 1]
    assert table["b"].tolist() == ["x", "", "x"]
    assert np.isnan(table["c"]).tolist() == [False, True, False]
    only = tables.read_source(source(tmp_path, parquet="a.parquet", columns=["a"]))
    assert list(only) == ["a"]
    with pytest.raises(DataError, match=r"b\.parquet: no such file(.|\n)*mean '.*a\.parquet'"):
        tables.read_source(source(tmp_path, parquet="b.parquet"))


def test_records(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with ek.python_io.TFRecordWriter(str(path)) as writer:
        for number in (1, 2):
            feature = {
                "n": ek.train.Feature(int64_list=ek.train.Int64List(value=[number])),
                "v": ek.train.Feature(float_list=ek.train.FloatList(value=[number, 0.5])),
            }
            features = ek.train.Features(feature=feature)
            writer.write(ek.train.Example(features=features).SerializeToString())
    spec: dict[str, Any] = {
        "n": {"dtype": "int64"},
        "v": {"shape": [2]},
        "w": {"dtype": "string", "default": "-"},
    }
    table = tables.read_source(source(tmp_path, tfrecord="a.tfrecord", features=spec))
    assert lists(table) == {"n": [1, 2], "v": [[1, 0.5], [2, 0.5]], "w": [b"-", b"-"]}


def test_bundled_datasets() -> None:
    iris = tables.read_source("iris_test")
    assert list(iris)[-1] == "Species"
    assert tables.row_count(iris) == 30
    digits = tables.read_source("digits_train")
    assert digits["image"].shape[1:] == (8, 8)
    assert len(digits["label"]) == len(digits["image"]) > 1000


@pytest.mark.parametrize("name", [each for each in get_args(DataSetName) if "iris" not in each])
def test_datasets_have_loaders(name: str) -> None:
    base = name.removesuffix("_train").removesuffix("_test")
    assert base in ek.datasets.catalogue()


def test_census(monkeypatch: pytest.MonkeyPatch) -> None:
    if not (Path(DATA) / "census" / "adult.test").is_file():
        pytest.skip("the census data are not here (ESTIMATORKIT_DATA_DIR)")
    monkeypatch.setenv("ESTIMATORKIT_DATA_DIR", DATA)
    table = tables.read_source("census_test")
    assert tables.row_count(table) == 16281
    assert set(table["income_bracket"]) == {"<=50K", ">50K"}


def test_numeric_class_names_keep_their_spelling(tmp_path: Path) -> None:
    """Also where one is missing, which makes them numbers with a fraction."""
    (tmp_path / "a.csv").write_text("x,y\n1,7\n2,\n3,12\n")
    (tmp_path / "a.yaml").write_text(
        "name: a\ndata: {train: {csv: a.csv}, holdout: 0.3, label: y, missing_labels: skip}\n"
        "features: [numeric: x]\ntrain: {epochs: 1}\n"
        "estimator: {type: LinearClassifier, label_vocabulary: ['7', '12']}\n"
    )
    experiment = load_experiment(tmp_path / "a.yaml")
    table = tables.read_source(experiment.data.train)
    kept = table.take([0, 2])
    labels = examples.labels_of(experiment, kept, "a.csv")
    assert labels is not None
    assert labels.tolist() == ["7", "12"]


def test_unchanged_files_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By training, the part to measure with, and columns that are inferred."""
    reads: list[str] = []

    def read(path: str, original: Any = tables.read_csv_chunks, **options: Any) -> Any:
        reads.append(path)
        return original(path, **options)

    monkeypatch.setattr(tables, "read_csv_chunks", read)
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{i},{2 * i}\n" for i in range(20)))
    (tmp_path / "a.yaml").write_text(
        "name: a\ndata: {train: {csv: a.csv}, holdout: 0.3, label: y}\n"
        "infer: true\nestimator: {type: LinearRegressor}\ntrain: {epochs: 1}\n"
    )
    experiment = load_experiment(tmp_path / "a.yaml")
    table = row_sets.training_table(experiment)
    resolved = inferred.resolve(experiment)
    assert set(examples.features_of(resolved, table, "a.csv")) == {"x"}
    row_sets.evaluation_table(experiment)
    assert len(reads) == 1
    with (tmp_path / "a.csv").open("a") as stream:
        stream.write("20,40\n")
    assert tables.row_count(tables.read_source(experiment.data.train)) == 21
    assert inferred.resolve(experiment).reads
    assert len(reads) == 2


def test_holdout_and_rows_without_label(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{i},{i or ''}\n" for i in range(11)))
    (tmp_path / "a.yaml").write_text(
        "name: a\ndata: {train: {csv: a.csv}, holdout: 0.3, label: y, missing_labels: skip}\n"
        "features: [numeric: x]\nestimator: {type: LinearRegressor}\ntrain: {epochs: 1}\n"
    )
    experiment = load_experiment(tmp_path / "a.yaml")
    train = row_sets.training_table(experiment)["x"].tolist()
    kept, name = row_sets.evaluation_table(experiment)
    assert len(train) == 7
    assert sorted([*train, *kept["x"].tolist()]) == list(range(1, 11))
    assert name.startswith("30% of ")
    again = row_sets.evaluation_table(experiment)[0]
    np.testing.assert_array_equal(again["x"], kept["x"])
    other = load_experiment(tmp_path / "a.yaml", ["data.holdout_seed=1"])
    assert sorted(row_sets.training_table(other)["x"].tolist()) != sorted(train)


def test_rows_know_their_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text('x,y\n1,"two\nlines"\n\n2,b\n')
    Path("b.csv").write_text("x,y\n3,c\n4,\n")
    table = tables.read_source(source(tmp_path, csv=["a.csv", "b.csv"]))
    assert [table.place(row) for row in range(4)] == ["a.csv:2", "a.csv:5", "b.csv:2", "b.csv:3"]
    later = table.take(np.array([False, True, True, True])).take([2, 0])
    assert [later.place(row) for row in range(2)] == ["b.csv:3", "a.csv:5"]
    assert later["x"].tolist() == [4, 2]


def test_missing_label_is_located_after_holdout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{i},{'ab'[i % 2] if i != 13 else ''}\n" for i in range(40)]
    Path("a.csv").write_text("x,y\n" + "".join(rows))
    Path("a.yaml").write_text(
        "name: a\ndata: {train: {csv: a.csv}, holdout: 0.5, label: y}\nfeatures: [numeric: x]\n"
        "train: {epochs: 1}\nestimator: {type: LinearClassifier, label_vocabulary: [a, b]}\n"
    )
    experiment = load_experiment("a.yaml")
    for table in (row_sets.training_table(experiment), row_sets.evaluation_table(experiment)[0]):
        if b"" in table["y"]:
            with pytest.raises(DataError, match=r"received: nothing in a\.csv:15"):
                examples.labels_of(experiment, table, "a.csv")
            break
    else:
        pytest.fail("the row is in neither part")


def test_encodings(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("town,x\nMünchen,1\n".encode("latin-1"))
    table = tables.read_source(source(tmp_path, csv="a.csv", encoding="latin-1"))
    assert table["town"].tolist() == ["München".encode()]
    with pytest.raises(DataError, match=r"(?s)a\.csv:2.*utf-8.*encoding: 'latin-1'"):
        tables.read_source(source(tmp_path, csv="a.csv"))


def test_files_are_read_in_chunks(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    rows = [f'{i},"text\n{i}"\n' for i in range(500)]
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(rows))
    whole = tables.read_file(tmp_path / "a.csv")
    parts = list(tables.read_chunks(tables.source_of(tmp_path / "a.csv"), 1000))
    assert len(parts) > 5
    for name in ("x", "y"):
        assert np.concatenate([each[name] for each in parts]).tolist() == whole[name].tolist()
    assert parts[-1].place(tables.row_count(parts[-1]) - 1).endswith("a.csv:1000")

    pd.DataFrame({"x": range(500)}).to_parquet(tmp_path / "a.parquet")
    parts = list(tables.read_chunks(tables.source_of(tmp_path / "a.parquet"), 100 << 8))
    assert [tables.row_count(each) for each in parts] == [100] * 5


def test_prediction_files_are_read_like_training_data(tmp_path: Path) -> None:
    like = source(tmp_path, csv="train.csv", columns=["a", "label"], delimiter=";")
    (tmp_path / "new.csv").write_text("1\n2\n")
    table = tables.read_source(tables.source_of(tmp_path / "new.csv", like, ["label"]))
    assert lists(table) == {"a": [1, 2]}
    (tmp_path / "old.csv").write_text("1;x\n2;y\n")
    table = tables.read_source(tables.source_of(tmp_path / "old.csv", like, ["label"]))
    assert list(table) == ["a", "label"]
    with pytest.raises(DataError, match="trained on TFRecord"):
        tables.source_of("new.tfrecord", like)
