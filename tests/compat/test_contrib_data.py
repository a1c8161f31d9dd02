"""`contrib.data`, `contrib.lookup` and the feature columns of `contrib.layers`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def test_transformations() -> None:
    data = tf.contrib.data
    numbers = data.Dataset.range(10)
    assert [each.tolist() for each in numbers.apply(data.batch_and_drop_remainder(4))] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
    ]
    squares = numbers.apply(data.map_and_batch(lambda x: x * x, 5, num_parallel_batches=2))
    assert [each.tolist() for each in squares] == [[0, 1, 4, 9, 16], [25, 36, 49, 64, 81]]
    pairs = numbers.take(2).apply(
        data.parallel_interleave(lambda x: data.Dataset.from_tensors(x).repeat(2), 2, sloppy=True)
    )
    assert list(pairs) == [0, 1, 0, 1]
    shuffled = numbers.apply(data.shuffle_and_repeat(10, 2, seed=1))
    assert sorted(shuffled) == sorted([*range(10)] * 2)
    assert data.AUTOTUNE == tf.data.AUTOTUNE == tf.data.experimental.AUTOTUNE


def test_iterators_are_saved_implicitly() -> None:
    iterator = tf.data.Dataset.range(5).make_one_shot_iterator()
    saveable = tf.contrib.data.make_saveable_from_iterator(iterator)
    tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, saveable)
    tf.get_variable("v", [])
    assert tf.train.Saver() is not None


def test_string_lookup() -> None:
    words = tf.constant(["b", "x"])
    places = tf.contrib.lookup.string_to_index(words, ["a", "b"], default_value=7)
    names = tf.contrib.lookup.index_to_string(places, ["a", "b"])
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        assert session.run(places).tolist() == [1, 7]
        assert session.run(names).tolist() == [b"b", b"UNK"]


@pytest.mark.slow
def test_columns() -> None:
    layers = tf.contrib.layers
    age = layers.real_valued_column("age")
    ages = layers.bucketized_column(age, [30, 18])
    job = layers.sparse_column_with_hash_bucket("job", 100)
    sex = layers.sparse_column_with_keys("sex", ["f", "m"], combiner="mean")
    both = layers.crossed_column([job, sex, ages], hash_bucket_size=50)
    columns = [age, layers.one_hot_column(sex), layers.embedding_column(job, 4)]
    features = {
        "age": np.float32([[20], [40]]),
        "job": np.array([b"cook", b"smith"], object),
        "sex": np.array([b"m", b"f"], object),
    }
    inputs = layers.input_from_feature_columns(features, columns)
    sums, variables, bias = layers.weighted_sum_from_feature_columns(features, [both, job], 3)
    assert inputs.shape.as_list()[1] == 1 + 2 + 4
    assert sums.shape.as_list()[1] == 3
    assert set(variables) == {both, job}
    assert bias.shape.as_list() == [3]
    assert set(layers.create_feature_spec_for_parsing([*columns, both])) == {"age", "job", "sex"}
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        found = session.run(inputs)
        order = sorted(columns, key=lambda column: column.name)
        assert type(order[0]).__name__ == "NumericColumn"
        assert found[:, 0].tolist() == [20, 40]
        assert found[:, -2:].tolist() == [[0, 1], [1, 0]]
        assert session.run(sums).tolist() == np.zeros((2, 3)).tolist()
