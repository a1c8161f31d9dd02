"""Functions as operations and custom gradients: `Defun`, `custom_gradient`, overrides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core.graph import Graph
from estimatorkit.function import Defun


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    with tf.Graph().as_default() as current:
        yield current


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


@pytest.mark.slow
def test_custom_gradient_at_top_level_and_in_loop() -> None:
    @tf.custom_gradient
    def doubled(v):  # type: ignore[no-untyped-def]
        return v * 2.0, lambda dy: dy * 7.0

    x = tf.placeholder(tf.float32, [])
    outside = tf.gradients(doubled(x), x)[0]
    _, y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, doubled(a)), [0, x])
    inside = tf.gradients(y, x)[0]
    with tf.Session() as session:
        assert session.run([outside, y, inside], {x: 1.0}) == [7.0, 8.0, 343.0]


@tf.RegisterGradient("TestsOnlyGuided")
def _guided(op: Any, dy: Any) -> Any:
    return tf.where(dy > 0, dy, tf.zeros_like(dy)) * tf.cast(op.outputs[0] > 0, dy.dtype)


def test_gradient_override_map(graph: Graph) -> None:
    x = tf.placeholder(tf.float32, [3])
    with graph.gradient_override_map({"Relu": "TestsOnlyGuided", "Sign": "Identity"}):
        guided, signs = tf.nn.relu(x), tf.sign(x)
    weights = tf.constant([1.0, -1.0, 1.0])
    found = [tf.gradients(y * weights, x)[0] for y in (guided, signs)]
    plain = tf.gradients(tf.nn.relu(x) * weights, x)[0]
    with tf.Session() as session:
        of_guided, of_sign, of_relu = session.run([*found, plain], {x: [2.0, 3.0, -1.0]})
    assert of_guided.tolist() == [1.0, 0.0, 0.0]
    assert of_sign.tolist() == [1.0, -1.0, 1.0]
    assert of_relu.tolist() == [1.0, -1.0, 0.0]
    with graph.gradient_override_map({"Relu": "NobodyKnows"}):
        unknown = tf.nn.relu(x)
    with pytest.raises(LookupError, match="No gradient defined for operation"):
        tf.gradients(unknown, x)
    with pytest.raises(KeyError, match="Registering two gradient"):
        tf.RegisterGradient("TestsOnlyGuided")(_guided)


def test_hessians() -> None:
    x = tf.placeholder(tf.float64, [3])
    (found,) = tf.hessians(tf.reduce_sum(x**3) + x[0] * x[1] * x[2], x)
    a = np.array([1.0, 2.0, -1.0])
    with tf.Session() as session:
        matrix = session.run(found, {x: a})
    expected = np.diag(6 * a) + np.array([[0, a[2], a[1]], [a[2], 0, a[0]], [a[1], a[0], 0]])
    np.testing.assert_allclose(matrix, expected)


def test_jax_function_is_an_operation() -> None:
    """The row `JaxFunction`."""
    import jax.numpy as jnp

    x = tf.placeholder(tf.float32, [None, 2])
    outputs = tf.jax_function(lambda v: {"s": jnp.sin(v), "n": jnp.sum(v, 1)}, x)
    assert outputs["s"].shape.as_list() == [None, 2]
    assert outputs["n"].shape.as_list() == [None]
    (slope,) = tf.gradients(outputs["s"], x)
    given = np.array([[0.5, 1.0]], np.float32)
    with tf.Session() as session:
        values, found = session.run([outputs, slope], {x: given})
    np.testing.assert_allclose(values["n"], [1.5])
    np.testing.assert_allclose(found, np.cos(given), rtol=1e-6)


def test_jax_function_errors() -> None:
    with tf.Graph().as_default():
        anything, words = tf.placeholder(tf.float32, name="anything"), tf.constant(["a"])
        with pytest.raises(ValueError, match=r"rank of anything:0(?s:.*)set_shape"):
            tf.jax_function(lambda x: x, anything)
        with pytest.raises(ValueError, match=r"holds strings(?s:.*)py_func"):
            tf.jax_function(lambda x: x, words)


def test_recompute_grad_of_lambda() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(2.0)
        y = tf.recompute_grad(lambda each: each**3)(x)
        assert session.run(tf.gradients(y, x)) == [12.0]
