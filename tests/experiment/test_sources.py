"""Every kind of source: the table that it gives, and what is said where it gives none."""

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
from estimatorkit.experiment import examples, inferred, tables
from estimatorkit.experiment.errors import DataError
from estimatorkit.experiment.load import load_experiment
from estimatorkit.experiment.sources import FILE_SOURCES, DataSetName, Source

DATA = os.environ.get("ESTIMATORKIT_DATA_DIR") or str(Path(__file__).parents[3] / "shared" / "data")


def source(folder: Path, **given: Any) -> Any:
    return TypeAdapter(Source).validate_python(given, context={"folder": folder})


def lists(table: tables.Table) -> dict[str, list[Any]]:
    return {name: column.tolist() for name, column in table.items()}


def test_each_kind_of_source_has_a_reader() -> None:
    assert set(tables.READERS) == set(FILE_SOURCES.values())


def test_several_csv_files_by_wildcard_some_compressed(tmp_path: Path) -> None:
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


def test_csv_without_names_and_with_marks_for_what_is_missing(tmp_path: Path) -> None:
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


def test_data_sets_that_come_along() -> None:
    iris = tables.read_source("iris_test")
    assert list(iris)[-1] == "Species"
    assert tables.row_count(iris) == 30
    digits = tables.read_source("digits_train")
    assert digits["image"].shape[1:] == (8, 8)
    assert len(digits["label"]) == len(digits["image"]) > 1000


@pytest.mark.parametrize("name", [each for each in get_args(DataSetName) if "iris" not in each])
def test_data_sets_have_a_loader(name: str) -> None:
    base = name.removesuffix("_train").removesuffix("_test")
    assert base in ek.datasets.catalogue()


def test_census(monkeypatch: pytest.MonkeyPatch) -> None:
    if not (Path(DATA) / "census" / "adult.test").is_file():
        pytest.skip("the census data are not here (ESTIMATORKIT_DATA_DIR)")
    monkeypatch.setenv("ESTIMATORKIT_DATA_DIR", DATA)
    table = tables.read_source("census_test")
    assert tables.row_count(table) == 16281
    assert set(table["income_bracket"]) == {"<=50K", ">50K"}


def test_numbers_that_name_classes_are_written_as_in_the_file(tmp_path: Path) -> None:
    """Also where one is missing, which makes them numbers with a fraction."""
    (tmp_path / "a.csv").write_text("x,y\n1,7\n2,\n3,12\n")
    (tmp_path / "a.yaml").write_text(
        "name: a\ndata: {train: {csv: a.csv}, holdout: 0.3, label: y, missing_labels: skip}\n"
        "features: [numeric: x]\ntrain: {epochs: 1}\n"
        "estimator: {type: LinearClassifier, label_vocabulary: ['7', '12']}\n"
    )
    experiment = load_experiment(tmp_path / "a.yaml")
    table = tables.read_source(experiment.data.train)
    kept = {name: column[[0, 2]] for name, column in table.items()}
    labels = examples.labels_of(experiment, kept, "a.csv")
    assert labels is not None
    assert labels.tolist() == ["7", "12"]


def test_files_are_read_once_while_they_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By training, the part to measure with, and columns that are inferred."""
    reads: list[str] = []

    def read(path: str, original: Any = ek.data.read_csv, **options: Any) -> Any:
        reads.append(path)
        return original(path, **options)

    monkeypatch.setattr(ek.data, "read_csv", read)
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{i},{2 * i}\n" for i in range(20)))
    (tmp_path / "a.yaml").write_text(
        "name: a\ndata: {train: {csv: a.csv}, holdout: 0.3, label: y}\n"
        "infer: true\nestimator: {type: LinearRegressor}\ntrain: {epochs: 1}\n"
    )
    experiment = load_experiment(tmp_path / "a.yaml")
    table = tables.training_table(experiment)
    resolved = inferred.resolve(experiment)
    assert set(examples.features_of(resolved, table, "a.csv")) == {"x"}
    tables.evaluation_table(experiment)
    assert len(reads) == 1
    with (tmp_path / "a.csv").open("a") as stream:
        stream.write("20,40\n")
    assert tables.row_count(tables.read_source(experiment.data.train)) == 21
    assert inferred.resolve(experiment).reads
    assert len(reads) == 2


def test_a_part_is_kept_and_rows_without_a_label_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{i},{i or ''}\n" for i in range(11)))
    (tmp_path / "a.yaml").write_text(
        "name: a\ndata: {train: {csv: a.csv}, holdout: 0.3, label: y, missing_labels: skip}\n"
        "features: [numeric: x]\nestimator: {type: LinearRegressor}\ntrain: {epochs: 1}\n"
    )
    experiment = load_experiment(tmp_path / "a.yaml")
    train = tables.training_table(experiment)["x"].tolist()
    kept, name = tables.evaluation_table(experiment)
    assert len(train) == 7
    assert sorted([*train, *kept["x"].tolist()]) == list(range(1, 11))
    assert name.startswith("30% of ")
    again = tables.evaluation_table(experiment)[0]
    np.testing.assert_array_equal(again["x"], kept["x"])
    other = load_experiment(tmp_path / "a.yaml", ["data.holdout_seed=1"])
    assert sorted(tables.training_table(other)["x"].tolist()) != sorted(train)
