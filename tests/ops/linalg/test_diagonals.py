"""Diagonal bands: TensorFlow 2.15.1's values, and how the three functions compose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from tests.sweep import sweep

X = np.arange(1, 13).reshape(3, 4)
D = np.arange(1, 9).reshape(2, 4)
# As TensorFlow gives them for X with k = (-1, 2) and padding 99.
PARTS = {
    "RIGHT_LEFT": [[99, 3, 8], [2, 7, 12], [1, 6, 11], [5, 10, 99]],
    "LEFT_RIGHT": [[3, 8, 99], [2, 7, 12], [1, 6, 11], [99, 5, 10]],
    "LEFT_LEFT": [[3, 8, 99], [2, 7, 12], [1, 6, 11], [5, 10, 99]],
    "RIGHT_RIGHT": [[99, 3, 8], [2, 7, 12], [1, 6, 11], [99, 5, 10]],
}


@sweep("align", PARTS, quick=2)
def test_extract_then_set_diagonals(align: str) -> None:
    ks: list[Any] = [(-1, 2), (-2, 0), (1, 3), 2, -1]
    stack = tf.placeholder(tf.int32, [None, 3, 4])
    kept, made, parts = [], [], []
    for k in ks:
        part = tf.matrix_diag_part(stack, k=k, padding_value=99, align=align)
        assert part.shape.rank == (3 if isinstance(k, tuple) else 2)
        parts.append(part)
        kept.append(tf.matrix_set_diag(-stack, part, k=k, align=align))
        made.append(tf.matrix_diag(part, "d", k, 3, 4, 0, align))
        assert made[-1].shape.as_list() == [None, 3, 4]
    with tf.Session() as session:
        found = session.run([parts, kept, made], {stack: [X, 2 * X]})
    assert found[0][0][0].tolist() == PARTS[align]
    distance = np.arange(4) - np.arange(3)[:, None]
    for k, set_, alone in zip(ks, *found[1:], strict=True):
        inside = (distance >= np.min(k)) & (distance <= np.max(k))
        for scale in (1, 2):
            np.testing.assert_array_equal(set_[scale - 1], scale * np.where(inside, X, -X))
            np.testing.assert_array_equal(alone[scale - 1], scale * np.where(inside, X, 0))


def test_default_sizes() -> None:
    made = [
        tf.matrix_diag(D[0], k=1),
        tf.matrix_diag(D[0], k=-1, num_rows=5, padding_value=7),
        tf.matrix_diag(D[0, :2], num_cols=3),
        tf.matrix_diag(D, k=tf.constant([-1, 0])),
    ]
    with tf.Session() as session:
        found = [each.tolist() for each in session.run(made)]
    assert [each.shape.as_list() for each in made] == [[5, 5], [5, 4], [2, 3], [4, 4]]
    assert found[0] == np.diag(D[0], 1).tolist()
    assert found[1] == [[7] * 4, [1, 7, 7, 7], [7, 2, 7, 7], [7, 7, 3, 7], [7, 7, 7, 4]]
    assert found[2] == [[1, 0, 0], [0, 2, 0]]
    assert found[3] == [[1, 0, 0, 0], [5, 2, 0, 0], [0, 6, 3, 0], [0, 0, 7, 4]]
    names = [
        tf.matrix_diag(D).name,
        tf.matrix_diag_part(X).name,
        tf.linalg.set_diag(X, D[0, :3]).name,
    ]
    assert names == ["diag_4:0", "diag_part:0", "set_diag:0"]


MISTAKES: dict[str, Callable[[], Any]] = {
    "invalid k": lambda: tf.matrix_diag_part(X, k=(2, 1)),
    "the diagonal 7 is out of bounds": lambda: tf.matrix_diag_part(X, k=7),
    "the number of diagonals does not match k": lambda: tf.matrix_diag(D, k=(0, 2)),
    "2 rows and 4 columns": lambda: tf.matrix_diag(D, num_rows=2),
    "8 rows and 9 columns": lambda: tf.matrix_diag(D, k=1, num_rows=8, num_cols=9),
    "unknown align": lambda: tf.matrix_diag_part(X, k=(1, 2), align="X"),
}


@pytest.mark.parametrize("problem", MISTAKES)
def test_errors(problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        MISTAKES[problem]()


def test_runtime_shape_mismatch_raises() -> None:
    x = tf.placeholder(tf.float32, None)
    part, set_ = tf.matrix_diag_part(x, k=2), tf.matrix_set_diag(x, D, k=(0, 1))
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds"):
            session.run(part, {x: np.ones([2, 2])})
        with pytest.raises(tf.errors.InvalidArgumentError, match="do not match the matrices"):
            session.run(set_, {x: np.ones([3, 4])})
