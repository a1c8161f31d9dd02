"""Queue input pipelines: producers, batches, threads and their end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core import errors
from tests.threads import StartedThreads


@pytest.fixture(autouse=True)
def session(threads: StartedThreads) -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened
    assert threads.have_ended("QueueRunner")


def run_to_the_end(session: tf.Session, tensors: Any) -> list[Any]:
    """All values until the input has ended, as a training loop of TensorFlow 1 takes them."""
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess=session, coord=coord)
    values = []
    try:
        while not coord.should_stop():
            values.append(session.run(tensors))
    except errors.OutOfRangeError:
        pass
    finally:
        coord.request_stop()
        coord.join(threads)
    return values


def test_strings_come_in_order_for_num_epochs(session: tf.Session) -> None:
    queue = tf.train.string_input_producer(["a", "b", "c"], num_epochs=2, shuffle=False)
    assert queue.name == "input_producer"
    assert run_to_the_end(session, queue.dequeue()) == [b"a", b"b", b"c"] * 2


def test_strings_are_shuffled_within_epoch(session: tf.Session) -> None:
    names = [f"file{n}" for n in range(20)]
    queue = tf.train.string_input_producer(tf.constant(names), num_epochs=2, seed=3, capacity=7)
    got = [value.decode() for value in run_to_the_end(session, queue.dequeue())]
    assert sorted(got[:20]) == sorted(got[20:]) == sorted(names)
    assert names != got[:20] != got[20:]


def test_no_strings_raises(session: tf.Session) -> None:
    with pytest.raises(ValueError, match="requires a non-null input tensor"):
        tf.train.string_input_producer([])
    empty = tf.placeholder_with_default(np.empty([0], object), [None])
    queue = tf.train.string_input_producer(empty, shuffle=False)
    (runner,) = tf.get_collection("queue_runners")
    with pytest.raises(errors.InvalidArgumentError, match="requires a non-null input tensor"):
        session.run(runner.enqueue_ops[0])
    assert session.run(queue.size()) == 0


def test_limit_epochs_without_queue(session: tf.Session) -> None:
    limited = tf.train.limit_epochs(tf.constant(5), num_epochs=2)
    assert tf.train.limit_epochs(3).op.type == "Const"
    assert run_to_the_end(session, limited) == [5, 5]
    with pytest.raises(ValueError, match="num_epochs must be > 0 not 0"):
        tf.train.limit_epochs(3, num_epochs=0)


def test_slices_of_several_tensors_stay_together(session: tf.Session) -> None:
    x, y = np.arange(6.0, dtype=np.float32).reshape(3, 2), ["a", "b", "c"]
    row = tf.train.slice_input_producer([x, y], num_epochs=3, seed=1)
    assert [tensor.shape.as_list() for tensor in row] == [[2], []]
    got = [(values.tolist(), text) for values, text in run_to_the_end(session, row)]
    expected = [([0.0, 1.0], b"a"), ([2.0, 3.0], b"b"), ([4.0, 5.0], b"c")]
    assert sorted(got) == sorted(expected * 3)
    with pytest.raises(ValueError, match="at least one tensor"):
        tf.train.slice_input_producer([])


def numbers(count: int, epochs: int = 1) -> Any:
    return tf.train.range_input_producer(count, num_epochs=epochs, shuffle=False).dequeue()


def test_batches(session: tf.Session) -> None:
    number = numbers(7)
    words = tf.train.batch([number, tf.cast(number, tf.float32) * [1.0, 2.0]], batch_size=3)
    assert [tensor.name for tensor in words] == ["batch:0", "batch:1"]
    assert [tensor.shape.as_list() for tensor in words] == [[3], [3, 2]]
    got = run_to_the_end(session, words)
    np.testing.assert_array_equal([each[0] for each in got], [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(got[1][1], [[3, 6], [4, 8], [5, 10]])


def test_smaller_final_batch(session: tf.Session) -> None:
    example = {"number": numbers(5), "text": tf.constant("t")}
    taken = tf.train.batch(example, batch_size=3, allow_smaller_final_batch=True)
    assert taken["number"].shape.as_list() == [None]
    got = run_to_the_end(session, taken)
    assert [each["number"].tolist() for each in got] == [[0, 1, 2], [3, 4]]
    assert got[1]["text"].tolist() == [b"t", b"t"]


def test_enqueue_many(session: tf.Session) -> None:
    pairs = tf.stack([numbers(4), tf.constant(9)])
    taken = tf.train.batch(pairs, batch_size=4, enqueue_many=True)
    assert [each.tolist() for each in run_to_the_end(session, taken)] == [
        [0, 9, 1, 9],
        [2, 9, 3, 9],
    ]


def test_dynamic_padding(session: tf.Session) -> None:
    row = tf.fill([numbers(4)], 7)
    row.set_shape([None])
    with pytest.raises(ValueError, match="All shapes must be fully defined"):
        tf.train.batch([row], batch_size=2)
    taken = tf.train.batch([row], batch_size=2, dynamic_pad=True)
    got = run_to_the_end(session, taken)
    assert [each.tolist() for each in got] == [[[0], [7]], [[7, 7, 0], [7, 7, 7]]]


def test_shuffled_batches(session: tf.Session) -> None:
    taken = tf.train.shuffle_batch(
        [numbers(40)], batch_size=4, capacity=30, min_after_dequeue=20, num_threads=3, seed=5
    )
    got = np.concatenate(run_to_the_end(session, taken))
    assert sorted(got) == list(range(40))
    assert got.tolist() != list(range(40))
    with pytest.raises(ValueError, match="capacity 5 must be bigger than min_after_dequeue 5"):
        tf.train.shuffle_batch([numbers(4)], 1, capacity=5, min_after_dequeue=5)


def test_batch_join(session: tf.Session) -> None:
    sources = [[numbers(6)], [numbers(6) + 100]]
    got = np.concatenate(run_to_the_end(session, tf.train.batch_join(sources, batch_size=3)))
    assert sorted(got) == [*range(6), *range(100, 106)]
    runners = tf.get_collection("queue_runners")
    assert len(runners[-1].enqueue_ops) == 2
    joined = tf.train.shuffle_batch_join(sources, 2, capacity=9, min_after_dequeue=1)
    assert joined.shape.as_list() == [2]
    with pytest.raises(TypeError, match="Expected types to be consistent"):
        tf.train.batch_join([[tf.constant(1)], [tf.constant(1.0)]], batch_size=2)
    with pytest.raises(ValueError, match="must have the same keys"):
        tf.train.batch_join([{"a": tf.constant(1)}, {"b": tf.constant(1)}], batch_size=2)


def test_maybe_batch(session: tf.Session) -> None:
    number = numbers(8)
    taken = tf.train.maybe_batch([number], tf.equal(number % 2, 0), batch_size=2)
    assert [each.tolist() for each in run_to_the_end(session, taken)] == [[0, 2], [4, 6]]
    with pytest.raises(ValueError, match="cannot be a vector when"):
        tf.train.maybe_batch([number], [True, False], batch_size=2)


def test_file_names_are_matched_once(session: tf.Session, tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "c.txt"):
        (tmp_path / name).touch()
    names = tf.train.match_filenames_once(str(tmp_path / "*.csv"))
    queue = tf.train.string_input_producer(names, num_epochs=1, shuffle=False)
    got = run_to_the_end(session, queue.dequeue())
    assert [Path(name.decode()).name for name in got] == ["a.csv", "b.csv"]
    (tmp_path / "d.csv").touch()
    assert len(session.run(names)) == 2


def test_unknown_shape() -> None:
    with pytest.raises(ValueError, match="must have a fully defined shape or `element_shape`"):
        tf.train.input_producer(tf.placeholder(tf.float32, [None, None]))
    with pytest.raises(ValueError, match="Cannot infer Tensor's rank"):
        tf.train.batch([tf.placeholder(tf.float32)], batch_size=2)


def test_queue_fullness_summaries(session: tf.Session) -> None:
    row = numbers(4)
    tf.train.batch([row], 2, capacity=8)
    tf.train.shuffle_batch([row], 2, capacity=9, min_after_dequeue=4)
    summaries = tf.get_collection("summaries")
    found = [tf.Summary.FromString(text).value[0] for text in session.run(summaries)]
    assert [(each.tag, each.simple_value) for each in found] == [
        ("input_producer/fraction_of_32_full", 0.0),
        ("batch/fraction_of_8_full", 0.0),
        ("shuffle_batch/fraction_over_4_of_5_full", 0.0),
    ]


def test_sparse_tensors_in_queues(session: tf.Session) -> None:
    """Examples of 0, 1, 2 and 3 words, as a parser gives them."""
    number = numbers(4)
    count = tf.cast(number, tf.int64)
    places = tf.expand_dims(tf.range(count), 1)
    words = tf.SparseTensor(places, tf.fill([number], "w"), tf.stack([count]))
    taken = tf.train.batch({"n": number, "words": words}, batch_size=2, num_threads=1)
    assert taken["words"].values.dtype is tf.string
    assert taken["words"].shape.rank == 2
    types = {op.type for op in session.graph.get_operations()}
    assert {"SparseToBoxes", "BoxesToSparse"} <= types
    first, second = run_to_the_end(session, taken)
    assert first["words"].indices.tolist() == [[1, 0]]
    assert first["words"].dense_shape.tolist() == [2, 1]
    assert second["n"].tolist() == [2, 3]
    assert second["words"].indices.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]]
    assert second["words"].values.tolist() == [b"w"] * 5
    assert second["words"].dense_shape.tolist() == [2, 3]


def test_sparse_rows_in_queues(session: tf.Session) -> None:
    whole = tf.SparseTensor([[0, 1], [2, 0], [2, 2]], [1.0, 2.0, 3.0], [4, 3])
    taken = tf.train.batch(whole, batch_size=3, enqueue_many=True)
    tf.train.start_queue_runners(session, coord := tf.train.Coordinator())
    got = session.run(taken)
    assert got.indices.tolist() == [[0, 1], [2, 0], [2, 2]]
    assert got.values.tolist() == [1.0, 2.0, 3.0]
    assert got.dense_shape.tolist() == [3, 3]
    coord.request_stop()
    coord.join()
