"""Learning-rate schedules: TensorFlow's values, and their use in training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from tests.golden.golden_files import error_of
from tests.golden.snippets_schedules import ERRORS, PIECES, SCHEDULES, STEP_DTYPES, look_at
from tests.sweep import sweep

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "schedules.json").read_text("utf-8"))
CASES = [
    *((name, schedule, dtype) for name, schedule in SCHEDULES.items() for dtype in STEP_DTYPES),
    *((name, schedule, dtype) for name, schedule in PIECES.items() for dtype in STEP_DTYPES[:2]),
]


@sweep(("name", "schedule", "dtype"), CASES, quick=8)
def test_rates_match_tensorflow(name: str, schedule: Any, dtype: str) -> None:
    expected = GOLDEN["schedules"][name][dtype]
    found = look_at(tf, schedule, dtype)
    assert found["dtype"] == expected["dtype"]
    if not name.startswith(("pieces", "cosine")):  # those end in operations of their own
        assert found["name"] == expected["name"]
    digits = 1e-12 if found["dtype"] == "float64" else 2e-6
    np.testing.assert_allclose(found["values"], expected["values"], rtol=digits, atol=1e-8)


def test_golden_file_has_no_other_entries() -> None:
    assert set(GOLDEN["schedules"]) == {name for name, _, _ in CASES}
    assert set(GOLDEN["errors"]) == set(ERRORS)


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_errors_match_tensorflow(name: str) -> None:
    with tf.Graph().as_default():
        found = error_of(lambda: ERRORS[name](tf))
    expected = GOLDEN["errors"][name]
    assert found is not None
    assert found["class"] == expected["class"]
    assert found["first_line"].startswith(expected["first_line"].rstrip("."))


def rates_of(schedule: Any, steps: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.placeholder(tf.int64, [])
        run = session.make_callable(schedule(step), [step])
        return np.array([run(each) for each in steps])


@pytest.mark.parametrize("cycles", [1, 4])
def test_coslog_decay_is_that_of_realmlp(cycles: int) -> None:
    steps = np.arange(0, 121, 7)
    found = rates_of(lambda step: tf.train.coslog_decay(0.5, step, 100, cycles), steps)
    t = np.minimum(steps / 100, 1)
    expected = 0.5 * 0.5 * (1 - np.cos(2 * np.pi * np.log2(1 + (2**cycles - 1) * t)))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_flat_cosine_decay_is_flat_then_half_cosine() -> None:
    steps = np.arange(0, 121, 7)
    found = rates_of(lambda step: tf.train.flat_cosine_decay(0.5, step, 100, 0.3), steps)
    t = np.minimum(steps / 100, 1)
    expected = 0.5 * np.where(t < 0.3, 1, 0.5 * (1 + np.cos(np.pi * (t - 0.3) / 0.7)))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_noise_has_requested_variance() -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        graph.seed = 3
        step = tf.placeholder(tf.int64, [])
        rate = tf.train.noisy_linear_cosine_decay(
            1.0, step, 100, initial_variance=0.5, variance_decay=0.5, alpha=2.0, beta=0.0
        )
        run = session.make_callable(rate, [step])
        first, later = (np.array([run(at) for _ in range(1000)]) for at in (0, 24))
    # At step 0 cosine is 1; at step 24, the variance is 0.5 / sqrt(25).
    assert first.std() == pytest.approx(np.sqrt(0.5), rel=0.08)
    assert first.mean() == pytest.approx(3.0, abs=0.08)
    cosine = 0.5 * (1 + np.cos(np.pi * 0.24))
    assert later.std() == pytest.approx(np.sqrt(0.1) * cosine, rel=0.08)
    assert len(set(later)) > 950


def trained(schedule: Any, steps: int) -> tuple[list[float], int]:
    """The weight after each step of gradient descent on w (gradient 1), and the global step."""
    with tf.Graph().as_default():
        w = tf.Variable(0.0, name="w")
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(schedule(step))
        train = optimizer.minimize(w * 1.0, global_step=step)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            found = []
            for _ in range(steps):
                session.run(train)
                found.append(float(session.run(w)))
            return found, int(session.run(step))


def test_optimizer_follows_schedule() -> None:
    weights, count = trained(lambda s: tf.train.exponential_decay(0.5, s, 2, 0.5, True), 6)
    assert count == 6
    assert -np.diff([0.0, *weights]) == pytest.approx([0.5, 0.5, 0.25, 0.25, 0.125, 0.125])


def test_piecewise_accepts_python_numbers_for_int64_step() -> None:
    weights, _ = trained(lambda s: tf.train.piecewise_constant(s, [1, 3], [1.0, 0.5, 0.25]), 5)
    assert -np.diff([0.0, *weights]) == pytest.approx([1.0, 1.0, 0.5, 0.5, 0.25])


def test_rate_before_update_belongs_to_previous_step() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.train.create_global_step()
        rate = tf.train.polynomial_decay(1.0, step, 10, 0.0)
        count = tf.assign_add(step, 1)
        session.run(tf.global_variables_initializer())
        assert [float(session.run([count, rate])[1]) for _ in range(3)] == pytest.approx(
            [1.0, 0.9, 0.8]
        )


def test_piecewise_without_boundaries() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(tf.train.piecewise_constant(tf.constant(5), [], [0.25])) == 0.25


@pytest.mark.parametrize("steps", [30, 41, 47, 49, 55, 61, 82, 83, 94, 97, 98, 100])
def test_staircase_drops_at_its_step(steps: int) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.placeholder(tf.int64, [])
        stairs = tf.train.exponential_decay(1.0, step, steps, 0.5, staircase=True)
        root = tf.train.polynomial_decay(1.0, step, steps, 0.0, power=0.5)
        run = session.make_callable([stairs, root], [step])
        assert [run(at)[0] for at in (steps - 1, steps, 3 * steps)] == [1.0, 0.5, 0.125]
        assert run(steps)[1] == 0
