"""CSV datasets: equal to TensorFlow's, exact positions, clear errors."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import warnings
from collections import OrderedDict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import numpy as np
import psutil
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from estimatorkit.core import dtypes
from estimatorkit.core.errors import InvalidArgumentError, OutOfRangeError
from estimatorkit.data import Dataset, csv
from estimatorkit.data.execution.block_iterator import BlockIterator
from estimatorkit.data.readers import csv_files, csv_parsing, csv_records
from estimatorkit.data.readers.csv_dataset import CsvDataset, make_csv_dataset
from estimatorkit.data.readers.csv_layout import CsvColumn, CsvLayout
from estimatorkit.data.readers.csv_parsing import Parser
from estimatorkit.data.readers.text_lines import TextLineDataset
from estimatorkit.data.spec import flatten
from tests.golden.golden_files import FOLDER
from tests.golden.golden_values import plain
from tests.golden.snippets_csv import CASES, FILES
from tests.sweep import sweep

GOLDEN = json.loads((FOLDER / "csv_datasets.json").read_text(encoding="utf-8"))["cases"]

TF = SimpleNamespace(
    data=SimpleNamespace(
        TextLineDataset=TextLineDataset,
        experimental=SimpleNamespace(CsvDataset=CsvDataset, make_csv_dataset=make_csv_dataset),
    ),
    **{name: getattr(dtypes, name) for name in ("int32", "int64", "float32", "float64", "string")},
)

# Where TensorFlow loses its place behind a quote that is not closed, the next line is read here.
RESUMES = {"csv bad quotes", "csv unclosed"}


def _elements(dataset: Dataset, most: int = 20) -> list[Any]:
    """The elements one by one; an error in place of an element that cannot be read."""
    found: list[Any] = []
    iterator = dataset.make_block_iterator()
    while len(found) < most:
        try:
            found.append([plain(column[0]) for column in iterator.next_block(1)])
        except OutOfRangeError:
            break
        except InvalidArgumentError as error:
            found.append({"error": type(error).__name__})
    iterator.close()
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("csv")
    for name, content in FILES.items():
        (made / name).write_bytes(content)
    return made


@pytest.mark.filterwarnings("ignore:.* bad rows skipped")
@pytest.mark.parametrize("name", CASES)
def test_matches_tensorflow(name: str, folder: Path) -> None:
    expected = GOLDEN[name]
    if "error" in expected:
        with pytest.raises(ValueError, match=r".") as caught:
            CASES[name](TF, lambda file: str(folder / file))
        said = str(caught.value).replace(f"{folder}/", "")
        assert said[:38] == expected["error"]["first_line"][:38]
        return
    dataset = CASES[name](TF, lambda file: str(folder / file))
    found = [f"{spec.dtype.name} {spec.shape.as_list()}" for spec in flatten(dataset.element_spec)]
    assert found == expected["specs"]
    elements = _elements(dataset)
    if name in RESUMES:
        first = elements.index({"error": "InvalidArgumentError"})
        assert elements[: first + 1] == expected["elements"][: first + 1]
        assert len(elements) > first + 1
    else:
        assert elements == expected["elements"]


def _rows(iterator: BlockIterator, size: int) -> list[Any]:
    found: list[Any] = []
    try:
        while True:
            found += zip(*(column.tolist() for column in iterator.next_block(size)), strict=True)
    except OutOfRangeError:
        return found


def _small_chunks(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(csv_files.CsvFormat.__init__, "__defaults__", (False, False, size))


@sweep("chunk", [40, 1, None], quick=1)
@sweep("compression", [None, "GZIP"], quick=1)
def test_every_position_is_exact(
    folder: Path, chunk: int | None, compression: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if chunk:
        _small_chunks(monkeypatch, chunk)
    name = str(folder / ("people.gz" if compression else "people"))
    names = Dataset.from_tensor_slices([name, name])
    dataset = CsvDataset(names, [[""]] * 5, compression, header=True)
    whole = _rows(dataset.make_block_iterator(), 3)
    assert len(whole) == 8
    for taken in range(9):
        one, two = dataset.make_block_iterator(), dataset.make_block_iterator()
        for _ in range(taken):
            one.next_block(1)
        two.set_state(json.loads(json.dumps(one.get_state())))
        assert _rows(two, 3) == whole[taken:]
        two.restart(1)
        assert two.skip(taken) == taken
        assert _rows(two, 1) == whole[taken:]
        one.close()
    gc.collect()
    assert not [f for f in psutil.Process().open_files() if f.path.startswith(str(folder))]


@pytest.mark.filterwarnings("ignore:2 bad rows skipped")
@pytest.mark.parametrize("shuffle", [False, True])
def test_positions_of_batches(folder: Path, shuffle: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    _small_chunks(monkeypatch, 50)
    path = folder / "numbered"
    rows = [f"{number},{number / 2}" for number in range(40)]
    rows[7], rows[20] = "7,x", "20"
    path.write_text("a,b\n" + "\n".join(rows) + "\n")
    dataset = make_csv_dataset(
        str(path), 4, num_epochs=2, shuffle=shuffle, shuffle_seed=1, on_bad_rows="skip",
        column_defaults=[dtypes.int32, dtypes.float32],
    )  # fmt: skip
    whole = _rows(dataset.make_block_iterator(), 3)
    assert len(whole) == 19
    assert sorted(a for batch in whole for a in batch[0]) == sorted(
        2 * [number for number in range(40) if number not in (7, 20)]
    )
    for taken in range(0, 20, 3):
        one, two = dataset.make_block_iterator(), dataset.make_block_iterator()
        for _ in range(taken):
            one.next_block(1)
        two.set_state(json.loads(json.dumps(one.get_state())))
        assert _rows(two, 2) == whole[taken:]
        one.close()
        two.close()


def test_unclosed_quote_does_not_fill_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _small_chunks(monkeypatch, 100)
    monkeypatch.setattr(csv_records, "MAX_RECORD_BYTES", 1000)
    path = tmp_path / "a"
    path.write_bytes(b'1,a\n2,"b\n' + b"3,c\n" * 1000)
    dataset = CsvDataset(str(path), [[0], [""]], on_bad_rows="skip")
    with pytest.warns(
        UserWarning, match=r"^1 bad rows skipped; .*a:2: the record .* is not valid CSV"
    ):
        assert len(_rows(dataset.make_block_iterator(), 64)) == 1001
    path.write_bytes(b'1,"' + b"long\n" * 150 + b'"\n2,b\n')
    assert len(list(CsvDataset(str(path), [[0], [""]]))) == 2


def test_position_is_byte_offset(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1234567,12345678\n" * 200_000)  # 3.4 MB: several chunks
    dataset = CsvDataset(str(path), [[0], [0]])
    one, two = dataset.make_block_iterator(), dataset.make_block_iterator()
    one.skip(199_990)
    offset = one.get_state()["offset"]
    assert offset["byte"] > 3_000_000
    assert offset["line"] == offset["byte"] // 17 + 1
    two.set_state(one.get_state())
    assert len(_rows(two, 4)) == 10
    one.close()


COLUMNS = ["age", "name"]
TYPES = [dtypes.int32, dtypes.string]
BAD: dict[str, tuple[bytes, dict[str, Any], list[str]]] = {
    "too few cells": (
        b"age,name\n1,a\n2\n",
        {},
        ["x.csv:3: Expect 2 fields but have 1", "column 'name' (2 of 2) is missing", "1: ['2']"],
    ),
    "too many cells": (
        b'age,name\n"1","a\nb"\n\n2,b,c\n',
        {},
        [
            "x.csv:5: Expect 2 fields but have 3",
            "cell 3 is one too many",
            "quote cells that contain it",
        ],
    ),
    "no number": (
        b"age,name\n1,a\nx1,b\n",
        {},
        ["x.csv:3: column 'age' (1 of 2) is not a valid int32", "expected: int32", "'x1'"],
    ),
    "too large a number": (
        b"age,name\n1,a\n3000000000,b\n",
        {},
        ["x.csv:3: column 'age' (1 of 2) is not a valid int32", "'3000000000'"],
    ),
    "empty cell": (
        b"age,name\n1,a\n,b\n",
        {},
        ["x.csv:3: column 'age' (1 of 2) is required but missing", "column_defaults"],
    ),
    "empty text": (
        b"age,name\n1,\n",
        {},
        ["x.csv:2: column 'name' (2 of 2) is required but missing", "expected: string"],
    ),
    "quotes inside": (
        b'age,name\n1,5" tall\n2,b\n',
        {},
        [
            "x.csv:2: the record that begins here is not valid CSV",
            "Unquoted fields cannot have quotes",
        ],
    ),
    "quotes not doubled": (
        b'age,name\n1,a\n2,"b"c\n',
        {},
        ["x.csv:3: the record", "Quote inside a string has to be escaped", 'twice: ""'],
    ),
    "a quote that is not closed": (
        b'age,name\n1,a\n2,"b\n3,c\n',
        {},
        ["x.csv:3: the record that begins here", "without closing quoted field"],
    ),
    "bytes of another encoding": (
        b"age,name\n1,a\n2,caf\xe9\n",
        {},
        ["x.csv:3: column 'name' (2 of 2) is not valid utf-8", "xe9'", "encoding='latin-1'"],
    ),
    "crlf": (b"age,name\r\n1,a\r\nx,b\r\n", {}, ["x.csv:3: column 'age' (1 of 2)"]),
    "byte order mark": (b"\xef\xbb\xbfage,name\n1,a\nx,b\n", {}, ["x.csv:3: column 'age'"]),
    "selected": (
        b"age,name\n1,a\nx,b\n",
        {"select_columns": ["age"], "column_defaults": [dtypes.int32]},
        ["x.csv:3: column 'age' (1 of 2) is not a valid int32"],
    ),
    "compressed": (
        FILES["people.gz"],
        {
            "compression_type": "GZIP",
            "select_columns": ["score"],
            "column_defaults": [dtypes.float32],
        },
        ["x.csv:4: column 'score' (3 of 5) is not a valid float32", "'NA'"],
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_errors_name_file_line_and_column(case: str, tmp_path: Path) -> None:
    content, options, parts = BAD[case]
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    given = {"column_defaults": TYPES, "num_epochs": 1, "shuffle": False, **options}
    with pytest.raises(InvalidArgumentError) as caught:
        list(make_csv_dataset(str(path), 2, **given))
    for part in [str(path), *parts]:
        assert part in str(caught.value)


@pytest.mark.slow
def test_invalid_headers_raise(tmp_path: Path) -> None:
    one, two = tmp_path / "a.csv", tmp_path / "b.csv"
    one.write_text("a,b,a\n1,2,3\n")
    with pytest.raises(ValueError, match=r"duplicate column names(.|\n)*\['a'\] more than once"):
        make_csv_dataset(str(one), 2)
    one.write_text("a,b\n1,2\n")
    two.write_text("a,c\n1,2\n")
    with pytest.raises(ValueError, match=r"b\.csv has different column names"):
        make_csv_dataset([str(one), str(two)], 2)
    two.write_text("")
    with pytest.raises(ValueError, match=r"empty header in file .*b\.csv"):
        make_csv_dataset(str(two), 2)
    with pytest.raises(InvalidArgumentError, match=r"Can't read header of file .*b\.csv"):
        list(CsvDataset(str(two), [[0]], header=True))
    one.write_bytes(b'\xef\xbb\xbf"a\nb",c\r\n1,2\r\n')
    assert list(next(iter(make_csv_dataset(str(one), 2, num_epochs=1)))) == ["a\nb", "c"]


def test_invalid_arguments_raise(folder: Path) -> None:
    name = str(folder / "cr")
    for columns, problem in (([1, 0], "increasing"), ([-1, 0], "non-negative"), ([0], "match")):
        with pytest.raises(InvalidArgumentError, match=problem):
            CsvDataset(name, [[0], [0]], select_cols=columns)
    with pytest.raises(InvalidArgumentError, match="should be empty"):
        CsvDataset(name, [[0]], select_cols=[0], exclude_cols=[1])
    with pytest.raises(InvalidArgumentError, match="only 1 char"):
        CsvDataset(name, [[0], [0]], field_delim=";;")
    with pytest.raises(ValueError, match="default of column 1: Shape must be"):
        CsvDataset(name, [[0], [1, 2]])
    for wrong in (dtypes.int16, [True], bool):
        with pytest.raises(TypeError, match="default of column 1 cannot be used"):
            CsvDataset(name, [[0], wrong])
    with pytest.raises(ValueError, match="'error' or 'skip'"):
        CsvDataset(name, [[0], [0]], on_bad_rows="count")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="did you mean 'age'"):
        make_csv_dataset(str(folder / "people"), 2, label_name="Age")


def test_bad_rows_are_skipped_counted_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b'a,b\n1,2\n3\nx,4\n"5,6\n7,8\n9,\n')
    options: dict[str, Any] = {"num_epochs": 1, "shuffle": False}
    dataset = make_csv_dataset(
        str(path), 2, column_defaults=[dtypes.int32, dtypes.int32], on_bad_rows="skip", **options
    )
    told = r"^4 bad rows skipped; the first: .*x\.csv:3: Expect 2 fields but have 1"
    with pytest.warns(UserWarning, match=told):
        batches = list(dataset)
    assert [batch["a"].tolist() for batch in batches] == [[1, 7]]
    assert dataset.skipped_rows == 4
    rows = CsvDataset(str(path), [dtypes.int32, [0]], header=True, on_bad_rows="skip")
    iterator = rows.make_block_iterator()
    assert iterator.next_block(2)[0].tolist() == [1, 7]
    state = json.loads(json.dumps(iterator.get_state()))
    iterator.close()
    assert rows.skipped_rows == 3
    again = rows.make_block_iterator()
    again.set_state(state)
    with pytest.warns(UserWarning, match=r"^3 bad rows skipped"):  # of the whole pass
        assert _rows(again, 2) == [(9, 0)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.restart(1)
        again.skip(1)
    again.close()


def test_reading_continues_after_bad_row(folder: Path) -> None:
    dataset = CsvDataset(str(folder / "bad widths"), [dtypes.int32, dtypes.int32])
    assert [type(each) for each in _elements(dataset)] == [dict, dict, list]


def test_encoding(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes("größe\ncafé\n".encode("latin-1"))
    dataset = make_csv_dataset(str(path), 2, num_epochs=1, encoding="latin-1")
    assert next(iter(dataset))["größe"].tolist() == ["café".encode()]


def test_remote_and_shuffled_files() -> None:
    for name in "abc":
        with fsspec.open(f"memory://csv/{name}.csv", "w") as file:
            file.write("n\n" + "".join(f"{name}{number}\n" for number in range(5)))
    dataset = make_csv_dataset("memory://csv/?.csv", 15, num_epochs=2, shuffle_seed=2)
    first, second = (batch["n"].tolist() for batch in dataset)
    expected = sorted(f"{name}{number}".encode() for name in "abc" for number in range(5))
    assert sorted(first) == sorted(second) == expected
    assert len({tuple(first), tuple(second), tuple(expected)}) == 3
    assert isinstance(dataset.element_spec, OrderedDict)


_CELLS = st.sampled_from(
    ["", "1", " 2 ", "+3", "x", "NA", "1e5", "nan", "2147483648", '"q"', '"a,b"', '""', '"',
     'a"b', '"x\ny"', "é", "\0", "1_0", ".", "1e", "-", "\r", " ", '"a""b"', "0x1", "1,5",
     "-7", "--7", "1.0", "inf", "-Infinity", "1e+", "1.e3", "1d5", "-.5", " -0012", "9" * 19,
     "-9223372036854775808", " \t5", "5 ", "1 2", "1e400", "nan(1)", "#"]
)  # fmt: skip
_LINES = st.lists(st.lists(_CELLS, min_size=1, max_size=4).map(",".join), max_size=8)


@pytest.mark.slow
@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@example([",-Infinity,"], "\n", False, 3, False, None)
@given(
    _LINES,
    st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
    st.booleans(),
    st.sampled_from([3, None]),
    st.booleans(),
    st.sampled_from([None, 0.5, float("nan")]),
)
def test_fast_and_exact_parsers_agree(
    lines: list[str],
    end: str,
    closed: bool,
    width: int | None,
    quotes: bool,
    default: float | None,
) -> None:
    chunk = (end.join(lines) + (end if closed else "")).encode()
    if not chunk:
        return
    layout = CsvLayout(
        (
            CsvColumn(0, dtypes.int32, 7),
            CsvColumn(1, dtypes.float32, default),
            CsvColumn(2, dtypes.string, b""),
        ),
        width,
        quotes=quotes,
        na_values=frozenset({b"", b"NA"}),
    )
    parser = Parser(layout, "f")
    exact = Parser(layout, "f")._one_by_one(chunk, 5)
    for fast in (parser.parse(chunk, 5), parser.parse(chunk, 5)):  # it learns what is missing
        assert fast.bad == exact.bad
        assert fast.lines == exact.lines
        assert fast.count == exact.count
        assert fast.row_lines.tolist() == exact.row_lines.tolist()
        for one, two in zip(fast.columns, exact.columns, strict=True):
            assert one.dtype == two.dtype
            np.testing.assert_array_equal(one, two)


def test_floats_are_correctly_rounded(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    numbers = random.normal(size=2000) * 10.0 ** random.integers(-30, 30, 2000)
    path = tmp_path / "x.csv"
    path.write_text("\n".join(map(repr, numbers.tolist())))
    dataset = CsvDataset(str(path), [dtypes.float64])
    assert dataset.make_block_iterator().next_block(2000)[0].tolist() == numbers.tolist()


def test_valid_chunks_are_parsed_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(csv_parsing.Parser, "_one_by_one")
    for name in ("csv quotes", "csv missing", "csv bad ints", "csv cr", "batches crlf"):
        assert _elements(CASES[name](TF, lambda file: str(folder / file)))


@pytest.mark.slow
def test_memory_is_independent_of_file_size(tmp_path: Path) -> None:
    path = tmp_path / "big.csv"
    line = b'123456,1.5,some text,"quoted, text",%d\n'
    with path.open("wb") as file:
        for number in range(0, 600_000, 1000):  # 25 MB
            file.write(b"".join(line % n for n in range(number, number + 1000)))
    program = f"""
