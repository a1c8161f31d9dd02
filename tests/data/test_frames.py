"""Data frames of other libraries as columns: values and unsupported types."""

from __future__ import annotations

import datetime
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import datasets
from sklearn.utils import Bunch

from estimatorkit.data import Dataset
from estimatorkit.data.readers.frames import as_columns, open_frames


def _plain(columns: Any) -> Any:
    return {name: (str(each.dtype), each.tolist()) for name, each in columns.items()}


TEXT = ("object", [b"a", "é".encode(), b""])


def test_pandas() -> None:
    frame = pd.DataFrame(
        {
            "i": np.array([1, 2, 3], np.int16),
            "f": [0.5, np.nan, 2],
            "b": [True, False, True],
            "nullable": pd.array([1, 2, 3], "Int64"),
            "nullable float": pd.array([1, 2, 3], "Float32"),
            "nullable bool": pd.array([True, False, True], "boolean"),
            "s": pd.array(["a", "é", ""], "string"),
            "o": pd.Series(["a", "é", ""], dtype=object),
            "c": pd.Categorical(["a", "é", ""]),
            "cn": pd.Categorical([3, 1, 3]),
            "arrow": pd.array([1, 2, 3], pd.ArrowDtype(pa.int32())),
            "arrow s": pd.array(["a", "é", ""], pd.ArrowDtype(pa.string())),
        }
    )
    columns = as_columns(frame)
    assert np.isnan(columns.pop("f")[1])
    assert columns.pop("o").tolist() == ["a", "é", ""]  # made bytes where the dataset is made
    assert _plain(columns) == {
        "i": ("int16", [1, 2, 3]),
        "b": ("bool", [True, False, True]),
        "nullable": ("int64", [1, 2, 3]),
        "nullable float": ("float32", [1, 2, 3]),
        "nullable bool": ("bool", [True, False, True]),
        **{"s": TEXT, "c": TEXT, "arrow s": TEXT},
        "cn": ("int64", [3, 1, 3]),
        "arrow": ("int32", [1, 2, 3]),
    }
    assert as_columns(frame["c"]).tolist() == TEXT[1]
    (first, *_) = Dataset.from_tensor_slices(columns)
    assert first["s"] == b"a"


def test_polars() -> None:
    frame = pl.DataFrame(
        {
            "i": pl.Series([1, 2, 3], dtype=pl.UInt8),
            "f": [0.5, 1, 2],
            "b": [True, False, True],
            "s": ["a", "é", ""],
            "c": pl.Series(["a", "é", ""], dtype=pl.Categorical),
            "e": pl.Series(["a", "é", ""], dtype=pl.Enum(["a", "é", ""])),
            "bytes": [b"a", "é".encode(), b""],
            "v": pl.Series([[1, 2], [3, 4], [5, 6]], dtype=pl.Array(pl.Int32, 2)),
        }
    )
    assert _plain(as_columns(frame)) == {
        "i": ("uint8", [1, 2, 3]),
        "f": ("float64", [0.5, 1, 2]),
        "b": ("bool", [True, False, True]),
        **{"s": TEXT, "c": TEXT, "e": TEXT, "bytes": TEXT},
        "v": ("int32", [[1, 2], [3, 4], [5, 6]]),
    }
    assert as_columns(frame["s"]).tolist() == TEXT[1]
    with pytest.raises(TypeError, match="collect"):
        as_columns(frame.lazy())


@dataclass
class _Stream:
    """Any library's table: known by what it exports."""

    table: pa.Table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


def test_arrow() -> None:
    table = pa.table(
        {
            "i": pa.chunked_array([[1], [2, 3]]),
            "s": ["a", "é", ""],
            "c": pa.array(["a", "é", ""]).dictionary_encode(),
            "v": pa.FixedSizeListArray.from_arrays(pa.array(range(6), pa.int8()), 2),
        }
    )
    expected = {
        "i": ("int64", [1, 2, 3]),
        **{"s": TEXT, "c": TEXT},
        "v": ("int8", [[0, 1], [2, 3], [4, 5]]),
    }
    assert _plain(as_columns(table)) == expected
    assert _plain(as_columns(table.slice(1).combine_chunks())) == {
        name: (dtype, values[1:]) for name, (dtype, values) in expected.items()
    }
    assert _plain(as_columns(_Stream(table))) == expected
    assert _plain(as_columns(table.slice(3))) == {
        "i": ("int64", []),
        **{"s": ("object", []), "c": ("object", [])},
        "v": ("int8", []),
    }
    assert as_columns(table["s"]).tolist() == TEXT[1]


def test_scikit_learn() -> None:
    plain, framed = datasets.load_iris(), datasets.load_iris(as_frame=True)
    for bunch in (plain, framed):
        features, target = open_frames(bunch)
        assert list(features) == plain.feature_names
        assert features["petal width (cm)"].tolist() == plain.data[:, 3].tolist()
        assert target.tolist() == plain.target.tolist()
    data = np.ones((3, 2))
    assert open_frames(Bunch(data=data)) is data
    features, target = open_frames(Bunch(data=data, target=[1, 2, 3]))
    assert features is data
    assert target == [1, 2, 3]
    with pytest.raises(TypeError, match="without data"):
        open_frames(Bunch(images=data))


