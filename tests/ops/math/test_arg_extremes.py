"""argmax and argmin are NumPy's in either executor, and never NaN's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit as tf

SIZES = 1, 3, 200
"""Elements along the axis."""


def _elements(kind: str, shape: tuple[int, ...]) -> Any:
    random = np.random.default_rng(6)
    if kind == "ties":
        return random.integers(-2, 3, shape).astype(np.float32)
    if kind == "nan":  # never the extreme, as in TensorFlow; a row of nothing else has the index 0
        values = random.normal(size=shape).astype(np.float32)
        values[random.random(shape) < 0.3] = np.nan
        values[0] = np.nan
        return values
    if kind == "infinite":
        return np.where(random.random(shape) < 0.5, -np.inf, np.inf).astype(np.float32)
    return random.integers(-100, 100, shape).astype(kind)


@pytest.mark.parametrize("executor", ["xla", "interpret"])
@pytest.mark.parametrize("kind", ["ties", "nan", "infinite", "int32", "int8", "float64", "float16"])
def test_arg_extremes(kind: str, executor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTIMATORKIT_EXECUTOR", executor)
    for size in SIZES:
        values = _elements(kind, (5, size, 4))
        x = tf.placeholder(values.dtype, [None, size, 4])
        fetched = tf.argmax(x, 1), tf.argmin(x, -2, output_type=tf.int32)
        with tf.Session() as session:
            largest, smallest = session.run(fetched, {x: values})
        if kind == "nan":
            worst = np.where(np.isnan(values), -np.inf, values)
            best = np.where(np.isnan(values), np.inf, values)
        else:
            worst = best = values
        np.testing.assert_array_equal(largest, worst.argmax(1))
        np.testing.assert_array_equal(smallest, best.argmin(1))
        assert (largest.dtype, smallest.dtype) == (np.int64, np.int32)
