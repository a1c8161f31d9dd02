"""Learning-rate schedules as functions of the module that they use as `tf` and of the step.

`SCHEDULES`: each gives the rate; `STEPS` are the steps at which it is looked at. `ERRORS`: each
fails when it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

STEPS = (0, 1, 2, 3, 5, 9, 10, 11, 17, 20, 21, 30, 31, 70, 99, 100, 101, 250, 100_000)
STEP_DTYPES = ("int64", "int32", "float32")

Schedule = Callable[[Any, Any], Any]

SCHEDULES: dict[str, Schedule] = {
    "exponential": lambda tf, s: tf.train.exponential_decay(0.1, s, 10, 0.96),
    "exponential stairs": lambda tf, s: tf.train.exponential_decay(
        learning_rate=0.1, global_step=s, decay_steps=10, decay_rate=0.5, staircase=True, name="lr"
    ),
    "exponential float64": lambda tf, s: tf.train.exponential_decay(
        tf.constant(0.1, tf.float64), s, tf.constant(20), 0.9
    ),
    "natural": lambda tf, s: tf.train.natural_exp_decay(0.1, s, 10, 0.5),
    "natural stairs": lambda tf, s: tf.train.natural_exp_decay(0.1, s, 10, 0.5, True, name="lr"),
    "inverse": lambda tf, s: tf.train.inverse_time_decay(0.1, s, 10, 0.5),
    "inverse stairs": lambda tf, s: tf.train.inverse_time_decay(0.1, s, 10, 0.5, staircase=True),
    "polynomial": lambda tf, s: tf.train.polynomial_decay(0.1, s, 100),
    "polynomial root": lambda tf, s: tf.train.polynomial_decay(
        0.1, s, 30, end_learning_rate=0.01, power=0.5
    ),
    "polynomial cycles": lambda tf, s: tf.train.polynomial_decay(
        0.1, s, 10, 0.001, power=2.0, cycle=True
    ),
    "cosine": lambda tf, s: tf.train.cosine_decay(0.1, s, 100),
    "cosine alpha": lambda tf, s: tf.train.cosine_decay(0.1, s, 100, alpha=0.2, name="lr"),
    "restarts": lambda tf, s: tf.train.cosine_decay_restarts(0.1, s, 9),
    "restarts of one length": lambda tf, s: tf.train.cosine_decay_restarts(
        0.1, s, 9, t_mul=1.0, m_mul=0.9
    ),
    "restarts alpha": lambda tf, s: tf.train.cosine_decay_restarts(
        0.1, s, 7, t_mul=1.5, m_mul=0.8, alpha=0.1
    ),
    "linear cosine": lambda tf, s: tf.train.linear_cosine_decay(0.1, s, 100),
    "linear cosine periods": lambda tf, s: tf.train.linear_cosine_decay(
        0.1, s, 100, num_periods=2.5, alpha=0.1, beta=0.01
    ),
    "noisy without noise": lambda tf, s: tf.train.noisy_linear_cosine_decay(
        0.1, s, 100, initial_variance=0.0, num_periods=1.5, alpha=0.1
    ),
}
"""Of a step of any dtype."""

PIECES: dict[str, Schedule] = {
    "pieces": lambda tf, s: tf.train.piecewise_constant(s, [10, 20, 30], [1.0, 0.5, 0.1, 0.01]),
    "pieces by another name": lambda tf, s: tf.train.piecewise_constant_decay(s, [10], [3, 7]),
    "pieces float64": lambda tf, s: tf.train.piecewise_constant(
        s, [1, 99], [np.float64(1.0), np.float64(0.3), np.float64(0.1)], name="lr"
    ),
}
"""Of whole numbers, as their boundaries are."""

ERRORS: dict[str, Callable[[Any], Any]] = {
    **{
        f"{name} without a step": lambda tf, name=name: getattr(tf.train, name)(0.1, None, 10, 0.5)
        for name in (
            *("exponential_decay", "natural_exp_decay", "inverse_time_decay", "polynomial_decay"),
            *("cosine_decay", "cosine_decay_restarts", "linear_cosine_decay"),
            "noisy_linear_cosine_decay",
        )
    },
    "pieces of another dtype": lambda tf: tf.train.piecewise_constant(
        tf.constant(1), [1.0, 2.0], [1.0, 2.0, 3.0]
    ),
    "values of two dtypes": lambda tf: tf.train.piecewise_constant(
        tf.constant(1), [1, 2], [1.0, 2, 3.0]
    ),
    "too few values": lambda tf: tf.train.piecewise_constant(tf.constant(1), [1, 2], [1.0, 2.0]),
}


def look_at(tf: Any, schedule: Schedule, dtype: str) -> dict[str, Any]:
    """A schedule's values at all steps, its dtype and its name, in a fresh graph."""
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.placeholder(dtype, [], name="step")
        rate = schedule(tf, step)
        run = session.make_callable(rate, [step])
        values = [run(np.array(each, dtype)).item() for each in STEPS]
        return {"dtype": rate.dtype.name, "name": rate.name, "values": values}
