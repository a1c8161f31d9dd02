"""Softplus and the sigmoid cross-entropy are exact to the precision of their dtype."""

from __future__ import annotations

import numpy as np
import pytest

import estimatorkit as tf


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(("dtype", "most"), [("float32", 3e-7), ("float64", 1e-15)])
def test_softplus_error(dtype: str, most: float) -> None:
    x = np.linspace(-80, 80, 200_001).astype(dtype)
    with tf.Session() as session:
        found = session.run(tf.nn.softplus(tf.placeholder_with_default(x, [None])))
        zeros = tf.placeholder_with_default(np.zeros_like(x), [None])
        loss = session.run(tf.nn.sigmoid_cross_entropy_with_logits(labels=zeros, logits=x))
    expected = np.logaddexp(x.astype(np.longdouble), 0)
    for each in (found, loss):
        assert np.max(np.abs(each - expected) / expected) < most


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64])
def test_softplus_limits(dtype: tf.DType) -> None:
    x = tf.constant([-np.inf, 0.0, np.inf, np.nan], dtype)
    with tf.Session() as session:
        found = session.run(tf.cast(tf.nn.softplus(x), tf.float32))
    np.testing.assert_allclose(found, [0, np.log(2), np.inf, np.nan], rtol=4e-3)
