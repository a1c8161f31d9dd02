"""The tests of `tests/ops/array/test_arrays.py` that need names of TensorFlow 1."""

from __future__ import annotations

import pytest

import estimatorkit.compat.v1 as tf
from tests.golden.snippets_arrays import ARRAY_ERRORS, LEGACY, SNIPPETS, first_dimension
from tests.ops.array.test_arrays import check_error, check_results


def test_version_1_dimensions() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 3])
    assert x.shape[0].value is None
    assert [dim.value for dim in x.shape] == [None, 3]
    assert [dim.value for dim in x.shape.dims or ()] == [None, 3]
    assert x.shape[0] is tf.placeholder(tf.float32).shape[1]
    assert str(x.shape[0]) == "?"
    assert x.shape.as_list() == [None, 3]
    assert isinstance(x.shape[0], tf.Dimension)
    assert isinstance(x.shape[1], tf.Dimension)
    assert first_dimension(x) is None  # in a module that has not imported compat.v1


def test_dimension_arithmetic() -> None:
    known, unknown = tf.Dimension(12), tf.Dimension(None)
    assert (known * 2 + 1).value == 25
    assert (100 // known).value == 8
    assert (known + unknown).value is None
    assert (unknown == known) is None
    assert known.is_compatible_with(unknown)
    assert not known.is_compatible_with(13)
    assert unknown.merge_with(known) == known.merge_with(None) == 12
    with pytest.raises(ValueError, match="are not compatible"):
        known.merge_with(tf.Dimension(13))
    with pytest.raises(TypeError, match="not an integer"):
        tf.Dimension(tf.string)
    with pytest.raises(ValueError, match=">= 0"):
        tf.Dimension(-1)


def test_static_shapes_of_unknown_tensors() -> None:
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32, [2, 3])
    rows, matrix = tf.placeholder(tf.bool, [2]), tf.placeholder(tf.bool, [2, None])
    shapes = {
        tf.pad(x, [[1, 2], [0, 0]]): [None, None],
        tf.pad(x, tf.placeholder(tf.int32, [1, 2])): [None],
        tf.einsum("ij,jk->ik", y, x): [2, None],
        tf.einsum("ij,ij->", x, x): [],
        tf.where(rows, x, y): [2, 3],
        tf.where(matrix, x, x): [2, None],
    }
    assert [each.shape.as_list() for each in shapes] == list(shapes.values())
    assert tf.where(rows, x, x).shape.rank is None


@pytest.mark.parametrize("name", sorted(SNIPPETS.keys() & LEGACY))
def test_results(name: str) -> None:
    check_results(tf, name)


@pytest.mark.parametrize("name", sorted(ARRAY_ERRORS.keys() & LEGACY))
def test_errors(name: str) -> None:
    check_error(tf, name)
