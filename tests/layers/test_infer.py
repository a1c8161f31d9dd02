"""`feature_columns.infer`: inferred columns, the printed source, and models that use it."""

from __future__ import annotations

import ast
import datetime
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import estimatorkit as tf
from estimatorkit import feature_columns
from estimatorkit.core.errors import NotFoundError
from estimatorkit.data.csv import read_csv
from estimatorkit.data.datasets.splits import split_rows
from tests.slides.data import data_dir

fc = tf.feature_column
infer = feature_columns.infer
ROOT = Path(__file__).parents[2]


@pytest.fixture
def data_set(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Loads a data set; skips where its files are not there."""

    def load(name: str) -> Any:
        folder = data_dir({"california_housing": "california"}.get(name, name))
        monkeypatch.setenv("ESTIMATORKIT_DATA_DIR", str(folder.parent))
        return getattr(tf.datasets, name).load_data()

    return load


def pasted(inferred: feature_columns.InferredColumns) -> dict[str, Any]:
    """What the printed source defines."""
    space: dict[str, Any] = {}
    exec(str(inferred), space)  # noqa: S102
    return space


def without_normalizers(column: Any) -> Any:
    """A column whose numeric parts have no normalizer: lambdas are equal to nothing else."""
    if isinstance(column, fc.NumericColumn):
        return fc.numeric_column(column.key, column.shape, column.default_value, column.dtype)
    return column


def check_source(inferred: feature_columns.InferredColumns, frame: Any) -> dict[str, Any]:
    """The source makes the same columns and features, in lines that are short enough."""
    source = inferred.code()
    assert max(map(len, source.splitlines())) <= 100
    assert source == inferred.code()
    made = pasted(inferred)
    for mine, theirs in ((inferred.columns, made["columns"]), (inferred.wide, made["wide"])):
        assert [without_normalizers(each) for each in mine] == [
            without_normalizers(each) for each in theirs
        ]
        for one, other in zip(mine, theirs, strict=True):
            if isinstance(one, fc.NumericColumn):
                assert (one.normalizer_fn is None) == (other.normalizer_fn is None)
                if one.normalizer_fn is not None:
                    x: Any = np.linspace(-3, 9, 5)
                    assert np.array_equal(one.normalizer_fn(x), other.normalizer_fn(x))
    features = inferred.prepare(frame)
    pd.testing.assert_frame_equal(features, made["prepare"](frame))
    assert not features.isna().any().any()
    wanted = set(fc.make_parse_example_spec(inferred.columns))
    assert wanted <= set(features.columns)
    assert wanted == set(fc.make_parse_example_spec(inferred.wide))
    return made


def tensors(columns: Any, features: Any) -> Any:
    """What the dense columns make of features."""
    with tf.Graph().as_default():
        layer = fc.input_layer(dict(features), columns)
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            return session.run(layer)


def only(inferred: feature_columns.InferredColumns) -> tuple[Any, Any]:
    assert len(inferred) == len(inferred.wide) == 1
    return inferred[0], inferred.wide[0]


# -- numbers


def test_numbers_are_scaled_and_bucketized() -> None:
    frame = pd.DataFrame({"x": np.arange(1000.0) / 8 + 0.0625})
    inferred = infer(frame)
    deep, wide = only(inferred)
    check_source(inferred, frame)
    values = tensors([deep], inferred.prepare(frame))
    assert values.mean() == pytest.approx(0.0, abs=1e-3)
    assert values.std() == pytest.approx(1.0, abs=1e-3)
    counts = tensors([wide], inferred.prepare(frame)).sum(0)
    assert counts.tolist() == pytest.approx([100] * 10, abs=1)
    assert inferred.notes["x"] == (
        "float64, 1,000 distinct values, none missing, 0.0625 to 124.938 -> numeric, scaled"
    )


def test_standardized_numbers_stay_and_buckets_are_optional() -> None:
    deep, wide = only(infer(pd.DataFrame({"x": np.linspace(-1, 1, 50)}), buckets=0))
    assert deep == wide == fc.numeric_column("x")


def test_small_deviations_are_scaled() -> None:
    deep, _ = only(infer(pd.DataFrame({"x": np.linspace(0, 1e-3, 50)})))
    assert deep.normalizer_fn == feature_columns.Scaling(0.0005, 0.00029451)


@pytest.mark.parametrize(
    ("values", "center", "scale"),
    [
        (np.arange(101.0) ** 2, 2500.0, 75.0**2 - 25.0**2),
        ([3.0, 3.0, 3.0, 3.0, 3.0, 13.0, np.nan], 3.0, 5.0),  # half of the range
        ([3.0, 3.0, np.nan], 3.0, 0.0),
        ([np.nan], 0.0, 0.0),
    ],
)
def test_robust_scaling_is_that_of_realmlp(values: Any, center: float, scale: float) -> None:
    found = feature_columns.robust_scaling(values)
    assert found == feature_columns.RobustScaling(center, scale)
    x = np.array([-1e6, -3.0, 0.0, 3.0, 2500.0, 1e6], np.float32)
    z = (x - center) * (1 / scale if scale else 0.0)
    column = fc.numeric_column("x", normalizer_fn=found)
    made = tensors([column], {"x": x[:, None]})[:, 0]
    np.testing.assert_allclose(made, z / np.sqrt(1 + (z / 3) ** 2), rtol=1e-5)
    assert abs(made).max() <= 3.0
    assert eval(found.source, {"tf": tf}) == found  # noqa: S307


def test_arrow_backed_frames() -> None:
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(
        {
            "number": pd.array([1.5, None, 2.5] * 10, "double[pyarrow]"),
            "integer": pd.array([1, None, 2] * 10, "int64[pyarrow]"),
            "flag": pd.array([True, None, False] * 10, "bool[pyarrow]"),
            "word": pd.array(["a", None, "b"] * 10, "string[pyarrow]"),
            "day": pd.Series(pd.date_range("2020-01-31", periods=30)).astype("date32[pyarrow]"),
        }
    )
    inferred = infer(frame)
    check_source(inferred, frame)
    assert [column.name for column in inferred.wide] == [
        *("number_bucketized", "number_missing", "integer", "flag", "word"),
        *("day_month", "day_weekday"),
    ]


def test_inference_is_deterministic() -> None:
    frame = pd.DataFrame({"x": np.arange(50.0), "y": [*"abcde"] * 10})
    one, other = infer(frame), infer(frame.copy())
    assert one == other
    assert hash(one) == hash(other)
    assert isinstance(one[:1], tuple)
    assert one.deep == one.columns == tuple(one)
    assert "DataFrame of 50 rows" in repr(one)


def test_nearly_constant_numbers_are_bucketized_among_the_others() -> None:
    gains = np.r_[np.zeros(900), np.linspace(100, 1000, 100)]
    _, wide = only(infer(pd.DataFrame({"gain": gains})))
    assert wide.boundaries[0] == 100.0
    assert len(wide.boundaries) == 10


def test_large_close_numbers_keep_digits() -> None:
    frame = pd.DataFrame({"time": 1.7e9 + 7 * np.arange(200.0)})
    inferred = infer(frame)
    check_source(inferred, frame)
    values = tensors(inferred, inferred.prepare(frame))
    assert len(np.unique(values)) == 200
    assert abs(values.mean()) < 0.01


def test_missing_numbers_become_median_and_flag() -> None:
    frame = pd.DataFrame({"few": np.arange(100.0), "many": np.arange(100.0) / 3, "many_missing": 1})
    frame.loc[:2, "few"] = np.nan
    frame.loc[:9, "many"] = None
    frame["many_missing"] = np.arange(100) / 7
    inferred = infer(frame)
    check_source(inferred, frame)
    features = inferred.prepare(frame)
    assert list(features) == ["few", "many", "many_missing_", "many_missing"]
    assert features["few"][0] == 51.0
    assert features["many_missing_"].tolist() == [1] * 10 + [0] * 90
    assert "10.0% missing" in inferred.notes["many"]
    assert str(features["many"].dtype) == "float32"


def test_infinite_numbers_count_as_missing() -> None:
    frame = pd.DataFrame({"x": [np.inf, -np.inf, *np.arange(8.0) / 3]})
    inferred = infer(frame)
    check_source(inferred, frame)
    assert inferred.prepare(frame)["x_missing"].tolist() == [1, 1] + [0] * 8
    assert "2 infinite ones taken as missing" in inferred.notes["x"]


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ([0, 1] * 20, fc.categorical_column_with_vocabulary_list("x", [0, 1])),
        ([0.0, 1.0, np.nan] * 20, fc.categorical_column_with_vocabulary_list("x", [0, 1])),
        ([*range(1, 13)] * 5, fc.categorical_column_with_vocabulary_list("x", [*range(1, 13)])),
        ([5, 10] * 20, fc.categorical_column_with_vocabulary_list("x", [5, 10])),
        ([True, False] * 3, fc.categorical_column_with_identity("x", 2)),
        ([True, False, None] * 3, fc.categorical_column_with_identity("x", 2)),
        (pd.array([True, False, None], "boolean"), fc.categorical_column_with_identity("x", 2)),
        (
            pd.array([0, 1, None] * 9, "UInt8"),
            fc.categorical_column_with_vocabulary_list("x", [0, 1]),
        ),
        (pd.Categorical([3, 1, 2] * 2), fc.categorical_column_with_vocabulary_list("x", [1, 2, 3])),
    ],
)
def test_few_integers_and_booleans_are_categories(values: Any, column: Any) -> None:
    frame = pd.DataFrame({"x": values})
    inferred = infer(frame)
    check_source(inferred, frame)
    deep, wide = only(inferred)
    assert wide == column
    assert deep == fc.indicator_column(column)
    rows = tensors([deep], inferred.prepare(frame))
    assert rows.sum(1).tolist() == frame["x"].notna().astype(float).tolist()


def test_unseen_integers_are_all_zero() -> None:
    inferred = infer(pd.DataFrame({"x": [0, 1, 2] * 10}))
    new = inferred.prepare(pd.DataFrame({"x": [2, 3, None]}))
    assert tensors(inferred, new).tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    "values",
    [
        [-1, 0, 1] * 20,  # -1 counts for nothing in categorical columns
        [*range(13)] * 20,
        [0, 1, 2, 0],  # too few rows for each
        [0.5, 1.5] * 20,
        pd.array([1, 2, None, *range(20)], "Int64"),
        pd.array([1.5, None, 2.5, 3.0], "Float32"),
    ],
)
def test_other_numbers_are_numeric(values: Any) -> None:
    frame = pd.DataFrame({"x": values})
    inferred = infer(frame)
    check_source(inferred, frame)
    assert isinstance(inferred[0], fc.NumericColumn)
    assert isinstance(inferred.wide[0], fc.BucketizedColumn)


# -- words


def test_words_are_sorted_by_frequency() -> None:
    frame = pd.DataFrame({"x": ["b", "a", "c", "c", None, "", "b", "a", "c", "é"]})
    inferred = infer(frame)
    check_source(inferred, frame)
    _, wide = only(inferred)
    assert wide.vocabulary_list == ("c", "a", "b", "é")
    assert "20.0% missing, c 30.0%" in inferred.notes["x"]
    new = pd.DataFrame({"x": ["a", None, "new"]})
    assert tensors(inferred, inferred.prepare(new)).tolist() == [[0, 1, 0, 0], [0] * 4, [0] * 4]


@pytest.mark.parametrize(("count", "buckets"), [(101, 256), (128, 256), (129, 512)])
def test_many_words_are_hashed_and_embedded(count: int, buckets: int) -> None:
    frame = pd.DataFrame({"x": [f"word {number}" for number in range(count)] * 2})
    inferred = infer(frame)
    check_source(inferred, frame)
    deep, wide = only(inferred)
    assert wide == fc.categorical_column_with_hash_bucket("x", buckets)
    assert deep == fc.embedding_column(wide, round(1.6 * count**0.56))
    assert 2 * count <= buckets <= 4 * count


def test_thresholds_can_be_chosen() -> None:
    frame = pd.DataFrame({"x": [*"abcdef"] * 5})
    assert only(infer(frame, max_vocabulary=5))[1].num_buckets == 16
    assert only(infer(frame, embedding_from=6))[0].dimension == round(1.6 * 6**0.56)
    deep, wide = only(infer(frame, embedding_from=7))
    assert deep == fc.indicator_column(wide)
    with pytest.raises(ValueError, match="buckets is too small"):
        infer(frame, buckets=-1)


def test_uninformative_columns_are_omitted() -> None:
    frame = pd.DataFrame(
        {
            "used": [0.5, 1.5] * 100,
            "row": range(200),
            "id": [f"id{number}" for number in range(200)],
            "constant": "same",
            "one": 1,
            "nothing": None,
            "empty": "",
            "nan": np.nan,
            "lists": [[1], [2]] * 100,
            "complex": 1j,
            "day": pd.Timestamp("2020-01-01"),
            "minute": pd.date_range("2020-01-01 10:00", periods=200, freq="s"),
            "category": pd.Categorical(["a"] * 200),
        }
    )
    inferred = infer(frame)
    check_source(inferred, frame)
    assert [column.name for column in inferred] == ["used"]
    left_out = {name: note for name, note in inferred.notes.items() if "left out" in note}
    assert set(left_out) == set(frame) - {"used"}
    assert left_out["row"].endswith("left out: it numbers the rows")
    assert left_out["constant"].endswith("left out: constant")
    assert "nearly each row" in left_out["id"]


def test_often_missing_constant_becomes_flag() -> None:
    frame = pd.DataFrame(
        {
            "alley": ["gravel", None] * 10,
            "fee": [5.5, np.nan] * 10,
            "flag": pd.array([True, None] * 10, "boolean"),
            "day": ["2020-01-01", ""] * 10,
        }
    )
    inferred = infer(frame)
    check_source(inferred, frame)
    features = inferred.prepare(frame)
    assert list(features) == ["alley_missing", "fee_missing", "flag_missing", "day_missing"]
    assert features.to_numpy().tolist() == [[0] * 4, [1] * 4] * 10
    assert tensors(inferred, features).shape == (20, 4)


def test_numbers_among_words_are_noted() -> None:
    cells = {"x": ["many", "1.5", "2", "3"], "gaps": ["?", "1.5", "2", "3"]}
    frame = pd.DataFrame({name: each * 5 for name, each in cells.items()})
    frame["y"] = ["1", "2", "3", "4"] * 5
    notes = infer(frame).notes
    assert "75% of them numbers: read 'many' as missing" in notes["x"]
    assert "5 cells are none and count as missing: ?" in notes["gaps"]
    assert notes["y"].startswith("numbers such as '1': str, 4 distinct values")
    assert "all numbers: with .astype(float)" in infer(frame, read_text=False).notes["y"]


def test_pandas_categories_keep_vocabulary() -> None:
    sizes = pd.Categorical(["M", "S", None] * 4, ["S", "M", "L"], ordered=True)
    ranges = pd.cut(np.arange(12.0), [0, 4, 8, 12])
    frame = pd.DataFrame({"size": sizes, "range": ranges})
    inferred = infer(frame)
    check_source(inferred, frame)
    assert inferred.wide[0] == fc.categorical_column_with_vocabulary_list("size", ["S", "M", "L"])
    assert tensors(inferred[1:], inferred.prepare(frame)).sum(0).tolist() == [4, 4, 3]


# -- dates


@pytest.mark.parametrize("kind", ["dtype", "zone", "words", "objects", "period"])
def test_dates_are_split_into_parts(kind: str) -> None:
    days = pd.Series(pd.date_range("2019-01-05", periods=800, freq="D"))
    made: dict[str, Callable[[], Any]] = {
        "dtype": lambda: days.where(days.index != 3),
        "zone": lambda: days.dt.tz_localize("Europe/Berlin"),
        "words": lambda: days.dt.strftime("%Y-%m-%d").where(days.index != 3, "unknown"),
        "objects": lambda: pd.Series(
            [datetime.date(2019, 1, 5) + datetime.timedelta(n) for n in range(800)], dtype=object
        ),
        "period": lambda: days.dt.to_period("D"),
    }
    frame = pd.DataFrame({"day": made[kind]()})
    inferred = infer(frame)
    check_source(inferred, frame)
    features = inferred.prepare(frame)
    assert list(features) == ["day_year", "day_month", "day_weekday"]
    assert features.iloc[0].tolist() == [2019, 1, 5]  # a Saturday
    assert features.iloc[-1].tolist() == [2021, 3, 6]  # 14 March, a Sunday
    if kind in ("dtype", "words"):
        assert features.iloc[3].tolist() == [2020, -1, -1]
    assert tensors(inferred, features).shape == (800, 1 + 13 + 7)


def test_hours_count_if_they_differ() -> None:
    frame = pd.DataFrame({"at": [f"2020-03-0{1 + n % 2}T{n:02}:30:00Z" for n in range(24)]})
    inferred = infer(frame)
    check_source(inferred, frame)
    features = inferred.prepare(frame)
    assert list(features) == ["at_weekday", "at_hour"]
    assert features["at_hour"].tolist() == list(range(24))


def test_durations_are_seconds() -> None:
    frame = pd.DataFrame({"took": pd.to_timedelta([1.5, 2.5, 90], "s")})
    inferred = infer(frame)
    check_source(inferred, frame)
    assert inferred.prepare(frame)["took"].tolist() == [1.5, 2.5, 90]


# -- names and source


def test_arbitrary_names_give_valid_source() -> None:
    words = ['"', "\\", "a\nb", "\0", "x" * 150, '"' * 90, "ünï", "#", "{}", "\u2028", "😀"]
    names = ["class", "2nd", "", "a b", "a-b", "a_b", "pd", "columns", "größe", "日本", '"q"',
             "line\nbreak", "n" * 120, "back\\slash", "\u2028", "tf", "d" * 130]  # fmt: skip
    frame = pd.DataFrame({name: words * 10 for name in names})
    frame["n" * 120] = np.arange(110.0) % 50 / 7
    frame["d" * 130] = [f"20{10 + n % 20}-01-0{1 + n % 9}" for n in range(110)]
    frame[7] = np.arange(110) % 40
    inferred = infer(frame)
    check_source(inferred, frame)
    assert len(inferred) == len(names) + 1 + 1
    tree = ast.parse(inferred.code())
    defined = [node.targets[0].id for node in tree.body if isinstance(node, ast.Assign)]  # type: ignore[attr-defined]
    assert len(set(defined)) == len(defined)


def test_object_columns_of_numbers_bytes_and_words() -> None:
    frame = pd.DataFrame(
        {
            "number": pd.Series([1.5, None, 2, 3] * 5, dtype=object),
            "bytes": pd.Series([b"a", b"b", None, b"a"] * 5, dtype=object),
            "mixed": pd.Series(["a", 1, None, 2.5] * 5, dtype=object),
        }
    )
    inferred = infer(frame)
    check_source(inferred, frame)
    assert [column.name for column in inferred.wide] == [
        *("number_bucketized", "number_missing", "bytes", "mixed")
    ]
    assert inferred.prepare(frame)["bytes"].tolist() == ["a", "b", "", "a"] * 5


# -- labels, weights, errors


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ([0, 1] * 15, "DNNClassifier([64, 32], columns)"),
        ([0, 1, 2] * 10, "DNNClassifier([64, 32], columns, n_classes=3)"),
        (["no", "yes"] * 15, 'columns, label_vocabulary=["no", "yes"])'),
        (["a", "b", "c"] * 10, 'columns, n_classes=3, label_vocabulary=["a", "b", "c"])'),
        ([True, False] * 15, '.astype("int64")'),
        ([-1, 1] * 15, 'label_vocabulary=["-1", "1"])'),
        (np.arange(30), "DNNRegressor([64, 32], columns)"),
        (np.arange(30) / 4, "0 to 7.25, mean 3.625"),
        ([None, 1.5, 2.5] * 10, "10 rows have no label"),
    ],
)
def test_labels_are_described(labels: Any, told: str) -> None:
    frame = pd.DataFrame({"x": np.arange(30) / 4, "y": labels})
    inferred = infer(frame, "y")
    assert told in inferred.label
    assert told in inferred.code().replace("\n# ", " ")
    assert list(inferred.prepare(frame.drop(columns="y"))) == ["x"]
    assert "y" not in inferred.notes


def test_suggested_estimator_can_be_uncommented() -> None:
    cities = [f"New York-{number}" for number in range(12)]
    frame = pd.DataFrame({"x": np.arange(120.0) / 4, "city": cities * 10})
    inferred = infer(frame, "city")
    check_source(inferred, frame)
    lines = inferred.code().partition("# estimator = ")[2].partition("# or ")[0].splitlines()
    (call,) = ast.parse("estimator = " + "\n".join(each.removeprefix("# ") for each in lines)).body
    vocabulary = call.value.keywords[1]  # type: ignore[attr-defined]
    assert ast.literal_eval(vocabulary.value) == sorted(cities)


def test_weight_column_is_prepared_not_inferred() -> None:
    frame = pd.DataFrame({"x": np.arange(30.0), "w": [1, 2, None] * 10, "y": [0, 1] * 15})
    inferred = infer(frame, "y", "w")
    assert [column.name for column in inferred] == ["x"]
    assert inferred.prepare(frame)["w"].tolist() == [1, 2, 0] * 10
    assert 'weight_column="w"' in inferred.label
    assert "weights, 10 missing ones: 0" in inferred.notes["w"]
    with pytest.raises(ValueError, match="cannot be both label and weight"):
        infer(frame, "y", "y")
    with pytest.raises(ValueError, match="'w' cannot be used as weights"):
        infer(frame.assign(w="heavy"), "y", "w")


def test_errors() -> None:
    frame = pd.DataFrame({"x": np.arange(30.0), "price": 1})
    with pytest.raises(ValueError, match=r"no label column 'prise'[^$]*did you mean 'price'"):
        infer(frame, label="prise")
    with pytest.raises(ValueError, match=r"no weight column 'w'"):
        infer(frame, weight="w")
    with pytest.raises(ValueError, match="no rows"):
        infer(frame[:0])
    with pytest.raises(ValueError, match=r"duplicate column names in a DataFrame[^$]*\['x'\]"):
        infer(pd.concat([frame, frame[["x"]]], axis=1))
    with pytest.raises(ValueError, match=r"duplicate"):
        infer(pd.DataFrame([[1, 2]], columns=[1, "1"]))
    with pytest.raises(ValueError, match=r"no column of .* can be used as a feature[^$]*constant"):
        infer(frame[["price"]])
    with pytest.raises(ValueError, match="all labels in column 'y' are missing"):
        infer(frame.assign(y=None), "y")
    with pytest.raises(ValueError, match=r"need a column 'x'[^$]*did you mean 'x_'"):
        infer(frame).prepare(frame.rename(columns={"x": "x_"}))
    with pytest.raises(TypeError, match="a list is not a table"):
        infer([1, 2])
    with pytest.raises(TypeError, match="not a string"):
        infer(pd.DataFrame({("a", "b"): [1, 2]}))


# -- other tables


def test_polars_arrow_and_dicts() -> None:
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    columns = {"x": [1.5, None, 3.25] * 10, "y": ["a", None, "b"] * 10}
    made = [infer(table) for table in (polars.DataFrame(columns), arrow.table(columns), columns)]
    assert [each.columns for each in made] == [made[0].columns] * 3
    expected = infer(pd.DataFrame(columns))
    assert made[0].columns == expected.columns
    features = expected.prepare(polars.DataFrame(columns))
    assert features["y"].tolist() == ["a", "", "b"] * 10
    with pytest.raises(TypeError, match="collect"):
        infer(polars.LazyFrame(columns))


def test_csv_files_are_sampled(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    rows = [f"{n / 4},{'ab'[n % 2]},{n % 2}\n" for n in range(60)]
    path.write_text("x,word,y\n" + "".join(rows) + "7,c,0\n")
    inferred = infer(path, "y", sample_rows=60)
    assert inferred.source == "the first 60 rows of table.csv"
    assert "the first 60 rows of table.csv" in inferred.code().splitlines()[0]
    assert inferred.wide[1] == fc.categorical_column_with_vocabulary_list("word", ["a", "b"])
    assert len(inferred.prepare(path)) == 61
    whole = infer(path, "y")
    assert whole.source == "the 61 rows of table.csv"
    assert whole.wide[1].num_buckets == 3  # type: ignore[attr-defined]
    assert infer(read_csv(path), "y").wide == whole.wide


def test_invalid_csv_files_raise(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    with pytest.raises(NotFoundError):
        infer(path)
    path.write_text("")
    with pytest.raises(ValueError, match="No columns to parse"):
        infer(path)
    path.write_text("a,b\n")
    with pytest.raises(ValueError, match="no rows"):
        infer(path)


# -- data sets


def test_iris() -> None:
    (features, labels), _ = tf.datasets.iris.load_data()
    frame = features.assign(Species=labels)
    inferred = infer(frame, "Species")
    check_source(inferred, frame)
    assert [column.name for column in inferred] == list(features)
    assert "n_classes=3" in inferred.label


def test_digits() -> None:
    (images, labels), _ = tf.datasets.digits.load_data()
    frame = pd.DataFrame(images.reshape(-1, 64)).assign(digit=labels)
    inferred = infer(frame, "digit")
    check_source(inferred, frame)
    assert "n_classes=10" in inferred.label
    assert sum("left out: constant" in note for note in inferred.notes.values()) == 3
    assert tensors(inferred, inferred.prepare(frame)).shape[0] == len(labels)


def test_abalone_and_california(data_set: Callable[[str], Any]) -> None:
    abalone = data_set("abalone")
    inferred = infer(abalone, "rings")
    check_source(inferred, abalone)
    assert "DNNRegressor" in inferred.label
    assert inferred.wide[0] == fc.categorical_column_with_vocabulary_list("sex", ["M", "I", "F"])
    housing = data_set("california_housing")
    inferred = infer(housing, "median_house_value")
    check_source(inferred, housing)
    assert "1.0% missing" in inferred.notes["total_bedrooms"]
    assert len(inferred) == 9


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wide", "deep"])
def test_census_models_learn(kind: str, data_set: Callable[[str], Any], tmp_path: Path) -> None:
    train, test = data_set("census")
    inferred = infer(train, "income_bracket")
    if kind == "wide":
        check_source(inferred, train)
    assert len(inferred) == len(inferred.wide) == 14
    assert inferred.notes["native_country"].endswith("embedding of 13")
    classes = {"label_vocabulary": ["<=50K", ">50K"], "model_dir": tmp_path}
    assert 'label_vocabulary=["<=50K", ">50K"]' in inferred.label
    classifier: Any
    if kind == "wide":
        classifier = tf.estimator.LinearClassifier(inferred.wide, **classes)
    else:
        classifier = tf.estimator.DNNClassifier([64, 32], inferred, **classes)
    order = np.random.RandomState(0).permutation(len(train))[: 200 * 128]
    rows, labels = inferred.prepare(train.iloc[order]), train["income_bracket"].iloc[order]
    data = tf.data.Dataset.from_tensor_slices((rows, labels))
    answers = tf.data.Dataset.from_tensor_slices((inferred.prepare(test), test["income_bracket"]))
    classifier.train(lambda: data.batch(128), steps=200)
    metrics = classifier.evaluate(lambda: answers.batch(1000))
    assert metrics["global_step"] == 200
    assert metrics["accuracy"] >= 0.80
    assert metrics["accuracy"] > metrics["accuracy_baseline"] + 0.03


@pytest.mark.slow
def test_car_prices_with_missing_values(data_set: Callable[[str], Any], tmp_path: Path) -> None:
    frame = data_set("automobile")
    inferred = infer(frame, "price")
    check_source(inferred, frame)
    assert "4 rows have no label" in inferred.label
    (cars, prices), (others, answers) = split_rows(frame, "price")
    train = tf.data.Dataset.from_tensor_slices((inferred.prepare(cars), prices / 1e4))
    test = tf.data.Dataset.from_tensor_slices((inferred.prepare(others), answers / 1e4))
    regressor = tf.estimator.DNNRegressor([32], inferred, tmp_path, optimizer="Adam")
    regressor.train(lambda: train.shuffle(200, seed=0).repeat().batch(32), steps=200)
    metrics = regressor.evaluate(lambda: test.batch(100))
    assert metrics["average_loss"] < 0.5 * np.var(answers / 1e4)


def _left_out(name: str, values: Any) -> bool:
    frame = pd.DataFrame({name: values, "x": np.linspace(0.0, 9.0, len(values))})
    return " left out: each row has another" in infer(frame).notes[name]


def test_ids_of_rows_are_left_out() -> None:
    random = np.random.default_rng(0)
    numbers = random.permutation(900)
    assert _left_out("PassengerId", numbers[:700] + 1)
    assert _left_out("n", numbers[:300])  # a third of the rows, by any name
    for name in ("customer_id", "ID", "userID", "house id", "orderno", "PatientId"):
        assert _left_out(name, random.choice(10**9, 200, replace=False)), name


def test_measurements_that_are_all_different_stay() -> None:
    random = np.random.default_rng(0)
    wide = random.choice(10**6, 300, replace=False)
    for name in ("price", "bid", "paid", "humid", "idle"):
        assert not _left_out(name, wide), name
    assert not _left_out("price", random.permutation(900)[:300] + 0.5)  # no integers
    assert not _left_out("timestamp", 1_700_000_000 + 60 * np.arange(400))
    assert not _left_out("year", np.delete(np.arange(1700, 2020), [5, 9]))
    assert not _left_out("customer_id", np.repeat(np.arange(150), 3))  # of several rows each
    assert not _left_out("n", random.integers(0, 900, 300))  # some twice
    assert not _left_out("customer_id", np.arange(0, 180, 2))  # too few rows to tell


def test_words_out_of_the_vocabulary_are_noted() -> None:
    random = np.random.default_rng(0)
    words = [f"w{int(each)}" for each in random.pareto(1.0, 4000) * 10]
    note = infer(pd.DataFrame({"w": words[:2000]})).notes["w"]
    told = re.search(r"about ([\d.]+)% of other rows have other words", note)
    assert told is not None
    unseen = np.mean([each not in set(words[:2000]) for each in words[2000:]])
    assert float(told[1]) / 100 == pytest.approx(unseen, abs=0.03)
    assert "other words" not in infer(pd.DataFrame({"w": ["a", "b"] * 50})).notes["w"]


def test_numbers_that_may_be_missing_are_not_scaled_but_for_times() -> None:
    frame = pd.DataFrame({"age": np.linspace(18, 80, 50), "at": 1.7e9 + 60 * np.arange(50.0)})
    made = infer(frame, fill_missing=False, buckets=0)
    assert [each.normalizer_fn is None for each in made] == [True, False]
    assert "age" in made.notes
    assert "numeric, as it is" in made.notes["age"]
