"""The tests of `tests/gpu/test_programs.py` that need names of TensorFlow 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from tests.gpu.devices import on_both
from tests.gpu.test_programs import _all_bits_of_products, same

__all__ = ["_all_bits_of_products"]


pytestmark = pytest.mark.gpu


def test_sparse_tensors_and_their_gradients() -> None:
    def program() -> Any:
        random = np.random.default_rng(3)
        ids = tf.sparse_placeholder(tf.int64, [16, 6])
        table = tf.get_variable("table", initializer=random.normal(size=(50, 8)).astype(np.float32))
        rows = tf.nn.embedding_lookup_sparse(table, ids, None, combiner="mean")
        weights = tf.get_variable("w", initializer=random.normal(size=(6, 3)).astype(np.float32))
        dense = tf.sparse_tensor_dense_matmul(tf.cast(ids, tf.float32), weights)
        sums = tf.sparse_reduce_sum(tf.cast(ids, tf.float32), 1)
        loss = tf.reduce_sum(rows**2) + tf.reduce_mean(dense) + tf.reduce_mean(sums)
        step = tf.train.AdamOptimizer(0.1).minimize(loss)
        chosen = tf.boolean_mask(table, table[:, 0] > 0)
        unique, _ = tf.unique(ids.values)
        places = np.argwhere(random.random((16, 6)) < 0.5)
        values = random.integers(0, 50, len(places))
        feed = {ids: tf.SparseTensorValue(places, values, (16, 6))}
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            losses = [sess.run([loss, step], feed)[0] for _ in range(5)]
            return losses, *sess.run([table, chosen, unique, rows], feed)

    same(*on_both(program), rtol=1e-4)


def test_losses_of_convolutions_and_recurrences_agree() -> None:
    def program() -> Any:
        tf.set_random_seed(3)
        random = np.random.default_rng(6)
        images = random.normal(size=(16, 12, 12, 3)).astype(np.float32)
        y = tf.layers.conv2d(images, 8, 3, strides=2, activation=tf.nn.relu)
        y = tf.layers.batch_normalization(y, training=True)
        y = tf.layers.max_pooling2d(tf.layers.separable_conv2d(y, 12, 3), 3, 1)
        cell = tf.nn.rnn_cell.LSTMCell(10)
        outputs, _ = tf.nn.dynamic_rnn(
            cell, tf.reshape(y, [16, -1, 12]), dtype=tf.float32, sequence_length=[1] * 16
        )
        logits = tf.layers.dense(outputs[:, 0], 5)
        loss = tf.losses.sparse_softmax_cross_entropy(np.arange(16) % 5, logits)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            step = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            return [sess.run([loss, step])[0] for _ in range(10)]

    same(*on_both(program), rtol=1e-3)
