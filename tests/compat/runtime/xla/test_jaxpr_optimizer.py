"""The tests of `tests/runtime/xla/test_jaxpr_optimizer.py` that need names of TensorFlow 1."""

from __future__ import annotations

from collections import Counter

import pytest

import estimatorkit as tf
from estimatorkit.runtime.lower import trace_segment
from tests.runtime.xla.test_jaxpr_optimizer import short_loops, some

__all__ = ["short_loops"]


@pytest.mark.slow
def test_cell_called_in_python_loop() -> None:
    x = tf.placeholder(tf.float32, [4, 12, 3])
    cell = tf.nn.rnn_cell.BasicLSTMCell(5)
    state = cell.zero_state(4, tf.float32)
    for step in range(12):
        output, state = cell(x[:, step], state)
    loss = tf.reduce_mean(tf.square(output))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.Session() as session:
        (segment,) = session.plan([train, loss], [x]).segments
        traced = trace_segment(segment).jaxpr.jaxpr
        found = Counter(equation.primitive.name for equation in traced.eqns)
        assert found["scan"] == 2
        assert found["dot_general"] <= 9  # of 3 unrolled: 12 steps forward, and 24 backward
        session.run(tf.global_variables_initializer())
        feed = {x: some(4, 12, 3)}
        losses = [session.run([loss, train], feed)[0] for _ in range(20)]
    assert losses == sorted(losses, reverse=True)
