"""Anything may be fed: a run computes what it would with the fed value as the constant.

What a constant was used for while the graph was built cannot be computed again: a feed of it is
refused, never ignored.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.runtime.xla import host_tuning
from tests.ops.calls import called
from tests.sweep import sweep

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
Build = Callable[[Any], Any]


def _assigned(c: Any) -> Any:
    return tf.assign(tf.Variable(tf.zeros_like(c)), c)


def _after(operation: Any, variable: Any) -> Any:
    with tf.control_dependencies([operation]):
        return variable.read_value()


def _initialized(c: Any) -> Any:
    variable = tf.Variable(c + 1)
    return _after(variable.initializer, variable)


def _trained(optimizer: Callable[[Any], Any]) -> Build:
    def build(c: Any) -> Any:
        variable = tf.Variable(1.0)
        return _after(optimizer(c).minimize(variable * variable), variable)

    return build


def _averaged(c: Any) -> Any:
    variable = tf.Variable(1.0)
    averages = tf.train.ExponentialMovingAverage(c)
    return _after(averages.apply([variable]), averages.average(variable))


def _called(c: Any) -> Any:
    return called(lambda: c + c)[0]


def _elements(dataset: Any) -> Any:
    iterator = tf.data.make_initializable_iterator(dataset.batch(100))
    tf.add_to_collection("initializers", iterator.initializer)
    return iterator.get_next()


def _always(true: Build) -> Build:
    return lambda c: tf.cond(tf.placeholder_with_default(True, []), lambda: true(c), lambda: c)


# By name: a function of a constant, its value, and another one to feed.
ROWS: dict[str, tuple[Build, Any, Any]] = {
    "assign": (_assigned, 1.0, 7.0),
    "assign a large array": (_assigned, np.zeros(5000), np.ones(5000)),
    "initializer": (_initialized, [1.0, 2.0], [5.0, 6.0]),
    "assign_add": (lambda c: tf.assign_add(tf.Variable(1.0), c), 1.0, 7.0),
    "scatter_update": (lambda c: tf.scatter_update(tf.Variable([1.0, 2.0]), [0], c), [1.0], [7.0]),
    "learning rate": (_trained(tf.train.GradientDescentOptimizer), 0.1, 0.4),
    "Adam": (_trained(tf.train.AdamOptimizer), 0.1, 0.4),
    "moving average": (_averaged, 0.5, 0.1),
    "decay": (lambda c: tf.train.exponential_decay(0.1, c, 10, 0.9), 1, 20),
    "piecewise": (lambda c: tf.train.piecewise_constant(c, [5, 10], [1.0, 2.0, 3.0]), 1, 20),
    "cond, predicate": (lambda c: tf.cond(c, lambda: 1, lambda: 2), True, False),
    "cond, integer": (_always(lambda c: c + 1), 1, 5),
    "cond, float": (_always(lambda c: c + 1), 1.0, 5.0),
    "cond, bool": (_always(tf.logical_not), True, False),
    "cond, size": (lambda c: tf.shape(_always(lambda n: tf.fill([n, 2], 0))(c)), 2, 4),
    "case": (lambda c: tf.case([(c, lambda: tf.constant(1))], lambda: tf.constant(2)), True, False),
    "switch_case": (lambda c: tf.switch_case(c, [lambda: 1, lambda: 2]), 0, 1),
    "while, bound": (lambda c: tf.while_loop(lambda i: i < c, lambda i: i + 1, [0]), 3, 5),
    "while, start": (lambda c: tf.while_loop(lambda i: i < 9, lambda i: i + 2, [c]), 3, 4),
    "while, most": (
        lambda c: tf.while_loop(lambda i: i < 9, lambda i: i + 1, [0], maximum_iterations=c),
        *(3, 4),
    ),
    "nested": (
        lambda c: tf.while_loop(
            lambda i: i < 9, lambda i: tf.cond(i < 5, lambda: i + c, lambda: i + 2 * c), [0]
        ),
        *(1, 3),
    ),
    "map_fn": (lambda c: tf.map_fn(lambda a: a + c, tf.constant([1, 2])), 1, 5),
    "scan": (lambda c: tf.scan(lambda a, b: a + b + c, tf.constant([1, 2])), 1, 5),
    "call, integer": (_called, 1, 7),
    "call, float": (_called, 1.0, 7.0),
    "py_func": (lambda c: tf.py_func(lambda a: a + a, [c], tf.float32), 1.0, 5.0),
    "default": (lambda c: tf.placeholder_with_default(c, []), 1.0, 5.0),
    "gradient": (lambda c: tf.gradients(c * c * c, c), 2.0, 3.0),
    "string": (lambda c: tf.string_join([c, "b"]), "a", "z"),
    "shape": (lambda c: tf.reshape(X, c), [2, 12], [4, 6]),
    "fill": (lambda c: tf.fill(c, 2.0), [2], [3]),
    "range": (lambda c: tf.range(c), 3, 5),
    "tile": (lambda c: tf.tile(X, c), [1, 1, 1], [1, 2, 1]),
    "slice": (lambda c: tf.slice(X, c, [1, 1, 1]), [0, 0, 0], [1, 2, 1]),
    "filler": (lambda c: tf.pad(X, [[0, 0], [1, 0], [0, 2]], constant_values=c), 0.0, 5.0),
    "rate": (lambda c: tf.reduce_sum(tf.nn.dropout(tf.ones([4]), rate=c)), 0.0, 0.999999),
    "keep_prob": (lambda c: tf.reduce_sum(tf.nn.dropout(tf.ones([4]), c)), 1.0, 1e-6),
    "weights": (lambda c: tf.losses.mean_squared_error([1.0], [2.0], weights=c), 1.0, 0.0),
    "padding": (lambda c: tf.pad(X, c), [[0, 0], [0, 0], [0, 0]], [[0, 0], [1, 0], [0, 2]]),
    "axis": (lambda c: tf.reduce_sum(X, c), 0, 1),
    "axis of concat": (lambda c: tf.concat([X, X], c), 0, 1),
    "order": (lambda c: tf.transpose(X, c), [0, 1, 2], [2, 0, 1]),
    "index": (lambda c: tf.constant(X)[c], 0, 1),
    "start of a slice": (lambda c: tf.constant(X)[:, c:], 0, 1),
    "depth": (lambda c: tf.one_hot([0, 1], c), 3, 4),
    "shape alone": (lambda c: tf.zeros(tf.get_static_value(tf.shape(c))), [1, 2, 3], [4, 5, 6]),
    "elements": (lambda c: _elements(tf.data.Dataset.range(tf.cast(c, tf.int64))), 3, 5),
    "element function": (lambda c: _elements(tf.data.Dataset.range(2).map(lambda a: a + c)), 3, 5),
}

# What these were used for is part of the graph.
REFUSED = {
    *("padding", "axis", "axis of concat", "order", "index", "start of a slice", "depth"),
    *("elements", "element function"),
}


def _run(session: Any, fetched: Any, feeds: dict[Any, Any]) -> Any:
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    session.run(tf.get_collection("initializers"), feeds)
    return session.run(fetched, feeds)


@sweep("name", sorted(ROWS), quick=14)
def test_fed_constant_is_used(name: str) -> None:
    build, value, other = ROWS[name]
    dtype = tf.int64 if name == "element function" else None
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        expected = _run(session, build(tf.constant(other, dtype)), {})
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        given = tf.constant(value, dtype)
        fetched = [build(given), tf.identity(given)]  # something else uses it as well
        if name in REFUSED:
            with pytest.raises(ValueError, match="may not be fed"):
                _run(session, fetched, {given: other})
        else:
            _equal(_run(session, fetched, {given: other})[0], expected)


def _equal(found: Any, expected: Any) -> None:
    for one, two in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        assert np.asarray(one).dtype == np.asarray(two).dtype
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: tf.zeros(tf.get_static_value(tf.shape(x))),
        lambda x: tf.reduce_sum(tf.ones([2, 2]), tf.range(tf.rank(x))),
        lambda x: tf.one_hot([1], tf.size(x)),
    ],
)
def test_placeholder_used_only_for_shape(build: Build) -> None:
    x = tf.placeholder(tf.float32, [2, 3])
    with tf.Session() as session:
        _equal(session.run(build(x), {x: np.ones([2, 3])}), session.run(build(x)))


def test_initial_values_can_be_fed() -> None:
    """Of each kind: a constant, one that is folded, a random one; what is not fed stays."""
    variables = [
        tf.Variable([1.0, 2.0]),
        tf.Variable(tf.constant([1.0, 2.0]) * 3),
        tf.Variable(tf.random_normal([2])),
        tf.get_variable("v", [2], initializer=tf.zeros_initializer()),
    ]
    with tf.Session() as session:
        for variable in variables:
            session.run(variable.initializer, {variable.initial_value: [5.0, 6.0]})
            assert session.run(variable).tolist() == [5.0, 6.0]
            other = session.run(variable.initialized_value(), {variable.initial_value: [7.0, 8.0]})
            assert other.tolist() == [5.0, 6.0]
        both = [each.initializer for each in variables[:2]]
        session.run(both, {variables[0].initial_value: [9.0, 9.0]})
        assert [each.tolist() for each in session.run(variables[:2])] == [[9.0, 9.0], [3.0, 6.0]]


@pytest.mark.parametrize("size", [1, 5000])
def test_callables_and_partial_runs_feed_constants(size: int) -> None:
    given = tf.constant(np.full(size, 2.0))
    variable = tf.Variable(np.zeros(size))
    assign, later = tf.assign(variable, given), given * 3.0
    with tf.Session() as session:
        call = session.make_callable(assign, [given])
        assert call(np.full(size, 7.0)).tolist() == [7.0] * size
        handle = session.partial_run_setup([assign, later], [given])
        assert session.partial_run(handle, assign, {given: np.full(size, 8.0)})[0] == 8.0
        assert session.partial_run(handle, later)[0] == 24.0
        assert session.run(variable)[0] == 8.0
        assert session.run([assign, later])[1][0] == 6.0
        assert session.run(variable)[0] == 2.0


def _constants() -> Sequence[Any]:
    return [tf.constant(2.0), tf.constant(2.0)]


def test_equal_constants_are_fed_separately() -> None:
    one, other = _constants()
    sums = [one + 1.0, other + 1.0]
    with tf.Session() as session:
        assert session.run([*sums, one, other], {one: 5.0}) == [6.0, 3.0, 5.0, 2.0]
        assert session.run([*sums, sums[0] * 2.0], {sums[0]: 9.0}) == [9.0, 3.0, 18.0]


def test_unused_constant_can_be_fed() -> None:
    unused, used = tf.constant(3), tf.constant(4)
    with tf.Session() as session:
        assert session.run(used, {unused: 5}) == 4


@pytest.mark.usefixtures("compiled")
@pytest.mark.skipif(not host_tuning.enabled(), reason="the environment turns tuning off")
def test_runs_with_large_feeds_stay_in_the_calling_thread() -> None:
    threads = []

    def noting_thread(x: Any) -> Any:
        jax.debug.callback(lambda: threads.append(threading.get_ident()))
        return x[0]

    x = tf.placeholder(tf.float32, [None])
    y = tf.jax_function(noting_thread, x)
    unaligned = np.ones((64 << 20) // 4 + 2, np.float32)[1:]
    with tf.Session() as session:
        for _ in range(4):
            session.run(y, {x: unaligned})
    assert threads == [threading.get_ident()] * 4
