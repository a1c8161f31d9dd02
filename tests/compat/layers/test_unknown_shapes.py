"""The tests of `tests/layers/test_unknown_shapes.py` that need names of TensorFlow 1."""

from __future__ import annotations

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core.errors import InvalidArgumentError
from tests.layers.test_unknown_shapes import graph

__all__ = ["graph"]


def test_private_weight_and_rank_functions() -> None:
    from estimatorkit.compat.v1.python.ops import (  # type: ignore[import-not-found]
        confusion_matrix,
        weights_broadcast_ops,
    )

    values = np.arange(24).reshape(3, 2, 4)
    weights, wrong = np.array([5, 11]).reshape(1, 2, 1), np.ones((3, 2))
    fed = [tf.placeholder(tf.float32), tf.placeholder(tf.float32)]
    checked = weights_broadcast_ops.assert_broadcastable(*fed)
    full = weights_broadcast_ops.broadcast_weights(*fed)
    labels, _ = confusion_matrix.remove_squeezable_dimensions(*fed, expected_rank_diff=1)
    with tf.Session() as session:
        session.run(weights_broadcast_ops.assert_broadcastable(weights, values))
        session.run(checked, dict(zip(fed, (weights, values), strict=True)))
        np.testing.assert_array_equal(
            session.run(full, dict(zip(fed, (weights, values), strict=True))),
            np.tile(weights, (3, 1, 4)),
        )
        assert session.run(labels, {fed[0]: np.ones((2, 3, 1)), fed[1]: values}).shape == (2, 3)
        with pytest.raises(InvalidArgumentError, match="weights can not be broadcast to values"):
            session.run(checked, dict(zip(fed, (wrong, values), strict=True)))
        with pytest.raises(ValueError, match="weights can not be broadcast to values"):
            weights_broadcast_ops.assert_broadcastable(wrong, values)
