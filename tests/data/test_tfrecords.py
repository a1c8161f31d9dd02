"""Record datasets: TensorFlow 2.15.1's files, positions, damage and resources."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import estimatorkit as tf
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.execution.block_iterator import BlockIterator
from estimatorkit.data.readers.fixed_length_records import FixedLengthRecordDataset
from estimatorkit.data.readers.tfrecords import TFRecordDataset
from estimatorkit.storage.records import TFRecordWriter

RECORDS = [
    b"",
    b"a",
    b"some record",
    bytes(range(256)),
    b"x" * 3000,
    *[b"%d" % n for n in range(50)],
]


def write(path: Path, records: list[bytes] = RECORDS, compression: str = "") -> str:
    with TFRecordWriter(path, compression) as writer:
        for record in records:
            writer.write(record)
    return str(path)


def rows(iterator: BlockIterator, size: int) -> list[bytes]:
    result: list[bytes] = []
    try:
        while True:
            result += iterator.next_block(size)[0].tolist()
    except tf.errors.OutOfRangeError:
        return result


def elements(dataset: Dataset, size: int = 7) -> list[bytes]:
    return rows(dataset.make_block_iterator(), size)


def open_files(folder: Path) -> int:
    return sum(each.path.startswith(str(folder)) for each in psutil.Process().open_files())


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_records_of_files_in_order(tmp_path: Path, compression: str, size: int) -> None:
    names = [write(tmp_path / name, RECORDS, compression) for name in "abc"]
    write(tmp_path / "b", [], compression)
    for buffer_size in (None, 1, 100):
        dataset = TFRecordDataset(names, compression, buffer_size)
        assert elements(dataset, size) == RECORDS * 2
    assert dataset.element_spec == tf.TensorSpec((), tf.string)
    assert open_files(tmp_path) == 0


def test_file_name_types(tmp_path: Path) -> None:
    name = write(tmp_path / "a")
    names = tf.data.Dataset.from_tensor_slices([name, name])
    for given_names in (tmp_path / "a", name, name.encode(), [name], (tmp_path / "a",), [[name]]):
        assert elements(TFRecordDataset(given_names)) == RECORDS
    assert elements(TFRecordDataset(names)) == RECORDS * 2
    assert elements(TFRecordDataset(filenames=[], num_parallel_reads=4)) == []
    with pytest.raises(TypeError, match="filenames"):
        TFRecordDataset(3)
    with pytest.raises(TypeError, match="are not names"):
        TFRecordDataset(tf.data.Dataset.range(3))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Unsupported compression_type: LZMA"):
        TFRecordDataset(name, "LZMA")


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_every_position_is_exact(tmp_path: Path, compression: str) -> None:
    names = [write(tmp_path / name, RECORDS[:6], compression) for name in "ab"]
    for filenames in (names, tf.data.Dataset.from_tensor_slices(names)):
        dataset = TFRecordDataset(filenames, compression)
        for taken in range(13):
            one, two = dataset.make_block_iterator(), dataset.make_block_iterator()
            for _ in range(taken):
                one.next_block(1)
            state = json.loads(json.dumps(one.get_state()))
            two.set_state(state)
            assert rows(two, 5) == (RECORDS[:6] * 2)[taken:]
            two.restart(1)
            assert two.skip(taken) == min(taken, 12)
            assert rows(two, 5) == (RECORDS[:6] * 2)[taken:]
            one.close()
    assert open_files(tmp_path) == 0


def test_restoring_position_seeks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = write(tmp_path / "a", [b"x" * 1000] * 1000)
    dataset = TFRecordDataset(name, buffer_size=4096)
    one = dataset.make_block_iterator()
    one.next_block(990)
    state = one.get_state()
    assert state["offset"] == 990 * 1016
    two = dataset.make_block_iterator()
    two.set_state(state)
    assert len(rows(two, 100)) == 10
    one.close()


@pytest.mark.parametrize("size", [1, 3, 100])
def test_damage_names_file_and_offset(tmp_path: Path, size: int) -> None:
    names = [write(tmp_path / name, [b"12345", b"67890", b"abc"]) for name in "ab"]
    data = bytearray((tmp_path / "a").read_bytes())
    good = bytes(data)
    for at, found, words in (
        (21 + 3, [b"12345"], "corrupted record at 21"),  # length
        (21 + 14, [b"12345"], "corrupted record at 21"),  # data
        (3, [], "corrupted record at 0"),
        (46, [b"12345", b"67890"], "corrupted record at 42"),
    ):
        (tmp_path / "a").write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        check_damage(TFRecordDataset(names), size, found, f"{words} in {names[0]}")
    (tmp_path / "a").write_bytes(good[:-1])
    check_damage(
        TFRecordDataset(names), size, [b"12345", b"67890"], f"truncated record at 42 in {names[0]}"
    )


def check_damage(dataset: Dataset, size: int, found: list[bytes], words: str) -> None:
    iterator = dataset.make_block_iterator()
    got: list[bytes] = []
    while len(got) < len(found):
        got += iterator.next_block(size)[0].tolist()
    assert got == found
    with pytest.raises(tf.errors.DataLossError, match=words):
        iterator.next_block(size)
    # the next call goes on with the next file
    assert rows(iterator, size) == [b"12345", b"67890", b"abc"]


def test_missing_and_other_files(tmp_path: Path) -> None:
    iterator = TFRecordDataset(tmp_path / "missing").make_block_iterator()
    with pytest.raises(tf.errors.NotFoundError, match="missing"):
        iterator.next_block(1)
    (tmp_path / "text").write_text("age,sex\n" * 10)
    for compression in ("", "GZIP"):
        iterator = TFRecordDataset(tmp_path / "text", compression).make_block_iterator()
        with pytest.raises(tf.errors.DataLossError, match=r"corrupted record at 0 in .*text"):
            iterator.next_block(1)
    assert open_files(tmp_path) == 0


def test_abandoned_iterator_closes_file(tmp_path: Path) -> None:
    name = write(tmp_path / "a")
    for make in (lambda: TFRecordDataset(name), lambda: FixedLengthRecordDataset(name, 1)):
        iterator = make().make_block_iterator()
        iterator.next_block(2)
        assert open_files(tmp_path) == 1
        iterator.close()
        assert open_files(tmp_path) == 0


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "GZIP": gzip.compress,
    "ZLIB": zlib.compress,
}


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(1, 9),
    st.integers(0, 5),
    st.integers(0, 5),
    st.integers(0, 30),
    st.sampled_from(list(COMPRESS)),
    st.integers(0, 40),
    st.integers(1, 40),
)
def test_fixed_length_records(
    tmp_path: Path,
    record: int,
    header: int,
    footer: int,
    count: int,
    compression: str,
    taken: int,
    size: int,
) -> None:
    body = bytes(range(250))[: record * count]
    count = len(body) // record
    body = body[: count * record]
    path = tmp_path / "file"
    path.write_bytes(COMPRESS[compression](b"h" * header + body + b"f" * footer))
    dataset = FixedLengthRecordDataset([path, path], record, header, footer, 3, compression or None)
    expected = [body[at : at + record] for at in range(0, len(body), record)] * 2
    iterator = dataset.make_block_iterator()
    assert iterator.skip(taken) == min(taken, 2 * count)
    other = dataset.make_block_iterator()
    other.set_state(json.loads(json.dumps(iterator.get_state())))
    assert rows(iterator, size) == rows(other, 4) == expected[taken:]


@pytest.mark.parametrize("compression", COMPRESS)
def test_partial_fixed_length_record_raises(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(COMPRESS[compression](b"hh" + b"12345" + b"f"))
    dataset = FixedLengthRecordDataset(path, 2, 2, 1, compression_type=compression)
    iterator = dataset.make_block_iterator()
    words = (
        rf"Excluding the header \(2 bytes\) and footer \(1 bytes\), input file \"{path}\" has body "
        r"length 5 bytes, which is not an exact multiple of the record length \(2 bytes\)"
    )
    if compression:  # how long it is shows at its end
        assert iterator.next_block(2)[0].tolist() == [b"12", b"34"]
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        iterator.next_block(1)
    path.write_bytes(COMPRESS[compression](b"h"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="body length -2 bytes"):
        dataset.make_block_iterator().next_block(1)


def test_fixed_length_argument_errors(tmp_path: Path) -> None:
    for arguments in ((0,), (1, -1), (1, 0, -1)):
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="_bytes"):
            FixedLengthRecordDataset(tmp_path / "file", *arguments)
    with pytest.raises(tf.errors.NotFoundError):
        FixedLengthRecordDataset(tmp_path / "no", 1).make_block_iterator().next_block(1)


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_written_dataset(compression: str | None, tmp_path: Path) -> None:
    source = write(tmp_path / "source")
    with tf.Graph().as_default(), tf.Session() as session:
        name = tf.placeholder(tf.string, [])
        writer = tf.data.experimental.TFRecordWriter(tmp_path / "target", compression)
        written = writer.write(tf.data.TFRecordDataset(name).repeat(2))
        assert written.type == "DatasetToTFRecord"
        assert written.outputs == ()
        session.run(written, {name: source})
    assert elements(TFRecordDataset(tmp_path / "target", compression)) == RECORDS * 2
    assert open_files(tmp_path) == 0
    with tf.Graph().as_default():
        for wrong in (tf.data.Dataset.range(3), tf.data.TFRecordDataset(source).batch(2)):
            with pytest.raises(TypeError, match="must produce scalar strings"):
                tf.data.experimental.TFRecordWriter("file").write(wrong)
        with pytest.raises(TypeError, match="must be a Dataset"):
            tf.data.experimental.TFRecordWriter("file").write([b"a"])


def test_computed_file_names(tmp_path: Path) -> None:
    """Of placeholders, and of the function given to interleave."""
    names = [write(tmp_path / name, [name.encode() * 2, b"end"]) for name in "ab"]
    (tmp_path / "fixed").write_bytes(b"012345")
    with tf.Graph().as_default(), tf.Session() as session:
        given = tf.placeholder(tf.string, [None])
        size = tf.placeholder(tf.int64, [])
        mixed = tf.data.Dataset.from_tensor_slices(names).interleave(
            lambda name: TFRecordDataset(name), cycle_length=2
        )
        fixed = FixedLengthRecordDataset(str(tmp_path / "fixed"), size)
        for dataset, feed, expected in (
            (TFRecordDataset(given), {given: names}, [b"aa", b"end", b"bb", b"end"]),
            (mixed, {}, [b"aa", b"bb", b"end", b"end"]),
            (fixed, {size: 2}, [b"01", b"23", b"45"]),
        ):
            iterator = dataset.make_initializable_iterator()
            element = iterator.get_next()
            session.run(iterator.initializer, feed)
            assert [session.run(element) for _ in expected] == expected
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(element)


# -- against TensorFlow

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/tfrecords.json").read_text("utf-8"))
# What TensorFlow says of a file that ends within a header: nothing.
STRICTER = {"cut in a header": (tf.errors.DataLossError, "truncated record at 16")}
# The words in which both agree.
WORDS = {
    "cut in data": "truncated record at 33",
    "another length": "corrupted record at 16",
    "other data": "corrupted record at ",
    "no records": "corrupted record at 0",
    "not whole": "Excluding the header (2 bytes) and footer (0 bytes), input file",
    "smaller than its header": "",
}


def check_golden(name: str, golden: Any, dataset: Dataset) -> None:
    iterator = dataset.make_block_iterator()
    elements = [bytes.fromhex(each) for each in golden["elements"]]
    got: list[bytes] = []
    while len(got) < len(elements):
        got += iterator.next_block(2)[0].tolist()
    assert got == elements
    error = golden["error"]
    with pytest.raises(tf.errors.OpError) as raised:
        iterator.next_block(1)
    if name in STRICTER:
        assert error is None
        kind, words = STRICTER[name]
    elif error is None:
        kind, words = tf.errors.OutOfRangeError, ""
    else:
        words = WORDS[name]
        assert words in error["first_line"]
        internal = error["class"] == "InternalError"  # "an implementation error", says TensorFlow
        kind = getattr(tf.errors, "InvalidArgumentError" if internal else error["class"])
    assert type(raised.value) is kind
    assert words in str(raised.value)


@pytest.mark.parametrize("name", GOLDEN["files"])
def test_tensorflow_files(name: str, tmp_path: Path) -> None:
    golden = GOLDEN["files"][name]
    (tmp_path / name).write_bytes(bytes.fromhex(golden["bytes"]))
    check_golden(name, golden, TFRecordDataset(tmp_path / name, golden["compression"]))


@pytest.mark.parametrize("name", GOLDEN["fixed"])
def test_fixed_length_records_match_tensorflow(name: str, tmp_path: Path) -> None:
    golden = GOLDEN["fixed"][name]
    (tmp_path / name).write_bytes(bytes.fromhex(golden["bytes"]))
    check_golden(name, golden, FixedLengthRecordDataset(tmp_path / name, **golden["arguments"]))


def test_tensorflow_examples(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes.fromhex(GOLDEN["examples"]["bytes"]))
    features = {
        "number": tf.FixedLenFeature([2], tf.int64),
        "measure": tf.FixedLenFeature([], tf.float32),
        "words": tf.VarLenFeature(tf.string),
        "none": tf.FixedLenFeature([], tf.string, "nothing"),
    }
    records = tf.data.TFRecordDataset(tmp_path / "file")
    batches = records.batch(5).map(lambda texts: tf.parse_example(texts, features))
    singles = records.map(lambda text: tf.parse_single_example(text, features))
    with tf.Graph().as_default(), tf.Session() as session:
        batch = batches.make_one_shot_iterator().get_next()
        single = singles.make_one_shot_iterator().get_next()
        for golden in GOLDEN["examples"]["batches"]:
            found = session.run(batch)
            assert found["number"].tolist() == golden["number"]
            assert found["measure"].tolist() == golden["measure"]
            assert found["none"].tolist() == [each.encode() for each in golden["none"]]
            assert found["words"].indices.tolist() == golden["indices"]
            assert found["words"].values.tolist() == [each.encode() for each in golden["words"]]
            assert found["words"].dense_shape.tolist() == golden["shape"]
            for row, number in enumerate(golden["number"]):
                one = session.run(single)
                assert one["number"].tolist() == number
                own = [each for place, each in golden["indices"] if place == row]
                assert one["words"].indices.reshape(-1).tolist() == own
                assert one["words"].dense_shape.tolist() == [len(own)]


@pytest.mark.parametrize("buffer_size", [16, 1 << 17])
def test_damage_after_skipped_records(buffer_size: int, tmp_path: Path) -> None:
    name = write(tmp_path / "file", [b"12345"] * 3)
    (tmp_path / "file").write_bytes((tmp_path / "file").read_bytes()[:-1])
    iterator = TFRecordDataset([name, name], buffer_size=buffer_size).make_block_iterator()
    assert iterator.skip(2) == 2
    with pytest.raises(tf.errors.DataLossError, match="truncated record at 42"):
        iterator.next_block(1)
    assert iterator.next_block(5)[0].tolist() == [b"12345"] * 2
