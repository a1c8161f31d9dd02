"""Readers: records, ends of files, and state."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import estimatorkit as tf
from estimatorkit.core import errors
from estimatorkit.ops.queues.queues import host_queue
from estimatorkit.ops.queues.readers import (
    FixedLengthRecordReader,
    IdentityReader,
    ReaderBase,
    TextLineReader,
    TFRecordReader,
    WholeFileReader,
)
from estimatorkit.storage.records import TFRecordOptions, TFRecordWriter
from tests.threads import comes_true

# The types that no single call can show (see test_ops.py): WholeFileReaderV2, TextLineReaderV2,
# FixedLengthRecordReaderV2, IdentityReaderV2, ReaderReadV2, ReaderReadUpToV2,
# ReaderNumRecordsProducedV2, ReaderNumWorkUnitsCompletedV2, ReaderSerializeStateV2,
# ReaderRestoreStateV2, ReaderResetV2, TFRecordReaderV2.


@pytest.fixture(autouse=True)
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "one").write_bytes(b"first\nsecond\r\nthird")
    (tmp_path / "two").write_bytes(b"")
    (tmp_path / "three").write_bytes(b"last\n\n")
    return [str(tmp_path / name) for name in ("one", "two", "three")]


def queue_of(session: tf.Session, names: list[str], *, close: bool = True) -> tf.FIFOQueue:
    queue = tf.FIFOQueue(20, tf.string, [()])
    session.run(queue.enqueue_many([names]))
    if close:
        session.run(queue.close())
    return queue


def records(session: tf.Session, reader: ReaderBase, queue: tf.FIFOQueue) -> list[Any]:
    record = reader.read(queue)
    found = []
    while True:
        try:
            found.append(tuple(session.run(record)))
        except errors.OutOfRangeError:
            return found


def keyed(name: str, *values: bytes, first: int = 1) -> list[tuple[bytes, bytes]]:
    return [(f"{name}:{number}".encode(), value) for number, value in enumerate(values, first)]


def test_lines(session: tf.Session, files: list[str]) -> None:
    reader = TextLineReader()
    assert records(session, reader, queue_of(session, files)) == [
        *keyed(files[0], b"first", b"second", b"third"),
        *keyed(files[2], b"last", b""),
    ]
    counts = [reader.num_records_produced(), reader.num_work_units_completed()]
    assert session.run(counts) == [5, 3]
    without_header = TextLineReader(skip_header_lines=1)
    assert records(session, without_header, queue_of(session, files)) == [
        *keyed(files[0], b"second", b"third", first=2),
        *keyed(files[2], b"", first=2),
    ]


def test_whole_files(session: tf.Session, files: list[str]) -> None:
    assert records(session, WholeFileReader(), queue_of(session, files)) == [
        (files[0].encode(), b"first\nsecond\r\nthird"),
        (files[1].encode(), b""),
        (files[2].encode(), b"last\n\n"),
    ]


def test_identity_reader(session: tf.Session) -> None:
    got = records(session, IdentityReader(), queue_of(session, ["a", "b"]))
    assert got == [(b"a", b"a"), (b"b", b"b")]


def test_fixed_length_records(session: tf.Session, tmp_path: Path) -> None:
    plain, zipped, deflated = (str(tmp_path / name) for name in ("plain", "zipped", "deflated"))
    data = b"HHabcdefghF"
    Path(plain).write_bytes(data)
    Path(zipped).write_bytes(gzip.compress(data))
    Path(deflated).write_bytes(zlib.compress(data))
    for name, encoding in ((plain, None), (zipped, "GZIP"), (deflated, "ZLIB")):
        reader = FixedLengthRecordReader(3, header_bytes=2, footer_bytes=1, encoding=encoding)
        got = records(session, reader, queue_of(session, [name]))
        assert got == keyed(name, b"abc", b"def", first=0)
    hopping = FixedLengthRecordReader(4, header_bytes=2, footer_bytes=1, hop_bytes=2)
    got = records(session, hopping, queue_of(session, [plain]))
    assert got == keyed(plain, b"abcd", b"cdef", b"efgh", first=0)
    with pytest.raises(ValueError, match="record_bytes > 0"):
        FixedLengthRecordReader(0)


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_tf_records(session: tf.Session, tmp_path: Path, compression: str) -> None:
    path = str(tmp_path / "records")
    options = TFRecordOptions(compression)
    with TFRecordWriter(path, options) as writer:
        writer.write(b"abc")
        writer.write(b"")
    reader = TFRecordReader(options=options)
    assert records(session, reader, queue_of(session, [path])) == [
        (f"{path}:0".encode(), b"abc"),
        (f"{path}:19".encode(), b""),
    ]
    damaged = tmp_path / "damaged"
    damaged.write_bytes(Path(path).read_bytes()[:-3])
    value = TFRecordReader(options=options).read_up_to(queue_of(session, [str(damaged)]), 9)[1]
    with pytest.raises(errors.DataLossError, match="damaged"):
        session.run(value)


def test_read_up_to(session: tf.Session, files: list[str]) -> None:
    keys, values = TextLineReader().read_up_to(queue_of(session, files), 2)
    assert values.shape.as_list() == [None]
    got = [session.run(values).tolist() for _ in range(3)]
    assert got == [[b"first", b"second"], [b"third"], [b"last", b""]]
    with pytest.raises(errors.OutOfRangeError):
        session.run(keys)


def test_reader_state_is_restored(session: tf.Session, files: list[str]) -> None:
    reader = TextLineReader()
    queue = queue_of(session, files)
    _, value = reader.read(queue)
    assert [session.run(value) for _ in range(2)] == [b"first", b"second"]
    state = session.run(reader.serialize_state())
    assert session.run(value) == b"third"
    session.run(reader.restore_state(state))
    assert session.run([value, reader.num_records_produced()]) == [b"third", 3]
    assert reader.supports_serialize
    with pytest.raises(errors.InvalidArgumentError, match="another kind of reader"):
        session.run(WholeFileReader().restore_state(state))
    with pytest.raises(errors.InvalidArgumentError, match="Could not parse state"):
        session.run(reader.restore_state("nonsense"))
    session.run(reader.reset())
    assert session.run([value, reader.num_records_produced()]) == [b"last", 1]


def test_missing_file_raises(session: tf.Session, files: list[str]) -> None:
    _, value = TextLineReader().read(queue_of(session, ["/nowhere/file", files[2]]))
    with pytest.raises(errors.NotFoundError, match="/nowhere/file"):
        session.run(value)
    assert session.run(value) == b"last"


def test_waiting_reader_does_not_block_shutdown(session: tf.Session) -> None:
    reader = IdentityReader()
    queue = queue_of(session, [], close=False)
    key, _ = reader.read(queue)
    held = host_queue(session.state, queue.name)
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(session.run, key)
        assert comes_true(lambda: held.waiting > 0)
        session.close()
        with pytest.raises(errors.CancelledError, match="Dequeue operation was cancelled"):
            running.result(timeout=20)
