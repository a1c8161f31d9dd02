"""Parquet and Arrow files: values, positions and errors."""

from __future__ import annotations

import datetime
import decimal
import gc
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import psutil
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from estimatorkit.core import errors
from estimatorkit.data import TensorSpec
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.execution.block_iterator import BlockIterator
from estimatorkit.data.readers.parquet import ArrowDataset, ParquetDataset
from tests.sweep import sweep

TABLE = pa.table(
    {
        "z": pa.array(range(10), pa.int32()),
        "name": [f"n{number}" for number in range(10)],
        "kind": pa.array(["a", "b"] * 5).dictionary_encode(),
        "score": pa.array([number / 4 for number in range(10)], pa.float32()),
        "ok": [True, False] * 5,
        "pair": pa.FixedSizeListArray.from_arrays(pa.array(range(20), pa.int64()), 2),
    }
)


def _write_parquet(table: pa.Table, path: Path) -> str:
    parquet.write_table(table, path, row_group_size=4)
    return str(path)


def _write_arrow(table: pa.Table, path: Path) -> str:
    feather.write_feather(table, str(path), chunksize=4)
    return str(path)


Write = Callable[[pa.Table, Path], str]
Make = Callable[..., Dataset]
KINDS = [
    pytest.param(_write_parquet, ParquetDataset, id="parquet"),
    pytest.param(_write_arrow, ArrowDataset, id="arrow"),
]


def rows(iterator: BlockIterator, size: int = 3) -> list[Any]:
    result: list[Any] = []
    try:
        while True:
            block = iterator.next_block(size)
            result += zip(*(column.tolist() for column in block), strict=True)
    except errors.OutOfRangeError:
        return result


@pytest.mark.parametrize(("write", "make"), KINDS)
def test_rows_are_dicts(write: Write, make: Make, tmp_path: Path) -> None:
    dataset = make([write(TABLE, tmp_path / "a"), write(TABLE, tmp_path / "b")])
    assert dataset.element_spec == {
        "kind": TensorSpec((), "string"),
        "name": TensorSpec((), "string"),
        "ok": TensorSpec((), "bool"),
        "pair": TensorSpec((2,), "int64"),
        "score": TensorSpec((), "float32"),
        "z": TensorSpec((), "int32"),
    }
    elements = list(dataset)
    assert len(elements) == 20
    assert elements[7] == elements[17] | {"pair": pytest.approx(elements[7]["pair"])}
    assert {name: np.asarray(value).tolist() for name, value in elements[13].items()} == {
        **{"kind": b"b", "name": b"n3", "ok": False, "pair": [6, 7], "score": 0.75, "z": 3}
    }
    (batch,) = make(str(tmp_path / "a"), columns=["z", "pair"]).batch(10)
    assert list(batch) == ["pair", "z"]
    assert batch["pair"].shape == (10, 2)
    assert batch["z"].tolist() == list(range(10))


@sweep("batch_rows", [3, 1, 100], quick=1)
@sweep(("write", "make"), KINDS, quick=1)
def test_every_position_is_exact(write: Write, make: Make, batch_rows: int, tmp_path: Path) -> None:
    names = [write(TABLE, tmp_path / "a"), write(TABLE.slice(0, 0), tmp_path / "b")]
    names.append(write(TABLE.slice(0, 5), tmp_path / "c"))
    dataset = make(names, ["z", "name"], batch_rows=batch_rows)
    whole = rows(dataset.make_block_iterator())
    assert [row[1] for row in whole] == [*range(10), *range(5)]
    for taken in range(16):
        one, two = dataset.make_block_iterator(), dataset.make_block_iterator()
        for _ in range(taken):
            one.next_block(1)
        two.set_state(json.loads(json.dumps(one.get_state())))
        assert rows(two) == whole[taken:]
        two.restart(1)
        assert two.skip(taken) == taken
        assert rows(two, 2) == whole[taken:]
        one.close()
    gc.collect()
    assert not [f for f in psutil.Process().open_files() if f.path.startswith(str(tmp_path))]


def test_seek_reads_one_row_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = _write_parquet(TABLE, tmp_path / "a")
    read: list[Any] = []
    real = parquet.ParquetFile.iter_batches

    def counted(self: Any, *args: Any, row_groups: Any, **kwargs: Any) -> Any:
        read.extend(row_groups)
        return real(self, *args, row_groups=row_groups, **kwargs)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", counted)
    iterator = ParquetDataset(name).make_block_iterator()
    assert iterator.skip(9) == 9
    assert iterator.get_state()["offset"] == {"group": 2, "row": 1}
    assert len(rows(iterator)) == 1
    assert read == [2]


NULLS = pa.table({"f": pa.array([1.0, 2.0, None]), "s": ["a", None, "c"], "i": [1, 2, None]})


