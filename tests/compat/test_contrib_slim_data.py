"""`slim.prefetch_queue`: batches that threads make ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf


def test_batches_in_order() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        numbers = tf.train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
        batch = tf.train.batch([numbers, numbers * 2], batch_size=2)
        queue = tf.contrib.slim.prefetch_queue.prefetch_queue(batch, capacity=4)
        one, two = queue.dequeue()
        (summary,) = tf.get_collection(tf.GraphKeys.SUMMARIES)[-1:]
        assert summary.op.name == "prefetch_queue/fraction_of_4_full"
        assert one.shape.as_list() == [2]
        session.run(tf.local_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        found: list[Any] = [session.run([one, two]) for _ in range(3)]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(one)
        coord.request_stop()
        coord.join(threads)
    assert np.array(found).tolist() == [[[k, k + 1], [2 * k, 2 * k + 2]] for k in (0, 2, 4)]


def test_dicts_and_padding() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        count = tf.train.input_producer([2, 3], num_epochs=1, shuffle=False).dequeue()
        values = {"values": tf.ones(tf.expand_dims(count, 0)), "count": count}
        values["values"].set_shape([None])
        queue = tf.contrib.slim.prefetch_queue.prefetch_queue(values, dynamic_pad=True)
        found = queue.dequeue_many(2)
        session.run(tf.local_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        both = session.run(found)
        coord.request_stop()
        coord.join(threads)
    assert both["count"].tolist() == [2, 3]
    assert both["values"].tolist() == [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
