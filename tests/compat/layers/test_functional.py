"""The tests of `tests/layers/test_functional.py` that need names of TensorFlow 1."""

from __future__ import annotations

import pytest

import estimatorkit as tf
from tests.layers.test_functional import graph

__all__ = ["graph"]


def test_layer_names_are_unique_unless_shared() -> None:
    """Of functions the name is the scope; see TensorFlow's `Layer._set_scope`."""
    with tf.Graph().as_default():
        x = tf.zeros([2, 3])
        for _ in range(2):
            tf.layers.Dense(3, use_bias=False, name="a")(x)
        tf.layers.Dense(3, use_bias=False, name="a", _reuse=True)(x)
        for _ in range(2):
            tf.nn.rnn_cell.BasicRNNCell(3, name="b")(x, x)
        tf.layers.dense(x, 3, use_bias=False, name="c")
        with pytest.raises(ValueError, match="c/kernel already exists"):
            tf.layers.dense(x, 3, use_bias=False, name="c")
        found = [each.op.name for each in tf.global_variables() if "kernel" in each.name]
        assert found == ["a/kernel", "a_1/kernel", "b/kernel", "b_1/kernel", "c/kernel"]