import tracemalloc
from estimatorkit.core.errors import OutOfRangeError
from estimatorkit.data.readers.csv_dataset import make_csv_dataset
import pandas
dataset = make_csv_dataset({str(path)!r}, 512, column_names=list("abcde"), header=False,
                           num_epochs=1, shuffle=False)
tracemalloc.start()
iterator = dataset.make_block_iterator()
rows = 0
try:
    while True:
        rows += sum(map(len, iterator.next_block(4)[0]))
except OutOfRangeError:
    assert rows == 600_000, rows
assert tracemalloc.get_traced_memory()[1] < 16 << 20, tracemalloc.get_traced_memory()
"""
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


@pytest.mark.parametrize("start", ["1,", '1,"'])
def test_oversized_record_raises(
    start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _small_chunks(monkeypatch, 100)
    monkeypatch.setattr(csv, "_CHUNK_BYTES", 100)
    monkeypatch.setattr(csv_records, "MAX_RECORD_BYTES", 1000)
    path = tmp_path / "a"
    path.write_text("1,a\n" * 2 + start + "b" * 5000)
    iterator = CsvDataset(str(path), [[0], [""]]).make_block_iterator()
    assert iterator.skip(2) == 2
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match="a record of the CSV text is too long"):
            iterator.next_block(1)
    for read in (csv.read_csv, lambda path: list(csv.read_csv_chunks(path, chunk_bytes=100))):
        with pytest.raises(InvalidArgumentError, match="at most 1000 bytes"):
            read(path)
    path.write_text(f"1,a\n1,{'b' * 900}\n2,c\n")
    assert len(list(CsvDataset(str(path), [[0], [""]]))) == 3
    assert csv.read_csv(path, header=False)["column_1"][1] == b"b" * 900
