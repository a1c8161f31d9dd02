"""The tests of `tests/ops/control/test_functions.py` that need names of TensorFlow 1."""

from __future__ import annotations

import estimatorkit as tf
from tests.ops.control.test_functions import graph

__all__ = ["graph"]


def test_recompute_grad_of_lambda() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(2.0)
        y = tf.recompute_grad(lambda each: each**3)(x)
        assert session.run(tf.gradients(y, x)) == [12.0]
