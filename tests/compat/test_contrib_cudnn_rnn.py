"""`contrib.cudnn_rnn` against equivalent cells and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf

cudnn_rnn = tf.contrib.cudnn_rnn
STEPS = np.random.RandomState(0).randn(4, 2, 3).astype(np.float32)


@pytest.mark.slow
def test_bidirectional_two_layer_lstm() -> None:
    with tf.Graph().as_default():
        layer = cudnn_rnn.CudnnLSTM(2, 5, direction="bidirectional")
        outputs, (h, c) = layer(STEPS, training=False)
        again, _ = layer(STEPS.transpose(1, 0, 2), time_major=False, training=False)
        names = [each.name for each in layer.trainable_variables]
        cell = "bidirectional_rnn/fw/cudnn_compatible_lstm_cell"
        assert names[0] == f"cudnn_lstm/stack_bidirectional_rnn/cell_0/{cell}/kernel:0"
        assert len(names) == 8
        with tf.variable_scope("cudnn_lstm", reuse=True):
            cells = [[cudnn_rnn.CudnnCompatibleLSTMCell(5) for _ in range(2)] for _ in range(2)]
            expected, forward, backward = tf.contrib.rnn.stack_bidirectional_dynamic_rnn(
                *cells, tf.constant(STEPS), dtype=tf.float32, time_major=True
            )
        assert len(tf.trainable_variables()) == 8
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            got = session.run([outputs, again, h, c, expected, forward, backward])
    np.testing.assert_allclose(got[0], got[4], rtol=1e-5)
    np.testing.assert_allclose(got[1].transpose(1, 0, 2), got[4], rtol=1e-5)
    states = [got[5][0], got[6][0], got[5][1], got[6][1]]
    np.testing.assert_allclose(got[2], [each.h for each in states], rtol=1e-5)
    np.testing.assert_allclose(got[3], [each.c for each in states], rtol=1e-5)


def test_gru_with_initial_state_and_sequence_lengths() -> None:
    with tf.Graph().as_default():
        layer = cudnn_rnn.CudnnGRU(1, 2, kernel_initializer=tf.constant_initializer(0.5), name="g")
        start = np.ones([1, 2, 2], np.float32)
        outputs, (state,) = layer(STEPS, (start,), sequence_lengths=[1, 0], training=False)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            found, last = session.run([outputs, state])
    # The reset gate acts after the product with the state; no gate has a bias.
    gate = 1 / (1 + np.exp(-(0.5 * STEPS[0, 0].sum() + 1.0)))
    candidate = np.tanh(0.5 * STEPS[0, 0].sum() + gate * 1.0)
    expected = (1 - gate) * candidate + gate
    np.testing.assert_allclose(found[0, 0], [expected] * 2, rtol=1e-5)
    np.testing.assert_allclose(last, [[[expected] * 2, [1, 1]]], rtol=1e-5)
    assert not found[1:].any()


@pytest.mark.parametrize(
    "arguments", [{"direction": "up"}, {"input_mode": "skip_input"}, {"dtype": tf.int32}]
)
def test_invalid_arguments_raise(arguments: Any) -> None:
    with pytest.raises(ValueError, match=f"Invalid {next(iter(arguments))}"):
        cudnn_rnn.CudnnRNNTanh(1, 2, **arguments)
