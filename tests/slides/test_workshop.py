"""The workshop (matrices, softmax regression on MNIST, a first graph, word2vec), by its slides."""

from __future__ import annotations

import numpy as np
import pytest

import estimatorkit as tf


def test_what_does_tensorflow_code_look_like(capsys: pytest.CaptureFixture[str]) -> None:
    sess = tf.InteractiveSession()  # don't mess with passing around a session
    ml_is_fun = tf.constant([6.2, 12.0, 5.9], shape=[1, 3])
    python_is_ok_too = tf.constant([9.3, 1.7, 8.8], shape=[3, 1])
    matrices_omg = tf.matmul(ml_is_fun, python_is_ok_too)
    print(matrices_omg)  # => Tensor("MatMul:0", shape=(1, 1), dtype=float32)
    value = matrices_omg.eval()
    print(value)  # => [[ 129.97999573]]
    sess.close()  # let's be responsible about this
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == 'Tensor("MatMul:0", shape=(1, 1), dtype=float32)'
    np.testing.assert_allclose(value, [[129.97999573]], rtol=1e-6)


def test_first_graph(capfd: pytest.CaptureFixture[str]) -> None:
    """Slides 43 to 47, with the exercise's m4; the slide feeds a placeholder that nothing uses."""
    graph = tf.Graph()
    m1 = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], dtype=np.float32)
    with graph.as_default():
        # Input data.
        m1_input = tf.placeholder(tf.int32, shape=[4, 2])
        # Ops and variables pinned to the CPU because of missing GPU implementation
        with tf.device("/cpu:0"):
            m2 = tf.Variable(tf.random_uniform([2, 3], -1.0, 1.0))
            m3 = tf.matmul(m1, m2)
            # This is an identity op with the side effect of printing data when evaluating.
            m3 = tf.Print(m3, [m3], message="m3 is: ")
            m4 = m3 + m3
            # Add variable initializer.
            init = tf.initialize_all_variables()
    with tf.Session(graph=graph) as session:
        # We must initialize all variables before we use them.
        init.run()
        print("Initialized")
        print("m2: {}".format(m2))  # noqa: UP032
        print("eval m2: {}".format(m2.eval()))  # noqa: UP032
        feed_dict = {m1_input: m1}
        result = session.run([m3], feed_dict=feed_dict)
        print("\nresult: {}\n".format(result))  # noqa: UP032
        weights, both = session.run([m2, [m3, m4]], feed_dict=feed_dict)
    printed = capfd.readouterr()
    assert "Initialized" in printed.out
    assert "m2: <tf.Variable" in printed.out
    np.testing.assert_allclose(result[0], m1 @ weights, rtol=1e-6)
    np.testing.assert_allclose(both[1], 2 * both[0], rtol=1e-6)
    assert printed.err.count("m3 is: [") == 2
