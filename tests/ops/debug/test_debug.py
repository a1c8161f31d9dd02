"""Print, Assert, check_numerics, assertions and py_func: output, errors and timing."""

from __future__ import annotations

import gc
import io
import logging
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core import errors
from estimatorkit.ops.debug.summarize import format_number, summarize_ends, summarize_first

# Rows that no single call can show (see test_ops.py): Print and PrintV2 (they write), PyFunc and
# PyFuncStateless (they need a function), Timestamp.


@pytest.fixture(autouse=True)
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


# -- values as text; all figures from TensorFlow 2.15.1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(1 / 3), "0.333333343"),
        (np.float64(1 / 3), "0.33333333333333331"),
        (np.float16(1 / 3), "0.333251953"),
        (np.float64(0.1), "0.1"),
        (np.float32(1e-7), "1e-07"),
        (np.float32(123456789), "123456792"),
        (np.float32(16777217), "16777216"),
        (np.float32(1e15), "1e+15"),
        (np.float32("inf"), "inf"),
        (np.float32("-inf"), "-inf"),
        (np.float32("nan"), "nan"),
        (np.bool_(True), "1"),
        (np.uint8(200), "200"),
        (np.complex64(1 - 2j), "(1-2j)"),  # TensorFlow writes a question mark
    ],
)
def test_numbers(value: Any, text: str) -> None:
    assert format_number(value) == text


@pytest.mark.parametrize(
    ("array", "limit", "text"),
    [
        (np.arange(1, 6), 3, "1 2 3..."),
        (np.arange(1, 6), -1, "1 2 3 4 5"),
        (np.array([[1.5, 2.25], [0.1, 1e-7]], np.float32), 3, "[1.5 2.25][0.1...]..."),
        (zeros(2, 3, 2), 3, "[[0 0][0...]]..."),
        (zeros(2, 3, 2), -1, "[[0 0][0 0][0 0]][[0 0][0 0][0 0]]"),
        (zeros(3, 1), 3, "[0][0][0]"),
        (zeros(4, 1), 3, "[0][0][0]..."),
        (zeros(0), 3, ""),
        (np.array(b"text", object), 3, "text"),
        (np.array([b'a"\nb', b"c"], object), 3, 'a\\"\\nb c'),
    ],
)
def test_first_elements(array: Any, limit: int, text: str) -> None:
    assert summarize_first(array, limit) == text


@pytest.mark.parametrize(
    ("array", "edge", "text"),
    [
        (np.arange(1, 6), 1, "[1 ... 5]"),
        (np.arange(1, 6), 3, "[1 2 3 4 5]"),
        (np.array([[1.5, 2.25], [0.1, 1e-7]], np.float32), 3, "[[1.5 2.25]\n [0.1 1e-07]]"),
        (zeros(2, 8, 2), 1, "[[[0 0]\n  ...\n  [0 0]]\n\n [[0 0]\n  ...\n  [0 0]]]"),
        (zeros(8, 1, 2), 1, "[[[0 0]]\n\n ...\n\n [[0 0]]]"),
        (zeros(0), 3, "[]"),
        (np.array([b'a"\nb', b"c"], object), 3, '["a\\"\\nb" "c"]'),
    ],
)
def test_first_and_last_elements(array: Any, edge: int, text: str) -> None:
    assert summarize_ends(array, edge) == text


# -- Print


def test_print_output(session: tf.Session, capsys: Any) -> None:
    x = tf.constant([1, 2, 3, 4, 5])
    shown = tf.Print(x, [x, tf.constant("ab"), tf.constant([True, False])], message="msg: ")
    assert shown.name == "Print:0"
    assert session.run(shown).tolist() == [1, 2, 3, 4, 5]
    assert capsys.readouterr().err == "msg: [1 2 3...][ab][1 0]\n"
    session.run(tf.Print(x, [x], summarize=10))
    assert capsys.readouterr().err == "[1 2 3 4 5]\n"


