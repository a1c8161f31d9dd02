"""Optimizers outside the graph against minima that are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf

Interface = tf.contrib.opt.ScipyOptimizerInterface


def minimum(make: Callable[[Any, Any], Any], **run: Any) -> Any:
    """What a vector that starts at [7, 7] is after minimizing its squares."""
    with tf.Graph().as_default(), tf.Session() as session:
        vector = tf.Variable([7.0, 7.0], name="vector")
        optimizer = make(tf.reduce_sum(tf.square(vector)), vector)
        session.run(tf.global_variables_initializer())
        optimizer.minimize(session, **run)
        return session.run(vector)


def test_the_minimum_without_bounds() -> None:
    found = minimum(lambda loss, _: Interface(loss, options={"maxiter": 100}))
    np.testing.assert_allclose(found, [0.0, 0.0], atol=1e-5)


def test_bounds_that_broadcast() -> None:
    def make(loss: Any, vector: Any) -> Any:
        return Interface(loss, var_to_bounds={vector: ([1, 2], np.inf)})

    np.testing.assert_allclose(minimum(make), [1.0, 2.0])
    found = minimum(lambda loss, v: Interface(loss, var_to_bounds={v: (None, [-1.0, 5.0])}))
    np.testing.assert_allclose(found, [-1.0, 0.0], atol=1e-5)


def test_constraints() -> None:
    def make(loss: Any, v: Any) -> Any:
        return Interface(loss, equalities=[v[1] - 1.0], inequalities=[v[0] - 1.0], method="SLSQP")

    np.testing.assert_allclose(minimum(make), [1.0, 1.0], atol=1e-5)


def test_several_variables_of_which_some_are_chosen() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        matrix = tf.get_variable("matrix", initializer=np.ones([2, 3], np.float32))
        offset, fixed = tf.Variable(4.0), tf.Variable(2.0)
        unused = tf.Variable([3.0])
        loss = tf.reduce_sum((matrix - 2.0) ** 2) + (offset * fixed - 3.0) ** 2
        optimizer = Interface(loss, var_list=[matrix, offset, unused])
        session.run(tf.global_variables_initializer())
        optimizer.minimize(session)
        found = session.run([matrix, offset, fixed, unused])
    np.testing.assert_allclose(found[0], np.full([2, 3], 2.0), rtol=1e-4)
    np.testing.assert_allclose(found[1], 1.5, rtol=1e-4)
    assert (found[2], found[3].tolist()) == (2.0, [3.0])


def test_feeds_and_callbacks_by_the_default_session() -> None:
    losses: list[float] = []
    steps: list[Any] = []
    with tf.Graph().as_default(), tf.Session() as session:
        target = tf.placeholder(tf.float32, [2])
        vector = tf.Variable([0.0, 0.0])
        loss = tf.reduce_sum((vector - target) ** 2)
        optimizer = Interface(loss, method="BFGS")
        session.run(tf.global_variables_initializer())
        optimizer.minimize(
            feed_dict={target: [1.0, -2.0]},
            fetches=[loss],
            loss_callback=losses.append,
            step_callback=steps.append,
        )
        np.testing.assert_allclose(session.run(vector), [1.0, -2.0], rtol=1e-4)
    assert losses[0] == 5.0
    assert losses[-1] < 1e-6
    np.testing.assert_allclose(steps[-1], [1.0, -2.0], rtol=1e-4)


def test_the_variables_change_at_the_end_only() -> None:
    seen: list[Any] = []
    with tf.Graph().as_default(), tf.Session() as session:
        vector = tf.Variable([7.0, 7.0])
        optimizer = Interface(tf.reduce_sum(tf.square(vector)))
        session.run(tf.global_variables_initializer())
        optimizer.minimize(
            session, step_callback=lambda _: seen.append(session.run(vector).tolist())
        )
    assert seen
    assert all(each == [7.0, 7.0] for each in seen)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="var_to_bounds"):
        minimum(lambda loss, _: Interface(loss, bounds=[(0, 1)]))
    with pytest.raises(ValueError, match="'jac' is set automatically"):
        minimum(lambda loss, _: Interface(loss, jac=False))
    with pytest.raises(NotImplementedError, match="implement the _minimize"):
        minimum(lambda loss, _: tf.contrib.opt.ExternalOptimizerInterface(loss))


def test_an_algorithm_of_ones_own() -> None:
    class Descent(tf.contrib.opt.ExternalOptimizerInterface):  # type: ignore[misc]
        def _minimize(self, **given: Any) -> Any:
            x = given["initial_val"]
            for _ in range(given["optimizer_kwargs"]["steps"]):
                x = x - 0.25 * given["loss_grad_func"](x)[1]
            return x

    np.testing.assert_allclose(minimum(lambda loss, _: Descent(loss, steps=3)), [0.875, 0.875])
