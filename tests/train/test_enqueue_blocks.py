"""Queue runners enqueue blocks of elements; programs notice only the speed."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.train.queues.enqueue_blocks import EnqueueBlocks


def filled(queue: Any, element: Any) -> tf.train.QueueRunner:
    runner = tf.train.QueueRunner(queue, [queue.enqueue(element)])
    tf.train.add_queue_runner(runner)
    return runner


def used(session: Any, runner: Any) -> bool:
    return EnqueueBlocks.of(session, runner.enqueue_ops[0]) is not None


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


def test_block_does_not_wait_for_missing_elements() -> None:
    source = tf.FIFOQueue(100, [tf.int64], [[]])
    queue = tf.FIFOQueue(100, [tf.int64], [[]])
    runner = tf.train.QueueRunner(queue, [queue.enqueue(source.dequeue() * 2)] * 3)
    tf.train.add_queue_runner(runner)
    give = source.enqueue_many([np.arange(10)])
    taken, close = queue.dequeue_many(10), source.close()
    with tf.Session() as session:
        assert used(session, runner)
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        for _ in range(3):  # the source stays open, with fewer elements than a block has
            session.run(give)
            assert sorted(session.run(taken)) == [2 * n for n in range(10)]
        session.run(close)
        coord.request_stop()
        coord.join(threads)


def test_elements_of_any_shape() -> None:
    source = tf.FIFOQueue(100, [tf.int64], [[]])
    queue = tf.FIFOQueue(100, [tf.float32])
    runner = filled(queue, [tf.fill([source.dequeue()], 0.5)])
    give = source.enqueue_many([np.arange(1, 6)])
    taken, close = queue.dequeue(), source.close()
    with tf.Session() as session:
        assert used(session, runner)
        coord = tf.train.Coordinator()
        session.run(give)
        threads = tf.train.start_queue_runners(session, coord)
        assert [session.run(taken).tolist() for _ in range(5)] == [[0.5] * n for n in range(1, 6)]
        session.run(close)
        coord.request_stop()
        coord.join(threads)


def test_random_numbers_of_threads_differ() -> None:
    source = tf.FIFOQueue(500, [tf.int64], [[]])
    queue = tf.FIFOQueue(500, [tf.float32], [[]])
    drawn = tf.random_uniform([], seed=5) + tf.cast(source.dequeue(), tf.float32) * 0
    runner = tf.train.QueueRunner(queue, [queue.enqueue(drawn)] * 4)
    tf.train.add_queue_runner(runner)
    give, taken = source.enqueue_many([np.zeros(300, np.int64)]), queue.dequeue_many(300)
    close = source.close()
    with tf.Session() as session:
        assert used(session, runner)
        session.run(give)
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        assert len(set(session.run(taken).tolist())) > 290
        session.run(close)
        coord.request_stop()
        coord.join(threads)


def test_stateful_operations_run_per_element() -> None:
    source = tf.FIFOQueue(100, [tf.int64], [[]])
    queue = tf.FIFOQueue(100, [tf.int64], [[]])
    seen: list[int] = []
    lock = threading.Lock()

    def note(value: Any) -> Any:
        with lock:
            seen.append(int(value))
        return value

    element = source.dequeue()
    variable = tf.get_variable("v", initializer=np.int64(1))
    noted = filled(queue, [tf.py_func(note, [element], tf.int64)])
    read = filled(queue, [element + variable])
    own = filled(queue, [tf.constant(1, tf.int64)])
    fed = filled(queue, [element + tf.placeholder(tf.int64, [])])
    with tf.Session() as session:
        assert not any(used(session, runner) for runner in (noted, read, own, fed))