def test_print_first_n(session: tf.Session, capsys: Any) -> None:
    shown = tf.Print(tf.constant(1.0), [7], first_n=2)
    for _ in range(4):
        session.run(shown)
    assert capsys.readouterr().err == "[7]\n" * 2
    with tf.Session() as another:
        another.run(shown)
    assert capsys.readouterr().err == "[7]\n"


def test_gradients_through_print(session: tf.Session, capsys: Any) -> None:
    x = tf.placeholder(tf.float32, [])
    loss = tf.square(tf.Print(x, [x]))
    assert session.run(tf.gradients(loss, x), {x: 3.0}) == [6.0]
    assert capsys.readouterr().err == "[3]\n"


def test_print_function(session: tf.Session, capsys: Any) -> None:
    x = tf.constant([1, 2, 3, 4, 5])
    session.run(tf.print("a", x, {"k": x, "b": 1}, [x, "s"], (x,)))
    assert capsys.readouterr().err == (
        "a [1 2 3 4 5] {'b': 1, 'k': [1 2 3 4 5]} [[1 2 3 4 5], 's'] ([1 2 3 4 5],)\n"
    )
    session.run(tf.print(x, x, sep="|", end="!!", summarize=1, output_stream=sys.stdout))
    assert capsys.readouterr().out == "[1 ... 5]|[1 ... 5]!!"
    session.run(tf.print(tf.constant('s"t')))
    session.run(tf.print(["s", tf.constant("t")]))
    session.run(tf.print())
    assert capsys.readouterr().err == 's"t\n[\'s\', "t"]\n\n'
    session.run(tf.print(tf.SparseTensor([[0, 1]], [2], [3, 4])))
    assert capsys.readouterr().err == ("'SparseTensor(indices=[[0 1]], values=[2], shape=[3 4])'\n")


def test_print_to_other_streams(
    session: tf.Session, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "lines"
    line = tf.print(tf.constant([1.5]), output_stream=f"file://{path}")
    session.run(line)
    session.run(line)
    assert path.read_text("utf-8") == "[1.5]\n[1.5]\n"
    with caplog.at_level(logging.WARNING, "estimatorkit"):
        session.run(tf.print("careful", output_stream=logging.WARNING))
    assert [record.getMessage() for record in caplog.records] == ["careful"]
    with pytest.raises(ValueError, match="Unsupported output stream"):
        tf.print("x", output_stream=io.StringIO())


# -- Assert and the checks


def failure(session: tf.Session, check: Any) -> str:
    with pytest.raises(errors.InvalidArgumentError) as raised:
        session.run(check)
    return str(raised.value).split("\n")[0].removesuffix(".")


def test_assert(session: tf.Session) -> None:
    x = tf.constant([1, 2, 3, 4, 5])
    assert failure(session, tf.Assert(tf.constant(False), ["x:", x, 2.5])) == (
        "assertion failed: [x:] [1 2 3...] [2.5]"
    )
    assert failure(session, tf.Assert(tf.constant(False), [x], summarize=10)) == (
        "assertion failed: [1 2 3 4 5]"
    )
    with pytest.raises(TypeError, match="Expected list for 'data'"):
        tf.Assert(tf.constant(True), "x")
    with tf.control_dependencies([tf.Assert(tf.constant(True), [x])]):
        assert session.run(tf.identity(x)).tolist() == [1, 2, 3, 4, 5]


def fed(value: Any) -> tf.Tensor:
    return tf.placeholder_with_default(value, np.shape(value))


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (
            lambda a, b: tf.assert_equal(a, b),
            "[Condition x == y did not hold element-wise:] [x (a:0) = ] [1 2] [y (b:0) = ] [1 3]",
        ),
        (lambda a, b: tf.assert_equal(a, b, message="hello", data=["x", a]), "[hello] [x] [1 2]"),
        (lambda a, b: tf.assert_none_equal(a, b), "[Condition x != y did not hold"),
        (lambda a, b: tf.assert_less(b, a), "[Condition x < y did not hold element-wise:] [x (b"),
        (lambda a, b: tf.assert_less_equal(b, a), "[Condition x <= y did not hold element-wise:]"),
        (lambda a, b: tf.assert_greater(a, b), "[Condition x > y did not hold element-wise:]"),
        (lambda a, b: tf.assert_greater_equal(a, b), "[Condition x >= y did not hold"),
        (
            lambda a, b: tf.assert_positive(-a),
            "[] [Condition x > 0 did not hold element-wise:] [x (Neg:0) = ] [-1 -2]",
        ),
        (lambda a, b: tf.assert_non_negative(-a), "[] [Condition x >= 0 did not hold"),
        (lambda a, b: tf.assert_negative(a), "[] [Condition x < 0 did not hold element-wise:]"),
        (lambda a, b: tf.assert_non_positive(a), "[] [Condition x <= 0 did not hold"),
        (lambda a, b: tf.assert_near(a, b), "[] [x and y not equal to tolerance rtol, atol = ]"),
    ],
)
def test_failing_assertions(session: tf.Session, check: Callable[..., Any], words: str) -> None:
    a = tf.placeholder_with_default([1.0, 2.0], [2], name="a")
    b = tf.placeholder_with_default([1.0, 3.0], [2], name="b")
    assert failure(session, check(a, b)).startswith(f"assertion failed: {words}")


