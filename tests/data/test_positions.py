"""A saved position belongs to its data: equal content resumes, other content starts at its first
row, whatever the kind of input and whatever comes after it.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pytest

import estimatorkit as tf
import estimatorkit as tf1
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.execution.checksums import PipelineChecksums, checksum
from estimatorkit.data.execution.cursor import Cursor
from estimatorkit.data.identity import identify
from estimatorkit.data.inputs import numpy_input_fn, pandas_input_fn
from estimatorkit.data.iterator_ops import iterator_states, restore_iterators
from estimatorkit.storage import gfile
from estimatorkit.storage.filesystem import FileStatistics
from tests.estimator import models
from tests.sweep import sweep
from tests.train.counting import Recorder

Rows: TypeAlias = list[int]
Make: TypeAlias = Callable[[Rows, Path], Any]

OLD, NEW = [1, 2, 3, 4, 5, 6], [100, 200, 300, 400, 500, 600]


def written(path: Path, content: bytes) -> str:
    """Writes a file, a second later than the last one."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)
        os.utime(path, ns=(before + 10**9, before + 10**9))
    return str(path)


def lines(rows: Rows, folder: Path) -> str:
    return written(folder / "lines", b"".join(b"%03d\n" % row for row in rows))


def slices(rows: Rows, folder: Path) -> Dataset:
    return Dataset.from_tensor_slices(np.array(rows))


def generated(rows: Rows, folder: Path) -> Dataset:
    return Dataset.from_generator(lambda: iter(rows), tf.int64, ())


def words(rows: Rows, folder: Path) -> Dataset:
    return Dataset.from_tensor_slices([str(row) for row in rows]).map(number)


def number(text: Any) -> Any:
    return tf.strings.to_number(text, tf.int64)


def text_file(rows: Rows, folder: Path) -> Dataset:
    return tf1.data.TextLineDataset(lines(rows, folder)).map(number)


def csv_file(rows: Rows, folder: Path) -> Dataset:
    file = lines(rows, folder)
    return tf1.data.experimental.CsvDataset(file, [tf.int64]).map(lambda row: row)


def records(rows: Rows, folder: Path) -> str:
    source = folder / "new.tfrecord"
    with tf1.io.TFRecordWriter(str(source)) as writer:
        for row in rows:
            writer.write(b"%03d" % row)
    return written(folder / "records", source.read_bytes())


def record_file(rows: Rows, folder: Path) -> Dataset:
    return tf1.data.TFRecordDataset(records(rows, folder)).map(number)


def listed_files(rows: Rows, folder: Path) -> Dataset:
    lines(rows, folder)
    names = Dataset.list_files(str(folder / "lin*"), shuffle=False)
    return names.flat_map(lambda name: tf1.data.TextLineDataset(name)).map(number)


def named_files(rows: Rows, folder: Path) -> Dataset:
    names = Dataset.from_tensor_slices([lines(rows, folder)]).repeat(2)
    return names.interleave(tf1.data.TextLineDataset, cycle_length=2).map(number)


def read_files(rows: Rows, folder: Path) -> Dataset:
    names = [written(folder / f"row{at}", b"%03d" % row) for at, row in enumerate(rows)]
    return Dataset.from_tensor_slices(names).map(tf.io.read_file).map(number)


def captured(rows: Rows, folder: Path) -> Dataset:
    held = tf.constant(np.array(rows))
    return Dataset.range(1).flat_map(lambda _: Dataset.from_tensor_slices(held))


SOURCES: dict[str, Make] = {
    "slices": slices,
    "tensors": lambda rows, _: Dataset.from_tensors(np.array(rows)).unbatch(),
    "words": words,
    "sparse": lambda rows, _: Dataset.from_tensor_slices(
        tf.SparseTensorValue([[at, 0] for at in range(6)], np.array(rows), [6, 1])
    ).map(lambda row: row.values[0]),
    "dict": lambda rows, _: Dataset.from_tensor_slices({"x": np.array(rows)}).map(lambda d: d["x"]),
    "frame": lambda rows, _: Dataset.from_tensor_slices(pd.DataFrame({"x": rows})).map(
        lambda d: d["x"]
    ),
    "generator": generated,
    "generator with arguments": lambda rows, _: Dataset.from_generator(
        lambda given: iter(given), tf.int64, (), args=(np.array(rows),)
    ),
    "text": text_file,
    "csv": csv_file,
    "records": record_file,
    "listed files": listed_files,
    "named files": named_files,
    "read files": read_files,
    "captured": captured,
    "generators in turn": lambda rows, folder: Dataset.range(2).interleave(
        lambda _: generated(rows, folder), cycle_length=2
    ),
}