@pytest.mark.parametrize(("write", "make"), KINDS)
def test_nulls_raise_without_default(write: Write, make: Make, tmp_path: Path) -> None:
    name = write(NULLS, tmp_path / "a")
    for column, row in (("f", 2), ("s", 1), ("i", 2)):
        told = rf"{name}: column '{column}' has a null in row {row} of row group 0(.|\n)*missing="
        with pytest.raises(errors.InvalidArgumentError, match=told):
            list(make(name, [column]))
    with pytest.raises(errors.InvalidArgumentError, match="column 'i'"):
        list(make(name, missing="default"))
    floats, texts = zip(
        *rows(make(name, ["f", "s"], missing="default").make_block_iterator()), strict=True
    )
    assert texts == (b"a", b"", b"c")
    assert np.isnan(floats[2])
    filled = make(name, missing={"f": -1.0, "s": "none", "i": 7}).make_block_iterator()
    assert rows(filled, 2)[2] == (-1.0, 7, b"c")
    encoded = write(pa.table({"s": pa.array(["a", None]).dictionary_encode()}), tmp_path / "b")
    assert rows(make(encoded, missing={"s": b"?"}).make_block_iterator()) == [(b"a",), (b"?",)]
    pairs = pa.FixedSizeListArray.from_arrays(pa.array([1, 2, 3, None]), 2)
    with pytest.raises(errors.InvalidArgumentError, match="a null in row 1 of row group 0"):
        list(make(write(pa.table({"p": pairs}), tmp_path / "c"), missing="default"))
    with pytest.raises(ValueError, match="did you mean 'f'"):
        make(name, ["f"], missing={"ff": 1.0})
    with pytest.raises(ValueError, match="received: 'zero'"):
        make(name, missing="zero")


@pytest.mark.parametrize(("write", "make"), KINDS)
def test_missing_and_changed_columns_raise(write: Write, make: Make, tmp_path: Path) -> None:
    first = write(pa.table({"age": [1], "name": ["a"]}), tmp_path / "a")
    second = write(pa.table({"age": [1.5], "name": ["a"]}), tmp_path / "b")
    third = write(pa.table({"aged": [1], "name": ["a"]}), tmp_path / "c")
    with pytest.raises(errors.InvalidArgumentError, match=rf"{first}: there is no column 'Age'"):
        make(first, columns=["Age"])
    told = (
        rf"{second}: column 'age' does not have the same(.|\n)*int64(.|\n)*float64(.|\n)*one schema"
    )
    with pytest.raises(errors.InvalidArgumentError, match=told):
        list(make([first, second]))
    told = rf"{third}: there is no column 'age'(.|\n)*did you mean 'aged'"
    with pytest.raises(errors.InvalidArgumentError, match=told):
        list(make([first, third]))
    assert len(list(make([first, third], columns=["name"]))) == 2


@pytest.mark.parametrize(
    ("values", "hint"),
    [
        ([[1], [1, 2]], "pad them to one length"),
        ([datetime.datetime(2020, 1, 1)] * 2, r"cast\('int64'\)"),
        ([decimal.Decimal("1.5")] * 2, r"cast\('float64'\)"),
        ([{"a": 1}] * 2, "leave the column out"),
    ],
    ids=["lists", "times", "decimals", "structs"],
)
def test_unsupported_types_raise(values: list[Any], hint: str, tmp_path: Path) -> None:
    name = _write_parquet(pa.table({"x": pa.array(values), "y": [1, 2]}), tmp_path / "a")
    with pytest.raises(TypeError, match=rf"{name}: column 'x'(.|\n)*{hint}"):
        ParquetDataset(name)
    assert len(list(ParquetDataset(name, ["y"]))) == 2


@pytest.mark.slow
def test_invalid_files_raise(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"text that is no table")
    for make in (ParquetDataset, ArrowDataset):
        with pytest.raises(errors.DataLossError, match=str(path)):
            make(str(path))
        with pytest.raises(errors.NotFoundError, match=f"{path}x"):
            make(f"{path}x")
        with pytest.raises(ValueError, match="at least one file"):
            make([])
        with pytest.raises(TypeError, match="file names as Python strings"):
            make(Dataset.from_tensor_slices(["a"]))
    gc.collect()
    assert not [f for f in psutil.Process().open_files() if f.path == str(path)]


def test_damaged_pages_are_no_fault_of_the_disk(tmp_path: Path) -> None:
    """Bytes of a compressed page, which has no checksum, are flipped in turn."""
    table = pa.table({"x": np.arange(300) % 7, "word": ["abc", "d", "ef"] * 100})
    parquet.write_table(table, tmp_path / "whole.parquet", compression="snappy")
    data = (tmp_path / "whole.parquet").read_bytes()
    path = tmp_path / "damaged.parquet"
    told = []
    for place in range(4, 400, 3):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        try:
            list(ParquetDataset(str(path)).as_numpy_iterator())
        except errors.DataLossError as error:
            told.append(str(error))
    assert all("damaged.parquet is damaged, or not a file" in each for each in told)
    assert len(told) > 10


def test_remote_tables() -> None:
    with fsspec.open("memory://tables/a", "wb") as file:
        parquet.write_table(TABLE, file)
    assert len(list(ParquetDataset("memory://tables/a", ["z"]))) == 10


@pytest.mark.slow
def test_missing_pyarrow_names_extra() -> None:
    program = """
import sys
sys.modules["pyarrow"] = None
from estimatorkit.core.errors import UnimplementedError
from estimatorkit.data.readers.parquet import ParquetDataset
try:
    ParquetDataset("a")
except UnimplementedError as error:
    assert "pip install 'estimatorkit[arrow]'" in str(error), error
else:
    raise SystemExit("no error")
"""
    root = str(Path(__file__).parents[2])
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": root})
