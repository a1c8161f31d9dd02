"""The tests of `tests/layers/test_feature_column_protocol.py` that need names of TensorFlow 1."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
from estimatorkit.compat.v1.python.feature_column import feature_column, feature_column_v2
from tests.layers.test_feature_column_protocol import graph

__all__ = ["graph"]


SPARSE = tf.SparseTensorValue(((0, 0), (2, 1), (2, 4)), (1, 2, 0), (3, 5))


def run(fetches: Any) -> Any:
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return session.run(fetches)


def test_sparse_feature_ids_keep_indices() -> None:
    column = tf.feature_column.categorical_column_with_identity("a", 3)
    builder = feature_column._LazyBuilder({"a": SPARSE})
    ids, weights = column._get_sparse_tensors(builder)
    assert weights is None
    assert builder.get(column) is ids
    found = run(ids)
    assert found.indices.tolist() == [[0, 0], [2, 1], [2, 4]]
    assert found.values.tolist() == [1, 2, 0]
    assert found.dense_shape.tolist() == [3, 5]


def test_dense_feature_keeps_unknown_and_drops_missing_ids() -> None:
    column = tf.feature_column.categorical_column_with_vocabulary_list("a", ["x", "y"])
    cache = feature_column_v2.FeatureTransformationCache({"a": [["y", ""], ["z", "x"]]})
    found = run(column.get_sparse_tensors(cache, None).id_tensor)
    assert found.indices.tolist() == [[0, 0], [1, 0], [1, 1]]
    assert found.values.tolist() == [1, -1, 0]


def test_weights_buckets_and_sequences() -> None:
    identity = tf.feature_column.categorical_column_with_identity("a", 3)
    weighted = tf.feature_column.weighted_categorical_column(identity, "w")
    price = tf.feature_column.numeric_column("p", shape=2)
    buckets = tf.feature_column.bucketized_column(price, [0.0, 2.0])
    steps = tf.feature_column.sequence_categorical_column_with_identity("a", 3)
    weights = tf.SparseTensorValue(SPARSE.indices, (0.5, 2.0, 4.0), SPARSE.dense_shape)
    features = {"a": SPARSE, "w": weights, "p": [[-1.0, 3.0], [1.0, 0.0]]}
    builder = feature_column._LazyBuilder(features)
    ids, by_weight = weighted._get_sparse_tensors(builder)
    found = run([ids, by_weight, buckets._transform_feature(builder)])
    assert found[0].values.tolist() == [1, 2, 0]
    assert found[1].values.tolist() == [0.5, 2.0, 4.0]
    assert found[2].tolist() == [[0, 2], [1, 1]]
    assert run(buckets._get_sparse_tensors(builder).id_tensor).values.tolist() == [0, 5, 1, 4]
    by_step = run(steps._get_sparse_tensors(builder).id_tensor)
    assert by_step.dense_shape.tolist() == [3, 5, 1]
    empty = tf.SparseTensorValue(np.zeros((0, 2), np.int64), np.zeros(0, np.int64), (2, 0))
    nothing = feature_column._LazyBuilder({"a": empty})
    assert run(steps._get_sparse_tensors(nothing).id_tensor).dense_shape.tolist() == [2, 0, 1]
    assert (buckets._num_buckets, buckets._variable_shape) == (6, (2, 3))
    assert price._get_dense_tensor(builder) is builder.get(price)


def test_embedding_table_comes_from_state_manager() -> None:
    class States:
        made: Any = None

        def create_variable(self, column: Any, name: str, **options: Any) -> Any:
            options.pop("use_resource", None)
            self.made = tf.get_variable(name, **options)

        def get_variable(self, column: Any, name: str) -> Any:
            return self.made

    identity = tf.feature_column.categorical_column_with_identity("a", 3)
    column = tf.feature_column.embedding_column(identity, 2, initializer=tf.ones_initializer())
    states = States()
    column.create_state(states)
    by_hand = feature_column_v2._StateManagerImpl(None, trainable=False)
    with tf.variable_scope("by_hand"):
        column.create_state(by_hand)
    with pytest.raises(ValueError, match="Variable already exists"):
        column.create_state(by_hand)
    cache = feature_column_v2.FeatureTransformationCache({"a": SPARSE})
    dense = column.get_dense_tensor(cache, states)
    assert [each.name for each in tf.trainable_variables()] == ["embedding_weights:0"]
    assert run(dense).tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]


class Twice(feature_column._DenseColumn, namedtuple("Twice", ("key",))):  # type: ignore[misc]
    """A column of version 1, as scripts define them."""

    @property
    def name(self) -> str:
        return f"{self.key}_twice"

    @property
    def _parse_example_spec(self) -> Any:
        return {self.key: tf.FixedLenFeature((1,), tf.float32)}

    @property
    def _variable_shape(self) -> Any:
        return tf.TensorShape([1])

    def _transform_feature(self, inputs: Any) -> Any:
        return inputs.get(self.key) * 2.0

    def _get_dense_tensor(
        self, inputs: Any, weight_collections: Any = None, trainable: bool | None = None
    ) -> Any:
        scale = tf.get_variable(
            "scale", [1], initializer=tf.ones_initializer(), collections=weight_collections
        )
        return inputs.get(self) * scale


def test_custom_version_1_dense_column_in_layers() -> None:
    columns = [Twice("x"), tf.feature_column.numeric_column("y")]
    assert sorted(tf.feature_column.make_parse_example_spec(columns)) == ["x", "y"]
    net = tf.feature_column.input_layer({"x": [[1.0], [2.0]], "y": [[5.0], [6.0]]}, columns)
    assert [each.name for each in tf.global_variables()] == ["input_layer/x_twice/scale:0"]
    assert run(net).tolist() == [[2.0, 5.0], [4.0, 6.0]]


class Given(feature_column_v2.CategoricalColumn):  # type: ignore[misc]
    """A categorical column of version 2."""

    name = "given"
    parse_example_spec = None
    num_buckets = 4

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        return transformation_cache.get("a", state_manager)

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> Any:
        return self.IdWeightPair(transformation_cache.get(self, state_manager), None)


def test_custom_version_2_categorical_column_in_linear_model() -> None:
    model = feature_column_v2.LinearModel([Given(), tf.feature_column.numeric_column("x")])
    features = {"a": SPARSE, "x": [[1.0], [2.0], [3.0]]}
    net, again = model(features), model(features)
    names = [f"linear_model/{name}:0" for name in ("given/weights", "x/weights", "bias_weights")]
    assert [each.name for each in model.variables] == names
    given, x, bias = model.variables
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([given.assign([[1.0], [10.0], [100.0], [0.0]]), x.assign([[1000.0]])])
        session.run(bias.assign([0.5]))
        assert session.run(net).tolist() == [[1010.5], [2000.5], [3101.5]]
        assert session.run(again).tolist() == session.run(net).tolist()


@pytest.mark.parametrize(
    ("context", "steps", "error", "words"),
    [
        (tf.float32, [2, 2], ValueError, "sequence_input must have rank 3, got rank 2"),
        (tf.int32, [2, 2, 2], TypeError, "context_input must have dtype float32"),
    ],
)
def test_concatenate_context_input_errors(context: Any, steps: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        tf.contrib.feature_column.concatenate_context_input(
            tf.zeros([2, 3], context), tf.zeros(steps)
        )


def test_builder_errors() -> None:
    builder = feature_column._LazyBuilder({"a": [[1]]})
    with pytest.raises(ValueError, match="bbb is not in features dictionary"):
        builder.get("bbb")
    with pytest.raises(TypeError, match='"key" must be either a "str" or "_FeatureColumn"'):
        builder.get(3)
