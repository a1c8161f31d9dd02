"""Input that is empty, ends mid-batch, or fails: what the caller sees."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core.errors import InvalidArgumentError, OutOfRangeError
from tests.threads import StartedThreads

Dataset = tf.data.Dataset


def _nothing() -> Iterator[int]:
    return iter(())


EMPTY: dict[str, Callable[[Path], Any]] = {
    "range": lambda folder: Dataset.range(0),
    "slices": lambda folder: Dataset.from_tensor_slices(np.zeros([0, 3])),
    "generator": lambda folder: Dataset.from_generator(_nothing, tf.int64),
    "lines": lambda folder: tf.data.TextLineDataset(_file(folder)),
    "records": lambda folder: tf.data.TFRecordDataset(_file(folder)),
    "map": lambda folder: Dataset.range(0).map(lambda x: x + 1),
    "filter": lambda folder: Dataset.range(9).filter(lambda x: x > 10),
    "batch": lambda folder: Dataset.range(0).batch(2),
    "padded batch": lambda folder: Dataset.range(0).map(lambda x: tf.fill([x], x)).padded_batch(2),
    "dropped batch": lambda folder: Dataset.range(3).batch(4, drop_remainder=True),
    "shuffle": lambda folder: Dataset.range(0).shuffle(4),
    "repeat": lambda folder: Dataset.range(0).repeat(),
    "prefetch": lambda folder: Dataset.range(0).prefetch(2),
    "cache": lambda folder: Dataset.range(0).cache().repeat(2),
    "cache in a file": lambda folder: Dataset.range(0).cache(str(folder / "cache")).repeat(2),
    "flat_map": lambda folder: Dataset.range(3).flat_map(lambda x: Dataset.range(0)),
    "interleave": lambda folder: Dataset.range(0).interleave(Dataset.range, 3),
    "window": lambda folder: Dataset.range(0).window(3).flat_map(lambda w: w),
    "groups": lambda folder: Dataset.range(0).group_by_window(
        lambda x: x, lambda key, rows: rows.batch(2), 2
    ),
    "unbatch": lambda folder: Dataset.from_tensors(np.zeros([0, 2])).unbatch(),
    "scan": lambda folder: Dataset.range(0).scan(np.int64(0), lambda s, x: (s, x)),
    "zip": lambda folder: Dataset.zip((Dataset.range(0), Dataset.range(5))),
    "concatenate": lambda folder: Dataset.range(0).concatenate(Dataset.range(0)),
    "choose": lambda folder: Dataset.choose_from_datasets(
        [Dataset.range(0), Dataset.range(0)], Dataset.range(2).repeat()
    ),
    "sample": lambda folder: Dataset.sample_from_datasets([Dataset.range(0), Dataset.range(0)]),
    "ignored": lambda folder: (
        Dataset.from_tensor_slices(["x", "y"]).map(tf.string_to_number).ignore_errors()
    ),
}


def _file(folder: Path) -> str:
    path = folder / "empty"
    path.write_bytes(b"")
    return str(path)


@pytest.mark.parametrize("name", EMPTY)
def test_empty_dataset_ends_at_once(name: str, tmp_path: Path) -> None:
    dataset = EMPTY[name](tmp_path)
    assert list(dataset) == []
    iterator = dataset.make_block_iterator()
    for _ in range(2):
        with pytest.raises(OutOfRangeError, match="End of sequence"):
            iterator.next_block(3)
        assert iterator.skip(2) == 0
        iterator.set_state(iterator.get_state())
        iterator.restart(1)
    iterator.close()
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session, pytest.raises(OutOfRangeError, match="End of sequence"):
        session.run(element)


@pytest.mark.parametrize(("drop_remainder", "rows"), [(False, 10), (True, 8)])
@pytest.mark.parametrize("padded", [False, True])
def test_smaller_last_batch_counts_as_such(drop_remainder: bool, rows: int, padded: bool) -> None:
    numbers = Dataset.range(10).map(lambda x: tf.cast(x, tf.float32))
    batches = (
        numbers.padded_batch(4, [], drop_remainder=drop_remainder)
        if padded
        else numbers.batch(4, drop_remainder)
    )
    element = batches.make_one_shot_iterator().get_next()
    assert element.shape.as_list() == [4 if drop_remainder else None]
    mean, update = tf.metrics.mean(element)
    sizes = []
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        while True:
            try:
                sizes.append(len(session.run([element, update])[0]))
            except OutOfRangeError:
                break
        assert sizes == [4, 4, 2][: -(-rows // 4)]
        assert session.run(mean) == np.mean(np.arange(rows))


def _breaks() -> Iterator[Any]:
    for number in range(20):
        if number == 15:
            raise KeyError("the third column")
        yield [float(number)], [2.0 * number]


def _pairs() -> Any:
    return Dataset.from_generator(_breaks, (tf.float32, tf.float32), ([1], [1]))


def _names(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


PREFETCHED: dict[str, Callable[[Any], Any]] = {
    "alone": lambda pairs: pairs.prefetch(3),
    "map": lambda pairs: pairs.prefetch(3).map(lambda x, y: x + y),
    "batch": lambda pairs: pairs.prefetch(3).batch(4, drop_remainder=True),
    "padded batch": lambda pairs: pairs.padded_batch(4).prefetch(1),
    "batch of batches": lambda pairs: pairs.batch(2).prefetch(2).batch(2, drop_remainder=True),
    "shuffle": lambda pairs: pairs.prefetch(2).shuffle(30),
    "repeat": lambda pairs: pairs.prefetch(2).repeat(),
    "take": lambda pairs: pairs.prefetch(2).take(18),
    "zip": lambda pairs: Dataset.zip((Dataset.range(99), pairs.prefetch(2))).prefetch(1),
    "concatenate": lambda pairs: pairs.prefetch(2).concatenate(pairs),
    "interleave": lambda pairs: Dataset.range(2).interleave(lambda x: pairs.prefetch(2), 2),
    "windows": lambda pairs: (
        pairs.prefetch(2).map(lambda x, y: x).window(4).flat_map(lambda w: w.batch(4))
    ),
    "cache": lambda pairs: pairs.prefetch(2).cache().prefetch(1),
    "choose": lambda pairs: Dataset.choose_from_datasets(
        [pairs.prefetch(2), pairs.take(3)], Dataset.range(2).repeat(), stop_on_empty_dataset=False
    ),
    "ignore_errors": lambda pairs: pairs.prefetch(2).ignore_errors(),
}


@pytest.mark.parametrize("name", PREFETCHED)
@pytest.mark.parametrize("size", [1, 64])
def test_generator_error_reaches_caller(name: str, size: int, threads: StartedThreads) -> None:
    iterator = PREFETCHED[name](_pairs()).make_block_iterator()

    def read() -> None:
        for _ in range(100):
            iterator.next_block(size)

    with pytest.raises(KeyError, match="the third column") as caught:
        read()
    assert "_breaks" in _names(caught.value)
    iterator.close()
    assert not threads.running("estimatorkit")


def test_background_errors_name_user_line() -> None:
    numbers = Dataset.from_tensor_slices(["1", "x"]).map(tf.string_to_number)  # here
    element = numbers.prefetch(1).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run(element) == 1
        with pytest.raises(InvalidArgumentError, match=r"(?s)StringToNumber.*test_bad_input"):
            session.run(element)
        with pytest.raises(OutOfRangeError):
            session.run(element)


def test_failing_input_saves_progress(tmp_path: Path) -> None:
    def model(features: Any, labels: Any, mode: str) -> Any:
        weight = tf.get_variable("weight", initializer=0.0)
        seen = tf.get_variable("seen", initializer=0.0, trainable=False)
        loss = tf.reduce_mean(tf.square(features * weight - labels))
        step = tf.train.get_or_create_global_step()
        with tf.control_dependencies([seen.assign_add(tf.reduce_sum(features))]):
            train = tf.train.GradientDescentOptimizer(1e-4).minimize(loss, step)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    broken = [True]

    def rows() -> Iterator[Any]:
        for number, pair in enumerate(_breaks() if broken else ((x, [2 * x[0]]) for x in _whole())):
            assert number < 20
            yield pair

    def input_fn() -> Any:
        made = Dataset.from_generator(rows, (tf.float32, tf.float32), ([1], [1]))
        return made.batch(2).prefetch(1)

    config = tf.estimator.RunConfig(save_checkpoints_steps=3)
    estimator = tf.estimator.Estimator(model, str(tmp_path), config)
    with pytest.raises(KeyError, match="the third column") as caught:
        estimator.train(input_fn)
    assert "_breaks" in _names(caught.value)
    # Seven whole batches came before the row that fails.
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-7")
    assert estimator.get_variable_value("seen") == sum(range(14))
    broken.clear()
    estimator.train(input_fn)  # goes on behind what the checkpoint has seen
    assert estimator.get_variable_value("global_step") == 10
    assert estimator.get_variable_value("seen") == sum(range(20))


def _whole() -> Iterator[list[float]]:
    return ([float(number)] for number in range(20))
