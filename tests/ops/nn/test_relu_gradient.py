"""The gradient of ReLU below the maximum of windows, whose order is exchanged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit as tf


def _gradients_below_relu(
    x: Any, window: int, stride: int, padding: str, apart: bool
) -> list[tf.Tensor]:
    """The gradient and the second one of a pooled ReLU; `apart` keeps the two operations apart."""
    y = tf.nn.relu(x)
    pooled = tf.nn.max_pool2d(tf.identity(y) if apart else y, window, stride, padding)
    of_pooled = tf.constant(np.random.RandomState(1).randn(*pooled.shape.as_list()), tf.float32)
    (first,) = tf.gradients(tf.reduce_sum(tf.sin(pooled) * of_pooled), x)
    assert (first.op.attrs["forward_type"] == "Relu") is apart
    return [first, *tf.gradients(tf.reduce_sum(first * first), x)]


@pytest.mark.parametrize(
    ("window", "stride", "padding"), [(2, 2, "SAME"), (3, 2, "SAME"), (3, 1, "VALID")]
)
def test_gradient_of_pooled_relu_is_that_of_relu_of_the_maximum(
    window: int, stride: int, padding: str
) -> None:
    values = np.round(np.random.RandomState(0).randn(2, 9, 9, 4) * 2).astype(np.float32)
    values[0, 0, 0, :3] = np.nan, np.inf, -np.inf
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(values)
        swapped, apart = (
            session.run(_gradients_below_relu(x, window, stride, padding, each))
            for each in (False, True)
        )
    for one, other in zip(swapped, apart, strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.count_nonzero(swapped[0]) > 50


def test_gradient_of_relu_with_another_use_is_the_sum() -> None:
    values = np.random.RandomState(0).randn(2, 6, 6, 3).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(values)
        y = tf.nn.relu(x)
        pooled = tf.reduce_sum(tf.nn.max_pool2d(y, 2, 2, "SAME"))
        both, one, of_y = tf.gradients(pooled + tf.reduce_sum(y * y), [x, pooled, y])
        alone, other = tf.gradients(pooled, x)[0], tf.gradients(tf.reduce_sum(y * y), x)[0]
        found, scale, inner, first, second = session.run([both, one, of_y, alone, other])
    assert scale == 1
    np.testing.assert_allclose(found, first + second, rtol=1e-6)
    np.testing.assert_array_equal(found, np.where(values > 0, inner, 0))


def test_overridden_gradient_of_another_activation() -> None:
    """The gradient of ReLU in place of another's is taken at that one's input."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.constant(np.array([[[[-1.0], [2.0]], [[3.0], [0.5]]]], np.float32))
        with graph.gradient_override_map({"Elu": "Relu"}):
            y = tf.nn.elu(x)
        (dx,) = tf.gradients(tf.nn.max_pool2d(y, 1, 1, "SAME"), x)
        np.testing.assert_array_equal(session.run(dx).ravel(), [0, 1, 1, 1])
