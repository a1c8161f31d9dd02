"""`AdamWOptimizer` against the paper's steps in NumPy, and factors of kinds of variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit as tf

VALUES = {"net/kernel": [1.0, -2.0], "net/bias": [0.5, 0.0], "net/scale": [1.0, 1.0]}
SLOPES = np.array([0.3, -0.7])
BY_NAME = {"bias$": (0.1, 0.0), "scale": (6.0, 1.0), "net/scale": (9.0, 9.0)}


def by_variable(variable: Any) -> tuple[float, float]:
    return BY_NAME["bias$"] if variable.op.name.endswith("bias") else (1.0, 0.5)


def trained(steps: int, **arguments: Any) -> dict[str, Any]:
    """The variables after steps with gradients that change, by name."""
    with tf.Graph().as_default():
        step = tf.train.create_global_step()
        given = {
            key: each(step) if callable(each) and key != "factors" else each
            for key, each in arguments.items()
        }
        variables = [
            tf.Variable(np.array(value, np.float32), name=name) for name, value in VALUES.items()
        ]
        strength = tf.cast(step + 1, tf.float32)
        loss = strength * sum(tf.reduce_sum(each * SLOPES.astype("f")) for each in variables)
        train = tf.train.AdamWOptimizer(**given).minimize(loss, step)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(steps):
                session.run(train)
            return dict(zip(VALUES, session.run(variables), strict=True))


def expected(
    name: str, steps: int, rate: Any, decay: Any, factors: tuple[float, float] = (1.0, 1.0)
) -> Any:
    """Algorithm 2 of arXiv:1711.05101, with TensorFlow's place of epsilon."""
    w, m, v = np.array(VALUES[name]), np.zeros(2), np.zeros(2)
    for t in range(1, steps + 1):
        g = t * SLOPES
        m, v = 0.9 * m + 0.1 * g, 0.95 * v + 0.05 * g**2
        now = rate(t - 1) * factors[0]
        step = np.sqrt(1 - 0.95**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-8)
        w = w - now * step - now * decay(t - 1) * factors[1] * w
    return w


def test_steps_match_paper() -> None:
    found = trained(5, learning_rate=0.1, beta2=0.95, weight_decay=0.5)
    for name, value in found.items():
        wanted = expected(name, 5, lambda t: 0.1, lambda t: 0.5)
        np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-6)


def test_rate_and_decay_follow_schedules() -> None:
    found = trained(
        4,
        learning_rate=lambda step: tf.train.coslog_decay(0.1, step, 5, 1),
        beta2=0.95,
        weight_decay=lambda step: tf.train.flat_cosine_decay(0.5, step, 4),
    )
    wanted = expected(
        "net/kernel",
        4,
        lambda t: 0.05 * (1 - np.cos(2 * np.pi * np.log2(1 + t / 5))),
        lambda t: 0.25 * (1 + np.cos(np.pi * max(t / 4 - 0.5, 0) / 0.5)),
    )
    np.testing.assert_allclose(found["net/kernel"], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("factors", "wanted"),
    [
        (BY_NAME, {"net/kernel": (1.0, 1.0), "net/bias": (0.1, 0.0), "net/scale": (6.0, 1.0)}),
        (by_variable, {"net/kernel": (1.0, 0.5), "net/bias": (0.1, 0.0), "net/scale": (1.0, 0.5)}),
    ],
    ids=["by name", "by function"],
)
def test_kinds_of_variables_have_factors(factors: Any, wanted: Any) -> None:
    found = trained(3, learning_rate=0.05, beta2=0.95, weight_decay=0.5, factors=factors)
    for name, value in found.items():
        one = expected(name, 3, lambda t: 0.05, lambda t: 0.5, wanted[name])
        np.testing.assert_allclose(value, one, rtol=1e-5, atol=1e-6)


def test_estimator_trains_with_factors() -> None:
    x = np.linspace(-1, 1, 64).astype("float32")
    estimator = tf.estimator.DNNRegressor(
        [8],
        [tf.feature_column.numeric_column("x")],
        optimizer=lambda: tf.train.AdamWOptimizer(0.05, factors={"bias": (0.5, 0.0)}),
    )
    dataset = tf.data.Dataset.from_tensor_slices(({"x": x}, 2 * x)).batch(64)
    estimator.train(lambda: dataset.repeat(), steps=60)
    assert estimator.evaluate(lambda: dataset)["average_loss"] < 0.05
