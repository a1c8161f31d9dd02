"""The tests of `tests/runtime/xla/test_faults.py` that need names of TensorFlow 1."""

from __future__ import annotations

import numpy as np
import pytest

import estimatorkit as tf
from tests.golden.snippets_faults import LEGACY
from tests.runtime.xla.test_faults import test_messages_match_tensorflow as check_messages
from tests.sweep import sweep


def test_shape_mismatch_names_operation() -> None:
    """As in TensorFlow 2.15.1, where shapes are not known before."""
    given = [tf.placeholder(dtype) for dtype in (tf.float32, tf.int32, tf.int32)]
    made = tf.sparse_segment_sum(*given)
    values = (np.ones([3, 2]), [0, 1], [0, 0, 1])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        session.run(made, dict(zip(given, values, strict=True)))
    assert "test_faults.py" in str(caught.value)


@sweep("name", sorted(LEGACY), quick=2)
def test_messages_match_tensorflow(name: str) -> None:
    check_messages(name)
