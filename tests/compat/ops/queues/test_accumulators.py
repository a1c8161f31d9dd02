"""Gradient accumulators: means, staleness and waiting, with TensorFlow 2.15.1's values."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core import errors

# The types that no single call can show (see test_ops.py): ConditionalAccumulator,
# SparseConditionalAccumulator, AccumulatorApplyGradient, AccumulatorTakeGradient,
# SparseAccumulatorApplyGradient, SparseAccumulatorTakeGradient, AccumulatorSetGlobalStep,
# AccumulatorNumAccumulated.


@pytest.fixture(autouse=True)
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def test_mean_excludes_stale_gradients(session: tf.Session) -> None:
    accumulator = tf.ConditionalAccumulator(tf.float32, [2])
    first = accumulator.apply_grad([1.0, 2.0], local_step=0)
    session.run([first, accumulator.apply_grad([3.0, 4.0], local_step=5)])
    assert session.run(accumulator.num_accumulated()) == 2
    mean = accumulator.take_grad(1)
    assert mean.shape.as_list() == [2]
    assert session.run(mean).tolist() == [2.0, 3.0]
    session.run(first)  # of step 0, and this is step 1
    assert session.run(accumulator.num_accumulated()) == 0
    session.run(accumulator.set_global_step(7))
    session.run(accumulator.apply_grad([1.0, 1.0], local_step=6))
    assert session.run(accumulator.num_accumulated()) == 0
    session.run(accumulator.apply_grad([5.0, 5.0], local_step=7))
    assert session.run(mean).tolist() == [5.0, 5.0]


def test_sum(session: tf.Session) -> None:
    accumulator = tf.ConditionalAccumulator(tf.float64, reduction_type="SUM")
    add = accumulator.apply_grad(np.array([1.0, 2.0]))
    session.run(add)
    session.run(add)
    assert session.run(accumulator.take_grad(2)).tolist() == [2.0, 4.0]
    with pytest.raises(ValueError, match="invalid reduction_type"):
        tf.ConditionalAccumulator(tf.float32, reduction_type="MAX")


def test_take_waits_for_enough_gradients(session: tf.Session) -> None:
    accumulator = tf.ConditionalAccumulator(tf.float32, [])
    add, mean = accumulator.apply_grad(3.0), accumulator.take_grad(2)
    with ThreadPoolExecutor(1) as thread:
        session.run(add)
        waiting = thread.submit(session.run, mean)
        assert not waiting.done()
        session.run(add)
        assert waiting.result(timeout=20) == 3.0


def test_invalid_arguments_raise(session: tf.Session) -> None:
    accumulator = tf.ConditionalAccumulator(tf.float32)
    with pytest.raises(errors.InvalidArgumentError, match="must be positive"):
        session.run(accumulator.take_grad(0))
    session.run(accumulator.apply_grad([1.0]))
    with pytest.raises(errors.InvalidArgumentError, match="Shape mismatch"):
        session.run(accumulator.apply_grad([1.0, 2.0]))
    with pytest.raises(ValueError, match="incompatible"):
        tf.ConditionalAccumulator(tf.float32, [2]).apply_grad([1.0])
    unknown = tf.placeholder_with_default([1.0], None)
    with pytest.raises(errors.InvalidArgumentError, match=r"expected \[\?,2\], got \[1\]"):
        session.run(tf.ConditionalAccumulator(tf.float32, [None, 2]).apply_grad(unknown))


@pytest.mark.parametrize(
    ("shape", "gradient", "message"),
    [  # indices, values and dense shape that TensorFlow refuses, too
        (
            [2, 2],
            ([[0]], [[1.0, 2.0]]),
            r"Input indices should be vector but received shape: \[1,1",
        ),
        ([2, 2], ([0], 1.0), "Values cannot be 0-dimensional"),
        ([2, 2], ([0, 1], [[1.0, 2.0]]), "Expected 2 non-empty input values, got 1"),
        ([2, 2], ([0], [1.0]), "expected values rank at least 2, got 1"),
        ([2, 2], ([0], [[1.0, 2.0, 3.0]]), "expected values dim 1 to be 2, got 3"),
        ([2, 2], ([5], [[1.0, 2.0]]), "index of slice 0 exceeded limits of shape; index is 5 exce"),
        ([2, 2], ([0], [[1.0, 2.0]], [3, 2]), "expected shape dim 0 to be 2, got 3"),
        ([2, 2], ([0], [[1.0, 2.0]], [2]), "expected shape rank at least 2, got 1"),
        (None, ([1], [[1.0]]), "expected values dim 1 to be 2, got 1"),  # as applied before
        ([None, 2], ([7], [[1.0, 2.0]], [9, 2]), None),
    ],
)
def test_mismatched_rows_raise(
    session: tf.Session, shape: Any, gradient: Any, message: str | None
) -> None:
    accumulator = tf.SparseConditionalAccumulator(tf.float32, shape)
    session.run(accumulator.apply_grad([0], [[1.0, 2.0]]))
    add = accumulator.apply_grad(*gradient)
    if message:
        with pytest.raises(errors.InvalidArgumentError, match=message):
            session.run(add)
    else:
        session.run(add)
        assert session.run(accumulator.take_grad(2))[2].tolist() == [-1, 2]


def test_sparse_rows(session: tf.Session) -> None:
    accumulator = tf.SparseConditionalAccumulator(tf.float32, [4, 2])
    session.run(accumulator.apply_grad([0, 2], [[1.0, 1.0], [2.0, 2.0]]))
    slices = tf.IndexedSlices(tf.constant([[4.0, 4.0], [6.0, 6.0]]), tf.constant([2, 3]))
    session.run(accumulator.apply_indexed_slices_grad(slices))
    mean = accumulator.take_indexed_slices_grad(2)
    assert mean.values.shape.as_list() == [None, 2]
    indices, values, shape = session.run([mean.indices, mean.values, mean.dense_shape])
    assert (indices.tolist(), shape.tolist()) == ([0, 2, 3], [4, 2])
    assert values.tolist() == [[1.0, 1.0], [3.0, 3.0], [6.0, 6.0]]
    session.run(accumulator.apply_grad([], np.empty([0, 2], np.float32), local_step=1))
    indices, values, _ = session.run(list(accumulator.take_grad(1)))
    assert (indices.tolist(), values.shape) == ([], (0, 2))
    anything = tf.SparseConditionalAccumulator(tf.float32, shared_name="shared")
    session.run(anything.apply_grad([3], [[1.0]]))
    assert session.run(anything.take_grad(1)[2]).tolist() == [-1, 1]


def test_staging_area(session: tf.Session) -> None:
    area = tf.StagingArea([tf.float32, tf.int32], names=["x", "n"], capacity=2)
    put = area.put({"x": 1.5, "n": 3})
    session.run(put)
    session.run(put)
    assert session.run([area.size(), area.get()]) == [2, {"x": 1.5, "n": 3}]
    session.run(area.clear())
    assert session.run(area.size()) == 0
    single = tf.StagingArea([tf.float32], shapes=[[2]])
    session.run(single.put([[1.0, 2.0]]))
    (taken,) = single.get()
    assert taken.shape.as_list() == [2]
    assert session.run(taken).tolist() == [1.0, 2.0]
