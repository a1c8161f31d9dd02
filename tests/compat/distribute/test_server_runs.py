"""The tests of `tests/distribute/test_server_runs.py` that need names of TensorFlow 1."""

from __future__ import annotations

import pytest

import estimatorkit as tf
from tests.distribute.conftest import Running
from tests.distribute.test_server_runs import PS, WORKERS

pytestmark = pytest.mark.multiprocess


def test_queue_runners_fill_remote_queues(running: Running) -> None:
    with tf.device(WORKERS[0]):
        number = tf.train.range_input_producer(7, num_epochs=1, shuffle=False).dequeue()
    with tf.device(PS[1]):
        batch = tf.train.batch([number], 3, allow_smaller_final_batch=True)
    with tf.Session(running.master) as session:
        session.run(tf.local_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        assert [session.run(batch).tolist() for _ in range(3)] == [[0, 1, 2], [3, 4, 5], [6]]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(batch)
        coord.request_stop()
        coord.join(threads)
