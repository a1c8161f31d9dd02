"""The tests of `tests/train/test_coordinator.py` that need names of TensorFlow 1."""

from __future__ import annotations

import estimatorkit as tf
from tests.train.test_coordinator import session

__all__ = ["session"]


def test_monitored_sessions_start_queue_runners() -> None:
    with tf.Graph().as_default():
        value = tf.train.range_input_producer(3, shuffle=False, num_epochs=1).dequeue()
        with tf.train.SingularMonitoredSession() as session:
            assert tf.train.start_queue_runners(session, tf.train.Coordinator()) == []
            assert session.run(value) == 0
