"""TensorFlow's feature-column protocol: the package's columns and custom ones."""

from __future__ import annotations

from typing import Any

import pytest

import estimatorkit as tf


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def test_linear_model_sums_all_ids_of_unknown_rank() -> None:
    column = tf.feature_column.categorical_column_with_identity("a", 3)
    values = tf.sparse_placeholder(tf.int64)
    net = tf.feature_column.linear_model({"a": values}, [column])
    weights = tf.global_variables()[0]
    given = tf.SparseTensorValue(((0, 0, 0), (0, 1, 0), (1, 0, 1)), (0, 1, 2), (2, 2, 2))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(weights.assign([[1.0], [10.0], [100.0]]))
        assert session.run(net, {values: given}).tolist() == [[11.0], [100.0]]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (tf.add_n, "must have the same size and shape"),
        (lambda each: tf.concat(each, 1), "Dimensions of inputs should match"),
    ],
)
def test_batch_size_mismatch_at_run_time(make: Any, words: str) -> None:
    first, second = tf.placeholder(tf.float32, [None, 1]), tf.constant([[1.0], [2.0]])
    net = make([first, second])
    with tf.Session() as session, pytest.raises(tf.errors.OpError, match=words):
        session.run(net, {first: [[1.0]]})
