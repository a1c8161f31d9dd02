"""Queue runners enqueue blocks of elements; programs notice only the speed."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

import estimatorkit as tf
from estimatorkit.runtime.steps import batched_executor
from estimatorkit.train.queues.enqueue_blocks import EnqueueBlocks


def filled(queue: Any, element: Any) -> tf.train.QueueRunner:
    runner = tf.train.QueueRunner(queue, [queue.enqueue(element)])
    tf.train.add_queue_runner(runner)
    return runner


def used(session: Any, runner: Any) -> bool:
    return EnqueueBlocks.of(session, runner.enqueue_ops[0]) is not None


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


def test_one_executable_for_the_first_element_and_a_full_queue() -> None:
    source = tf.FIFOQueue(100, [tf.float32], [[3]])
    queue = tf.FIFOQueue(100, [tf.float32], [[3]])
    enqueue = queue.enqueue(tf.exp(source.dequeue()))
    rows = np.arange(3 * 40, dtype=np.float32).reshape(40, 3) / 100
    taken = queue.dequeue_many(40)
    with tf.Session() as session:
        blocks = EnqueueBlocks.of(session, enqueue)
        assert blocks is not None
        for part, count in ((rows[:1], 1), (rows[1:], 2)):
            session.run(source.enqueue_many([part]))
            for _ in range(count):
                blocks()
        np.testing.assert_allclose(session.run(taken), np.exp(rows), rtol=1e-6)
        assert session.state.compilations["dataset function"] == 1


def test_small_blocks_get_their_own_executable_if_there_are_many() -> None:
    source = tf.FIFOQueue(100, [tf.float32], [[]])
    queue = tf.FIFOQueue(100, [tf.float32], [[]])
    enqueue = queue.enqueue(source.dequeue() + 1.0)
    with tf.Session() as session:
        blocks = EnqueueBlocks.of(session, enqueue)
        assert blocks is not None
        for calls, compiled in ((batched_executor.FEW_CALLS, 1), (2, 2)):
            for _ in range(calls):
                session.run(source.enqueue(1.0))
                blocks()
                assert session.run(queue.dequeue()) == 2.0
            assert session.state.compilations["dataset function"] == compiled