def test_passing_assertions(session: tf.Session) -> None:
    a, b = fed([1.0, 2.0]), fed([3.0, 4.0])
    session.run(
        [
            *(tf.assert_equal(a, a), tf.assert_none_equal(a, b), tf.assert_less(a, b)),
            *(tf.assert_less_equal(a, a), tf.assert_greater(b, a), tf.assert_near(a, a)),
            *(tf.assert_greater_equal(a, a), tf.assert_positive(a), tf.assert_negative(-a)),
            *(tf.assert_non_negative(a), tf.assert_non_positive(-a), tf.assert_rank(a, 1)),
            *(tf.assert_rank_at_least(a, 1), tf.assert_rank_in(a, [0, 1]), tf.assert_equal(1, 1)),
            *(tf.assert_type(a, tf.float32), tf.assert_integer(1)),
        ]
    )


def test_static_values_are_checked_at_once() -> None:
    with pytest.raises(errors.InvalidArgumentError) as raised:
        tf.assert_equal([1, 2], [1, 3], message="hello")
    assert str(raised.value).split("\n") == [
        *("hello", "Condition x == y did not hold element-wise:", "x (assert_equal/x:0) = "),
        *("[1 2]", "y (assert_equal/y:0) = ", "[1 3]"),
    ]
    with pytest.raises(errors.InvalidArgumentError, match="Condition x > 0 did not hold"):
        tf.assert_positive([-1.0])


