"""Branches, loops and map functions: values, state, gradients, host and device.

Rows `If`, `While`, `Scan` and `Call` hold functions, so no case in the registry can show them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core.graph import Graph
from estimatorkit.runtime.executor import PlanRunner


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    with tf.Graph().as_default() as current:
        yield current


def slope_by_differences(value: Callable[[float], float], at: float, step: float = 1e-5) -> float:
    return (value(at + step) - value(at - step)) / (2 * step)


def check_slopes(y: tf.Tensor, x: tf.Tensor, at: float, twice: bool = True) -> None:
    """First and second derivative of a float64 scalar against central differences."""
    (first,) = tf.gradients(y, x)
    second = tf.gradients(first, x)[0] if twice else first
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        slope, curvature = session.run([first, second], {x: at})
        assert slope == pytest.approx(
            slope_by_differences(lambda v: session.run(y, {x: v}), at), rel=1e-6, abs=1e-8
        )
        if twice:
            assert curvature == pytest.approx(
                slope_by_differences(lambda v: session.run(first, {x: v}), at), rel=1e-5, abs=1e-8
            )


# -- cond


def test_only_chosen_branch_runs() -> None:
    count = tf.Variable(0)
    p = tf.placeholder(tf.bool, [])
    result = tf.cond(p, lambda: count.assign_add(1), lambda: count.assign_sub(10))
    with tf.Session() as session:
        session.run(count.initializer)
        assert [session.run(result, {p: p_}) for p_ in (True, False, True)] == [1, -9, -8]
        assert session.run(count) == -8
        assert len(session.plan(result, [p]).segments) == 1


@pytest.mark.slow
@pytest.mark.parametrize("at", [3.0, -2.0])
def test_cond_gradients(at: float) -> None:
    x = tf.placeholder(tf.float64, [])
    w = tf.Variable(np.float64(2.0))
    y = tf.cond(x > 0, lambda: w * x * x * x, lambda: tf.exp(-x))
    check_slopes(y, x, at)
    (of_w,) = tf.gradients(y, w)
    with tf.Session() as session:
        session.run(w.initializer)
        assert session.run(of_w, {x: at}) == (at**3 if at > 0 else 0.0)


def test_cond_returns_structures_and_operations() -> None:
    v = tf.Variable(1.0)
    p = tf.placeholder(tf.bool, [])
    pair = tf.cond(p, lambda: {"a": v + 1.0, "b": (v, 3)}, lambda: {"a": v, "b": (v * 2.0, 4)})
    done = tf.cond(p, lambda: tf.group(v.assign(5.0)), tf.no_op)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(pair, {p: True}) == {"a": 2.0, "b": (1.0, 3)}
        assert session.run(pair, {p: False}) == {"a": 1.0, "b": (2.0, 4)}
        session.run(done, {p: False})
        assert session.run(v) == 1.0
        session.run(done, {p: True})
        assert session.run(v) == 5.0


def test_cond_of_strings_and_differing_shapes() -> None:
    p = tf.placeholder(tf.bool, [])
    x = tf.placeholder(tf.float64, [])
    word = tf.cond(p, lambda: tf.constant("yes"), lambda: tf.constant("no"))
    rows = tf.cond(p, lambda: tf.ones([2], tf.float64) * x, lambda: tf.ones([3], tf.float64) * x**2)
    (slope,) = tf.gradients(rows, x)
    with tf.Session() as session:
        assert session.run(word, {p: True}) == b"yes"
        assert session.run([rows, slope], {p: True, x: 2.0})[1] == 2.0
        values, found = session.run([rows, slope], {p: False, x: 2.0})
        assert (values.tolist(), found) == ([4.0, 4.0, 4.0], 12.0)


def test_variables_created_in_branch_belong_to_graph(graph: Graph) -> None:
    x = tf.placeholder(tf.float32, [])
    with tf.variable_scope("s"):
        y = tf.cond(
            x > 0,
            lambda: x * tf.get_variable("w", [], initializer=tf.constant_initializer(3.0)),
            lambda: x,
        )
    (w,) = tf.trainable_variables()
    assert (w.name, w.graph) == ("s/w:0", graph)
    (slope,) = tf.gradients(y, w)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([y, slope], {x: 2.0}) == [6.0, 2.0]


def test_cond_errors() -> None:
    p = tf.placeholder(tf.bool, [])
    with pytest.raises(TypeError, match="must not be a Python bool"):
        tf.cond(True, lambda: 1, lambda: 2)
    with pytest.raises(TypeError, match="must be callable"):
        tf.cond(p, 1, lambda: 2)
    with pytest.raises(ValueError, match=r"must have the same type\(s\)"):
        tf.cond(p, lambda: tf.constant(1.0), lambda: tf.constant(1))
    with pytest.raises(ValueError, match="same structure"):
        tf.cond(p, lambda: (p, p), lambda: p)


def test_case_and_switch_case() -> None:
    x = tf.placeholder(tf.int32, [])
    named = tf.case(
        [(x < 0, lambda: tf.constant(-1)), (x > 9, lambda: tf.constant(10))],
        default=lambda: x,
        exclusive=True,
    )
    strict = tf.case([(x < 5, lambda: tf.constant(1)), (x < 7, lambda: tf.constant(2))])
    chosen = tf.switch_case(x, [lambda: tf.constant("a"), lambda: tf.constant("b")])
    with tf.Session() as session:
        assert [session.run(named, {x: v}) for v in (-4, 4, 40)] == [-1, 4, 10]
        assert [session.run(strict, {x: v}) for v in (1, 6)] == [1, 2]
        with pytest.raises(tf.errors.InvalidArgumentError, match="None of conditions evaluated"):
            session.run(strict, {x: 8})
        assert [session.run(chosen, {x: v}) for v in (0, 1, 7)] == [b"a", b"b", b"b"]


# -- while_loop


def power(x: Any, count: Any) -> Any:
    return tf.while_loop(lambda i, _: i < count, lambda i, a: (i + 1, a * x), [0, tf.identity(x)])[
        1
    ]


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 5])
def test_while_loop_gradients(count: int) -> None:
    x = tf.placeholder(tf.float64, [])
    n = tf.placeholder(tf.int32, [])
    y = power(x, n)
    (first,) = tf.gradients(y, x)
    (second,) = tf.gradients(first, x)
    with tf.Session() as session:
        got = session.run([y, first, second], {x: 1.5, n: count})
    k = count + 1
    assert got == pytest.approx([1.5**k, k * 1.5**count, k * count * 1.5 ** (count - 1)])


@pytest.mark.usefixtures("compiled")
def test_loop_is_one_call_and_one_compilation() -> None:
    x = tf.placeholder(tf.float32, [])
    n = tf.placeholder(tf.int32, [])
    y = power(x, n)
    with tf.Session() as session:
        for count in (1, 7, 30):
            session.run(y, {x: 1.01, n: count})
        assert len(session.plan(y, [x, n]).segments) == 1
        assert sum(session.state.compilations.values()) == 1


@pytest.mark.slow
def test_gradients_of_long_loops() -> None:
    """More steps than checkpoints: 3000 of a rotation, whose derivative is known."""
    angle = tf.placeholder(tf.float64, [])

    def turn(i: Any, c: Any, s: Any) -> Any:
        return i + 1, c * tf.cos(angle) - s * tf.sin(angle), c * tf.sin(angle) + s * tf.cos(angle)

    one, zero = np.float64(1), np.float64(0)
    _, c, _ = tf.while_loop(lambda i, c, s: i < 3000, turn, [0, one, zero])
    (slope,) = tf.gradients(c, angle)
    with tf.Session() as session:
        value, found = session.run([c, slope], {angle: 1e-3})
    assert value == pytest.approx(np.cos(3.0))
    assert found == pytest.approx(-3000 * np.sin(3.0))


def test_loop_state_and_structures() -> None:
    total = tf.Variable(0.0)

    def body(pair: Any) -> Any:
        with tf.control_dependencies([total.assign_add(pair["x"])]):
            return {"i": pair["i"] + 1, "x": tf.identity(pair["x"]) * 2.0}

    last = tf.while_loop(lambda pair: pair["i"] < 4, body, [{"i": 0, "x": 1.0}])
    with tf.Session() as session:
        session.run(total.initializer)
        assert session.run(last) == {"i": 4, "x": 16.0}
        assert session.run(total) == 15.0


@pytest.mark.slow
def test_maximum_iterations_and_back_prop() -> None:
    x = tf.placeholder(tf.float32, [])
    always = lambda i: i > -1.0  # noqa: E731
    y = tf.while_loop(always, lambda i: i * 2.0, [x], maximum_iterations=5)
    kept = tf.while_loop(always, lambda i: i * 2.0, [x], maximum_iterations=5, back_prop=False)
    assert tf.gradients(kept, x) == [None]
    with tf.Session() as session:
        assert session.run([y, tf.gradients(y, x)[0]], {x: 1.0}) == [32.0, 32.0]


@pytest.mark.slow
def test_growing_values() -> None:
    grown = tf.while_loop(
        lambda v: tf.reduce_sum(v) < 10.0,
        lambda v: tf.concat([v, v], 0),
        [tf.ones([1])],
        shape_invariants=[tf.TensorShape([None])],
    )
    x = tf.placeholder(tf.float64, [])
    array = tf.TensorArray(tf.float64, size=0, dynamic_size=True)
    _, filled = tf.while_loop(
        lambda i, _: i < 3, lambda i, a: (i + 1, a.write(i, x * tf.cast(i, tf.float64))), [0, array]
    )
    y = tf.reduce_sum(filled.stack() ** 2)
    with tf.Session() as session:
        assert session.run(grown).tolist() == [1.0] * 16
        assert session.run([y, tf.gradients(y, x)[0]], {x: 3.0}) == [45.0, 30.0]


def test_host_operations_in_loop() -> None:
    words = tf.constant(["a", "b", "c"])
    seen: list[int] = []

    def look(number: Any) -> Any:
        seen.append(int(number))
        return number

    joined = tf.while_loop(
        lambda i, s: i < 3,
        lambda i, s: (tf.py_func(look, [i], tf.int32) + 1, tf.string_join([s, words[i]])),
        [0, ""],
        shape_invariants=[tf.TensorShape(None), tf.TensorShape([])],
    )
    with tf.Session() as session:
        assert session.run(joined)[1] == b"abc"
    assert seen == [0, 1, 2]


def test_growing_loop_runs_body_and_condition_in_one_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tf.placeholder(tf.int32, [])  # which the condition alone reads
    step = tf.placeholder(tf.int32, [])
    grown = tf.while_loop(
        lambda v: tf.size(v) < limit,
        lambda v: tf.concat([v, [v[-1] + step]], 0),
        [tf.constant([1])],
        shape_invariants=[tf.TensorShape([None])],
    )
    written = tf.get_default_graph().as_graph_def()
    runs: list[Any] = []
    compute = PlanRunner.compute

    def counted(self: PlanRunner, *arguments: Any) -> Any:
        runs.append(self)
        return compute(self, *arguments)

    monkeypatch.setattr(PlanRunner, "compute", counted)
    with tf.Session() as session:
        for count in (1, 5, 3):
            runs.clear()
            found = session.run(grown, {limit: count, step: 2})
            np.testing.assert_array_equal(found, np.arange(1, 2 * count, 2))
            assert len(runs) == 2 + (count - 1)  # the session's, the first condition, the turns
    assert tf.get_default_graph().as_graph_def() == written


def test_condition_of_a_host_loop_follows_each_iteration() -> None:
    said: list[str] = []

    def say(what: str) -> Any:
        return tf.py_func(lambda: said.append(what) or 0, [], tf.int64, stateful=True)

    def condition(i: Any) -> Any:
        return i + tf.cast(say("condition"), tf.int32) < 2

    count = tf.while_loop(condition, lambda i: i + 1 + tf.cast(say("body"), tf.int32), [0])
    with tf.Session() as session:
        assert session.run(count) == 2
    assert said == ["condition", "body", "condition", "body", "condition"]


def test_fault_in_the_condition_of_a_growing_loop_names_its_operation() -> None:
    limits = tf.placeholder(tf.int32, [None])
    grown = tf.while_loop(
        lambda v: tf.size(v) < tf.gather(limits, v[-1], name="limit"),
        lambda v: tf.concat([v, [v[-1] + 1]], 0),
        [tf.constant([0])],
        shape_invariants=[tf.TensorShape([None])],
    )
    with tf.Session() as session:
        assert session.run(grown, {limits: [9, 9, 3]}).tolist() == [0, 1, 2]
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"= 2 is not in(?s:.*)while/limit"
        ):
            session.run(grown, {limits: [9, 9]})


@pytest.mark.slow
def test_random_numbers_in_loop_follow_seed() -> None:
    tf.set_random_seed(7)
    drawn = tf.map_fn(lambda e: e + tf.random_uniform([]), tf.zeros([4]))
    runs = []
    for _ in range(2):
        with tf.Session() as session:
            runs.append([session.run(drawn) for _ in range(2)])
    np.testing.assert_array_equal(runs[0], runs[1])
    assert len(set(np.ravel(runs[0]).tolist())) == 8


def test_loop_errors() -> None:
    with pytest.raises(TypeError, match="'cond' must be callable"):
        tf.while_loop(1, lambda i: i, [0])
    with pytest.raises(ValueError, match="'loop_vars' must be provided"):
        tf.while_loop(lambda: True, lambda: 1, [])
    with pytest.raises(ValueError, match="enters the loop with shape"):
        tf.while_loop(lambda v: tf.constant(True), lambda v: tf.concat([v, v], 0), [tf.ones([1])])
    with pytest.raises(TypeError, match="enters the loop with type int32"):
        tf.while_loop(lambda i: i < 3, lambda i: tf.cast(i, tf.float32), [0])
    with pytest.raises(ValueError, match="same nested structure"):
        tf.while_loop(lambda i, j: i < 3, lambda i, j: i, [0, 1])


# -- tensor arrays


@pytest.mark.slow
def test_tensor_array_in_loop() -> None:
    x = tf.placeholder(tf.float64, [3])
    array = tf.TensorArray(tf.float64, size=4)
    _, filled = tf.while_loop(
        lambda i, _: i < 4, lambda i, a: (i + 1, a.write(i, x * tf.cast(i, tf.float64))), [0, array]
    )
    y = tf.reduce_sum(filled.stack() ** 2) + tf.reduce_sum(filled.read(2))
    given = np.array([1.0, -2.0, 0.5])
    with tf.Session() as session:
        stacked, slope = session.run([filled.stack(), tf.gradients(y, x)[0]], {x: given})
        plan = session.plan(filled.stack(), [x])
    np.testing.assert_allclose(stacked, np.arange(4)[:, None] * given)
    np.testing.assert_allclose(slope, 2 * 14 * given + 2)
    assert len(plan.segments) == 1


def test_tensor_array_methods() -> None:
    rows = tf.constant(np.arange(6, dtype=np.float32).reshape(3, 2))
    array = tf.TensorArray(tf.float32, 3).unstack(rows)
    split = tf.TensorArray(tf.float32, 2).split(tf.range(4.0), [2, 2])
    with tf.Session() as session:
        values = session.run(
            [
                array.size(),
                array.gather([2, 0]),
                array.write(1, [9.0, 9.0]).concat(),
                array.scatter([0], [[7.0, 7.0]]).read(0),
                split.stack(),
            ]
        )
    assert values[0] == 3
    assert values[1].tolist() == [[4.0, 5.0], [0.0, 1.0]]
    assert values[2].tolist() == [0.0, 1.0, 9.0, 9.0, 4.0, 5.0]
    assert values[3].tolist() == [7.0, 7.0]
    assert values[4].tolist() == [[0.0, 1.0], [2.0, 3.0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="TensorArray dtype is float32"):
        array.write(0, tf.constant([1, 2]))


@pytest.mark.parametrize("shape", [[2], [None]])
def test_partially_written_tensor_array_keeps_size(shape: list[int | None]) -> None:
    rows = tf.placeholder_with_default([1, 2], shape)
    array = tf.TensorArray(tf.int32, 3).unstack(rows)
    with tf.Session() as session:
        values = session.run([array.stack(), array.size(), array.write(2, 5).stack()])
        assert values[0].tolist() == [1, 2, 0]
        assert values[1] == 3
        assert values[2].tolist() == [1, 2, 5]
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(tf.TensorArray(tf.int32, 1).unstack(rows).stack())


def test_map_fn_refuses_unequal_lengths() -> None:
    with pytest.raises(ValueError, match="Dimensions are not compatible"):
        tf.map_fn(lambda pair: pair[0], (tf.zeros([2]), tf.zeros([3])), dtype=tf.float32)


# -- functions over elements


def test_map_functions_match_numpy() -> None:
    values = np.random.default_rng(0).normal(size=(5, 3))
    x = tf.constant(values)
    results = [
        (tf.map_fn(lambda row: tf.reduce_sum(row) * row, x), values.sum(1)[:, None] * values),
        (tf.map_fn(lambda p: p[0] * p[1], (x, x), dtype=tf.float64), values**2),
        (tf.scan(lambda a, row: a + row, x), np.cumsum(values, 0)),
        (
            tf.scan(lambda a, row: a + row, x, initializer=tf.ones([3], tf.float64)),
            1 + np.cumsum(values, 0),
        ),
        (tf.scan(lambda a, row: a + row, x, reverse=True), np.cumsum(values[::-1], 0)[::-1]),
        (tf.foldl(lambda a, row: a * 2.0 + row, x), (2.0 ** np.arange(4, -1, -1)) @ values),
        (tf.foldr(lambda a, row: a * 2.0 + row, x), (2.0 ** np.arange(5)) @ values),
    ]
    with tf.Session() as session:
        for found, expected in zip(
            session.run([found for found, _ in results]), (e for _, e in results), strict=True
        ):
            np.testing.assert_allclose(found, expected)
    with pytest.raises(TypeError, match="pass dtype="):
        tf.map_fn(lambda row: tf.cast(row, tf.int32), x)


@pytest.mark.slow
def test_second_gradients_of_scan() -> None:
    x = tf.placeholder(tf.float64, [])
    y = tf.reduce_sum(
        tf.scan(lambda a, e: tf.sin(a * x) + e, tf.constant(np.arange(4, dtype=np.float64)))
    )
    check_slopes(y, x, 0.7)


def test_map_over_strings() -> None:
    lengths = tf.map_fn(
        lambda s: tf.cast(tf.equal(s, "a"), tf.int32), tf.constant(["a", "b", "a"]), dtype=tf.int32
    )
    with tf.Session() as session:
        assert session.run(lengths).tolist() == [1, 0, 1]


@pytest.mark.slow
def test_nested_control_flow() -> None:
    """A branch in a loop in a function of elements, differentiated."""
    x = tf.placeholder(tf.float64, [])

    def of_row(row: Any) -> Any:
        def body(i: Any, a: Any) -> Any:
            return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: a * x, lambda: a + row)

        return tf.while_loop(lambda i, _: i < 3, body, [0, row])[1]

    y = tf.reduce_sum(tf.map_fn(of_row, tf.constant([1.0, 2.0], tf.float64)))
    with tf.Session() as session:
        # (e x + e) x for e = 1, 2
        assert session.run(y, {x: 3.0}) == 3 * (3.0 * 3.0 + 3.0)
    check_slopes(y, x, 1.3)


@pytest.mark.slow
def test_integers_in_differentiated_loop() -> None:
    functions = (tf.mod, tf.truncatemod, tf.maximum, tf.minimum, tf.floordiv, tf.pow)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [])

        def body(step: Any, y: Any) -> Any:
            counts = [function(step + 1, 2) for function in functions]
            extreme = tf.reduce_max(tf.stack(counts)) + tf.reduce_min(tf.stack(counts))
            return step + 1, y * x * tf.cast(extreme, tf.float32)

        _, y = tf.while_loop(lambda step, _: step < 2, body, [tf.constant(0), tf.constant(1.0)])
        value, slope = session.run([y, tf.gradients(y, x)[0]], {x: 3.0})
        # Step 0: 1 and 2 give at most 2 and at least 0; step 1: 2 and 2 at most 4 and at least 0.
        np.testing.assert_allclose([value, slope], [2 * 4 * 9.0, 2 * 4 * 6.0])
