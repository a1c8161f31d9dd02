"""`contrib.training`: bucketing and sampled batches through queues."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf

training = tf.contrib.training


def every(fetches: Any) -> list[Any]:
    """All values that a pipeline of queues gives."""
    found = []
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        try:
            while True:
                found.append(session.run(fetches))
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads)
    return found


def numbers(count: int) -> Any:
    """The numbers below `count`, one a run."""
    return tf.train.range_input_producer(count, 1, shuffle=False).dequeue()


def test_buckets_are_batched_separately() -> None:
    with tf.Graph().as_default():
        number = numbers(12)
        row = tf.fill([number % 3 + 1], number)
        which, made = training.bucket({"n": number, "row": row}, number % 2, 3, 2, dynamic_pad=True)
        assert [made[key].shape.as_list() for key in ("n", "row")] == [[3], [3, None]]
        found = every((which, made))
    assert Counter(int(bucket) for bucket, _ in found) == {0: 2, 1: 2}
    for bucket, batch in found:
        assert set(batch["n"] % 2) == {bucket}
        width = int((batch["n"] % 3 + 1).max())
        assert batch["row"].shape == (3, width)
        np.testing.assert_array_equal(batch["row"][:, 0], batch["n"])


def test_bucket_batch_sizes_and_final_batches() -> None:
    with tf.Graph().as_default():
        number = numbers(10)
        keep = tf.not_equal(number, 4)
        which, made = training.bucket(
            [number, tf.as_string(number)],
            number % 2,
            [4, 3],
            2,
            num_threads=2,
            allow_smaller_final_batch=True,
            bucket_capacities=[5, 6],
            keep_input=keep,
        )
        assert made[0].shape.as_list() == [None]
        found = every((which, made))
    taken = {0: [], 1: []}  # type: dict[int, list[int]]
    for bucket, (batch, texts) in found:
        assert [int(text) for text in texts] == batch.tolist()
        taken[int(bucket)] += batch.tolist()
    assert {key: sorted(each) for key, each in taken.items()} == {
        0: [0, 2, 6, 8],
        1: [1, 3, 5, 7, 9],
    }


def test_buckets_of_sparse_examples() -> None:
    with tf.Graph().as_default():
        number = numbers(4)
        sparse = tf.sparse.from_dense(tf.stack([number, 0, 1]))
        _, (made, _) = training.bucket([sparse, number], number // 2, 2, 2)
        found = every(tf.sparse.to_dense(made))
    assert sorted(each.tolist() for each in found) == [
        [[0, 0, 1], [1, 0, 1]],
        [[2, 0, 1], [3, 0, 1]],
    ]


def test_bucket_by_sequence_length() -> None:
    with tf.Graph().as_default():
        length = numbers(9)
        lengths, row = training.bucket_by_sequence_length(
            length,
            tf.ones([length]),
            2,
            [3, 6],
            dynamic_pad=True,
            allow_smaller_final_batch=True,
        )
        found = every((lengths, row))
    assert sorted(each.tolist() for each, _ in found) == [[0, 1], [2], [3, 4], [5], [6, 7], [8]]
    for each, rows in found:
        np.testing.assert_array_equal(rows.sum(axis=1), each)


def test_bucket_errors() -> None:
    with tf.Graph().as_default():
        x = tf.constant(1)
        for arguments, words in (
            ({"batch_size": [1, 2, 3]}, "must have num_buckets elements"),
            ({"bucket_capacities": [1]}, "must have exactly num_buckets"),
        ):
            with pytest.raises(ValueError, match=words):
                training.bucket([x], 0, **{"batch_size": 2, **arguments}, num_buckets=2)  # type: ignore[arg-type]
        for boundaries, error in (((), ValueError), (3, TypeError), ([2, 1], ValueError)):
            with pytest.raises(error):
                training.bucket_by_sequence_length(x, [x], 2, boundaries)
        with pytest.raises(TypeError, match="must be integers"):
            training.bucket_by_sequence_length(x, [x], 2, [1, 2.5])


def test_rejection_sampling() -> None:
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        rows = tf.reshape(tf.range(20), [10, 2])
        batch = tf.train.limit_epochs(rows, 40)
        (found,) = training.rejection_sample(
            [batch],
            lambda example: tf.where(example[0][0] % 4 < 2, 0.0, 0.5),
            4,
            enqueue_many=True,
            runtime_checks=True,
        )
        assert found.shape.as_list() == [4, 2]
        values = np.concatenate(every(found))
    assert set((values[:, 0] % 4).tolist()) == {2}
    assert 60 < len(values) < 140  # 200 examples, a half of which is taken


@pytest.mark.slow
@pytest.mark.parametrize("initial", [None, [0.2, 0.8, 0.0]])
def test_stratified_sampling(initial: Any) -> None:
    with tf.Graph().as_default():
        tf.set_random_seed(2)
        number = tf.train.range_input_producer(5, 800, shuffle=False).dequeue()
        label = tf.cast(tf.not_equal(number, 0), tf.int32)
        (values,), labels = training.stratified_sample(
            [tf.stack([number, label])], label, [0.5, 0.5, 0.0], 10, init_probs=initial
        )
        assert values.shape.as_list() == [10, 2]
        found = every([values, labels])
    for rows, classes in found:
        np.testing.assert_array_equal(rows[:, 1], classes)
    taken = np.concatenate([classes for _, classes in found])
    assert len(taken) > 400  # of 4000, four fifths of which are of class 1
    late = taken[len(taken) // 2 :]  # early ones follow a poor estimate of that
    assert 0.37 < late.mean() < 0.63


def test_stratified_sampling_errors() -> None:
    with tf.Graph().as_default():
        rows, label = [tf.ones([1, 2])], tf.constant(1)
        with pytest.raises(ValueError, match="same length"):
            training.stratified_sample(rows, label, [0.5, 0.5], 2, [0.2, 0.3, 0.5])
        with pytest.raises(ValueError, match="rank 1"):
            training.stratified_sample(rows, label, [[0.5, 0.5]], 2, [0.2, 0.8])
        with pytest.raises(ValueError, match="incompatible"):
            training.stratified_sample(rows, [1, 0], [0.5, 0.5], 2, enqueue_many=True)
    for target, initial, words in (
        ([0.5, 0.5], [1.0, 0.0], "All classes with zero initial probability"),
        ([0.5, 0.4], [0.5, 0.5], "x < y|assert"),
    ):
        with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match=words):
            every(training.stratified_sample([tf.ones([2])], 0, target, 2, initial)[1])
