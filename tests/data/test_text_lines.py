"""Text lines: content, positions, resources, and file patterns."""

from __future__ import annotations

import gc
import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import fsspec
import psutil
import pytest

import estimatorkit as tf
from estimatorkit.core.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
)
from estimatorkit.data import Dataset
from estimatorkit.data.execution.block_iterator import BlockIterator
from estimatorkit.data.readers.csv_dataset import CsvDataset
from estimatorkit.data.readers.list_files import list_files
from estimatorkit.data.readers.text_lines import TextLineDataset
from tests.sweep import sweep

TEXT = b"one\r\n\r\n\ntwo\rlines\nlast \xff"
LINES = [b"one", b"", b"", b"twolines", b"last \xff"]
COMPRESS = {None: bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}


def rows(iterator: BlockIterator, size: int = 3) -> list[Any]:
    result: list[Any] = []
    try:
        while True:
            result += iterator.next_block(size)[0].tolist()
    except OutOfRangeError:
        return result


def open_files(folder: Path) -> int:
    gc.collect()
    return sum(each.path.startswith(str(folder)) for each in psutil.Process().open_files())


@pytest.mark.slow
@pytest.mark.parametrize("compression", [None, "GZIP", "ZLIB"])
@sweep("buffer_size", [1, 7, None], quick=1)
def test_lines(tmp_path: Path, compression: str | None, buffer_size: int | None) -> None:
    compress = COMPRESS[compression]
    for name, content in (("a", TEXT), ("b", b""), ("c", TEXT + b"\n"), ("d", b"\r")):
        (tmp_path / name).write_bytes(compress(content))
    names = [str(tmp_path / name) for name in "abcd"]
    dataset = TextLineDataset(names, compression, buffer_size)
    assert list(dataset) == LINES * 2
    assert dataset.make_block_iterator().next_block(100)[0].tolist() == LINES * 2
    assert open_files(tmp_path) == 0


@pytest.mark.slow
@pytest.mark.parametrize("compression", [None, "GZIP"])
@sweep("buffer_size", [1, 9, None], quick=1)
def test_every_position_is_exact(
    tmp_path: Path, compression: str | None, buffer_size: int | None
) -> None:
    names = [str(tmp_path / name) for name in "ab"]
    for name in names:
        Path(name).write_bytes(COMPRESS[compression](TEXT))
    for filenames in (names, Dataset.from_tensor_slices(names)):
        dataset = TextLineDataset(filenames, compression, buffer_size)
        for taken in range(11):
            one, two = dataset.make_block_iterator(), dataset.make_block_iterator()
            for _ in range(taken):
                one.next_block(1)
            two.set_state(json.loads(json.dumps(one.get_state())))
            assert rows(two) == (LINES * 2)[taken:]
            two.restart(1)
            assert two.skip(taken) == taken
            assert rows(two) == (LINES * 2)[taken:]
            assert rows(one) == (LINES * 2)[taken:]
    assert open_files(tmp_path) == 0


def test_position_is_byte_offset(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345678\r\n" * 100_000)
    dataset = TextLineDataset(str(path))
    one, two = dataset.make_block_iterator(), dataset.make_block_iterator()
    one.next_block(99_990)
    assert one.get_state()["offset"] == 999_900
    two.set_state(one.get_state())
    assert rows(two) == [b"12345678"] * 10


@pytest.mark.slow
def test_no_file_stays_open(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(TEXT)
    dataset = TextLineDataset(path)
    iterator = dataset.make_block_iterator()
    iterator.next_block(1)
    assert open_files(tmp_path) == 1
    iterator.close()
    assert open_files(tmp_path) == 0
    dropped = dataset.make_block_iterator()
    dropped.next_block(1)
    del dropped
    assert open_files(tmp_path) == 0
    for _ in dataset.prefetch(1):
        break
    assert open_files(tmp_path) == 0


def test_names_and_errors(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(TEXT)
    for names in (path, str(path), str(path).encode(), [[str(path)]], (path,)):
        assert list(TextLineDataset(names, num_parallel_reads=2)) == LINES
    assert list(TextLineDataset([])) == []
    with pytest.raises(NotFoundError, match=f"{path}x"):
        list(TextLineDataset([f"{path}x"]))
    with pytest.raises(InvalidArgumentError, match="Unsupported compression_type: gzip"):
        TextLineDataset(str(path), "gzip")
    with pytest.raises(DataLossError, match=str(path)):
        list(TextLineDataset(str(path), "GZIP"))
    with pytest.raises(TypeError, match="filenames"):
        TextLineDataset(3)


def test_computed_file_names(tmp_path: Path) -> None:
    names = [str(tmp_path / name) for name in "ab"]
    for name in names:
        Path(name).write_bytes(f"n,s\n1,{name[-1]}\n2,x\n".encode())
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.string, [None])
        lines = TextLineDataset(fed).batch(8).make_initializable_iterator()
        rows_of_csv = list_files(fed, shuffle=False).interleave(
            lambda name: CsvDataset(name, [tf.int32, tf.string], header=True), cycle_length=2
        )
        csv = rows_of_csv.make_initializable_iterator()
        line, row = lines.get_next(), csv.get_next()
        session.run([lines.initializer, csv.initializer], {fed: names})
        assert session.run(line).tolist() == [b"n,s", b"1,a", b"2,x", b"n,s", b"1,b", b"2,x"]
        assert [session.run(row) for _ in range(4)] == [(1, b"a"), (1, b"b"), (2, b"x"), (2, b"x")]
        session.run(csv.initializer, {fed: [str(tmp_path / "[b]")]})
        assert session.run(row) == (1, b"b")
        with pytest.raises(InvalidArgumentError, match="No files matched pattern: none"):
            session.run(csv.initializer, {fed: ["none"]})


def test_remote_lines() -> None:
    with fsspec.open("memory://lines/a.gz", "wb") as file:
        file.write(gzip.compress(TEXT))
    names = list_files("memory://lines/*.gz")
    assert list(TextLineDataset(names, "GZIP")) == LINES


def test_list_files(tmp_path: Path) -> None:
    made = [f"{tmp_path}/{number}.txt".encode() for number in range(9)]
    for name in made:
        Path(name.decode()).write_bytes(b"")
    (tmp_path / "other").write_bytes(b"")
    dataset = list_files(f"{tmp_path}/*.txt", shuffle=False)
    assert list(dataset) == made
    assert len(dataset) == 9
    shuffled = list_files([f"{tmp_path}/*.txt", f"{tmp_path}/other"], seed=3)
    first, second = list(shuffled), list(shuffled.repeat(2))
    assert sorted(first) == sorted(second[:10]) == [*made, f"{tmp_path}/other".encode()]
    assert first == second[:10]
    assert first not in (sorted(first), second[10:])
    with pytest.raises(InvalidArgumentError, match=f"No files matched pattern: {tmp_path}/none"):
        list(list_files(f"{tmp_path}/none*"))
    with pytest.raises(TypeError, match="list_files"):
        list_files(3)
