"""The tests of `tests/ops/control/test_functions.py` that need names of TensorFlow 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.function import Defun
from tests.ops.control.test_functions import graph

__all__ = ["graph"]


def test_recompute_grad_of_lambda() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(2.0)
        y = tf.recompute_grad(lambda each: each**3)(x)
        assert session.run(tf.gradients(y, x)) == [12.0]


def test_function_is_traced_once_and_differentiated() -> None:
    @Defun(tf.float64, tf.float64, func_name="Scaled")
    def scaled(x, y):  # type: ignore[no-untyped-def]
        return tf.tanh(x) * y

    x = tf.placeholder(tf.float64, [2])
    y = x
    for _ in range(6):
        y = scaled(y, x)
    (slope,) = tf.gradients(y, x)
    at = np.array([0.7, -1.2])

    def reference(v: Any) -> Any:
        out = v
        for _ in range(6):
            out = np.tanh(out) * v
        return out

    with tf.Session() as session:
        value, found = session.run([y, slope], {x: at})
    np.testing.assert_allclose(value, reference(at))
    numeric = (reference(at + 1e-6) - reference(at - 1e-6)) / 2e-6
    np.testing.assert_allclose(found, numeric, rtol=1e-6)
    (traced,) = scaled.functions
    assert traced.traces <= 2
    assert y.name == "Scaled_5:0"


def test_defun_gradient_functions() -> None:
    @Defun(tf.float32, tf.float32)
    def backward(x, dy):  # type: ignore[no-untyped-def]
        return dy * 100.0 + x * 0.0

    @Defun(tf.float32, grad_func=backward)
    def one(x):  # type: ignore[no-untyped-def]
        return x * 2.0

    @Defun(tf.float32, python_grad_func=lambda op, dy: dy * 7.0)
    def other(x):  # type: ignore[no-untyped-def]
        return x * 2.0

    x = tf.placeholder(tf.float32, [])
    with tf.Session() as session:
        slopes = [tf.gradients(f(x), x)[0] for f in (one, other)]
        assert session.run(slopes, {x: 1.0}) == [100.0, 7.0]
    with pytest.raises(ValueError, match="Expected 1 arguments, got 2"):
        one(x, x)
