"""The tests of `tests/data/test_dataset_functions.py` that need names of TensorFlow 1."""

from __future__ import annotations

from typing import Any

import pytest

import estimatorkit as tf
from tests.data.models import drain
from tests.data.test_dataset_functions import Dataset, _graph, values

__all__ = ["_graph"]


def test_tables_of_graph() -> None:
    table = tf.lookup.index_table_from_tensor(["a", "b"], num_oov_buckets=1)
    words = Dataset.from_tensor_slices(["b a", "c", "a b b"]).map(
        lambda line: table.lookup(tf.string_split([line]).values)
    )
    element = words.padded_batch(2, [None]).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        found = drain(session, element)
    assert [each.tolist() for each in found] == [[[1, 0], [2, 0]], [[0, 1, 1]]]


def test_tables_created_inside_function() -> None:
    def ids(line: Any) -> Any:
        table = tf.lookup.index_table_from_tensor(["a", "b"], default_value=9)
        return table.lookup(line)

    element = Dataset.from_tensor_slices(["b", "x"]).map(ids).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        assert drain(session, element) == [1, 9]


@pytest.mark.slow
def test_sparse_tensors_in_and_out() -> None:
    dataset = Dataset.range(1, 4).map(
        lambda x: tf.SparseTensor([[0], [2]], tf.stack([x, x * 10]), [4])
    )
    assert dataset.element_spec == tf.SparseTensorSpec([4], tf.int64)
    dense = dataset.map(tf.sparse.to_dense)
    assert values(dense) == [[1, 0, 10, 0], [2, 0, 20, 0], [3, 0, 30, 0]]
    batched = list(dataset.batch(2))
    assert batched[0].dense_shape.tolist() == [2, 4]
    assert batched[0].indices.tolist() == [[0, 0], [0, 2], [1, 0], [1, 2]]
    assert values(dataset.batch(3).unbatch().map(tf.sparse.to_dense)) == values(dense)
    assert values(dataset.shuffle(3, 1).map(lambda s: tf.sparse.reduce_sum(s))) != [11, 22, 33]
