"""Initializers run in NumPy: nothing is compiled, and the values are those of XLA."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.runtime.host_segments import InitializerSegment

INITIALIZERS = {
    "zeros": tf.zeros_initializer(),
    "uniform": tf.random_uniform_initializer(-1.0, 3.0, seed=3),
    "normal": tf.random_normal_initializer(2.0, 0.5, seed=3),
    "truncated": tf.truncated_normal_initializer(stddev=0.1, seed=3),
    "glorot": tf.glorot_uniform_initializer(seed=3),
    "he": tf.variance_scaling_initializer(2.0, distribution="truncated_normal", seed=3),
    "orthogonal": tf.orthogonal_initializer(seed=3),
}


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("name", INITIALIZERS)
def test_numpy_draws_same_numbers_as_xla(name: str) -> None:
    tf.set_random_seed(7)
    variable = tf.get_variable("v", [30, 40], initializer=INITIALIZERS[name])
    drawn = variable.initial_value
    with tf.Session() as session:
        session.run(variable.initializer)
        assert not session.state.compilations
        value = session.run(variable)
    with tf.Session() as session:
        expected = session.run(tf.identity(drawn) + 0.0)
        assert session.state.compilations or name == "zeros"
    np.testing.assert_allclose(value, expected, rtol=2e-6, atol=2e-6)
    assert len(np.unique(value)) > 1 or name == "zeros"


def test_initializers_beside_host_operations() -> None:
    # Segments of one level: a table's insertion on the host, and the variables.
    table = tf.lookup.experimental.DenseHashTable(
        tf.int64, tf.int64, default_value=-1, empty_key=-2, deleted_key=-3
    )
    insert = table.insert(tf.constant([1], tf.int64), tf.constant([7], tf.int64))
    a, b = tf.get_variable("a", initializer=1.0), tf.get_variable("b", initializer=2.0)
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), insert])
        found: Any = session.run([a, b, table.lookup(tf.constant([1], tf.int64))])
        assert (found[0], found[1], list(found[2])) == (1.0, 2.0, [7])


@pytest.mark.slow
def test_slow_numpy_initializer_is_compiled() -> None:
    large = tf.get_variable("large", [1 << 13, 1 << 12])
    with tf.Session() as session:
        (segment,) = session.plan([large.initializer], []).segments
        assert not InitializerSegment.accepts(segment, session.state.largest_interpreted)
        session.run(large.initializer)
        assert np.isfinite(session.run(tf.reduce_sum(large)))


@pytest.mark.usefixtures("compiled")
def test_dropout_step_compiles_once(executables: list[float]) -> None:
    x = tf.placeholder(tf.float32, [8, 4])
    hidden = tf.nn.dropout(tf.layers.dense(x, 4), rate=0.5)
    train = tf.train.AdamOptimizer().minimize(tf.reduce_mean(tf.square(hidden)))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(train, {x: np.ones((8, 4), np.float32)})
    assert len(executables) == 1


def test_loop_beside_constant_assignment_is_compiled() -> None:
    variable = tf.get_variable("v", initializer=1.0)
    with tf.control_dependencies([tf.assign(variable, 5.0)]):
        start = variable.read_value()

    def step(number: Any, total: Any) -> Any:
        with tf.control_dependencies([tf.assign_add(variable, 10.0)]):
            return number + 1, total + variable.read_value()

    with tf.control_dependencies([start]):
        total = tf.while_loop(lambda number, _: number < 2, step, [0, start])[1]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([total, start]) == [45.0, 5.0]
        assert session.run(variable) == 25.0
