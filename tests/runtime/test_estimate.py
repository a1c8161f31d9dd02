"""What is surely XLA's is not traced for NumPy: estimates from operations and elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.runtime import interpreted
from estimatorkit.runtime.estimate import (
    share_of_compilation,
    share_of_products,
    unknown_dimensions,
)
from estimatorkit.runtime.interpreter.cost import CONVOLUTION, PRODUCT, compiled_in
from estimatorkit.runtime.plan import Segment, make_plan
from estimatorkit.runtime.symbolic import symbolic_trace
from tests.runtime.executor_programs import config, run_steps, same_bits

LARGE, SMALL = 4000, 3
"""Rows: a step of the first takes longer than is worth waiting for its compilation."""


def layers(rows: int) -> Callable[[], Any]:
    """A program of a few layers."""

    def program() -> Any:
        x = tf.placeholder(tf.float32, [None, 50])
        y = x
        for _ in range(8):
            y = tf.tanh(y * 0.5 + 1.0)
        w = tf.get_variable("w", initializer=tf.ones([50]))
        step = tf.assign_sub(w, 0.1 * tf.reduce_mean(y, 0))
        return (tf.reduce_sum(y), step), lambda at: {x: np.full([rows, 50], at, np.float32)}

    return program


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[Segment]:
    """The segments that were traced for NumPy."""
    found: list[Segment] = []

    def counted(segment: Segment, *arguments: Any, **options: Any) -> Any:
        found.append(segment)
        return symbolic_trace(segment, *arguments, **options)

    monkeypatch.setattr(interpreted, "symbolic_trace", counted)
    return found


def largest(traces: list[Segment]) -> int:
    """The most operations of a traced segment; 0 if there is none."""
    return max((len(each.ops) for each in traces), default=0)


def test_long_runs_are_compiled_without_another_trace(traces: list[Segment]) -> None:
    found = run_steps(layers(LARGE), "auto", 3)
    assert found.compiled == [True] * 3
    assert set(found.compilations.values()) == {1}
    assert largest(traces) < 8
    compiled = run_steps(layers(LARGE), "xla", 3)
    assert same_bits(found.values, compiled.values)
    assert same_bits(found.variables, compiled.variables)


def test_products_beside_operations_without_outputs() -> None:
    x = tf.placeholder(tf.float32, [LARGE, 50])
    step = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(tf.layers.dense(x, 50)))
    (segment,) = make_plan(x.graph, [], [step], [x]).segments
    assert any(len(op.inputs) > 1 and not op.outputs for op in segment.ops)
    assert share_of_products(segment, 1) > 0


@pytest.mark.parametrize(("executor", "rows"), [("auto", SMALL), ("interpret", LARGE)])
def test_the_rest_is_traced_once(executor: str, rows: int, traces: list[Segment]) -> None:
    found = run_steps(layers(rows), executor, 3)
    assert found.compiled == [False] * 3
    assert [len(each.ops) > 8 for each in traces].count(True) == 1


def test_later_shapes_are_traced(traces: list[Segment]) -> None:
    """Shapes that follow others are interpreted if a run is shorter than a compilation."""
    with tf.Graph().as_default(), tf.Session(config=config("auto")) as session:
        (_, step), _ = layers(LARGE)()
        (x,) = (op.outputs[0] for op in session.graph.get_operations() if op.type == "Placeholder")
        session.run(tf.global_variables_initializer())
        for rows in (LARGE, LARGE + 1, LARGE + 2, LARGE):
            session.run(step.op, {x: np.ones([rows, 50])})
        assert session.state.compilations[step.op.name] == 1
        assert [len(each.ops) > 8 for each in traces].count(True) == 1


def test_runs_that_change_nothing_begin_in_numpy(traces: list[Segment]) -> None:
    """Evaluations and predictions may be few: NumPy begins although training is left to XLA."""
    with tf.Graph().as_default(), tf.Session(config=config("auto")) as session:
        (total, step), feed = layers(LARGE)()
        session.run(tf.global_variables_initializer())
        session.run(total, feed(1.0))
        assert not session.state.compilations
        session.run(step.op, feed(1.0))
        assert list(session.state.compilations) == [step.op.name]


def segment_of(fetch: Any, feed: Any) -> Segment:
    with tf.Session() as session:
        (found,) = session.plan(fetch, [feed]).segments
    return found


def test_estimate_counts_operations_within_functions_and_elements() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 10])
        once = segment_of(tf.tanh(x), x)
        twice = segment_of(tf.tanh(tf.sin(x)), x)
        loop = segment_of(tf.while_loop(lambda y: y[0, 0] < 9.0, lambda y: [y + 1.0], [x])[0], x)
    for each in (once, twice, loop):
        few, many = (share_of_compilation(each, number) for number in (2, 50_000))
        assert 0 < few < interpreted.CHEAP < many
    assert share_of_compilation(once, 2) < share_of_compilation(twice, 2)


def test_estimate_counts_the_iterations_of_a_scan() -> None:
    shares = []
    with tf.Graph().as_default():
        for length in (2, 2000):
            x = tf.placeholder(tf.float32, [length, 8])
            shares.append(segment_of(tf.scan(lambda y, row: tf.sin(y) + row, x), x))
    few, many = (share_of_compilation(each, 1) for each in shares)
    assert many > 100 * few


def test_estimate_counts_updated_variables() -> None:
    shares = []
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, 4])
        for rows in (10, 1_000_000):
            table = tf.get_variable(f"table{rows}", [rows, 4])
            shares.append(segment_of(tf.scatter_add(table, [0, 1], x).op, x))
    few, many = (share_of_compilation(each, 1) for each in shares)
    assert few < interpreted.CHEAP < many


def test_unknown_dimensions_are_those_of_no_number() -> None:
    with tf.Graph().as_default():
        tensors = [
            tf.placeholder(tf.float32, shape) for shape in ([None, 3, None], [4], None, [None])
        ]
    values = [np.zeros([5, 3, 7]), np.zeros(4), np.zeros([2, 2]), np.zeros(1)]
    assert unknown_dimensions(tensors, values) == [(0, 5), (2, 7)]  # 1 row broadcasts


def product(x: Any) -> Any:
    return tf.matmul(tf.reshape(x, [-1, 16]), tf.ones([16, 5]))


def convolution(x: Any) -> Any:
    return tf.nn.conv2d(x, tf.ones([3, 3, 1, 5]), [1, 1, 1, 1], "SAME")


@pytest.mark.parametrize(
    ("made", "seconds"),
    [
        (product, 8 * 16 * 5 * PRODUCT),
        (convolution, 8 * 16 * 9 * 5 * CONVOLUTION),
        (tf.tanh, 0.0),
    ],
)
def test_products_count_their_multiplications(made: Callable[[Any], Any], seconds: float) -> None:
    """Of 8 images of 4 x 4 pixels."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 4, 4, 1])
        plan = make_plan(graph, [made(x)], [], [x])
    segment = plan.segments[-1]
    share = share_of_products(segment, 8)
    expected = seconds / compiled_in(4 * len(segment.ops))
    assert share == pytest.approx(expected)
