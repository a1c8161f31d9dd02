"""Optimizers outside the graph: SciPy's, with bounds and constraints, and a custom one."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf

opt = tf.contrib.opt


@pytest.fixture(autouse=True)
def session() -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def quadratic(session: Any, dtype: Any = tf.float32) -> tuple[Any, Any, Any]:
    a = tf.get_variable("a", initializer=tf.constant([[7.0], [5.0]], dtype))
    b = tf.get_variable("b", initializer=tf.constant(3.0, dtype))
    session.run(tf.global_variables_initializer())
    return a, b, tf.reduce_sum(tf.square(a - 1.0)) + tf.square(b + 2.0)


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_scipy_minimizes_over_all_variables(
    session: Any, dtype: Any, caplog: pytest.LogCaptureFixture
) -> None:
    a, b, loss = quadratic(session, dtype)
    with caplog.at_level(logging.INFO, "estimatorkit"):
        opt.ScipyOptimizerInterface(loss).minimize(session)
    found = session.run([a, b])
    np.testing.assert_allclose(found[0], [[1.0], [1.0]], 1e-4)
    np.testing.assert_allclose(found[1], -2.0, 1e-4)
    assert "Optimization terminated with:" in caplog.text
    assert "Number of iterations:" in caplog.text


def test_bounds_hold_and_other_variables_stay(session: Any) -> None:
    a, b, loss = quadratic(session)
    optimizer = opt.ScipyOptimizerInterface(
        loss, var_list=[a], var_to_bounds={a: ([[2.0], [-np.inf]], np.inf)}
    )
    optimizer.minimize(session)
    found = session.run([a, b])
    np.testing.assert_allclose(found[0], [[2.0], [1.0]], 1e-4)
    assert found[1] == 3.0


@pytest.mark.slow
def test_constraints_hold(session: Any) -> None:
    x = tf.get_variable("x", initializer=[7.0, 7.0])
    session.run(tf.global_variables_initializer())
    loss = tf.reduce_sum(tf.square(x))
    optimizer = opt.ScipyOptimizerInterface(
        loss, equalities=[x[1] - 1.0], inequalities=[x[0] - 2.0], method="SLSQP"
    )
    optimizer.minimize()
    np.testing.assert_allclose(session.run(x), [2.0, 1.0], 1e-4)


def test_callbacks_see_steps_and_fetched_values(session: Any) -> None:
    scale = tf.placeholder(tf.float32)
    x = tf.get_variable("x", initializer=4.0)
    unused = tf.get_variable("unused", initializer=[1.0, 2.0])
    session.run(tf.global_variables_initializer())
    loss = scale * tf.square(x - 1.0)
    steps: list[Any] = []
    losses: list[Any] = []
    opt.ScipyOptimizerInterface(loss, options={"maxiter": 20}).minimize(
        session,
        feed_dict={scale: 2.0},
        fetches=[loss, x],
        step_callback=lambda xk: steps.append(xk),
        loss_callback=lambda value, at: losses.append((value, at)),
    )
    assert losses[0] == (18.0, 4.0)
    assert steps[-1].shape == (3,)
    np.testing.assert_allclose(session.run(x), 1.0, 1e-4)
    np.testing.assert_array_equal(session.run(unused), [1.0, 2.0])


@pytest.mark.parametrize(
    ("argument", "message"),
    [("bounds", "var_to_bounds"), ("jac", "'jac' is set automatically")],
)
def test_reserved_arguments_raise(session: Any, argument: str, message: str) -> None:
    _, _, loss = quadratic(session)
    with pytest.raises(ValueError, match=message):
        opt.ScipyOptimizerInterface(loss, **{argument: None}).minimize(session)


def test_custom_subclass(session: Any) -> None:
    _, b, loss = quadratic(session)

    class Descent(opt.ExternalOptimizerInterface):  # type: ignore[misc, name-defined]
        def _minimize(self, initial_val: Any, loss_grad_func: Any, **others: Any) -> Any:
            x = initial_val
            for _ in range(others["optimizer_kwargs"]["steps"]):
                x = x - 0.5 * loss_grad_func(x)[1]
                others["step_callback"](x)
            return x

    Descent(loss, steps=2).minimize()
    np.testing.assert_allclose(session.run(b), -2.0, 1e-5)
    with pytest.raises(NotImplementedError, match="implement the _minimize"):
        opt.ExternalOptimizerInterface(loss).minimize()
