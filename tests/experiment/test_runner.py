"""Tables in experiments: which columns are used, their dtypes, and errors about bad ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from estimatorkit.experiment import examples, report, tables
from estimatorkit.experiment.errors import DataError
from estimatorkit.experiment.load import load_experiment
from estimatorkit.experiment.predicting import Prediction
from estimatorkit.experiment.schema import Experiment
from estimatorkit.experiment.scores import baseline
from estimatorkit.experiment.tables import Table

TEXT = """\
name: flowers
data: {train: iris_training, evaluate: iris_test, label: Kind}
features: [{numeric: Length}, {numeric: {key: Width, default: 1.5}}]
estimator: {type: LinearClassifier}
train: {steps: 10}
"""


def experiment(folder: Path, *overrides: str) -> Experiment:
    path = folder / "flowers.yaml"
    path.write_text(TEXT)
    return load_experiment(path, overrides)


def table(**columns: list[object]) -> Table:
    base: dict[str, list[object]] = {"Length": [1, 2], "Width": [3.0, 4.0], "Kind": [0, 1]}
    return Table({name: np.array(values) for name, values in (base | columns).items()})


def test_features_keep_order_and_dtype(tmp_path: Path) -> None:
    features = examples.features_of(experiment(tmp_path), table(Width=[3.0, np.nan]), "x.csv")
    assert list(features) == ["Length", "Width"]
    assert [column.dtype for column in features.values()] == [np.float32, np.float32]
    np.testing.assert_array_equal(features["Width"], [3.0, np.nan])


def test_numeric_text_becomes_numbers(tmp_path: Path) -> None:
    features = examples.features_of(experiment(tmp_path), table(Width=[b"2.5", b""]), "x.csv")
    np.testing.assert_array_equal(features["Width"], [2.5, np.nan])


def test_numeric_words_become_text(tmp_path: Path) -> None:
    feature = "features.0={crossed: {keys: [Length, Width], hash_bucket_size: 5}}"
    crossed = experiment(tmp_path, feature, "features.1={numeric: Length}")
    features = examples.features_of(crossed, table(Width=[3.0, np.nan]), "x.csv")
    assert features["Width"].tolist() == [b"3", b""]
    assert features["Length"].dtype == np.float32


def test_ids_are_integers(tmp_path: Path) -> None:
    ids = experiment(tmp_path, "features=[{identity: {key: Width, num_buckets: 5}}]")
    features = examples.features_of(ids, table(Width=[3.0, np.nan]), "x.csv")
    assert features["Width"].tolist() == [3, -1]
    assert features["Width"].dtype == np.int64
    with pytest.raises(DataError, match=r"'Width' is read as ids(.|\n)*received: 2.5 in example 1"):
        examples.features_of(ids, table(Width=[2.5, 1]), "x.csv")


def test_weight_is_used_in_training_not_prediction(tmp_path: Path) -> None:
    weighted = experiment(tmp_path, "estimator.weight_column=W")
    data = table(W=[1, 2])
    assert list(examples.features_of(weighted, data, "x.csv")) == ["Length", "Width", "W"]
    assert list(examples.features_of(weighted, table(), "x.csv", weighted=False)) == [
        "Length",
        "Width",
    ]


def test_baseline_without_features_reads_all_other_columns(tmp_path: Path) -> None:
    without = experiment(tmp_path, "estimator={type: BaselineClassifier}", "features=[]")
    assert list(examples.features_of(without, table(), "x.csv")) == ["Length", "Width"]


def test_regression_labels(tmp_path: Path) -> None:
    one = experiment(tmp_path, "estimator={type: LinearRegressor}")
    assert examples.labels_of(one, table(), "x.csv").shape == (2,)
    two = experiment(
        tmp_path, "estimator={type: LinearRegressor, label_dimension: 2}", "data.label=[Kind, Age]"
    )
    labels = examples.labels_of(two, table(Age=[5, 6]), "x.csv")
    np.testing.assert_array_equal(labels, [[0, 5], [1, 6]])
    assert examples.label_names(two, labels) == [(0.0, 5.0), (1.0, 6.0)]


def test_text_labels_are_named_by_vocabulary(tmp_path: Path) -> None:
    kinds = experiment(
        tmp_path, "estimator.label_vocabulary=[no, yes]", "data.class_names=[Nay, Yea]"
    )
    labels = examples.labels_of(kinds, table(Kind=[b"yes", b"no"]), "x.csv")
    assert labels.tolist() == ["yes", "no"]
    assert examples.label_names(kinds, labels) == ["Yea", "Nay"]


BAD = {
    "missing column": (
        {"Length": None, "Lenght": [1, 2]},
        (),
        """\
