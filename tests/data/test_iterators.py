"""Iterators in graphs: one-shot, initializable, reinitializable, feedable; tensors in datasets.

The operations are `Iterator`, `MakeIterator`, `IteratorGetNext`, `IteratorGetNextOf` and
`IteratorToStringHandle`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
)
from estimatorkit.data.iterator_ops import iterator_states, restore_iterators, resuming
from tests.data.models import drain

Dataset = tf.data.Dataset


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def test_placeholder_rows_are_fed_to_initializer() -> None:
    rows = tf.placeholder(tf.float32, [None, 2])
    size = tf.placeholder(tf.int64, [])
    dataset = Dataset.from_tensor_slices(rows).map(lambda row: row + 1).batch(size)
    iterator = dataset.make_initializable_iterator()
    element = iterator.get_next()
    assert element.shape.as_list() == [None, 2]
    with tf.Session() as session:
        session.run(iterator.initializer, {rows: np.zeros((5, 2)), size: 3})
        assert [each.shape for each in drain(session, element)] == [(3, 2), (2, 2)]
        session.run(iterator.initializer, {rows: np.ones((2, 2)), size: 2})
        assert drain(session, element)[0].tolist() == [[2, 2], [2, 2]]


def test_transformation_arguments_may_be_fed() -> None:
    n = tf.placeholder(tf.int64, [])
    dataset = Dataset.range(n).skip(n // 5).take(n).shard(2, n % 2).repeat(2).shuffle(n, n)
    iterator = tf.data.make_initializable_iterator(dataset)
    with tf.Session() as session:
        session.run(iterator.initializer, {n: 10})
        assert sorted(drain(session, iterator.get_next())) == [2, 2, 4, 4, 6, 6, 8, 8]
        with pytest.raises(InvalidArgumentError, match=r"buffer_size is too small"):
            session.run(iterator.initializer, {n: 0})


def test_one_shot_iterator_refuses_placeholder() -> None:
    rows = tf.placeholder(tf.float32, [None], name="rows")
    with pytest.raises(ValueError, match=r"Cannot capture a placeholder \(name:rows\) by value"):
        Dataset.from_tensor_slices(rows).make_one_shot_iterator()


def test_one_shot_iterator_of_computed_value() -> None:
    scale = tf.cumsum(tf.constant([1.0, 2.0]))[1]
    element = Dataset.range(2).map(lambda x: tf.cast(x, tf.float32) * scale)
    with tf.Session() as session:
        assert drain(session, element.make_one_shot_iterator().get_next()) == [0, 3]


def test_variable_is_read_when_iterator_starts() -> None:
    scale = tf.get_variable("scale", initializer=2.0)
    iterator = (
        Dataset.range(3).map(lambda x: tf.cast(x, tf.float32) * scale).make_initializable_iterator()
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(iterator.initializer)
        assert drain(session, iterator.get_next()) == [0, 2, 4]
        session.run(scale.assign(5.0))
        session.run(iterator.initializer)
        assert drain(session, iterator.get_next()) == [0, 5, 10]


def test_assignment_in_function_is_refused() -> None:
    count = tf.get_variable("count", initializer=0.0)
    with pytest.raises(ValueError, match="assigns to a variable"):
        Dataset.range(3).map(lambda x: count.assign_add(1.0))


def test_structure_and_initializers_of_several_datasets() -> None:
    train, test = Dataset.range(3).map(lambda x: x * 10), Dataset.range(2)
    iterator = tf.data.Iterator.from_structure(train.output_types, train.output_shapes)
    begin_train, begin_test = iterator.make_initializer(train), iterator.make_initializer(test)
    element = iterator.get_next()
    with tf.Session() as session:
        with pytest.raises(FailedPreconditionError, match="has not been initialized"):
            session.run(element)
        session.run(begin_train)
        assert session.run(element) == 0
        session.run(begin_test)
        assert drain(session, element) == [0, 1]
        session.run(begin_train)
        assert drain(session, element) == [0, 10, 20]
    with pytest.raises(TypeError, match="Expected output types, classes and structure"):
        iterator.make_initializer(Dataset.from_tensors(1.0))
    with pytest.raises(ValueError, match="does not have an initializer"):
        _ = iterator.initializer


def test_fed_handle_selects_iterator() -> None:
    training = Dataset.range(100).repeat().make_one_shot_iterator()
    validation = Dataset.range(-2, 0).make_initializable_iterator()
    handle = tf.placeholder(tf.string, [])
    chosen = tf.data.Iterator.from_string_handle(
        handle, training.output_types, training.output_shapes
    )
    element = chosen.get_next() + 1
    with tf.Session() as session:
        train, valid = session.run([training.string_handle(), validation.string_handle()])
        assert [session.run(element, {handle: train}) for _ in range(3)] == [1, 2, 3]
        session.run(validation.initializer)
        assert session.run(element, {handle: valid}) == -1
        assert session.run(element, {handle: train}) == 4
        with pytest.raises(InvalidArgumentError, match="there is no iterator with this handle"):
            session.run(element, {handle: "nobody"})
        other = Dataset.from_tensors(0.5).make_one_shot_iterator()
        with pytest.raises(InvalidArgumentError, match="other element types"):
            session.run(element, {handle: session.run(other.string_handle())})


def test_sparse_elements_are_sparse_tensors() -> None:
    value = tf.SparseTensorValue([[0, 1], [2, 0]], [5, 6], [3, 2])
    dataset = Dataset.from_tensor_slices({"s": value, "n": [1, 2, 3]}).batch(2)
    assert dataset.output_classes == {"s": tf.SparseTensor, "n": tf.Tensor}
    assert dataset.output_shapes["s"].as_list() == [None, 2]
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        first, second = drain(session, [tf.sparse.to_dense(element["s"]), element["n"]])
        assert first[0].tolist() == [[0, 5], [0, 0]]
        assert first[1].tolist() == [1, 2]
        assert second[0].tolist() == [[6, 0]]


def test_sparse_tensor_of_graph_as_rows() -> None:
    whole = tf.sparse.from_dense(tf.placeholder_with_default([[1, 0], [0, 2]], [None, 2]))
    iterator = Dataset.from_tensor_slices(whole).make_initializable_iterator()
    element = tf.sparse.to_dense(iterator.get_next())
    with tf.Session() as session:
        session.run(iterator.initializer)
        assert [row.tolist() for row in drain(session, element)] == [[1, 0], [0, 2]]


def test_restored_position_is_next_element() -> None:
    def build() -> tuple[Any, Any]:
        iterator = Dataset.range(50).shuffle(7).batch(3).make_initializable_iterator()
        return iterator, iterator.get_next()

    iterator, element = build()
    with tf.Session() as session:
        session.run(iterator.initializer)
        for _ in range(4):
            session.run(element)
        saved = iterator_states(session.state)
        rest = drain(session, element)
    for before in (True, False):  # the position may come before or after the initializer has run
        with tf.Graph().as_default():
            iterator, element = build()
            with tf.Session() as session:
                if before:
                    restore_iterators(session.state, saved)
                with resuming(session.state):
                    session.run(iterator.initializer)
                if not before:
                    restore_iterators(session.state, saved)
                found = drain(session, element)
        assert [each.tolist() for each in found] == [each.tolist() for each in rest]


def test_rows_of_several_shapes_come_one_by_one() -> None:
    dataset = Dataset.range(6).map(lambda x: tf.fill([x % 3], x))
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        found = [each.tolist() for each in drain(session, element)]
    assert found == [[], [1], [2, 2], [], [4], [5, 5]]


def test_placeholder_dataset_has_no_elements_outside_session() -> None:
    rows = tf.placeholder(tf.float32, [None])
    dataset = Dataset.from_tensor_slices(rows)
    with pytest.raises(FailedPreconditionError, match="depends on a tensor"):
        list(dataset)


def test_generator_args_may_be_tensors() -> None:
    def count(stop: Any, word: Any) -> Any:
        assert isinstance(word, bytes)
        return ((number, word) for number in range(stop))

    stop = tf.placeholder(tf.int64, [])
    dataset = Dataset.from_generator(count, (tf.int64, tf.string), ((), ()), args=(stop, "w"))
    iterator = dataset.make_initializable_iterator()
    with tf.Session() as session:
        session.run(iterator.initializer, {stop: 2})
        assert drain(session, iterator.get_next()) == [(0, b"w"), (1, b"w")]
    nested = Dataset.range(3).flat_map(
        lambda n: Dataset.from_generator(lambda n: iter([n] * n), tf.int64, (), args=(n,))
    )
    assert list(nested) == [1, 2, 2]


def test_every_method_takes_name() -> None:
    numbers = (
        Dataset.range(1, 7, output_type=tf.int32, name="n").take(5, name="n").skip(1, name="n")
    )
    rest = (
        numbers.shard(2, 1, name="n").repeat(2, name="n").batch(2, num_parallel_calls=2, name="n")
    )
    assert rest.output_types is tf.int32
    assert [each.tolist() for each in rest] == [[3, 5], [3, 5]]


def test_lists_of_tensors_are_stacked() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        two = tf.placeholder_with_default(np.float32(2.0), [])
        rows = tf.data.Dataset.from_tensor_slices([two, two + 1.0])
        whole = tf.data.Dataset.from_tensors({"x": [two, 4.0]})
        fetches = [tf.data.make_initializable_iterator(each) for each in (rows, whole)]
        session.run([each.initializer for each in fetches])
        assert session.run(fetches[0].get_next()) == 2.0
        assert session.run(fetches[1].get_next())["x"].tolist() == [2.0, 4.0]
