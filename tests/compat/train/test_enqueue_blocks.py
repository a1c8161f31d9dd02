"""The tests of `tests/train/test_enqueue_blocks.py` that need names of TensorFlow 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from tests.train.test_enqueue_blocks import filled, used


def lines_of(tmp_path: Path, lines: list[str]) -> Any:
    path = tmp_path / "lines.csv"
    path.write_text("".join(line + "\n" for line in lines))
    names = tf.train.string_input_producer([str(path)], num_epochs=1, shuffle=False)
    return tf.TextLineReader().read(names)[1]


def test_records_keep_order(tmp_path: Path) -> None:
    line = lines_of(tmp_path, [f"{row},{row / 2},word{row}" for row in range(200)])
    number, half, word = tf.decode_csv(line, [[0], [0.0], [""]])
    queue = tf.FIFOQueue(30, [tf.float32, tf.string], [[2], []])
    runner = filled(queue, [tf.stack([tf.cast(number, tf.float32), half]), word])
    taken = queue.dequeue_up_to(7)
    with tf.Session() as session:
        assert used(session, runner)
        session.run(tf.local_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        found: list[Any] = []
        while sum(len(words) for _, words in found) < 200:
            found.append(session.run(taken))
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(taken)
        coord.request_stop()
        coord.join(threads)
    numbers = np.concatenate([pair for pair, _ in found])
    np.testing.assert_array_equal(numbers[:, 0], np.arange(200))
    np.testing.assert_array_equal(numbers[:, 1], np.arange(200) / 2)
    assert [word for _, words in found for word in words] == [b"word%d" % n for n in range(200)]


def test_elements_before_error_arrive(tmp_path: Path) -> None:
    line = lines_of(tmp_path, ["1", "2", "three", "4"])
    (number,) = tf.decode_csv(line, [[0]])
    queue = tf.FIFOQueue(30, [tf.int32], [[]])
    runner = filled(queue, [number])
    with tf.Session() as session:
        assert used(session, runner)
        session.run(tf.local_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        coord.wait_for_stop()
        size = queue.size()
        assert session.run(size) == 2
        with pytest.raises(tf.errors.InvalidArgumentError, match="not a valid int32: three"):
            coord.join(threads)
