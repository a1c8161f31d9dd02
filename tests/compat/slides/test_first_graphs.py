"""The tests of `tests/slides/test_first_graphs.py` that need names of TensorFlow 1."""

from __future__ import annotations

import estimatorkit as tf


def test_synchronization() -> None:
    """The last category on the slide of operations."""
    v = tf.Variable(tf.zeros([2]))
    lock = tf.CriticalSection()
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(lock.execute(lambda: v + 1.0)).tolist() == [1.0, 1.0]
