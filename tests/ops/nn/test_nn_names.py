"""Functions of `tf.nn`: dispatch by rank, gradients by name, CTC labels, clipping."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit as tf


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def _run(fetches: Any) -> Any:
    with tf.Session() as session:
        return session.run(fetches)


def test_pool_dispatches_by_rank() -> None:
    line = np.array([[[1.0], [3.0], [2.0], [5.0]]], np.float32)
    image = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    most, mean, corner, first = _run(
        [
            tf.nn.max_pool_v2(line, 2, 2, "VALID"),
            tf.nn.avg_pool_v2(line, 2, 2, "SAME"),
            tf.nn.max_pool_v2(image, 2, 2, "VALID"),
            tf.nn.avg_pool_v2(image.reshape(1, 1, 4, 4), 2, 2, "VALID", data_format="NCHW"),
        ]
    )
    np.testing.assert_array_equal(most.ravel(), [3.0, 5.0])
    np.testing.assert_array_equal(mean.ravel(), [2.0, 3.5])
    np.testing.assert_array_equal(corner.ravel(), [5.0, 7.0, 13.0, 15.0])
    np.testing.assert_array_equal(first, [[[[2.5, 4.5], [10.5, 12.5]]]])


def test_conv_transpose_dispatches_by_output_shape() -> None:
    random = np.random.default_rng(3)
    x = random.normal(size=(1, 3, 3, 2)).astype(np.float32)
    filters = random.normal(size=(2, 2, 4, 2)).astype(np.float32)
    pair = [
        tf.nn.conv_transpose(x, filters, [1, 6, 6, 4], 2),
        tf.nn.conv2d_transpose(x, filters, [1, 6, 6, 4], 2),
    ]
    one, other = _run(pair)
    np.testing.assert_array_equal(one, other)
    line = _run(tf.nn.conv_transpose(x[:, 0], filters[0], tf.constant([1, 6, 4]), 2))
    assert line.shape == (1, 6, 4)


def test_conv3d_filter_gradient() -> None:
    random = np.random.default_rng(4)
    x = tf.constant(random.normal(size=(2, 3, 4, 3, 2)).astype(np.float32))
    filters = tf.constant(random.normal(size=(2, 2, 2, 2, 3)).astype(np.float32))
    y = tf.nn.conv3d(x, filters, [1, 1, 1, 1, 1], "VALID")
    given = tf.ones_like(y)
    expected, found = _run(
        [
            tf.gradients(y, filters, given)[0],
            tf.nn.conv3d_backprop_filter_v2(x, [2, 2, 2, 2, 3], given, [1, 1, 1, 1, 1], "VALID"),
        ]
    )
    np.testing.assert_allclose(found, expected, 1e-5)


def test_ctc_unique_labels() -> None:
    labels, places = _run(tf.nn.ctc_unique_labels([[3, 4, 4, 3], [7, 1, 7, 0]]))
    np.testing.assert_array_equal(labels, [[3, 4, 0, 0], [7, 1, 0, 0]])
    np.testing.assert_array_equal(places, [[0, 1, 1, 0], [0, 1, 0, 2]])


def test_clip_by_average_norm() -> None:
    # The norm is 5, of 6 elements 5 / 6.
    x = np.array([[-3.0, 0.0, 0.0], [4.0, 0.0, 0.0]], np.float32)
    clipped, kept = _run([tf.clip_by_average_norm(x, 0.8), tf.clip_by_average_norm(x, 0.9)])
    np.testing.assert_allclose(clipped, [[-2.88, 0, 0], [3.84, 0, 0]], 1e-6)
    np.testing.assert_allclose(kept, x, 1e-6)


def test_fused_batch_norm_average_factor() -> None:
    x = np.array([1.0, 2.0, 3.0, 6.0], np.float32).reshape(1, 2, 2, 1)
    old = (np.array([1.0], np.float32), np.array([2.0], np.float32))
    ones = np.ones(1, np.float32)
    _, mean, variance = _run(
        tf.nn.fused_batch_norm(x, ones, ones, *old, exponential_avg_factor=0.25)
    )
    np.testing.assert_allclose(mean, [0.75 * 1.0 + 0.25 * 3.0], 1e-6)
    np.testing.assert_allclose(variance, [0.75 * 2.0 + 0.25 * 14.0 / 3.0], 1e-6)


def test_float_sequence_lengths() -> None:
    cell = tf.nn.rnn_cell.BasicRNNCell(2)
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.ones([2, 3, 1]), [1.0, 3.0], dtype=tf.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert np.count_nonzero(session.run(outputs)[0]) == 2


def test_confusion_matrix_refuses_out_of_range_class() -> None:
    labels, limit = tf.placeholder(tf.int32), tf.constant(3)
    matrix = tf.confusion_matrix(labels, [0, 1], limit)
    with tf.Session() as session:
        np.testing.assert_array_equal(
            session.run(matrix, {labels: [[0], [2]]}), [[1, 0, 0], [0, 0, 0], [0, 1, 0]]
        )
        for values, words in (([0, 3], "`labels` out of bound"), ([0, -1], "negative values")):
            with pytest.raises(tf.errors.InvalidArgumentError, match=words):
                session.run(matrix, {labels: values})


def test_pooling_across_channels() -> None:
    x = np.arange(8, dtype=np.float32).reshape(1, 1, 1, 8)
    found = _run(tf.nn.max_pool(x, [1, 1, 1, 2], [1, 1, 1, 2], "VALID"))
    np.testing.assert_array_equal(found.ravel(), [1, 3, 5, 7])
    for size, step, words in ((3, 3, "evenly divide"), (2, 1, "equal the stride")):
        with pytest.raises(tf.errors.UnimplementedError, match=words):
            tf.nn.max_pool(x, [1, 1, 1, size], [1, 1, 1, step], "VALID")


def test_runtime_counts_and_shapes_are_checked() -> None:
    count, labels = tf.placeholder(tf.int32), tf.placeholder(tf.int32)
    best = tf.nn.top_k(np.array([1.0, 3.0, 2.0], np.float32), count).values
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=np.eye(2, dtype=np.float32)
    )
    with tf.Session() as session:
        assert session.run(best, {count: 0}).shape == (0,)
        for wrong, words in ((4, "Had 3, needed 4"), (-1, "Need k >= 0")):
            with pytest.raises(tf.errors.InvalidArgumentError, match=words):
                session.run(best, {count: wrong})
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"labels.shape=\(1, 2\)"):
            session.run(losses, {labels: [[0, 1]]})


def test_integer_losses_stay_integer() -> None:
    values = np.array([[0, 1], [2, 3], [4, 5]])
    assert _run(tf.losses.compute_weighted_loss(values)) == 2
    assert tf.losses.compute_weighted_loss(values).dtype is tf.int64


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


def test_constant_number_of_classes() -> None:
    classes = [tf.constant([0, 1, 1]), tf.constant([0, 1, 0])]
    _, update = tf.metrics.mean_iou(*classes, tf.constant(2))
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        np.testing.assert_array_equal(session.run(update), [[1, 0], [1, 1]])


def test_integer_pooling() -> None:
    x = np.arange(16, dtype=np.int32).reshape(1, 4, 4, 1)
    found = _run(tf.nn.max_pool(-x, 3, 2, "SAME"))
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found.ravel(), [0, -2, -8, -10])


def test_sparse_ctc_labels_need_blank() -> None:
    labels = tf.SparseTensor([[0, 0]], np.array([1], np.int32), [1, 1])
    with pytest.raises(ValueError, match="`blank_index` must be provided"):
        tf.nn.ctc_loss_v2(labels, np.zeros((3, 1, 4), np.float32), None, [3])


def test_sufficient_statistics_shift_is_tensor() -> None:
    count, total, squares, shift = _run(tf.nn.sufficient_statistics([1.0, 4.0], [0], shift=1.0))
    assert (count, total, squares, shift) == (2.0, 3.0, 9.0, 1.0)
