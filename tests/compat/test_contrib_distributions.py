"""`contrib.distributions` beyond `distributions`: samples, densities, divergences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf

ds = tf.contrib.distributions


def test_one_hot_categorical() -> None:
    probs = np.array([[0.5, 0.2, 0.3], [0.1, 0.0, 0.9]], np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(3)
        made = ds.OneHotCategorical(probs=probs, dtype=tf.float32)
        assert (made.batch_shape.as_list(), made.event_shape.as_list()) == ([2], [3])
        draws, logs, mode, same = session.run(
            [
                made.sample(5000, seed=2),
                made.log_prob([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
                made.mode(),
                ds.kl_divergence(made, made),
            ]
        )
    assert draws.shape == (5000, 2, 3)
    np.testing.assert_allclose(draws.mean(0), probs, atol=0.03)
    np.testing.assert_allclose(logs, np.log([0.2, 0.9]), rtol=1e-5)
    assert mode.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    assert same[0] == 0.0


def test_multivariate_normal() -> None:
    loc, scale = np.array([0.5, -1.0], np.float32), np.array([[1.0, 2.0], [0.5, 3.0]], np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(3)
        made = ds.MultivariateNormalDiag(loc, scale)
        parts = tf.distributions.Normal(loc, scale)
        other = ds.MultivariateNormalDiag(scale_diag=[2.0, 2.0])
        assert (made.batch_shape.as_list(), made.event_shape.as_list()) == ([2], [2])
        draws, covariance, found, wanted = session.run(
            [
                *(made.sample(20000), made.covariance()),
                [made.log_prob([0.1, 0.2]), made.entropy(), ds.kl_divergence(made, other)],
                [
                    tf.reduce_sum(each, -1)
                    for each in (
                        *(parts.log_prob([0.1, 0.2]), parts.entropy()),
                        ds.kl_divergence(parts, tf.distributions.Normal(0.0, 2.0)),
                    )
                ],
            ]
        )
    np.testing.assert_allclose(draws.mean(0), np.broadcast_to(loc, [2, 2]), atol=0.08)
    np.testing.assert_allclose(draws.std(0), scale, rtol=0.05)
    np.testing.assert_allclose(covariance[1], np.diag(scale[1] ** 2))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"scale_diag": [1.0, 2.0], "scale_identity_multiplier": 0.5}, [1.5, 2.5]),
        ({"loc": [0.0, 0.0], "scale_identity_multiplier": 0.5}, [0.5, 0.5]),
        ({"loc": [0.0, 0.0]}, [1.0, 1.0]),
    ],
)
def test_scales(arguments: Any, wanted: list[float]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(ds.MultivariateNormalDiag(**arguments).stddev()).tolist() == wanted


def test_vectors_of_unknown_length() -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match="loc or scale_diag"):
        ds.MultivariateNormalDiag(scale_identity_multiplier=2.0)


def test_independent() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        pixels = ds.Independent(ds.Bernoulli(logits=np.zeros([2, 3, 4], np.float32)), 2)
        assert (pixels.batch_shape.as_list(), pixels.event_shape.as_list()) == ([2], [3, 4])
        assert pixels.sample(5).shape.as_list() == [5, 2, 3, 4]
        normals = ds.Independent(ds.Normal(np.zeros([2, 3], np.float32), 1.0))
        vectors = ds.MultivariateNormalDiag(np.zeros([2, 3], np.float32))
        x = [1.0, 2.0, 3.0]
        log_prob, entropy, difference, divergence = session.run(
            [
                *(pixels.log_prob(np.ones([3, 4], np.int32)), pixels.entropy()),
                normals.log_prob(x) - vectors.log_prob(x),
                ds.kl_divergence(normals, normals),
            ]
        )
    np.testing.assert_allclose(log_prob, [12 * np.log(0.5)] * 2, rtol=1e-6)
    np.testing.assert_allclose(entropy, [-12 * np.log(0.5)] * 2, rtol=1e-6)
    np.testing.assert_allclose([difference, divergence], np.zeros([2, 2]), atol=1e-6)


def test_dynamic_shapes() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        given = tf.placeholder_with_default(np.zeros([2, 3], np.float32), [None, None])
        made = ds.Independent(ds.Normal(given, 1.0), 1)
        vectors = ds.MultivariateNormalDiag(given)
        shapes = session.run(
            [
                *(made.batch_shape_tensor(), made.event_shape_tensor(), tf.shape(made.sample(4))),
                *(vectors.batch_shape_tensor(), tf.shape(vectors.sample(4))),
            ]
        )
    assert [each.tolist() for each in shapes] == [[2], [3], [4, 2, 3], [2], [4, 2, 3]]