OVER: dict[str, Callable[[Dataset], Dataset]] = {
    "alone": lambda data: data,
    "batch": lambda data: data.batch(1).map(lambda row: row[0]),
    "repeat": lambda data: data.repeat(),
    "shuffle": lambda data: data.shuffle(3, seed=1),
    "shuffle and repeat": lambda data: data.shuffle(10, seed=1).repeat(3),
    "cache": lambda data: data.cache().repeat(2),
    "prefetch": lambda data: data.prefetch(1),
    "zip": lambda data: Dataset.zip((data, Dataset.range(9))).map(lambda row, _: row),
    "concatenate": lambda data: Dataset.range(2).concatenate(data),
    "filter": lambda data: data.filter(lambda row: row > 0),
    "scan": lambda data: data.apply(
        tf1.data.experimental.scan(np.int64(0), lambda state, row: (state + row, row))
    ),
    "groups": lambda data: data.apply(
        tf1.data.experimental.group_by_window(lambda row: row % 2, lambda _, rows: rows, 2)
    ),
    "windows": lambda data: data.window(2).flat_map(lambda rows: rows),
    "choice": lambda data: Dataset.choose_from_datasets(
        [data, Dataset.range(9)], Dataset.from_tensors(np.int64(0)).repeat()
    ),
}


