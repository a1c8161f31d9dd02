"""Shapes that follow from fed values: few compilations, however many values there are."""

from __future__ import annotations

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
from estimatorkit.core.value_shapes import LIMIT


def test_padding_that_is_sliced_off_is_compiled_a_few_times_only() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 1])
        amounts = tf.placeholder(tf.int32, [2, 2])
        offset = tf.placeholder(tf.int32, [2])
        shifted = tf.slice(tf.pad(x * 2.0, amounts), offset, [8, -1])
        total = tf.reduce_sum(shifted * shifted)
        given = np.arange(8.0)[:, None]
        for shift in range(3 * LIMIT):
            feeds = {x: given, amounts: [[0, shift], [0, 0]], offset: [shift, 0]}
            assert session.run(total, feeds) == 4 * (np.arange(shift, 8.0) ** 2).sum()
        assert sum(session.state.compilations.values()) <= LIMIT + 3


def test_segments_whose_results_have_other_shapes_stay_on_the_device() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        length = tf.placeholder(tf.int32, [])
        total = tf.reduce_sum(tf.exp(tf.pad(x, [[0, length]])))
        for more in range(LIMIT + 2):
            value = session.run(total, {x: np.zeros(2), length: more})
            assert value == pytest.approx(2 + more)
        assert sum(session.state.compilations.values()) == LIMIT + 2