@pytest.mark.parametrize(
    ("check", "error", "words"),
    [
        (
            lambda a: tf.assert_rank(a, 2),
            ValueError,
            "Tensor a:0 must have rank 2.  Received rank 1, shape (2,)",
        ),
        (
            lambda a: tf.assert_rank_at_least(a, 2, message="m"),
            ValueError,
            "m.  Tensor a:0 must have rank at least 2.  Received rank 1, shape (2,)",
        ),
        (
            lambda a: tf.assert_rank_in(a, [0, 2]),
            ValueError,
            "Tensor a:0 must have rank in (0, 2).  Received rank 1, shape (2,)",
        ),
        (lambda a: tf.assert_rank(a, [1]), ValueError, "Rank must be a scalar."),
        (
            lambda a: tf.assert_type(a, tf.int32),
            TypeError,
            "a:0 must be of type tf.int32; got tf.float32",
        ),
        (
            lambda a: tf.assert_integer(a),
            TypeError,
            "Expected \"x\" to be integer type.  Found: a:0 of dtype <dtype: 'float32'>",
        ),
        (
            lambda a: tf.assert_scalar(a),
            ValueError,
            "Expected scalar shape for a:0, saw shape: (2,).",
        ),
        (
            lambda a: tf.assert_same_float_dtype([a, tf.constant(1.0, tf.float64)]),
            ValueError,
            "Const:0, type=<dtype: 'float64'>, must be of the same type (<dtype: 'float32'>) as "
            "a:0.",
        ),
        (
            lambda a: tf.assert_same_float_dtype([tf.constant(1)]),
            ValueError,
            "Expected floating point type, got <dtype: 'int32'>.",
        ),
        (
            lambda a: tf.assert_proper_iterable(a),
            TypeError,
            'Expected argument "values" to be a "proper" iterable.',
        ),
        (
            lambda a: tf.assert_proper_iterable(3),
            TypeError,
            'Expected argument "values" to be iterable.',
        ),
        (lambda a: tf.is_non_decreasing("a"), TypeError, "Expected x to be numeric"),
    ],
)
def test_static_checks(check: Callable[[Any], Any], error: type[Exception], words: str) -> None:
    a = tf.placeholder_with_default([1.0, 2.0], [2], name="a")
    with pytest.raises(error) as raised:
        check(a)
    assert str(raised.value).startswith(words)


def test_ranks_known_at_run_time(session: tf.Session) -> None:
    x = tf.placeholder_with_default([1.0, 2.0], None, name="x")
    rank = tf.placeholder_with_default(1, [])
    session.run([tf.assert_rank(x, rank), tf.assert_rank_at_least(x, 1)])
    assert failure(session, tf.assert_rank(x, 2)) == (
        "assertion failed: [] [Tensor x:0 must have rank] [2] [Received shape: ] [2]"
    )
    assert failure(session, tf.assert_rank_at_least(x, 2)).endswith("[2] [Received shape: ] [2]")
    assert failure(session, tf.assert_rank_in(x, [0, 2])) == (
        "assertion failed: [] [Tensor x:0 must have rank in] [0] [2] [Received shape: ] [2]"
    )
    assert tf.assert_same_float_dtype() is tf.float32
    assert tf.assert_scalar(3.0).shape == ()


def test_predicates(session: tf.Session) -> None:
    assert session.run(
        [
            *(tf.is_non_decreasing([1, 2, 2]), tf.is_non_decreasing([[3, 1]])),
            *(tf.is_strictly_increasing([1, 2, 2]), tf.is_strictly_increasing([1])),
        ]
    ) == [True, False, False, True]
    assert tf.is_strictly_increasing([1]).name == "is_strictly_increasing_2/All:0"
    assert tf.is_numeric_tensor(tf.constant(1))
    assert not tf.is_numeric_tensor(tf.constant("a"))
    assert not tf.is_numeric_tensor([1])


def test_check_numerics(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [None])
    checked = tf.check_numerics(x, "m")
    assert checked.name == "CheckNumerics:0"
    for values, words in (
        ([np.nan], "m : Tensor had NaN values"),
        ([np.inf, 1.0], "m : Tensor had Inf values"),
        ([-np.inf, np.nan], "m : Tensor had Inf and NaN values"),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=words):
            session.run(checked, {x: values})
    assert session.run(checked, {x: [1.0]}).tolist() == [1.0]
    (gradient,) = tf.gradients(tf.sqrt(tf.check_numerics(x, "root")), x)
    assert session.run(gradient, {x: [4.0]}) == [0.25]
    with pytest.raises(errors.InvalidArgumentError, match=r"detected in gradient\. root"):
        session.run(gradient, {x: [0.0]})
    with pytest.raises(TypeError, match="not in list of allowed values"):
        tf.check_numerics(tf.constant(1), "m")