def read(data: Dataset, count: int, saved: Any = None) -> tuple[Rows, Any]:
    """Reads elements in a new session, from a saved position; returns the position, too."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        session.graph.seed = 5
        cursor = Cursor(data, 5, session.state)
        if saved is not None:
            cursor.set_state(saved)
        found = [int(cursor.next_element()[0]) for _ in range(count)]
        saved = json.loads(json.dumps(cursor.get_state()))
        cursor.close()
    return found, saved


CASES = [
    pytest.param(source, over, id=f"{source}, {over}")
    for source in SOURCES
    for over in OVER
    if source in ("slices", "generator", "text") or over in ("alone", "shuffle and repeat")
]


@sweep(("source", "over"), CASES, quick=6)
def test_position_applies_to_same_content_only(source: str, over: str, tmp_path: Path) -> None:
    def data(rows: Rows) -> Dataset:
        return OVER[over](SOURCES[source](rows, tmp_path))

    whole, _ = read(data(OLD), 6)
    first, saved = read(data(OLD), 3)
    again, later = read(data(OLD), 2, saved)
    rest, _ = read(data(OLD), 1, later)
    assert first + again + rest == whole
    changed, _ = read(data(NEW), 6)
    assert read(data(NEW), 6, saved)[0] == changed
    assert read(data(NEW), 6, later)[0] == changed


CHANGED: dict[str, Callable[[Dataset], Dataset]] = {
    "batch size": lambda data: data.batch(2).map(lambda rows: rows[0]),
    "function": lambda data: data.map(lambda row: row - 1),
    "seed": lambda data: data.shuffle(6, seed=2),
    "count": lambda data: data.repeat(3),
    "prefetched": lambda data: data.prefetch(2),
}
SAME: dict[str, Callable[[Dataset], Dataset]] = {
    "batch size": lambda data: data.batch(1).map(lambda rows: rows[0]),
    "function": lambda data: data.map(lambda row: row + 1),
    "seed": lambda data: data.shuffle(6, seed=1),
    "count": lambda data: data.repeat(2),
    "prefetched": lambda data: data,
}


@pytest.mark.parametrize("what", CHANGED)
def test_other_pipeline_starts_at_first_row(
    what: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _, saved = read(SAME[what](slices(OLD, tmp_path)), 2)
    changed = CHANGED[what](slices(OLD, tmp_path))
    with caplog.at_level(logging.INFO, "estimatorkit"):
        assert read(changed, 2, saved)[0] == read(changed, 2)[0]
    [line] = [record.getMessage() for record in caplog.records]
    assert line == (
        "The input restarts from the beginning: the saved position belongs to another pipeline."
    )


def test_appended_rows_are_other_content(tmp_path: Path) -> None:
    _, saved = read(slices(OLD, tmp_path), 2)
    assert read(slices([*OLD, 7], tmp_path), 2, saved)[0] == [1, 2]
    assert read(slices([1, 2, 3, 4, 5, 7], tmp_path), 2, saved)[0] == [1, 2]


def test_changed_stream_loses_nothing() -> None:
    """What is read to recognize a generator is used."""
    stream = itertools.count()
    data = Dataset.from_generator(lambda: stream, tf.int64, ())
    first, saved = read(data, 3)
    assert first == [0, 1, 2]
    rest = next(stream)
    found, _ = read(data, 3, saved)
    assert found == [rest + 1, rest + 2, rest + 3]


def test_functions_are_compared_by_computation() -> None:
    """Not by names, seeds or addresses, nor by counters: those differ between sessions."""

    def made(scale: int, before: int = 0) -> Any:
        with tf1.Graph().as_default():
            for _ in range(before):
                tf.constant(1)
            calls = before

            def scaled(y: Any) -> Any:
                nonlocal calls
                calls += 1
                return y * 2

            data = Dataset.range(9).map(lambda x: tf.py_func(scaled, [x], tf.int64))
            data = data.map(lambda x: x + tf.random.uniform([], 0, 1, tf.int64))
            return identify(
                data.filter(lambda x: tf.cond(x > scale, lambda: True, lambda: x < 0))._plan
            )

    assert made(2) == made(2, before=3)
    assert made(2) != made(3)


def test_checksums_distinguish_values() -> None:
    values: list[Any] = [
        np.int32(1), np.int64(1), [np.int64(1)], np.zeros([2, 3]), np.zeros([3, 2]), b"ab",
        np.array([b"a", b"b"], object), np.array([b"", b"ab"], object), np.zeros([0, 3]),
        tf.SparseTensorValue([[0]], [1], [2]), tf.SparseTensorValue([[1]], [1], [2]),
    ]  # fmt: skip
    found = [checksum(value) for value in values]
    assert len(set(found)) == len(values)
    assert found == [checksum(value) for value in values]
    assert checksum(np.arange(6)[::2]) == checksum(np.array([0, 2, 4]))


def test_remote_files_are_checked_concurrently(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes a round trip, which a training of thousands of files cannot await in turn."""
    together = threading.Barrier(4)
    sizes = {f"memory://remote/{number}": number for number in range(8)}

    def stat(name: Any) -> Any:
        together.wait(60)
        return FileStatistics(sizes[os.fsdecode(name)], 1, False)

    monkeypatch.setattr(gfile, "stat", stat)
    dataset = tf.data.TFRecordDataset(list(sizes))
    found = identify(dataset._plan)
    assert identify(dataset._plan) == found
    sizes["memory://remote/7"] = 100
    other = identify(dataset._plan)
    assert other.pipeline == found.pipeline
    assert other.content != found.content


def test_fingerprints_are_small() -> None:
    pipeline = PipelineChecksums()
    checksums = pipeline.of_generator("0")
    for row in range(100_000):
        checksums.read([np.int64(row)])
    assert len(json.dumps(pipeline.get_state())) < 500


# -- initializers


def test_explicit_initializer_starts_at_first_element(tmp_path: Path) -> None:
    """In TensorFlow, too; with the same rows as well as with others."""
    with tf1.Graph().as_default():
        rows = tf1.placeholder(tf.int64, [None])
        iterator = Dataset.from_tensor_slices(rows).make_initializable_iterator()
        element, _ = iterator.get_next(), tf1.get_variable("v", initializer=0.0)
        saver = tf1.train.Saver()
        with tf1.Session() as session:
            session.run([iterator.initializer, tf1.global_variables_initializer()], {rows: OLD})
            session.run(element)
            session.run(element)
            path = saver.save(session, str(tmp_path / "model"))
        for given in (OLD, NEW):
            with tf1.Session() as session:
                saver.restore(session, path)
                session.run(iterator.initializer, {rows: given})
                assert session.run(element) == given[0]
            with tf1.Session() as session:  # an initialized one goes on where it belongs
                session.run(iterator.initializer, {rows: given})
                saver.restore(session, path)
                assert session.run(element) == (3 if given is OLD else 100)


