"""Varying shapes compile only a few times if they lead to one shape."""

from __future__ import annotations

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.runtime.xla.shape_watch import HOST_LIMIT


def test_sliced_padding_compiles_few_times() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 1])
        amounts = tf.placeholder(tf.int32, [2, 2])
        offset = tf.placeholder(tf.int32, [2])
        shifted = tf.slice(tf.pad(x * 2.0, amounts), offset, [8, -1])
        total = tf.reduce_sum(shifted * shifted)
        given = np.arange(8.0)[:, None]
        for shift in range(3 * HOST_LIMIT):
            feeds = {x: given, amounts: [[0, shift], [0, 0]], offset: [shift, 0]}
            assert session.run(total, feeds) == 4 * (np.arange(shift, 8.0) ** 2).sum()
        assert sum(session.state.compilations.values()) <= HOST_LIMIT + 3


def test_resized_pictures_compile_few_times() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        picture = tf.placeholder(tf.float32, [None, None, 1])
        small = tf.image.resize_images(picture / 2.0, [2, 2])
        total = tf.reduce_sum(small)
        for more in range(3 * HOST_LIMIT):
            value = session.run(total, {picture: np.ones([3 + more, 4, 1])})
            assert value == pytest.approx(2.0)
        assert sum(session.state.compilations.values()) <= HOST_LIMIT + 2


@pytest.mark.usefixtures("compiled")
@pytest.mark.slow
def test_models_stay_on_device() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2])
        weights = tf.get_variable("weights", [2, 1], initializer=tf.ones_initializer())
        total = tf.reduce_sum(tf.matmul(x, weights))
        session.run(tf.global_variables_initializer())
        session.state.compilations.clear()
        for more in range(HOST_LIMIT + 2):
            assert session.run(total, {x: np.ones([1 + more, 2])}) == 2 + 2 * more
        assert sum(session.state.compilations.values()) == HOST_LIMIT + 2
