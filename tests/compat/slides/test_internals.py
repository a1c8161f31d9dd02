"""The tests of `tests/slides/test_internals.py` that need names of TensorFlow 1."""

from __future__ import annotations

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit import function


@pytest.mark.slow
def test_function_as_operation() -> None:
    class Model:
        _dtype = tf.float32

        def build(self) -> object:
            @function.Defun(*[self._dtype] * 2, func_name="BatchNorm")
            def BatchNorm(h, gamma):  # type: ignore[no-untyped-def]
                # Uses a simple two-pass algorithm to compute mean and var for
                # numerical stability.
                mean = tf.reduce_mean(h, [0])
                var = tf.reduce_mean(tf.square(h - mean), [0])
                epsilon = tf.constant(1e-8)
                rstd = tf.rsqrt(var + epsilon)
                return gamma * (h - mean) * rstd

            return BatchNorm

    batch_norm = Model().build()
    h = tf.placeholder(tf.float32, [8, 3])
    gamma = tf.Variable(2.0)
    layers = h
    for _ in range(5):
        layers = batch_norm(layers, gamma)  # type: ignore[operator]
    (slope,) = tf.gradients(tf.reduce_sum(layers * layers), [gamma])
    values = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    expected = 2.0 * (values - values.mean(0)) / values.std(0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        result, gradient = session.run([layers, slope], {h: values})
    assert [op.type for op in tf.get_default_graph().get_operations()].count("Call") == 5
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(gradient, 8 * 3 * 2 * 2.0, rtol=1e-3)
    (traced,) = batch_norm.functions  # type: ignore[attr-defined]
    assert traced.traces <= 2  # once forward and once for the derivative, not five times
