"""The tests of `tests/ops/sparse/test_sparse.py` that need names of TensorFlow 1."""

from __future__ import annotations

import pytest

import estimatorkit as tf
from tests.golden.snippets_sparse import LEGACY, SNIPPETS, SPARSE_ERRORS, sample
from tests.ops.sparse.test_sparse import test_errors as check_errors, test_results as check_results


def test_products_of_unknown_length_do_not_recompile() -> None:
    """On the host while the number of values is open, in XLA where it is known."""
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.sparse_placeholder(tf.float32, [2, 4])
        known = sample(tf)
        weights = tf.ones([4, 2])
        open_product = tf.sparse_tensor_dense_matmul(fed, weights)
        closed_product = tf.sparse_tensor_dense_matmul(known, weights)
        assert open_product.op.attrs["on_host"]
        assert not closed_product.op.attrs["on_host"]
        assert open_product.shape == [2, 2]
        for count in (1, 2, 3):
            places = [[0, at] for at in range(count)]
            found = session.run(open_product, {fed: (places, [1.0] * count, [2, 4])})
            assert found.tolist() == [[count, count], [0, 0]]


def test_large_shapes_do_not_overflow() -> None:
    """A batch of 2**40-bucket ids by 2**40: places are numbered, not multiplied out."""
    huge = 2**40
    with tf.Graph().as_default(), tf.Session() as session:
        sparse = tf.SparseTensor([[huge - 1, 3], [5, huge - 2]], [1, 2], [huge, huge])
        assert session.run(tf.sparse.reorder(sparse)).values.tolist() == [2, 1]
        doubled = session.run(tf.sparse.add(tf.sparse.reorder(sparse), tf.sparse.reorder(sparse)))
        assert doubled.values.tolist() == [4, 2]


def test_mapped_values_and_dense_to_sparse() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        sparse = sample(tf)
        mapped = tf.sparse.map_values(lambda x, y: x + 2 * y, sparse, y=sparse)
        values, product = session.run(
            [mapped.values, tf.sparse_matmul([[1.0, 0.0]], [[2.0], [3.0]], a_is_sparse=True)]
        )
        assert values.tolist() == [4.5, -6.0, 9.0, 1.5]
        assert product.tolist() == [[2.0]]
        with pytest.raises(ValueError, match="no argument is a SparseTensor"):
            tf.sparse.map_values(tf.add, 1, 2)


@pytest.mark.parametrize("name", sorted(SNIPPETS.keys() & LEGACY))
def test_results(name: str) -> None:
    check_results(name)


@pytest.mark.parametrize("name", sorted(SPARSE_ERRORS.keys() & LEGACY))
def test_errors(name: str) -> None:
    check_errors(name)
