"""Variants of operations in private modules: gradients, and version 2's orders of arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
from estimatorkit.compat.v1.python.ops import (
    embedding_ops,
    gen_nn_ops,
    image_ops_impl,
    nn_impl,
    nn_ops,
    string_ops,
)
from tests.sweep import sweep

X = np.random.RandomState(3).randn(1, 4, 4, 2).astype(np.float32)
POOL: Any = ([1, 2, 2, 1], [1, 2, 2, 1], "SAME")


def _run(*tensors: Any) -> list[Any]:
    with tf.Session() as session:
        return list(session.run(list(tensors)))


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def _both(function: Any, x: Any) -> tuple[Any, Any]:
    """A function of x, and its gradient times a probe."""
    given = tf.constant(x)
    y = function(given)
    return y, tf.gradients(y, given, tf.ones_like(y) * 3.0)[0]


@pytest.mark.parametrize(
    ("function", "gradient"),
    [
        (tf.nn.relu, gen_nn_ops.relu_grad),
        (tf.nn.softplus, gen_nn_ops.softplus_grad),
        (tf.nn.leaky_relu, gen_nn_ops.leaky_relu_grad),
    ],
)
def test_activation_gradients(function: Any, gradient: Any) -> None:
    y, wanted = _both(function, X)
    got, expected = _run(gradient(tf.ones_like(y) * 3.0, tf.constant(X)), wanted)
    np.testing.assert_array_equal(got, expected)


def test_pooling_and_bias_gradients() -> None:
    y, wanted = _both(lambda x: tf.nn.max_pool(x, *POOL), X)
    wanted_of_mean = _both(lambda x: tf.nn.avg_pool(x, *POOL), X)[1]
    ones, elu = tf.ones_like(y) * 3.0, tf.nn.elu(X)
    results = _run(
        gen_nn_ops.max_pool_grad(X, y, ones, *POOL),
        gen_nn_ops.avg_pool_grad([1, 4, 4, 2], ones, *POOL),
        gen_nn_ops.max_pool_grad(X, y, ones, *POOL[:2], "EXPLICIT", [0] * 8),
        gen_nn_ops.bias_add_grad(X),
        gen_nn_ops.elu_grad(elu, elu),
        *(wanted, wanted_of_mean, elu),
    )
    for got, expected in ((0, 5), (1, 6), (2, 5)):
        np.testing.assert_array_equal(results[got], results[expected])
    np.testing.assert_allclose(results[3], X.sum((0, 1, 2)), rtol=1e-5)
    np.testing.assert_allclose(results[4], results[7] * np.minimum(results[7] + 1, 1), rtol=1e-5)


def test_version_2_argument_order() -> None:
    table = np.arange(12, dtype=np.float32).reshape(6, 2)
    ids = tf.SparseTensor([[0, 0], [1, 0]], tf.constant([1, 3], tf.int64), [2, 1])
    results = _run(
        embedding_ops.embedding_lookup_v2([table[:3], table[3:]], [3]),
        embedding_ops.embedding_lookup_sparse_v2(table, ids, None, "sum"),
        nn_ops.pool_v2(X, [2, 2], "MAX", [2, 2], "SAME"),
        tf.nn.max_pool(X, *POOL),
        nn_impl.moments_v2(table, [0], None, True)[0],
        nn_impl.sigmoid_cross_entropy_with_logits_v2([1.0], [0.0]),
        image_ops_impl.draw_bounding_boxes_v2(
            np.zeros([1, 3, 3, 1], np.float32), [[[0.0, 0.0, 1.0, 1.0]]], [[0.5]]
        ),
        nn_ops.dropout_v2(tf.ones([200]), 0.5, seed=1),
        string_ops.substr_v2("abc", 1, 1, unit="BYTE"),
        string_ops.string_lower("AB"),
    )
    assert results[0].tolist() == [[6, 7]]
    assert results[1].tolist() == [[2, 3], [6, 7]]
    np.testing.assert_array_equal(results[2], results[3])
    assert results[4].tolist() == [[5, 6]]
    np.testing.assert_allclose(results[5], [np.log(2)], rtol=1e-6)
    assert results[6][0, :, :, 0].tolist() == [[0.5, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0.5]]
    assert set(results[7].tolist()) == {0, 2}
    assert results[8:] == [b"b", b"ab"]
    with pytest.raises(TypeError, match="at most 4 positional"):
        embedding_ops.embedding_lookup_v2(table, [3], None, "name", "div")


def test_sampled_losses_in_version_2_argument_order() -> None:
    rng = np.random.RandomState(5)
    weights, biases = rng.randn(5, 4).astype("f"), rng.randn(5).astype("f")
    sampled = ([1, 0], np.full([2, 1], 0.5, "f"), np.full([2], 0.5, "f"))
    given = (weights, biases, tf.constant([[1], [2]], tf.int64), rng.randn(2, 4).astype("f"), 2, 5)
    old, new = _run(
        tf.nn.nce_loss(*given, sampled_values=sampled), nn_impl.nce_loss_v2(*given, 1, sampled)
    )
    np.testing.assert_array_equal(old, new)


@sweep(
    "change",
    [
        lambda image, seed: tf.image.stateless_random_flip_left_right(image, seed),
        lambda image, seed: tf.image.stateless_random_flip_up_down(image, seed),
        lambda image, seed: tf.image.stateless_random_brightness(image, 0.5, seed),
        lambda image, seed: tf.image.stateless_random_contrast(image, 0.5, 2.0, seed),
        lambda image, seed: tf.image.stateless_random_hue(image, 0.5, seed),
        lambda image, seed: tf.image.stateless_random_saturation(image, 0.1, 0.9, seed),
        lambda image, seed: tf.image.stateless_random_crop(image, [2, 2, 3], seed),
    ],
    quick=4,
)
def test_stateless_image_changes(change: Any) -> None:
    image = tf.constant(np.random.RandomState(1).rand(5, 4, 3).astype(np.float32))
    results = _run(*(change(image, [seed, 2]) for seed in (0, 0, *range(1, 7))))
    np.testing.assert_array_equal(results[0], results[1])
    assert any(each.tolist() != results[0].tolist() for each in results[2:])


@pytest.mark.slow
def test_stateless_jpeg_quality() -> None:
    image = tf.constant(np.random.RandomState(1).rand(8, 8, 3).astype(np.float32))
    made = [tf.image.stateless_random_jpeg_quality(image, 5, 90, [seed, 2]) for seed in (1, 1, 4)]
    first, second, third = _run(*made)
    np.testing.assert_array_equal(first, second)
    assert first.tolist() != third.tolist()
