"""CSV files: reading and error messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

from estimatorkit.core.errors import NotFoundError
from estimatorkit.data import Dataset, csv, read_csv
from estimatorkit.data.datasets import iris

GOOD = "age,name,score\n31,Ann,1.5\n42,Bob,2\n"


def _write(folder: Path, content: str | bytes) -> str:
    path = folder / "people.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "\n\n"),
        GOOD.rstrip(),
        GOOD.replace("Ann", '"Ann"'),
    ],
    ids=["plain", "byte order mark", "crlf", "blank lines", "no last line end", "quoted"],
)
def test_one_table_in_many_spellings(tmp_path: Path, content: str) -> None:
    table = read_csv(_write(tmp_path, content))
    assert list(table) == ["age", "name", "score"]
    assert table["age"].dtype == np.int64
    assert table["age"].tolist() == [31, 42]
    assert table["name"].dtype == object
    assert table["name"].tolist() == [b"Ann", b"Bob"]
    assert table["score"].dtype == np.float32
    assert table["score"].tolist() == [1.5, 2.0]


def test_quoted_delimiters_quotes_and_line_ends(tmp_path: Path) -> None:
    table = read_csv(_write(tmp_path, 'a,b\n"1,5","say ""hi""\nand go"\n"",é\n'))
    assert table["a"].tolist() == [b"1,5", b""]
    assert table["b"].tolist() == [b'say "hi"\nand go', "é".encode()]


def test_dtypes_missing_values_and_dialect(tmp_path: Path) -> None:
    text = "# made by hand\nx; y; z; ok\n?; 9007199254740993; 7; true\n2.5; 1; ?; 0\n"
    table = read_csv(
        _write(tmp_path, text),
        skip_rows=1,
        delimiter=";",
        skip_initial_space=True,
        na_values=["?"],
        dtypes={"x": "float64", "y": "int64", "z": "string", "ok": bool},
    )
    assert table["x"].dtype == np.float64
    assert np.isnan(table["x"][0])
    assert table["y"].tolist() == [2**53 + 1, 1]  # exact, though no float64 holds it
    assert table["z"].tolist() == [b"7", b""]
    assert table["ok"].tolist() == [True, False]


def test_given_column_names(tmp_path: Path) -> None:
    path = _write(tmp_path, "2,4\n1,2\n")
    assert read_csv(path, columns=["a", "b"])["a"].tolist() == [2, 1]
    assert read_csv(path, columns=["a", "b"], header=True)["a"].tolist() == [1]
    assert list(read_csv(path, header=False)) == ["column_0", "column_1"]


@pytest.mark.parametrize(
    ("content", "options", "parts"),
    [
        ("a,b\n1,2\n3\n", {}, [":3:", "column 'b' (2 of 2) is missing", "1: ['3']"]),
        ("a,b\n1,2\n\n3,4,5\n", {}, [":4:", "cell 3 is one too many"]),
        ('a,b\n"x\ny",2\n3\n', {}, [":4:"]),
        (
            "a,b\n1,2\n1,x\n",
            {"dtypes": {"b": "float32"}},
            [":3:", "'b' (2 of 2)", "'x'", "float32"],
        ),
        ("a\n1\n2.5\n", {"dtypes": {"a": "int32"}}, [":3:", "not a valid int32", "'2.5'"]),
        ("a\n1\n300\n", {"dtypes": {"a": "uint8"}}, [":3:", "not a valid uint8"]),
        (
            "a,b\n1,1\n,1\n",
            {"dtypes": {"a": "int32"}},
            [":3:", "'a' (1 of 2) is required but missing"],
        ),
        ("a\ntrue\nyes\n", {"dtypes": {"a": "bool"}}, [":3:", "true, false"]),
        ("", {}, ["has no rows"]),
        ("\n\n", {}, ["has no rows"]),
        ("a,b\n", {}, ["has no rows"]),
        ("a,b,a\n1,2,3\n", {}, ["duplicate", "['a']"]),
        ("age\n1\n", {"dtypes": {"Age": "int32"}}, ["'Age'", "did you mean 'age'?"]),
        (b"a\nok\ncaf\xe9\n", {}, [":3:", "'a' (1 of 1)", "utf-8", "xe9'", "latin-1"]),
        ('a,b\n1,2\n"x,3\n4,5\n', {}, [":3:", "begins here"]),
        ('a,b\n1,2\n"x"y,3\n', {}, [":3:", "begins here"]),
    ],
)
def test_errors_name_line_and_column(
    tmp_path: Path, content: str | bytes, options: dict[str, Any], parts: list[str]
) -> None:
    path = _write(tmp_path, content)
    with pytest.raises(ValueError, match=r"people\.csv") as caught:
        read_csv(path, **options)
    for part in parts:
        assert part in str(caught.value)


def test_encoding(tmp_path: Path) -> None:
    path = _write(tmp_path, b"a\ncaf\xe9\n")
    assert read_csv(path, encoding="latin-1")["a"].tolist() == ["café".encode()]


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"nowhere\.csv"):
        read_csv(tmp_path / "nowhere.csv")


def test_remote_files_and_small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "n,s\n" + "".join(f'{number},"a ""{number}"",\nb"\n\n' for number in range(50)) + "x,1\n"
    with fsspec.open("memory://read_csv.csv", "w") as file:
        file.write(text)
    monkeypatch.setattr(csv, "_CHUNK_BYTES", 64)
    table = read_csv("memory://read_csv.csv")
    assert table["n"].tolist() == [*(str(number).encode() for number in range(50)), b"x"]
    assert table["s"][49] == b'a "49",\nb'
    with pytest.raises(
        ValueError, match=r"read_csv\.csv:152: column 'n' \(1 of 2\) is not a valid"
    ):
        read_csv("memory://read_csv.csv", dtypes={"n": "int32"})


def test_bad_rows_may_be_skipped(tmp_path: Path) -> None:
    path = _write(tmp_path, "a,b\n1,2\n3\n4,x\n9007199254740993,6\n")
    with pytest.warns(UserWarning, match=r"2 bad rows skipped.*csv:3") as caught:
        table = read_csv(path, dtypes={"a": "int64", "b": "int64"}, on_bad_rows="skip")
    assert caught[0].filename == __file__
    assert table["a"].tolist() == [1, 2**53 + 1]
    assert table["b"].tolist() == [2, 6]


def test_iris_matches_tutorials() -> None:
    (train_x, train_y), (test_x, test_y) = iris.load_data()
    assert list(train_x.keys()) == iris.CSV_COLUMN_NAMES[:-1]
    assert train_x.shape == (120, 4)
    assert test_x.shape == (30, 4)
    assert train_x.iloc[0].tolist() == pytest.approx([6.4, 2.8, 5.6, 2.2])
    assert train_y.dtype == np.int64
    assert np.bincount(train_y).tolist() == [42, 36, 42]
    assert np.bincount(test_y).tolist() == [8, 14, 8]
    assert test_y.tolist()[:2] == [1, 2]
    dataset = Dataset.from_tensor_slices((dict(train_x), train_y))
    features, label = next(iter(dataset))
    assert sorted(features) == sorted(iris.CSV_COLUMN_NAMES[:-1])
    assert features["PetalWidth"] == np.float32(2.2)
    assert label == 2


def test_iris_with_another_label() -> None:
    (train_x, train_y), _ = iris.load_data("PetalWidth")
    assert "Species" in train_x
    assert train_y.name == "PetalWidth"
    with pytest.raises(KeyError, match="Petal"):
        iris.load_data("Petal")