x.csv: no column 'Length'.
  expected: the columns Length, Width
  received: the columns Width, Kind, Lenght
  hint:     Length: did you mean 'Lenght'?""",
    ),
    "text in a column of numbers": (
        {"Length": ["1", "long"]},
        (),
        """\
x.csv: the column 'Length' holds text.
  expected: a number in every row
  received: 'long' in example 2""",
    ),
    "missing value": (
        {"Length": [1.0, np.nan]},
        (),
        """\
x.csv: the column 'Length' lacks 1 of 2 values.
  expected: a number in every row
  received: nothing in example 2
  hint:     give a default: - numeric: {key: Length, default: 0}""",
    ),
    "label that is text": (
        {"Kind": ["yes", "no"]},
        (),
        """\
x.csv: the label 'Kind' is text.
  expected: a class number from 0 to 1
  received: no, yes
  hint:     name the classes: estimator.label_vocabulary: [no, yes]""",
    ),
    "label beyond the classes": (
        {"Kind": [0, 2]},
        (),
        """\
x.csv: the label 'Kind' is not a class.
  expected: a class number from 0 to 1 (n_classes - 1)
  received: 2 in example 2""",
    ),
    "label outside the vocabulary": (
        {"Kind": ["yes", "noo"]},
        ("estimator.label_vocabulary=[no, yes]",),
        """\
x.csv: the label 'Kind' is not in label_vocabulary.
  expected: one of no, yes
  received: noo, in example 2
  hint:     the data has the classes label_vocabulary: [noo, yes]""",
    ),
    "no label column": (
        {"Kind": None},
        (),
        """\
