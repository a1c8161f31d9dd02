"""Closed or dropped iterators leave no thread and no open file."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import estimatorkit as tf
from tests.threads import StartedThreads

Dataset = tf.data.Dataset
ROWS = 400  # of a file: more than is read at once


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("files")
    names = []
    for number in range(3):
        name = str(folder / f"{number}.csv")
        Path(name).write_text("".join(f"{row},{row * 0.5}\n" for row in range(ROWS)))
        names.append(name)
        with tf.io.TFRecordWriter(f"{name}.records") as writer:
            for row in range(ROWS):
                writer.write(str(row).encode() * 50)
    return names


def _generate() -> Iterator[int]:
    yield from range(ROWS)


def _failing() -> Iterator[int]:
    yield from range(5)
    raise KeyError("the third column")


PIPELINES: dict[str, Callable[[list[str], Path], Any]] = {
    "lines": lambda files, folder: tf.data.TextLineDataset(files),
    "records": lambda files, folder: tf.data.TFRecordDataset([f"{name}.records" for name in files]),
    "fixed records": lambda files, folder: tf.data.FixedLengthRecordDataset(files, 10),
    "csv": lambda files, folder: tf.data.experimental.CsvDataset(files, [0, 0.0]),
    "batches of csv": lambda files, folder: tf.data.experimental.make_csv_dataset(
        files, 4, column_names=["a", "b"], header=False, shuffle_buffer_size=9
    ),
    "lines, shuffled": lambda files, folder: tf.data.TextLineDataset(files).shuffle(50).repeat(),
    "lines in turns": lambda files, folder: Dataset.from_tensor_slices(files).interleave(
        tf.data.TextLineDataset, cycle_length=2
    ),
    "records one after the other": lambda files, folder: Dataset.from_tensor_slices(files).flat_map(
        lambda name: tf.data.TFRecordDataset(name + ".records").prefetch(2)
    ),
    "lines, prefetched": lambda files, folder: tf.data.TextLineDataset(files).batch(3).prefetch(2),
    "zipped": lambda files, folder: Dataset.zip(
        (tf.data.TextLineDataset(files).prefetch(2), Dataset.from_generator(_generate, tf.int64))
    ).prefetch(3),
    "chosen": lambda files, folder: Dataset.sample_from_datasets(
        [tf.data.TextLineDataset(name).prefetch(1) for name in files]
    ),
    "windows": lambda files, folder: (
        tf.data.TextLineDataset(files).window(5).flat_map(lambda rows: rows.batch(2).prefetch(1))
    ),
    "groups": lambda files, folder: (
        Dataset.from_generator(_generate, tf.int64)
        .prefetch(2)
        .group_by_window(lambda x: x % 2, lambda key, rows: rows.batch(3).prefetch(1), 9)
    ),
    "cached in memory": lambda files, folder: tf.data.TextLineDataset(files).cache().repeat(),
    "a cache file that is written": lambda files, folder: (
        tf.data.TextLineDataset(files).prefetch(4).cache(str(folder / "half"))
    ),
    "a cache file that is read": lambda files, folder: _cached(folder).prefetch(1),
    "a generator that fails": lambda files, folder: (
        Dataset.from_generator(_failing, tf.int64).prefetch(2).batch(2)
    ),
}


def _cached(folder: Path) -> Any:
    dataset = Dataset.range(ROWS).map(lambda x: x * 2).batch(7).cache(str(folder / "whole"))
    assert len(list(dataset)) == -(-ROWS // 7)
    return dataset


def _open_files() -> set[str]:
    return {file.path for file in psutil.Process().open_files()}


def _left(threads: StartedThreads, files: set[str]) -> tuple[list[str], set[str]]:
    """Which threads and open files, besides `files`, are left once those of dropped iterators had
    the time to end.
    """
    end = time.monotonic() + 5
    while True:
        gc.collect()
        left = threads.running("estimatorkit"), _open_files() - files
        if left == ([], set()) or time.monotonic() > end:
            return left
        time.sleep(0.005)


def _closed(dataset: Any) -> None:
    iterator = dataset.make_block_iterator()
    iterator.next_block(3)
    iterator.close()
    iterator.close()


def _dropped(dataset: Any) -> None:
    dataset.make_block_iterator().next_block(3)


def _left_in_a_loop(dataset: Any) -> None:
    for number, _ in enumerate(dataset):
        if number == 1:
            break


def _restored(dataset: Any) -> None:
    iterator = dataset.make_block_iterator()
    iterator.next_block(1)
    state = iterator.get_state()
    iterator.set_state(state)
    iterator.next_block(1)
    iterator.restart(1)
    iterator.next_block(2)
    iterator.close()


def _in_a_session(dataset: Any) -> None:
    iterator = tf.data.make_initializable_iterator(dataset)
    element = iterator.get_next()
    with tf.Session() as session:
        for _ in range(2):
            session.run(iterator.initializer)
            session.run(element)


def _in_a_session_with_an_error(dataset: Any) -> None:
    element = dataset.make_one_shot_iterator().get_next()

    def run() -> None:
        with tf.Session() as session:
            session.run(element)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run()


WAYS = [_closed, _dropped, _left_in_a_loop, _restored, _in_a_session, _in_a_session_with_an_error]


@pytest.mark.slow
@pytest.mark.parametrize("name", PIPELINES)
def test_nothing_is_left_behind(name: str, files: list[str], tmp_path: Path) -> None:
    for way in WAYS:
        with tf.Graph().as_default():
            dataset = PIPELINES[name](files, tmp_path)
            threads, before = StartedThreads(), _open_files()
            way(dataset)
            assert _left(threads, before) == ([], set()), way
            assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []


@pytest.mark.slow
def test_generator_is_closed_with_iterator() -> None:
    ended = []

    def generate() -> Iterator[int]:
        try:
            yield from range(100)
        finally:
            ended.append(True)

    dataset = Dataset.from_generator(generate, tf.int64).batch(2).prefetch(2)
    for count, way in enumerate(WAYS, 1):
        with tf.Graph().as_default():
            way(dataset)
        gc.collect()
        end = time.monotonic() + 5
        while len(ended) < count and time.monotonic() < end:
            time.sleep(0.005)
        assert len(ended) >= count, way


@pytest.mark.slow
def test_dropped_iterators_release_arrays(threads: StartedThreads) -> None:
    rows = np.zeros([10, 2])
    dataset = Dataset.from_tensor_slices(rows).batch(2).prefetch(1)
    _dropped(dataset)
    _in_a_session(dataset)
    del dataset
    tf.reset_default_graph()
    gc.collect()
    assert threads.have_ended("estimatorkit")
