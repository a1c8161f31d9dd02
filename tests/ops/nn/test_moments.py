"""Moments where sums overflow or weights are missing, and static shapes that a second input knows.

The values are TensorFlow 2.15.1's: float16 is summed in float32, no weight gives 0.
"""

from __future__ import annotations

import numpy as np

import estimatorkit as tf


def test_float16_moments_do_not_overflow() -> None:
    x = np.tile(np.array([-200.0, 200.0], np.float16), 20)[:, None]
    moments = tf.nn.moments(tf.constant(x), [0])
    weighted = tf.nn.weighted_moments(tf.constant(x), [0], tf.constant(np.ones_like(x)))
    with tf.Session() as session:
        for mean, variance in session.run([moments, weighted]):
            assert (mean.dtype, variance.dtype) == (np.float16, np.float16)
            assert (mean, variance) == (0, 40000)


def test_weighted_moments_of_zero_weights() -> None:
    found = tf.nn.weighted_moments(tf.constant([[1.0, 2.0], [3.0, 4.0]]), [0], tf.zeros([2, 2]))
    with tf.Session() as session:
        assert [each.tolist() for each in session.run(list(found))] == [[0, 0], [0, 0]]


def test_static_dimension_from_second_input() -> None:
    logits = tf.placeholder(tf.float32, [None, 4])
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.placeholder(tf.int32, [3]), logits=logits
    )
    dense = tf.nn.softmax_cross_entropy_with_logits_v2(
        labels=tf.placeholder(tf.float32, [3, None]), logits=logits
    )
    biased = tf.nn.bias_add(
        tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.float32, [3])
    )
    assert (sparse.shape, dense.shape) == ([3], [3])
    assert biased.shape.as_list() == [None, 3]