x.csv: no column 'Kind'.
  expected: the columns Kind
  received: the columns Length, Width
  hint:     the first line of a CSV file names its columns.""",
    ),
}


NOTHING = "  The model is no better than that: it has learnt nothing."


@pytest.mark.parametrize(
    ("chosen_by", "metrics", "learnt"),
    [
        ("auc", {"accuracy": 0.95, "auc": 0.784}, True),
        ("auc", {"accuracy": 0.96, "auc": 0.5}, False),
        ("accuracy", {"accuracy": 0.95, "auc": 0.784}, False),
        ("loss", {"accuracy": 0.95, "auc": 0.784}, True),
        (None, {"accuracy": 0.95, "auc": 0.5}, False),
    ],
)
def test_metric_that_selects_the_model_judges_it(
    chosen_by: str | None, metrics: dict[str, float], learnt: bool
) -> None:
    lines = report.baseline_lines(metrics, {"accuracy": 0.95, "auc": 0.5}, chosen_by)
    shown = "  the majority of the training labels has accuracy 0.9500, auc 0.5000"
    assert lines == [shown] + [NOTHING] * (not learnt)


def test_error_no_lower_than_the_mean_has_learnt_nothing() -> None:
    assert report.baseline_lines({"rmse": 2.0}, {"rmse": 2.0})[1:] == [NOTHING]
    assert report.baseline_lines({"rmse": 1.9}, {"rmse": 2.0}, "rmse")[1:] == []


def test_baseline_of_two_classes_has_areas_where_both_are_evaluated(tmp_path: Path) -> None:
    two = experiment(tmp_path, "estimator={type: LinearClassifier}")
    labels = np.array([0, 0, 1])
    areas = {"auc": 0.5, "average_precision": pytest.approx(1 / 3)}
    assert baseline(two, labels, labels) == {"accuracy": pytest.approx(2 / 3), **areas}
    vocabulary = "estimator.label_vocabulary=[stay, churn]"  # the second is the one to be found
    two = experiment(tmp_path, "estimator={type: LinearClassifier}", vocabulary)
    words = np.array(["stay", "stay", "churn"], object)
    assert baseline(two, words, words)["average_precision"] == pytest.approx(1 / 3)
    assert baseline(two, labels, labels[:2]) == {"accuracy": 1.0}


@pytest.mark.parametrize("case", BAD)
def test_data_error_messages(case: str, tmp_path: Path) -> None:
    columns, overrides, expected = BAD[case]
    flowers = experiment(tmp_path, *overrides)
    data = table(**{name: values for name, values in columns.items() if values is not None})
    for name, values in columns.items():
        if values is None:
            del data[name]
    with pytest.raises(DataError) as caught:
        examples.examples_of(flowers, data, "x.csv")
    assert str(caught.value) == expected


def test_missing_csv_suggests_nearby_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.csv").write_text("A\n1\n")
    with pytest.raises(DataError, match=r"trian\.csv: no such file(.|\n)*mean 'train\.csv'\?"):
        tables.read_file(Path("trian.csv"))


SURE = Prediction("Setosa", {"Setosa": 0.9964, "Virginica": 0.0036})


def test_prediction_and_metric_wording(tmp_path: Path) -> None:
    assert (
        report.sentence(SURE, "Virginica") == 'Prediction is "Setosa" (99.6%), expected "Virginica"'
    )
    number = Prediction((1.25,), {})
    assert report.sentence(number, (1.5,)) == "Prediction is 1.2500, expected 1.5000"
    sure = {
        "prediction": np.array(["Setosa", "Iris"], object),
        "probability": np.array([0.9964, 0.5]),
        "probability_Setosa": np.array([0.9964, 0.4]),
    }
    assert report.table_lines(sure) == [
        "example  prediction  probability",
        "      1  Setosa            99.6%",
        "      2  Iris              50.0%",
    ]
    assert report.table_lines({"prediction": np.array([1.25])}, 8) == ["      8  1.2500"]
    kept = report.table_lines({"town": np.array([b"Oslo"], object), "prediction": np.array([1.25])})
    assert "Oslo" in kept[1]
    assert report.metrics_lines({"loss": 1e-7, "global_step": 1000.0, "accuracy": 29 / 30}) == [
        "  accuracy     0.9667",
        "  loss         1e-07",
        "  global_step  1000",
    ]


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_prediction_files(name: str, tmp_path: Path) -> None:
    read = pd.read_csv if name.endswith("csv") else pd.read_parquet
    columns = {
        "id": np.array([b"a", b"b,"], object),
        "prediction": np.array([0.1, 239095.05], np.float32),
    }
    with report.PredictionFile(tmp_path / name) as file:
        for _ in range(2):
            file.write(columns)
        assert not (tmp_path / name).exists()
    assert file.rows == 4
    frame = read(tmp_path / name)
    assert frame["id"].tolist() == ["a", "b,"] * 2
    np.testing.assert_array_equal(np.float32(frame["prediction"]), [*columns["prediction"]] * 2)
    if name.endswith("csv"):
        assert (tmp_path / name).read_text().startswith('id,prediction\na,0.1\n"b,",239095.05\n')

    def fail() -> None:
        with report.PredictionFile(tmp_path / "not") as broken:
            broken.write(columns)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [each.name for each in tmp_path.iterdir()] == [name]
