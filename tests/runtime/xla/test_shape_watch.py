"""The warning about a segment that is compiled repeatedly names the tensors that cause it."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.runtime.xla.shape_watch import WARN_LIMIT


@pytest.mark.usefixtures("compiled")
@pytest.mark.slow
def test_new_shapes_are_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        rows = tf.placeholder(tf.float32, [None, 2], name="rows")
        fixed = tf.placeholder(tf.float32, [2], name="fixed")
        total = tf.reduce_sum(rows * fixed * tf.get_variable("scale", []))
        session.run(tf.global_variables_initializer())
        with caplog.at_level(logging.WARNING, "estimatorkit"):
            for count in range(1, WARN_LIMIT):
                session.run(total, {rows: np.ones([count, 2]), fixed: [1, 2]})
            for _ in range(WARN_LIMIT):
                session.run(total, {rows: np.ones([3, 2]), fixed: [1, 2]})
            assert not caplog.records
            for count in range(WARN_LIMIT, 2 * WARN_LIMIT):
                session.run(total, {rows: np.ones([count, 2]), fixed: [1, 2]})
    (record,) = caplog.records
    text = record.getMessage()
    assert f"compiled {WARN_LIMIT} times" in text
    assert f"rows:0 had {WARN_LIMIT} shapes ([1, 2], [2, 2], [3, 2], [4, 2], ...)" in text
    assert "test_shape_watch.py:" in text
    assert "fixed" not in text.split("try:")[0]
    assert "drop_remainder" in text


@pytest.mark.usefixtures("compiled")
@pytest.mark.slow
def test_values_that_decide_shapes_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        count = tf.placeholder(tf.int32, [], name="count")
        ones = tf.fill([count + 1], 1.0) * tf.get_variable("scale", [])
        session.run(tf.global_variables_initializer())
        with caplog.at_level(logging.WARNING, "estimatorkit"):
            for at in range(WARN_LIMIT):
                assert session.run(ones, {count: at}).shape == (at + 1,)
    (record,) = caplog.records
    assert f"had {WARN_LIMIT} values" in record.getMessage()
