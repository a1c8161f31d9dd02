"""Stateless draws, their moments, and parametrized distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf


def _drawn(*tensors: Any) -> list[Any]:
    with tf.Session() as session:
        return list(session.run(list(tensors)))


@pytest.mark.slow
def test_stateless_draws_are_deterministic() -> None:
    def draws(seed: Any) -> list[Any]:
        r = tf.random
        return [
            r.stateless_uniform([3], seed, None, None, tf.uint64),
            r.stateless_gamma([4, 2], seed, [0.5, 2.0]),
            r.stateless_parameterized_truncated_normal([8], seed),
            r.stateless_multinomial([[1.0, 2.0]], 40, seed),
            r.experimental.stateless_shuffle(tf.range(50), seed),
            *tf.unstack(r.experimental.stateless_split(seed, 3)),
        ]

    with tf.Graph().as_default():
        same, wide, other = draws([1, 2]), draws(tf.constant([1, 2], tf.int64)), draws([1, 3])
        first, second, third = (_drawn(*each) for each in (same, wide, other))
    for here, there, elsewhere in zip(first, second, third, strict=True):
        assert here.tolist() != elsewhere.tolist()
        if here.dtype != np.int32:  # new seeds have the seed's dtype
            np.testing.assert_array_equal(here, there)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "mean", "deviation"),
    [
        (lambda r, n: r.stateless_gamma([n, 2], [1, 2], [0.5, 8.0], 2.0), [0.25, 4], [0.35, 1.41]),
        (lambda r, n: r.stateless_poisson([n, 2], [1, 2], [0.5, 16.0]), [0.5, 16], [0.71, 4]),
        (lambda r, n: r.stateless_binomial([n, 1], [1, 2], 40.0, 0.1), [4], [1.9]),
        (
            lambda r, n: r.stateless_parameterized_truncated_normal(
                [n, 3], [1, 2], [0.0, 0.0, 5.0], [1.0, 1.0, 0.5], [-1.0, 20.0, 2.0], [3.0, 1e3, 4.5]
            ),
            [0.2828, 20.0498, 4.2373],  # scipy.stats.truncnorm
            [0.7849, 0.0497, 0.2231],
        ),
    ],
)
def test_stateless_moments(draw: Any, mean: Any, deviation: Any) -> None:
    with tf.Graph().as_default():
        [values] = _drawn(draw(tf.random, 20_000))
    np.testing.assert_allclose(values.mean(0), mean, rtol=0.03)
    np.testing.assert_allclose(values.std(0), deviation, rtol=0.03)


@pytest.mark.slow
def test_gamma_draws_per_rate() -> None:
    with tf.Graph().as_default():
        [drawn] = _drawn(tf.random_gamma([5], 1.0, beta=[1.0, 1.0], seed=1))
    assert drawn.shape == (5, 2)
    assert not np.array_equal(drawn[:, 0], drawn[:, 1])


@pytest.mark.slow
def test_gamma_draw_derivatives() -> None:
    with tf.Graph().as_default():
        alpha, beta = tf.constant([0.5, 8.0]), tf.constant([1.0, 2.0])
        means = tf.reduce_mean(tf.random_gamma([20_000], alpha, beta, seed=1), 0)
        slopes = _drawn(*tf.gradients(means, [alpha, beta]))
    np.testing.assert_allclose(slopes[0], [1.0, 0.5], rtol=0.05)  # of alpha / beta
    np.testing.assert_allclose(slopes[1], [-0.5, -2.0], rtol=0.05)


@pytest.mark.slow
def test_parameterized_truncated_normal() -> None:
    from estimatorkit.compat.v1.python.ops import random_ops

    with tf.Graph().as_default():
        made = random_ops.parameterized_truncated_normal([2, 20000], [0.0, 9.0], 2.0, -1.0, 8.0)
        [values] = _drawn(made)
    assert values.min() >= -1
    assert values.max() <= 8
    np.testing.assert_allclose(values.mean(1), [1.0180, 6.7179], rtol=0.03)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"minval": [[1, 2]], "maxval": 9, "dtype": tf.int32}, "minval must be a scalar"),
        ({"minval": 1, "maxval": [9], "dtype": tf.int32}, "maxval must be a scalar"),
        ({"minval": 1, "dtype": tf.int32}, "both None or not None"),
        ({"minval": 1, "maxval": 9, "dtype": tf.uint32}, "when argument `minval` is not None"),
        ({"dtype": tf.int8}, "got invalid value"),
        ({"seed": [1, 2, 3]}, r"seed must have shape \[2\]"),
    ],
)
def test_stateless_uniform_errors(arguments: dict[str, Any], words: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=words):
        tf.random.stateless_uniform(**{"shape": [2], "seed": [1, 2], **arguments})


def test_graph_and_operation_seeds() -> None:
    with tf.Graph().as_default():
        assert tf.get_seed(None) == (None, None)
        assert tf.get_seed(3) == (87654321, 3)
        tf.set_random_seed(0)
        assert tf.get_seed(0) == (0, 2**31 - 1)


@pytest.mark.slow
def test_draws_are_differentiable() -> None:
    """Against differences of the means of the same draws."""
    with tf.Graph().as_default(), tf.Session() as session:
        at = tf.placeholder(tf.float64, [5])
        gamma = tf.random.stateless_gamma([500], [1, 2], at[0], dtype=tf.float64)
        bounds = [at[1], at[2], at[3], at[4]]
        normal = tf.random.stateless_parameterized_truncated_normal([500], [1, 2], *bounds)
        mean = tf.reduce_mean(gamma) + tf.reduce_mean(normal)
        (slope,) = tf.gradients(mean, at)
        start = np.array([2.0, 0.5, 2.0, -1.0, 3.0])
        found = session.run(slope, {at: start})
        for position, step in enumerate(1e-4 * np.eye(5)):
            if position == 0:
                assert 0.9 < found[0] < 1.1  # the mean of gamma draws is alpha
                continue
            after, before = (session.run(mean, {at: start + sign * step}) for sign in (1, -1))
            assert found[position] == pytest.approx((after - before) / 2e-4, rel=1e-3)
