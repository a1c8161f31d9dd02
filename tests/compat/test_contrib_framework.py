"""`contrib.framework`: tensor checks and argument scopes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf

framework = tf.contrib.framework


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def test_sums_and_squeezed_dimensions() -> None:
    total = framework.reduce_sum_n([tf.constant([1, 2]), tf.constant([[3]])])
    predictions, labels = framework.remove_squeezable_dimensions(tf.ones([2, 1]), tf.zeros([2]))
    assert predictions.shape.as_list() == labels.shape.as_list() == [2]
    with tf.Session() as session:
        assert session.run([total, predictions[0], labels[0]]) == [6, 1.0, 0.0]
    with pytest.raises(ValueError, match="No tensors provided"):
        framework.reduce_sum_n([])


def test_scalar_int_assertions() -> None:
    scalar = tf.constant(3, tf.int64)
    assert framework.assert_scalar_int(scalar) is scalar
    with pytest.raises(ValueError, match="Expected integer type"):
        framework.assert_scalar_int(tf.constant(3.0))
    with pytest.raises(ValueError, match="Expected scalar shape"):
        framework.assert_scalar_int(tf.constant([3]))


def test_static_shapes() -> None:
    tensor = tf.ones([2, 3])
    assert framework.with_shape([2, 3], tensor) is tensor
    assert framework.with_same_shape(tf.zeros([2, 3]), tensor) is tensor
    assert framework.with_shape([], tf.ones([1])).shape.as_list() == []
    for shape, words in (
        ([3, 2], "Invalid shape"),
        (np.array([[2, 3]], np.int32), "Invalid rank"),
        ([2.0, 3.0], "Invalid dtype"),
        (tf.constant([2, 3], tf.int64), "Invalid dtype"),
    ):
        with pytest.raises(ValueError, match=words):
            framework.with_shape(shape, tensor)


def test_dynamic_shapes() -> None:
    fed: Any = tf.placeholder(tf.float32, [None, 2])
    other = tf.placeholder(tf.float32, [None, 2])
    listed = framework.with_shape([1, 2], fed)
    same = framework.with_same_shape(other, fed)
    never = framework.with_shape(tf.constant([1]), fed)
    assert listed.shape.as_list() == [1, 2]
    feeds = {fed: [[1.0, 2.0]], other: [[3.0, 4.0]]}
    with tf.Session() as session:
        for tensor in (listed, same):
            assert session.run(tensor, feeds).tolist() == [[1.0, 2.0]]
            with pytest.raises(tf.errors.InvalidArgumentError, match="Wrong shape for"):
                session.run(tensor, {**feeds, fed: [[1.0, 2.0], [3.0, 4.0]]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="Wrong shape for"):
            session.run(never, feeds)


def test_arg_scope_introspection() -> None:
    @framework.add_arg_scope
    def layer(x: int, size: int = 1, *, name: str = "layer") -> tuple[int, int, str]:
        return x, size, name

    assert framework.has_arg_scope(layer)
    assert not framework.has_arg_scope(len)
    assert framework.arg_scoped_arguments(layer) == ("size", "name")
    key = framework.arg_scope_func_key(layer)
    with framework.arg_scope([layer], size=2) as scope:
        assert layer(0) == (0, 2, "layer")
        assert framework.current_arg_scope() == scope
        assert scope[key] == {"size": 2}
    assert key not in framework.current_arg_scope()
    with pytest.raises(ValueError, match="is not decorated with @add_arg_scope"):
        framework.arg_scoped_arguments(len)


def test_variables_in_collections_and_devices() -> None:
    step = framework.global_variable(0, name="step", use_resource=True)
    framework.local_variable(0, use_resource=False)
    assert tf.global_variables() == [step]
    assert not step.trainable
    choose = framework.VariableDeviceChooser(num_tasks=2)
    assert [choose(None) for _ in range(3)] == [
        f"/job:ps/task:{task}/device:CPU:0" for task in (0, 1, 0)
    ]
    assert framework.VariableDeviceChooser(device_type="GPU")(None) == "/device:GPU:0"
    assert framework.assert_or_get_global_step() is None
    with tf.name_scope("a"), tf.name_scope("b"):
        assert framework.get_name_scope() == "a/b"


def test_private_modules_are_part_of_their_package() -> None:
    from estimatorkit.compat.v1.contrib.slim.python.slim import evaluation, learning
    from estimatorkit.compat.v1.python.ops import metrics_impl, rnn, rnn_cell_impl

    assert learning.train is tf.contrib.slim.learning.train
    assert evaluation.evaluate_once is tf.contrib.slim.evaluation.evaluate_once
    names = [rnn_cell_impl._WEIGHTS_VARIABLE_NAME, rnn_cell_impl._BIAS_VARIABLE_NAME]
    assert names == ["kernel", "bias"]
    assert rnn._transpose_batch_time(tf.zeros([2, 3, 4])).shape.as_list() == [3, 2, 4]
    assert rnn._best_effort_input_batch_size([tf.zeros([2, 3, 4])]) == 3
    sums = metrics_impl.metric_variable([2], tf.float32, name="sums")
    assert tf.get_collection(tf.GraphKeys.METRIC_VARIABLES) == [sums]


def test_invalid_arg_scopes_raise() -> None:
    layers = tf.contrib.layers
    with framework.arg_scope([layers.conv2d], stride=2) as scope:
        pass
    with pytest.raises(ValueError, match="kwargs must be empty"), framework.arg_scope(scope, a=1):
        pass
    with pytest.raises(TypeError, match="must either be a list"):
        framework.arg_scope(layers.conv2d, stride=2).__enter__()
    assert tf.contrib.lookup.MutableDenseHashTable is tf.lookup.experimental.DenseHashTable


@pytest.mark.parametrize(
    ("collections", "expected"),
    [
        (None, {"variables", "trainable_variables"}),
        (["A"], {"A", "trainable_variables"}),
        ([], {"trainable_variables"}),
    ],
)
@pytest.mark.parametrize("partitioned", [False, True])
def test_variable_is_only_in_given_collections(
    collections: list[str] | None, expected: set[str], partitioned: bool
) -> None:
    partitioner = tf.fixed_size_partitioner(2) if partitioned else None
    with tf.Graph().as_default() as graph:
        tf.contrib.framework.variable("v", [4], collections=collections, partitioner=partitioner)
        found = {key for key in graph.get_all_collection_keys() if not key.startswith("_")}
    assert found == expected  # as TensorFlow 1.15
