"""Axes and other integers known only at run time: values, gradients, ranks and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from tests.sweep import sweep

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) + 1
Build = Callable[[Any, Any], Any]

# By name: a function of a tensor and a number, a value of that, another one, and a wrong one.
ROWS: dict[str, tuple[Build, Any, Any, Any]] = {
    "reduce_sum": (lambda x, c: tf.reduce_sum(x, c), 0, 1, 7),
    "reduce_sum, list": (lambda x, c: tf.reduce_sum(x, [0, c]), 1, 2, 7),
    "reduce_max": (lambda x, c: tf.reduce_max(x, c, keepdims=True), [0], [1], [7]),
    "argmax": (lambda x, c: tf.argmax(x, c), 0, -1, 7),
    "argmin": (lambda x, c: tf.argmin(x, c, output_type=tf.int32), 0, 1, -4),
    "cumsum": (lambda x, c: tf.cumsum(x, c, exclusive=True), 0, 2, 7),
    "cumprod": (lambda x, c: tf.cumprod(x, c, reverse=True), 0, 1, -7),
    "cumulative_logsumexp": (lambda x, c: tf.math.cumulative_logsumexp(x, c), 0, 1, 7),
    "softmax": (lambda x, c: tf.nn.softmax(x, c), 0, 1, 7),
    "log_softmax": (lambda x, c: tf.nn.log_softmax(x, c), 0, 1, 7),
    "concat": (lambda x, c: tf.concat([x, 2 * x], c), 0, 1, 7),
    "expand_dims": (lambda x, c: tf.expand_dims(x, c), 0, -1, 7),
    "gather": (lambda x, c: tf.gather(x, [1, 0], axis=c), 0, 1, 7),
    "gather, batch": (lambda x, c: tf.gather(x, [[1], [0]], axis=c, batch_dims=1), 1, 2, 7),
    "boolean_mask": (
        lambda x, c: tf.boolean_mask(x[:, :2], [True, False], axis=c),
        *(0, 1, 7),
    ),
    "split": (lambda x, c: tf.split(x, 2, c), 0, 2, 7),
    "split, lengths": (lambda x, c: tf.split(x, [1, -1], c), 0, 1, 7),
    "reverse": (lambda x, c: tf.reverse(x, [c]), 0, 1, 7),
    "roll": (lambda x, c: tf.roll(x, [1, 2], c), [0, 1], [1, 2], [0, 7]),
    "transpose": (lambda x, c: tf.transpose(x, [c, 1, 2 - c]), 0, 2, 1),
    "tensordot": (lambda x, c: tf.tensordot(x, x, c), [[0], [0]], [[1], [1]], [[7], [0]]),
    "bincount": (lambda x, c: tf.bincount(tf.cast(x, tf.int32), minlength=c), 3, 50, None),
    "diag": (lambda x, c: tf.linalg.diag(x[0, 0], k=c), 0, -1, None),
    "diag_part": (lambda x, c: tf.linalg.diag_part(x, k=c), [0, 1], [-1, 1], [9, 9]),
    "set_diag": (lambda x, c: tf.linalg.set_diag(x, x[:, 0, :3], k=c), 0, 1, 9),
    "rot90": (lambda x, c: tf.image.rot90(x, c), 0, 3, None),
}


def _with_gradient(build: Build, given: Any) -> tuple[list[Any], Any]:
    """The outputs, and the gradient of their squares by the tensor."""
    x = tf.constant(X)
    outputs = tf.nest.flatten(build(x, given))
    floats = [each * each for each in outputs if each.dtype == tf.float32]
    (gradient,) = tf.gradients(floats, x) if floats else (None,)
    return outputs, tf.zeros([]) if gradient is None else tf.convert_to_tensor(gradient)


@sweep("name", sorted(ROWS), quick=8)
def test_runtime_integers(name: str) -> None:
    build, *values, wrong = ROWS[name]
    with tf.Graph().as_default(), tf.Session() as session:
        number = tf.placeholder(tf.int32, np.shape(values[0]))
        outputs, gradient = computed = _with_gradient(build, number)
        for value in values:
            known, of_known = expected = _with_gradient(build, value)
            for one, two in zip(outputs, known, strict=True):
                assert one.dtype == two.dtype
                assert one.shape.is_compatible_with(two.shape)
            assert gradient.shape.is_compatible_with(of_known.shape)
            found, wanted = session.run([computed, expected], {number: value})
            for one, two in zip(tf.nest.flatten(found), tf.nest.flatten(wanted), strict=True):
                np.testing.assert_allclose(one, two, rtol=1e-6)
        if wrong is not None:
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(outputs, {number: wrong})


def test_static_rank_is_kept() -> None:
    number = tf.placeholder(tf.int32, [])
    x = tf.ones([2, 3, 4])
    for made in (tf.concat([x, x], number), tf.gather(x, [0], axis=number), tf.cumsum(x, number)):
        assert made.shape.rank == 3
    assert tf.cumsum(x, number).shape == [2, 3, 4]
    assert tf.argmax(x, number).shape.as_list() == [None, None]
    assert [each.shape.rank for each in tf.split(x, 2, number)] == [3, 3]


def test_exports_as_tensorflow_inputs() -> None:
    x = tf.placeholder(tf.float32, [2, 3], "x")
    number = tf.placeholder(tf.int32, [], "number")
    made = [
        tf.concat([x, x], number),
        tf.gather(x, [0, 1], axis=number),
        tf.split(x, 1, number)[0],
        tf.cast(tf.argmax(x, number), tf.float32),
        tf.cumsum(x, number),
        tf.expand_dims(x, number),
        tf.reduce_sum(x, number),
    ]
    definition = tf.get_default_graph().as_graph_def()
    assert next(each for each in definition.node if each.op == "ConcatV2").input[-1] == "number"
    with tf.Graph().as_default(), tf.Session() as session:
        names = [each.name for each in made]
        again = tf.import_graph_def(definition, return_elements=names, name="")
        feeds = {"x:0": np.ones([2, 3]), "number:0": 1}
        shapes = [each.shape for each in session.run(again, feeds)]
    assert shapes == [(2, 6), (2, 2), (2, 3), (2,), (2, 3), (2, 1, 3), (2,)]


@pytest.mark.parametrize("number", [[0, 1], 1.5])
def test_axis_must_be_an_integer_scalar(number: Any) -> None:
    given = tf.placeholder_with_default(number, np.shape(number))
    with pytest.raises((TypeError, ValueError), match=r"rank 0|allowed"):
        tf.concat([X, X], given)
