"""Wrong programs fail as in TensorFlow 2.15.1: error class, first words, location and cause.

Each row was run under `tensorflow.compat.v1` when it was written; `test_names.py` compares more
with recorded messages, the files of each area test their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf

Program = Callable[[], Any]


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def _x(*shape: int | None, dtype: Any = tf.float32) -> Any:
    return tf.placeholder(dtype, list(shape), name="x")


def _run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feed)


def _another_graph() -> Any:
    with tf.Graph().as_default():
        return tf.placeholder(tf.float32, [], name="other")


BUILDING: dict[str, tuple[Program, type[Exception], str]] = {
    "pad": (lambda: tf.pad(_x(2, 3), [[1, 1]]), ValueError, r"shape \(2, 2\)"),
    "tile": (lambda: tf.tile(_x(2, 3), [2]), ValueError, r"shape \(2,\)"),
    "where: shapes": (
        lambda: tf.where(_x(2, dtype=tf.bool), tf.zeros([3]), tf.ones([3])),
        ValueError,
        "must be equal, but are 2 and 3",
    ),
    "where: condition": (
        lambda: tf.where(_x(2), tf.zeros([2]), tf.ones([2])),
        TypeError,
        "Input 'condition' of 'Select' Op has type float32 that does not match .* bool",
    ),
    "constant of numbers and strings": (
        lambda: tf.constant([1, "a"]),
        TypeError,
        "but got 1 of type int",
    ),
    "while_loop: predicate": (
        lambda: tf.while_loop(lambda x: x < 9.0, lambda x: x + 1, [tf.constant([1.0, 2.0])]),
        ValueError,
        r"bool \(\)",
    ),
    "while_loop: number as predicate": (
        lambda: tf.while_loop(lambda x: x, lambda x: x + 1, [tf.constant(1.0)]),
        TypeError,
        r"bool \(\)",
    ),
    "cond: tensors as branches": (
        lambda: tf.cond(tf.constant(True), tf.constant(1), tf.constant(2)),  # type: ignore[arg-type]
        TypeError,
        "'true_fn' must be callable",
    ),
    "device": (
        lambda: tf.device("/nonsense:0").__enter__(),
        ValueError,
        "Unknown attribute 'nonsense' is encountered while parsing the device spec: '/nonsense:0'",
    ),
    "tensor's name": (
        lambda: tf.get_default_graph().get_tensor_by_name("nothing:0"),
        KeyError,
        "The name 'nothing:0' refers to a Tensor which does not exist. The operation, 'nothing', "
        "does not exist in the graph",
    ),
}

RUNNING: dict[str, tuple[Program, type[Exception], str]] = {
    "feed: unknown name": (
        lambda: _run(tf.constant(1), {"nothing:0": 1}),
        TypeError,
        "Cannot interpret feed_dict key as Tensor: The name 'nothing:0' refers to a Tensor which",
    ),
    "feed: another graph": (
        lambda: _run(tf.constant(1), {_another_graph(): 1.0}),
        TypeError,
        "Cannot interpret feed_dict key as Tensor: .* is not an element of this graph",
    ),
    "feed: too large": (
        lambda: _run(_x(dtype=tf.int32) + 1, {"x:0": 2**40}),
        TypeError,
        "out of bounds for int32(.|\n)*test_error_messages.py",
    ),
    "fetch: no such output": (
        lambda: _run([tf.constant(1, name="c"), "c:3"]),
        ValueError,
        r"Fetch argument 'c:3' cannot be interpreted as a Tensor. \(The name 'c:3' refers to a "
        r"Tensor which does not exist. The operation, 'c', exists but only has 1 outputs.\)\n  "
        r"expected: an index below 1",
    ),
    "run without a session": (
        lambda: tf.no_op().run(),
        ValueError,
        r"Cannot execute operation using `run\(\)`: No default session is registered",
    ),
    "eval without a session": (
        lambda: tf.constant(1).eval(),
        ValueError,
        r"Cannot evaluate tensor using `eval\(\)`: No default session is registered",
    ),
    "check_numerics": (
        lambda: _run(tf.check_numerics(tf.placeholder_with_default([np.nan], [1]), "my words")),
        tf.errors.InvalidArgumentError,
        "my words : Tensor had NaN values(.|\n)*test_error_messages.py",
    ),
    "py_func": (
        lambda: _run(tf.py_func(lambda: {}["k"], [], tf.float32)),
        tf.errors.UnknownError,
        "KeyError: 'k'(.|\n)*test_error_messages.py",
    ),
}


@pytest.mark.parametrize("name", [*BUILDING, *RUNNING])
def test_error_class_and_message(name: str) -> None:
    program, kind, words = {**BUILDING, **RUNNING}[name]
    with pytest.raises(kind, match=words) as caught:
        program()
    assert type(caught.value) is kind


@pytest.mark.parametrize("name", ["pad", "tile", "where: condition", "while_loop: predicate"])
def test_error_names_user_line(name: str) -> None:
    program, kind, _ = BUILDING[name]
    with pytest.raises(kind, match=r"made at: .*test_error_messages.py"):
        program()


def test_computed_paddings_and_depth() -> None:
    rows = tf.placeholder(tf.float32, [None, 2])
    count = tf.shape(rows)[0]
    padded = tf.pad(rows, [[0, 4 - count], [1, 0]], constant_values=7)
    slope = tf.gradients(padded * padded, rows)[0]
    last = tf.one_hot([1, -1], count)
    first = tf.one_hot([[1, 0]], count, on_value=5, off_value=2, axis=0)
    assert (last.shape.as_list(), first.shape.as_list()) == ([2, None], [None, 1, 2])
    with tf.Session() as session:
        for given in (np.ones([3, 2]), np.ones([1, 2])):
            values = session.run([padded, slope, last, first], {rows: given})
            more = 4 - len(given)
            np.testing.assert_array_equal(
                values[0], np.pad(given, [(0, more), (1, 0)], constant_values=7)
            )
            np.testing.assert_array_equal(values[1], 2 * given)
            classes = np.arange(len(given))
            np.testing.assert_array_equal(values[2], np.array([[1], [-1]]) == classes)
            expected = np.where(np.array([[[1, 0]]]) == classes[:, None, None], 5, 2)
            np.testing.assert_array_equal(values[3], expected)


def test_status_codes_match_tensorflow() -> None:
    names = ["OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND"]
    names += ["ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION"]
    names += ["ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"]
    assert [getattr(tf.errors, name) for name in names] == list(range(16))
    assert tf.errors.UNAUTHENTICATED == 16
    for code in range(1, 17):
        kind = tf.errors.exception_type_from_error_code(code)
        assert kind(None, None, "no").error_code == code
        assert tf.errors.error_code_from_exception_type(kind) == code
    assert tf.errors.OpError(None, None, "no", tf.errors.ABORTED).error_code == 10
    assert tf.errors.exception_type_from_error_code(11) is tf.errors.OutOfRangeError