def test_add_check_numerics_ops(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [], name="x")
    log = tf.log(x, name="log")
    checks = tf.add_check_numerics_ops()
    whole = tf.verify_tensor_all_finite(log, "loss")
    assert whole.name == "VerifyFinite/control_dependency:0"
    session.run([whole, checks], {x: 1.0})
    with pytest.raises(errors.InvalidArgumentError, match="log:0 : Tensor had Inf values"):
        session.run(checks, {x: 0.0})
    with pytest.raises(errors.InvalidArgumentError, match="loss : Tensor had Inf values"):
        session.run(whole, {x: 0.0})


def test_timestamp(session: tf.Session) -> None:
    before = time.time()
    assert before <= session.run(tf.timestamp()) <= time.time()


# -- py_func


def test_py_func_maps_arrays_to_arrays(session: tf.Session) -> None:
    seen: list[Any] = []

    def function(x: Any, number: Any, text: Any, texts: Any) -> Any:
        seen.extend([type(x), type(number), type(text), texts.dtype])
        x += 1.0  # its own copy
        return x, np.int64(number), text + b"!", [each.decode() + "é" for each in texts]

    x = tf.constant([1.0, 2.0])
    inputs = [x, 3, "a", ["b", "c"]]
    dtypes = [tf.float32, tf.int64, tf.string, tf.string]
    results = tf.py_func(function, inputs, dtypes)
    assert [each.name for each in results] == [f"PyFunc:{at}" for at in range(4)]
    assert [each.shape.rank for each in results] == [None] * 4
    got = session.run([*results, x])
    assert got[0].tolist() == [2.0, 3.0]
    assert (got[1], got[2]) == (3, b"a!")
    assert got[3].tolist() == ["bé".encode(), "cé".encode()]
    assert got[4].tolist() == [1.0, 2.0]
    assert seen == [np.ndarray, np.int32, bytes, object]


def test_py_func_result_types(session: tf.Session) -> None:
    single = tf.py_func(lambda: 7, [], tf.int64, stateful=False)
    assert single.op.type == "PyFuncStateless"
    listed = tf.numpy_function(lambda: 7, [], [tf.int64])
    nothing = tf.py_func(lambda: None, [], [], name="nothing")
    assert isinstance(nothing, tf.Operation)
    assert nothing.name == "nothing"
    assert session.run([single, listed, nothing]) == [7, [7], None]
    with pytest.raises(ValueError, match="Expected func to be callable"):
        tf.py_func(7, [], tf.int64)
    with pytest.raises(NotImplementedError, match="use py_func"):
        tf.py_function(lambda: 7, [], tf.int64)


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda: 1.5, errors.InvalidArgumentError, "0-th value returned by pyfunc_"),
        (lambda: (1, 2), errors.InvalidArgumentError, "returns 2 values, but expects to see 1"),
        (lambda: {"a": 1}, errors.InternalError, "Unsupported object type dict"),
        (lambda: 1 / 0, errors.UnknownError, "ZeroDivisionError: division by zero"),
        (lambda: next(iter([])), errors.OutOfRangeError, "StopIteration"),
        (lambda: int("x"), errors.InvalidArgumentError, "ValueError: invalid literal"),
    ],
)
def test_py_func_errors(
    session: tf.Session, function: Callable[[], Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as raised:
        session.run(tf.py_func(function, [], tf.int64))
    assert words in str(raised.value)
    cause = raised.value.__cause__
    assert cause is None or cause.__traceback__ is not None  # the function's own line


@pytest.mark.slow
def test_py_func_lives_as_long_as_graph() -> None:
    def function() -> int:
        return 1

    alive = weakref.ref(function)
    with tf.Graph().as_default():
        tf.py_func(function, [], tf.int64)
        del function
        gc.collect()
        assert alive() is not None
    gc.collect()
    assert alive() is None


@pytest.mark.slow
def test_missing_py_func(session: tf.Session) -> None:
    made = tf.py_func(lambda: 1, [], tf.int64)
    del made.op.attrs["_function"]  # as in a graph that was read from a file
    gc.collect()
    with pytest.raises(errors.InvalidArgumentError, match="is not found"):
        session.run(made)
