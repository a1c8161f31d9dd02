"""TFRecord files: byte-identical to TensorFlow 2.15.1's, and damage is detected."""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import estimatorkit as tf
from estimatorkit.storage import records
from estimatorkit.storage.records import (
    TFRecordOptions,
    TFRecordWriter,
    masked_crc32c,
    read_records,
    records_with_offsets,
    tf_record_iterator,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/records.json").read_text("utf-8"))
RECORDS = [bytes.fromhex(record) for record in GOLDEN["records"]]
UNPACK: dict[str, Any] = {"": bytes, "GZIP": gzip.decompress, "ZLIB": zlib.decompress}


def written(path: Path, options: Any = None, content: list[bytes] = RECORDS) -> bytes:
    with TFRecordWriter(path, options) as writer:
        for record in content:
            writer.write(record)
    return path.read_bytes()


@pytest.mark.parametrize("compression", UNPACK)
def test_file_matches_tensorflow(compression: str, tmp_path: Path) -> None:
    theirs = bytes.fromhex(GOLDEN["files"][compression])
    ours = written(tmp_path / "ours", compression)
    assert UNPACK[compression](ours) == UNPACK[compression](theirs)
    (tmp_path / "theirs").write_bytes(theirs)
    for name in ("ours", "theirs"):
        assert list(tf_record_iterator(tmp_path / name, compression)) == RECORDS


def test_compression_options(tmp_path: Path) -> None:
    types = tf.python_io.TFRecordCompressionType
    for options in ("GZIP", types.GZIP, TFRecordOptions("GZIP"), TFRecordOptions(types.GZIP)):
        assert written(tmp_path / "file", options)[:2] == b"\x1f\x8b"
        assert list(tf_record_iterator(tmp_path / "file", options)) == RECORDS
    assert written(tmp_path / "file", types.NONE) == bytes.fromhex(GOLDEN["files"][""])
    small = len(written(tmp_path / "file", TFRecordOptions("ZLIB", compression_level=9)))
    assert small < len(written(tmp_path / "file", TFRecordOptions("ZLIB", compression_level=0)))
    with pytest.raises(ValueError, match="Not a valid compression_type: 'LZMA'"):
        TFRecordOptions("LZMA")


def test_concatenated_streams(tmp_path: Path) -> None:
    for compression in ("GZIP", "ZLIB"):
        path = tmp_path / compression
        path.write_bytes(written(tmp_path / "one", compression) * 2)
        assert list(read_records(path, compression)) == RECORDS * 2
        assert list(read_records(path, compression, buffer_size=7)) == RECORDS * 2


@pytest.mark.parametrize("compression", UNPACK)
def test_reading_resumes_at_offset(compression: str, tmp_path: Path) -> None:
    written(tmp_path / "file", compression)
    found = list(records_with_offsets(tmp_path / "file", compression))
    for position, (offset, _) in enumerate(found):
        rest = read_records(tmp_path / "file", compression, start=offset)
        assert list(rest) == RECORDS[position + 1 :]


def test_large_records_are_read_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_PIECE", 100)
    assert written(tmp_path / "file")
    assert list(read_records(tmp_path / "file")) == RECORDS


def test_false_length_allocates_nothing(tmp_path: Path) -> None:
    length = struct.pack("<Q", 1 << 60)
    path = tmp_path / "file"
    path.write_bytes(length + struct.pack("<I", masked_crc32c(length)) + b"abc")
    with pytest.raises(tf.errors.DataLossError, match=f"corrupted record at 0 in {path}"):
        list(read_records(path))


@pytest.mark.parametrize("at", [3, 9, 13, 30, 40, 60])
def test_damage_is_detected(at: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    data = bytearray(written(path))
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(tf.errors.DataLossError, match=rf"corrupted record at \d+ in {path}"):
        list(read_records(path))
    path.write_bytes(written(path)[:at])
    with pytest.raises(tf.errors.DataLossError, match=rf"truncated record at \d+ in {path}"):
        list(read_records(path))


def test_errors_give_record_offset(tmp_path: Path) -> None:
    path = tmp_path / "file"
    whole = written(path, content=[b"12345", b"67890"])
    path.write_bytes(whole[:-1])
    reader = read_records(path)
    assert next(reader) == b"12345"
    with pytest.raises(tf.errors.DataLossError, match="truncated record at 21 in"):
        next(reader)


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_truncated_compressed_file(compression: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(written(path, compression)[:-9])
    with pytest.raises(tf.errors.DataLossError, match="corrupted record at"):
        list(read_records(path, compression))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=80), compression=st.sampled_from(["", "GZIP", "ZLIB"]))
def test_arbitrary_bytes_give_records_or_data_loss(
    data: bytes, compression: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(data)
    if data:
        with pytest.raises(tf.errors.DataLossError):
            list(read_records(tmp_path / "file", compression))
    else:
        assert not list(read_records(tmp_path / "file", compression))


def test_misuse_raises(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.NotFoundError, match="missing"):
        next(read_records(tmp_path / "missing"))
    writer = TFRecordWriter(tmp_path / "file")
    with pytest.raises(TypeError, match="a record must be bytes"):
        writer.write(3)  # type: ignore[arg-type]
    writer.write(b"1")
    writer.write("a\u00e9")
    writer.flush()
    assert list(read_records(tmp_path / "file")) == [b"1", b"a\xc3\xa9"]
    writer.close()
    writer.close()
    with pytest.raises(tf.errors.FailedPreconditionError, match="Writer is closed"):
        writer.write(b"2")
    with pytest.raises(tf.errors.NotFoundError):
        TFRecordWriter(tmp_path / "no folder" / "file")


def test_compressed_record_length_is_bounded(tmp_path: Path) -> None:
    length = struct.pack("<Q", 3 << 30)
    bomb = length + struct.pack("<I", masked_crc32c(length)) + bytes(1 << 20)
    for kind, packed in (("GZIP", gzip.compress(bomb)), ("ZLIB", zlib.compress(bomb))):
        (tmp_path / "file").write_bytes(packed)
        with pytest.raises(tf.errors.DataLossError, match="corrupted record at 0") as caught:
            list(read_records(tmp_path / "file", kind))
        assert f"one of {(3 << 30) + 16}" in str(caught.value)