def test_iterators_of_several_datasets() -> None:
    """A reinitializable iterator, and iterators behind a handle, have the position of what they
    read.
    """
    with tf1.Graph().as_default():
        old, new = slices(OLD, Path()), slices(NEW, Path())
        iterator = tf1.data.Iterator.from_structure(tf.int64, [])
        element = iterator.get_next()
        starts = [iterator.make_initializer(each) for each in (old, new)]
        inner = old.make_one_shot_iterator()
        handle = tf1.placeholder(tf.string, [])
        fed = tf1.data.Iterator.from_string_handle(handle, tf.int64, []).get_next()
        named = inner.string_handle()
        with tf1.Session() as session:
            session.run(starts[0])
            for _ in range(2):
                session.run([element, fed], {handle: session.run(named)})
            saved = json.loads(json.dumps(iterator_states(session.state)))
        for start, expected in zip(starts, (3, 100), strict=True):
            with tf1.Session() as session:
                session.run(start)
                restore_iterators(session.state, saved)
                feed = {handle: session.run(named)}
                assert session.run([element, fed], feed) == [expected, 3]


# -- trainings


def fed_rows(rows: Rows, folder: Path) -> Any:
    return numpy_input_fn(np.array(rows), batch_size=1, shuffle=False)


def framed_rows(rows: Rows, folder: Path) -> Any:
    given = pandas_input_fn(pd.DataFrame({"x": rows}), batch_size=1, shuffle=False)
    return lambda: given()["x"]


def initialized_rows(rows: Rows, folder: Path) -> Any:
    def input_fn() -> Any:
        iterator = slices(rows, folder).batch(1).make_initializable_iterator()
        tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        return iterator.get_next()

    return input_fn


INPUTS: dict[str, Callable[[Rows, Path], Callable[[], Any]]] = {
    **{
        name: lambda rows, folder, make=make: lambda: make(rows, folder).batch(1)  # type: ignore[misc]
        for name, make in SOURCES.items()
        if name in ("slices", "generator", "text", "records")
    },
    "numpy_input_fn": fed_rows,
    "pandas_input_fn": framed_rows,
    "initializer of the training": initialized_rows,
}


@sweep(
    ("name", "renewed"), [(name, renewed) for name in INPUTS for renewed in (False, True)], quick=3
)
def test_retraining_on_new_rows_starts_at_first(
    name: str, renewed: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    estimator = models.adder(tmp_path / "model", 1000)

    def train(rows: Rows) -> list[float]:
        recorder = Recorder()
        one = models.adder(tmp_path / "model", 1000) if renewed else estimator
        one.train(INPUTS[name](rows, tmp_path), [recorder], steps=2)
        return recorder.losses

    assert train(OLD) + train(OLD) == [1, 2, 3, 4]
    with caplog.at_level(logging.INFO, "estimatorkit"):
        assert train(NEW) + train(NEW) == [100, 200, 300, 400]
    said = [text for text in caplog.messages if "restarts from the beginning" in text]
    assert said == [
        "The input restarts from the beginning: the saved position belongs to other data."
    ]


def test_train_and_evaluate_on_new_rows(tmp_path: Path) -> None:
    seen = Recorder()
    for steps, rows in ((2, OLD), (4, OLD), (6, NEW)):
        tf.estimator.train_and_evaluate(
            models.adder(tmp_path / "model", 1000),
            tf.estimator.TrainSpec(INPUTS["slices"](rows, tmp_path), steps, [seen]),
            tf.estimator.EvalSpec(INPUTS["slices"](rows, tmp_path), steps=1),
        )
    assert seen.losses == [1, 2, 3, 4, 100, 200]