def test_structures_are_kept() -> None:
    frame = pd.DataFrame({"a": [1, 2]})
    opened = open_frames(({"x": frame, "y": [1, 2]}, frame["a"]))
    assert _plain(opened[0]["x"]) == {"a": ("int64", [1, 2])}
    assert opened[0]["y"] == [1, 2]
    assert opened[1].tolist() == [1, 2]
    for structure in (np.arange(3), [1, 2], (np.arange(2), {"a": 3}), None, "text"):
        assert open_frames(structure) is structure


NOW = datetime.datetime(2020, 1, 1)
BAD: dict[str, tuple[Any, type[Exception], list[str]]] = {
    "object with None": (
        pd.DataFrame({"x": pd.Series(["a", None], dtype=object)}),
        ValueError,
        ["column 'x' has a missing value at position 1", "received: None", ".fillna('')"],
    ),
    "strings with NA": (
        pd.DataFrame({"x": pd.array(["a", None, "b"], "string")}),
        ValueError,
        ["column 'x' has a missing value at position 1", ".fillna('')"],
    ),
    "categories with none": (
        pd.DataFrame({"x": pd.Categorical(["a", None])}),
        ValueError,
        ["column 'x' has a missing value at position 1", ".cat.add_categories('').fillna('')"],
    ),
    "nullable integers": (
        pd.DataFrame({"x": pd.array([1, None], "Int64")}),
        ValueError,
        ["column 'x' has a missing value at position 1", "received: <NA>", ".fillna(0)"],
    ),
    "nullable floats": (
        pd.DataFrame({"x": pd.array([1, None], "Float64")}),
        ValueError,
        ["position 1", ".fillna(0), or make them NaN with .astype('float32')"],
    ),
    "nullable booleans": (
        pd.Series(pd.array([None, True], "boolean"), name="x"),
        ValueError,
        ["the series 'x' has a missing value at position 0", ".fillna(0)"],
    ),
    "times": (
        pd.DataFrame({"x": [NOW]}),
        TypeError,
        ["column 'x' cannot be converted to a tensor", "datetime64", ".astype('int64')"],
    ),
    "times of a zone": (
        pd.Series([NOW]).dt.tz_localize("UTC"),
        TypeError,
        ["the series cannot be converted to a tensor", "UTC", ".astype('int64')"],
    ),
    "durations": (pd.Series([NOW]) - NOW, TypeError, ["timedelta64", ".astype('int64')"]),
    "periods": (
        pd.DataFrame({"x": pd.period_range("2020", periods=2)}),
        TypeError,
        ["period", ".astype(str)"],
    ),
    "one name twice": (
        pd.DataFrame([[1, 2]], columns=["x", "x"]),
        ValueError,
        ["column 'x' occurs twice in the frame", "rename"],
    ),
    "nulls of polars": (
        pl.DataFrame({"x": [1, None]}),
        ValueError,
        ["column 'x' has a missing value at position 1", ".fill_null(0)"],
    ),
    "null texts of polars": (pl.DataFrame({"x": ["a", None]}), ValueError, [".fill_null('')"]),
    "times of polars": (
        pl.DataFrame({"x": [NOW]}),
        TypeError,
        ["column 'x' cannot be converted to a tensor", "Datetime", ".cast(pl.Int64)"],
    ),
    "lists of polars": (pl.DataFrame({"x": [[1], [1, 2]]}), TypeError, ["List", "pl.Array"]),
    "nulls of Arrow": (
        pa.table({"x": pa.chunked_array([[1], [2, None]])}),
        ValueError,
        ["column 'x' has a missing value at position 2", "fill_null(x, 0)"],
    ),
    "times of Arrow": (
        pa.table({"x": [NOW]}),
        TypeError,
        ["column 'x' has a type without tensor equivalent", "timestamp", "cast('int64')"],
    ),
    "lists of Arrow": (pa.table({"x": [[1], []]}), TypeError, ["pad them to one length"]),
    "a sparse Bunch": (
        Bunch(data=type("csr_matrix", (), {"tocsr": None})()),
        TypeError,
        ["csr_matrix", ".toarray()"],
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_unsupported_types_raise(case: str) -> None:
    value, kind, parts = BAD[case]
    with pytest.raises(kind) as caught:
        open_frames(value)
    for part in parts:
        assert part in str(caught.value)


def test_unused_libraries_are_not_imported() -> None:
    program = """
import sys
import numpy as np
from estimatorkit.data.readers.frames import open_frames
open_frames({"a": np.arange(3), "b": [1, 2, 3]})
assert not {"pandas", "polars", "pyarrow", "sklearn"} & set(sys.modules)
"""
    root = str(Path(__file__).parents[2])
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": root})
