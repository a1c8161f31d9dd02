"""The tests of `tests/ops/nn/test_nn_names.py` that need names of TensorFlow 1."""

from __future__ import annotations

import numpy as np
import pytest

import estimatorkit as tf
from tests.ops.nn.test_nn_names import _run, graph

__all__ = ["graph"]


def test_ctc_unique_labels() -> None:
    labels, places = _run(tf.nn.ctc_unique_labels([[3, 4, 4, 3], [7, 1, 7, 0]]))
    np.testing.assert_array_equal(labels, [[3, 4, 0, 0], [7, 1, 0, 0]])
    np.testing.assert_array_equal(places, [[0, 1, 1, 0], [0, 1, 0, 2]])


def test_float_sequence_lengths() -> None:
    cell = tf.nn.rnn_cell.BasicRNNCell(2)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.ones([2, 3, 1]), [1.0, 3.0], dtype=tf.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert np.count_nonzero(session.run(outputs)[0]) == 2


@pytest.mark.slow
def test_float_lengths_in_both_directions() -> None:
    cells = [tf.nn.rnn_cell.GRUCell(2), tf.nn.rnn_cell.GRUCell(3)]
    (forward, backward), _ = tf.nn.bidirectional_dynamic_rnn(
        *cells, tf.ones([2, 3, 1]), sequence_length=[1.0, 2.0], dtype=tf.float32
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        one, other = session.run([forward, backward])
    assert np.count_nonzero(one) == 3 * 2
    assert np.count_nonzero(other) == 3 * 3


def test_residual_wrapper_checks_shape() -> None:
    cell = tf.nn.rnn_cell.ResidualWrapper(tf.nn.rnn_cell.GRUCell(2))
    with pytest.raises(ValueError, match="are incompatible"):
        tf.nn.dynamic_rnn(cell, tf.ones([2, 3, 1]), dtype=tf.float32)


def test_sparse_ctc_labels_need_blank() -> None:
    labels = tf.SparseTensor([[0, 0]], np.array([1], np.int32), [1, 1])
    with pytest.raises(ValueError, match="`blank_index` must be provided"):
        tf.nn.ctc_loss_v2(labels, np.zeros((3, 1, 4), np.float32), None, [3])
