"""Fractional pooling: with TensorFlow's bounds its values and gradients; bounds by their law."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core import registry
from tests.sweep import sweep

ARRAYS = dict(np.load(Path(__file__).parents[2] / "golden" / "fractional_pooling.npz"))
LENGTHS, RATIOS = (23, 10), (2.3, 1.4)


@pytest.mark.slow
@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_is_tensorflows_between_its_bounds(kind: str, overlapping: bool) -> None:
    value, rows, columns, expected, gradient = (
        ARRAYS[f"{kind}/{int(overlapping)}/{what}"]
        for what in ("value", "rows", "columns", "output", "gradient")
    )
    x = tf.constant(value)
    inputs = [x, tf.constant(rows), tf.constant(columns)]
    attrs = {"overlapping": overlapping}
    found = registry.output(f"{kind.title()}PoolOfSequences", inputs, attrs)
    weights = np.cos(np.arange(expected.size, dtype=np.float32)).reshape(expected.shape)
    with tf.Session() as session:
        output, slope = session.run([found, tf.gradients(found, x, weights)[0]])
    np.testing.assert_allclose(output, expected, rtol=1e-6)
    np.testing.assert_allclose(slope, gradient, rtol=1e-5, atol=1e-6)


def _drawn(runs: int, **options: Any) -> list[list[Any]]:
    x = tf.random.normal([2, *LENGTHS, 3], seed=1)
    wanted = [
        [x, *function(x, [1.0, *RATIOS, 1.0], seed=4, **options)]
        for function in (tf.nn.fractional_max_pool, tf.nn.fractional_avg_pool)
    ]
    with tf.Session() as session:
        return [each for _ in range(runs) for each in session.run(wanted)]


@pytest.mark.parametrize("overlapping", [False, True])
@sweep("pseudo_random", [False, True], quick=1)
def test_bounds_and_what_is_between(pseudo_random: bool, overlapping: bool) -> None:
    runs = _drawn(6, pseudo_random=pseudo_random, overlapping=overlapping)
    seen = set()
    for number, (value, output, *sequences) in enumerate(runs):
        for bounds, length, ratio in zip(sequences, LENGTHS, RATIOS, strict=True):
            count = int(length / ratio)
            assert bounds.dtype == np.int64
            assert bounds.shape == (count + 1,)
            assert bounds[0] == 0
            assert bounds[-1] == length
            assert set(np.diff(bounds).tolist()) <= {length // count, length // count + 1}
        seen.add(tuple(sequences[0].tolist()))
        reduce = np.mean if number % 2 else np.max
        more = int(overlapping)
        for row, column in np.ndindex(*output.shape[1:3]):
            (top, bottom), (left, right) = (
                (bounds[at], bounds[at + 1] + more)
                for bounds, at in zip(sequences, (row, column), strict=True)
            )
            np.testing.assert_allclose(
                output[:, row, column],
                reduce(value[:, top:bottom, left:right], axis=(1, 2)),
                rtol=1e-5,
                atol=1e-6,
            )
    assert len(seen) > 3


def test_pseudo_random_bounds_are_evenly_spread() -> None:
    """They follow ratio (i + u): no bound is further than a row from an even spacing."""
    for _, _, rows, _ in _drawn(6, pseudo_random=True):
        away = rows[1:-1] - LENGTHS[0] / (len(rows) - 1) * np.arange(1, len(rows) - 1)
        assert np.ptp(away) < 1


@pytest.mark.slow
def test_the_same_bounds_in_every_run() -> None:
    for pseudo_random in (False, True):
        runs = _drawn(4, pseudo_random=pseudo_random, deterministic=True)
        assert len({(*rows.tolist(), *columns.tolist()) for _, _, rows, columns in runs}) == 1


@pytest.mark.slow
def test_whole_ratios_are_a_plain_pooling() -> None:
    """Also of shapes that only the run tells, of whole numbers, with one ratio for both."""
    x = tf.placeholder(tf.int32, [None, None, None, 1])
    value = np.arange(2 * 4 * 6, dtype=np.int32).reshape(2, 4, 6, 1)
    made = [
        function(x, 2.0, pseudo_random=True)
        for function in (tf.nn.fractional_max_pool, tf.nn.fractional_avg_pool)
    ]
    assert made[0].output.shape.as_list() == [None, None, None, 1]
    assert made[0].output.op.name == "FractionalMaxPool"
    with tf.Session() as session:
        (greatest, rows, columns), (mean, _, _) = session.run(made, {x: value})
        with pytest.raises(tf.errors.InvalidArgumentError, match="ratio is higher than input"):
            session.run(made, {x: value[:, :1]})
    assert rows.tolist() == [0, 2, 4]
    assert columns.tolist() == [0, 2, 4, 6]
    cells = value.reshape(2, 2, 2, 3, 2, 1)
    np.testing.assert_array_equal(greatest, cells.max((2, 4)))
    np.testing.assert_array_equal(mean, cells.sum((2, 4)) // 4)
    known = tf.nn.fractional_max_pool(tf.ones([2, 23, 10, 3]), [1, 2.3, 1.4, 1])
    assert [each.shape.as_list() for each in known] == [[2, 10, 7, 3], [11], [8]]
