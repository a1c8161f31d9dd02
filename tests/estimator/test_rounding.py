"""When an exported model's outputs count as the model's: rounding does not matter, errors do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import estimatorkit as tf
from estimatorkit.core import errors
from estimatorkit.estimator.serving.predictor import Predictor
from estimatorkit.estimator.serving.rounding import is_same

_SCALES = st.integers(-6, 6).map(lambda power: 10.0**power)


@settings(deadline=None)
@given(
    scale=_SCALES,
    offset=st.sampled_from([0.0, 1.0, -30.0, 1000.0]),
    rows=st.integers(3, 40),
    terms=st.integers(1, 300),
    seed=st.integers(0, 1000),
)
def test_order_of_sum_is_rounding_and_error_is_none(
    scale: float, offset: float, rows: int, terms: int, seed: int
) -> None:
    drawn = np.random.default_rng(seed)
    parts = (scale * drawn.standard_normal((rows, terms)) / terms**0.5).astype(np.float32)
    parts[:, -1] += np.float32(scale * offset)
    one = np.zeros(rows, np.float32)
    other = np.zeros(rows, np.float32)
    for column in range(terms):
        one += parts[:, column]
        other += parts[:, -1 - column]
    assert is_same(one, other)
    wrong = one.copy()
    wrong[drawn.integers(rows)] += 0.05 * scale
    assert not is_same(one, wrong)
    assert not is_same(one, np.roll(one, 1))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_special_values(dtype: str) -> None:
    row = np.array([1, np.nan, np.inf, -3], dtype)
    assert is_same(row, row.copy())
    assert not is_same(row, np.array([1, 2, np.inf, -3], dtype))
    assert not is_same(row, np.array([1, np.nan, -np.inf, -3], dtype))
    assert not is_same(row, row[:3])
    assert not is_same(row, row.astype("complex128"))
    assert is_same(row[:0], row[:0])


def test_ids_and_words_are_equal() -> None:
    assert is_same(np.array([1, 2]), np.array([1, 2]))
    assert not is_same(np.array([100_000, 2]), np.array([100_001, 2]))
    assert not is_same(np.array([b"a"], object), np.array([b"b"], object))


def _near_zero(features: Any, labels: Any, mode: str) -> Any:
    """A regressor whose outputs are small differences of large numbers."""
    if mode == tf.estimator.ModeKeys.TRAIN:
        step = tf.train.get_or_create_global_step()
        tf.get_variable("w", [2, 1], initializer=tf.constant_initializer(1.0))
        return tf.estimator.EstimatorSpec(mode, loss=tf.constant(0.0), train_op=step.assign_add(1))
    weights = tf.get_variable("w", [2, 1], initializer=tf.constant_initializer(1.0))
    return tf.estimator.EstimatorSpec(mode, predictions=tf.matmul(features["x"], weights) - 3931.0)


@pytest.mark.parametrize(("shift", "is_rounding"), [(3e-4, True), (0.5, False)])
def test_small_difference_of_large_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shift: float, is_rounding: bool
) -> None:
    estimator = tf.estimator.Estimator(_near_zero, str(tmp_path / "model"))
    estimator.train(lambda: {"x": tf.zeros([1, 2])}, steps=1)
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn(
        {"x": tf.placeholder(tf.float32, [None, 2])}
    )
    original = Predictor.answers

    def moved(self: Predictor, *args: Any) -> Any:
        return [
            {key: (each + shift).astype(each.dtype) for key, each in answer.items()}
            for answer in original(self, *args)
        ]

    monkeypatch.setattr(Predictor, "answers", moved)
    rows = {"x": np.array([[3932.0, 1.0], [3932.5, 0.5], [3931.0, 2.5]], np.float32)}
    if is_rounding:
        estimator.export_saved_model(tmp_path / "out", receiver, example_inputs=rows)
        return
    with pytest.raises(errors.InternalError, match="output differs from the model's"):
        estimator.export_saved_model(tmp_path / "out", receiver, example_inputs=rows)
