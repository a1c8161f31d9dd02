"""The tests of `tests/core/test_error_messages.py` that need names of TensorFlow 1."""

from __future__ import annotations

import pytest

import estimatorkit.compat.v1 as tf


def test_rows_of_where() -> None:
    with tf.Graph().as_default():
        chosen = tf.placeholder(tf.bool, [2])
        with pytest.raises(ValueError, match="must be equal, but are 2 and 3"):
            tf.where(chosen, tf.zeros([3, 4]), tf.ones([3, 4]))
