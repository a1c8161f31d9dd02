"""`dense`, `dropout`, `batch_normalization`, `flatten`: values, variables, scopes, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from estimatorkit import layers
from estimatorkit.core import builtin_ops
from estimatorkit.core.gradients import gradients
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.ops.math import reduce
from estimatorkit.ops.nn import nn
from estimatorkit.ops.variables.initializers import Constant
from estimatorkit.ops.variables.variable_collections import (
    global_variables,
    global_variables_initializer,
    trainable_variables,
)
from estimatorkit.ops.variables.variable_scope import variable_scope
from estimatorkit.runtime.session import Session

X = np.array([[1.0, -2.0, 3.0], [0.5, 1.0, -1.0]], np.float32)


@pytest.fixture(autouse=True)
def graph() -> Any:
    with Graph().as_default() as graph:
        graph.seed = 1
        yield graph


def run(fetches: Any, feeds: Any = None) -> Any:
    with Session() as session:
        session.run(global_variables_initializer())
        return session.run(fetches, feeds)


def names() -> list[str]:
    return [variable.op.name for variable in global_variables()]


def test_dense_matches_matmul_bias_and_activation() -> None:
    layer = layers.dense(
        X, 2, nn.relu, kernel_initializer=Constant(0.5), bias_initializer=Constant(-0.5), name="d"
    )
    assert names() == ["d/kernel", "d/bias"]
    assert layer.shape == [2, 2]
    np.testing.assert_allclose(run(layer), [[0.5, 0.5], [0.0, 0.0]])


def test_dense_on_last_of_many_dimensions_with_gradients() -> None:
    stacked = np.stack([X, X + 1, X * 2])
    layer = layers.dense(stacked, 4, use_bias=False)
    (kernel,) = trainable_variables()
    slope = gradients(reduce.reduce_sum(layer), [kernel])[0]
    values, weights, found = run([layer, kernel, slope])
    np.testing.assert_allclose(values, stacked @ weights, rtol=1e-5)
    np.testing.assert_allclose(found, np.repeat(stacked.sum((0, 1))[:, None], 4, 1), rtol=1e-5)


def test_unnamed_layers_are_numbered_and_named_ones_shared() -> None:
    layers.dense(X, 2)
    layers.dense(X, 2)
    one = layers.dense(X, 2, name="shared")
    two = layers.dense(X, 2, name="shared", reuse=True)
    with variable_scope("outer"):
        layers.dense(X, 2)
    assert names() == [
        f"{scope}/{part}"
        for scope in ("dense", "dense_1", "shared", "outer/dense")
        for part in ("kernel", "bias")
    ]
    first, second = run([one, two])
    np.testing.assert_array_equal(first, second)
    with pytest.raises(ValueError, match="shared/kernel already exists"):
        layers.dense(X, 2, name="shared")


def test_regularizers_and_trainable() -> None:
    layers.dense(
        X, 2, trainable=False, kernel_regularizer=nn.l2_loss, activity_regularizer=nn.l2_loss
    )
    assert not trainable_variables()
    assert len(get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES)) == 2


def test_dense_input_errors() -> None:
    with pytest.raises(TypeError, match="non-floating point dtype"):
        layers.dense(X.astype(np.int32), 2)
    with pytest.raises(ValueError, match="last dimension of the inputs to a Dense layer should be"):
        layers.dense(builtin_ops.placeholder("float32", [None, None]), 2)
    with pytest.raises(ValueError, match="expected min_ndim=2, found ndim=1"):
        layers.dense(X[0], 2)
    with pytest.raises(ValueError, match="expected a positive integer"):
        layers.dense(X, -1)


@pytest.mark.slow
def test_dropout_only_in_training() -> None:
    ones = np.ones([100, 50], np.float32)
    training = builtin_ops.placeholder("bool", [])
    always = layers.dropout(ones, 0.25, training=True)
    never = layers.dropout(ones, 0.25)
    fed = layers.dropout(ones, 0.25, training=training)
    rows = layers.dropout(ones, 0.5, noise_shape=[100, 1], training=True)
    dropped, kept, on, by_row = run([always, never, fed, rows], {training: True})
    np.testing.assert_allclose(np.unique(dropped), [0.0, 4 / 3], rtol=1e-6)
    assert abs((dropped == 0).mean() - 0.25) < 0.03
    np.testing.assert_array_equal(kept, ones)
    assert (on == 0).any()
    assert (by_row == by_row[:, :1]).all()
    np.testing.assert_array_equal(run(fed, {training: False}), ones)


def test_batch_normalization_of_rows_updates_moving_averages() -> None:
    layer = layers.batch_normalization(X, momentum=0.9, training=True, name="n")
    assert names() == ["n/gamma", "n/beta", "n/moving_mean", "n/moving_variance"]
    assert len(trainable_variables()) == 2
    with Session() as session:
        session.run(global_variables_initializer())
        expected = (X - X.mean(0)) / np.sqrt(X.var(0) + 1e-3)
        np.testing.assert_allclose(session.run(layer), expected, rtol=1e-5)
        session.run(get_default_graph().get_collection(GraphKeys.UPDATE_OPS))
        mean, variance = session.run(global_variables()[2:])
    np.testing.assert_allclose(mean, 0.1 * X.mean(0), rtol=1e-5)
    np.testing.assert_allclose(variance, 0.9 + 0.1 * X.var(0), rtol=1e-5)


def test_batch_normalization_of_images_matches_tensorflow() -> None:
    # tf.compat.v1.layers.batch_normalization of this array: moving_variance by n / (n - 1).
    images = np.arange(48, dtype=np.float32).reshape(2, 3, 4, 2) ** 1.1
    layer = layers.batch_normalization(images, momentum=0.9, training=True)
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(get_default_graph().get_collection(GraphKeys.UPDATE_OPS))
        values, mean, variance = session.run([layer[0, 0, 0], *global_variables()[2:]])
    np.testing.assert_allclose(values, [-1.5660937, -1.5789753], rtol=1e-5)
    np.testing.assert_allclose(mean, [3.2194934, 3.36601], rtol=1e-5)
    np.testing.assert_allclose(variance, [44.998306, 45.544361], rtol=1e-5)


@pytest.mark.parametrize("axis", [1, -1])
def test_batch_normalization_with_training_tensor_and_any_axis(axis: int) -> None:
    values = np.random.default_rng(0).normal(3.0, 2.0, [6, 4, 5]).astype(np.float32)
    training = builtin_ops.placeholder("bool", [])
    layer = layers.batch_normalization(values, axis, training=training, scale=False, center=False)
    updates = get_default_graph().get_collection(GraphKeys.UPDATE_OPS)
    axes = tuple(each for each in range(3) if each != axis % 3)
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(updates, {training: False})
        before = session.run(layer, {training: False})
        during = session.run(layer, {training: True})
    np.testing.assert_allclose(before, values / np.sqrt(1.001), rtol=1e-5)
    mean = values.mean(axes, keepdims=True)
    spread = np.sqrt(values.var(axes, keepdims=True) + 1e-3)
    np.testing.assert_allclose(during, (values - mean) / spread, rtol=1e-4, atol=1e-5)


def test_batch_normalization_refuses_renorm() -> None:
    with pytest.raises(ValueError, match="renorm is not supported"):
        layers.batch_normalization(X, renorm=True)


def test_flatten_keeps_batch() -> None:
    images = builtin_ops.placeholder("float32", [None, 2, 3])
    wide = builtin_ops.placeholder("float32", [None, None, 3])
    vector = builtin_ops.placeholder("float32", [None])
    flat = [layers.flatten(each) for each in (images, wide, vector)]
    assert [each.shape.as_list() for each in flat[:1]] == [[None, 6]]
    found = run(
        flat, {images: np.zeros([4, 2, 3]), wide: np.zeros([4, 2, 3]), vector: np.zeros([4])}
    )
    assert [each.shape for each in found] == [(4, 6), (4, 6), (4, 1)]


def test_frozen_normalization_keeps_moving_averages() -> None:
    """As in TensorFlow: nothing in UPDATE_OPS; the batch's statistics, as `training` says."""
    layer = layers.BatchNormalization(trainable=False)
    values = layer(X, training=True)
    assert not layer.updates
    assert not get_default_graph().get_collection(GraphKeys.UPDATE_OPS)
    expected = (X - X.mean(0)) / np.sqrt(X.var(0) + 1e-3)
    np.testing.assert_allclose(run(values), expected, rtol=1e-5)
