"""Array and math functions against TensorFlow: values, static shapes, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from tests.golden.golden_files import error_of
from tests.golden.snippets_arrays import ARRAY_ERRORS, LEGACY, SNIPPETS
from tests.golden.snippets_sparse import run

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "arrays.json").read_text("utf-8"))


@pytest.mark.parametrize("name", sorted(SNIPPETS.keys() - LEGACY))
def test_results(name: str) -> None:
    check_results(tf, name)


def check_results(module: Any, name: str) -> None:
    """Compares the results of a module's functions."""
    found, expected = run(module, SNIPPETS[name]), GOLDEN["snippets"][name]
    assert len(found) == len(expected)
    for at, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_allclose(
            np.array(ours["value"], float), np.array(theirs["value"], float), rtol=1e-5, atol=1e-6
        )
        assert ours["dtype"] == theirs["dtype"], at
        assert at_least_as_much(ours["shape"], theirs["shape"]), (at, ours, theirs)


def at_least_as_much(ours: Any, theirs: Any) -> bool:
    """Whether ours says all that theirs says of a shape, and does not contradict it."""
    if theirs is None:
        return True
    return ours is not None and all(
        known in (None, dim) for dim, known in zip(ours, theirs, strict=True)
    )


@pytest.mark.parametrize("name", sorted(ARRAY_ERRORS.keys() - LEGACY))
def test_errors(name: str) -> None:
    check_error(tf, name)


def check_error(module: Any, name: str) -> None:
    """Compares the class of an error of a module's function."""
    got, golden = error_of(lambda: run(module, ARRAY_ERRORS[name])), GOLDEN["errors"][name]
    assert got is not None
    assert got["class"] == golden["class"], got


def test_constant_value_through_cast_and_identity() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [10, None])
        assert tf.zeros([tf.identity(tf.shape(x)[0])]).shape.as_list() == [10]
        assert tf.reshape(x, tf.cast(tf.shape(x), tf.int64)).shape.as_list() == [10, None]
        rounded = tf.cast(tf.cast(tf.shape(x), tf.float32), tf.int32)
        assert tf.reshape(x, rounded).shape.as_list() == [None, None]


@pytest.mark.parametrize(
    ("lengths", "axis", "ends"), [([-1, 1], 1, [3]), ([1, -1, 1], 1, [1, 3]), ([-1, 0], 0, [2])]
)
def test_split_infers_length_at_run_time(lengths: list[int], axis: int, ends: list[int]) -> None:
    values = np.arange(8).reshape(2, 4)
    fed = tf.placeholder_with_default(values, [None, None])
    with tf.Session() as session:
        parts = session.run(tf.split(fed, lengths, axis))
    for part, expected in zip(parts, np.split(values, ends, axis), strict=True):
        np.testing.assert_array_equal(part, expected)


def test_index_out_of_range_in_untaken_branch() -> None:
    given = tf.placeholder(tf.float32, [None])
    third = tf.cond(tf.size(given) > 2, lambda: given[2], lambda: tf.constant(-1.0))
    with tf.Session() as session:
        found = [session.run(third, {given: values}) for values in ([1, 2], [1, 2, 3], [])]
    assert found == [-1.0, 3.0, -1.0]


@pytest.mark.parametrize("sizes", [(-1, 1, 1), (1, -1, 1), (2, 1, -1), (0, 4, 0), (4, 0, -1)])
@pytest.mark.parametrize("known", [True, False])
def test_computed_split_sizes_may_infer_one(sizes: Any, known: bool) -> None:
    values = np.arange(4.0)
    x = tf.placeholder(tf.float64, [4] if known else [None])
    lengths = tf.placeholder(tf.int32, [3])
    parts = tf.split(x, lengths)
    rest = [each if each >= 0 else 4 - sum(sizes) - 1 for each in sizes]
    with tf.Session() as session:
        found = session.run(parts, {x: values, lengths: sizes})
    for ours, expected in zip(found, np.split(values, np.cumsum(rest)[:-1]), strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_gradients_of_empty_rows() -> None:
    x = tf.placeholder(tf.float64, [2, 0])
    array = tf.TensorArray(tf.float64, 2).unstack(tf.tanh(x))
    parts = tf.dynamic_partition(x, [1, 0], 2)
    results = [tf.gather(x, [1, 0, 1]), array.gather([1, 0]), parts[1]]
    gradients = [tf.convert_to_tensor(tf.gradients(tf.sin(each), x)[0]) for each in results]
    joined = tf.TensorArray(tf.float64, 2).unstack(tf.expand_dims(x, 1)).concat()
    with tf.Session() as session:
        found = session.run([*gradients, joined], {x: np.zeros([2, 0])})
    assert {each.shape for each in found} == {(2, 0)}


@pytest.mark.parametrize("shape", [(), (0,), (3,)])
@pytest.mark.parametrize("axis", [None, []])
@pytest.mark.parametrize("keepdims", [True, False])
def test_logsumexp_of_constant_has_shape_of_sum(shape: Any, axis: Any, keepdims: bool) -> None:
    values = np.ones(shape, np.float32)
    found = tf.reduce_logsumexp(tf.constant(values), axis, keepdims)
    total = np.exp(values).sum(() if axis == [] else None, keepdims=keepdims)
    with np.errstate(divide="ignore"), tf.Session() as session:
        np.testing.assert_allclose(session.run(found), np.log(total), rtol=1e-6)
        assert session.run(found).shape == np.shape(total)


def test_second_gradient_of_empty_partition() -> None:
    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    places = tf.dynamic_partition(tf.range(4), [2, 1, 2, 1], 3)  # none is in the first
    parts = [2 * each for each in tf.dynamic_partition(x, [2, 1, 2, 1], 3)]
    first = tf.gradients(tf.sin(tf.dynamic_stitch(places, parts)), x)[0]
    second = tf.gradients(tf.sin(first), x)[0]
    numbers = np.arange(1.0, 5.0)
    slope = 2 * np.cos(2 * numbers)
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(first), slope, rtol=1e-5)
        expected = np.cos(slope) * -4 * np.sin(2 * numbers)
        np.testing.assert_allclose(session.run(second), expected, rtol=1e-5)


@pytest.mark.parametrize("known", [True, False])
def test_empty_divided_by_zero(known: bool) -> None:
    nothing, zero = np.zeros([0], np.int32), np.zeros([1], np.int32)
    make = tf.constant if known else lambda value: tf.placeholder_with_default(value, [None])
    x, y = make(nothing), make(zero)
    with tf.Session() as session:
        for result in session.run([x // y, x % y, tf.truncatediv(x, y)]):
            assert result.shape == (0,)
