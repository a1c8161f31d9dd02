"""Normalizations and other layers of `contrib.layers` against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf

layers = tf.contrib.layers
IMAGES = np.random.RandomState(3).normal(2.0, 3.0, [2, 3, 5, 8]).astype(np.float32)


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default():
        yield


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


def normalized(x: Any, axes: tuple[int, ...]) -> Any:
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-6)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_instance_norm(data_format: str) -> None:
    images = IMAGES if data_format == "NHWC" else IMAGES.transpose(0, 3, 1, 2)
    initial = {"beta": tf.constant_initializer(3.0), "gamma": tf.constant_initializer(2.0)}
    made = layers.instance_norm(
        tf.placeholder_with_default(images, [None, *images.shape[1:]]),
        data_format=data_format,
        param_initializers=initial,
        outputs_collections="outputs",
        variables_collections={"beta": ["betas"]},
    )
    axes = (1, 2) if data_format == "NHWC" else (2, 3)
    np.testing.assert_allclose(run(made), normalized(images, axes) * 2 + 3, 1e-4, 1e-4)
    assert tf.get_collection("outputs") == [made]
    assert made.aliases == ["InstanceNorm"]
    assert [each.op.name for each in tf.get_collection("betas")] == ["InstanceNorm/beta"]
    assert [each.op.name for each in tf.contrib.framework.get_model_variables()] == [
        "InstanceNorm/beta",
        "InstanceNorm/gamma",
    ]


@pytest.mark.parametrize(("groups", "axis"), [(4, -1), (1, -1), (2, 1)])
def test_group_norm(groups: int, axis: int) -> None:
    images = IMAGES if axis == -1 else IMAGES.transpose(0, 3, 1, 2)
    unknown = [None, *images.shape[1:]]
    made = layers.group_norm(
        tf.placeholder_with_default(images, unknown),
        groups,
        axis,
        (-3, -2) if axis == -1 else (-2, -1),
        scale=False,
    )
    parts = IMAGES.reshape(2, 3, 5, groups, 8 // groups)
    expected = normalized(parts, (1, 2, 4)).reshape(IMAGES.shape)
    if axis == 1:
        expected = expected.transpose(0, 3, 1, 2)
    assert made.shape.as_list() == unknown
    np.testing.assert_allclose(run(made), expected, 1e-4, 1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"groups": 16}, "Invalid groups 16 for 8 channels"),
        ({"groups": 3}, "8 channels is not commensurate with 3 groups"),
        ({"groups": 2, "reduction_axes": (3,)}, "mutually exclusive"),
        ({"groups": 2, "reduction_axes": (5,)}, "out of bounds"),
        ({"groups": 2, "channels_axis": 4}, "out of bounds"),
    ],
)
def test_invalid_groups_raise(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        layers.group_norm(IMAGES, **arguments)


def test_unknown_shapes_and_formats_raise() -> None:
    unknown = tf.placeholder(tf.float32)
    for layer in (layers.instance_norm, layers.group_norm):
        with pytest.raises(ValueError, match="undefined rank"):
            layer(unknown)
        with pytest.raises(ValueError, match="undefined channel"):
            layer(tf.placeholder(tf.float32, [2, 3, 3, None]))
    for layer in (layers.instance_norm, layers.bias_add, layers.spatial_softmax):
        with pytest.raises(ValueError, match="either NCHW or NHWC"):
            layer(IMAGES, data_format="CHWN")
    with pytest.raises(ValueError, match="must be known"):
        layers.bias_add(unknown)


def test_error_messages_match_tensorflow() -> None:
    unknown = tf.placeholder(tf.float32)
    for layer in (layers.batch_norm, layers.layer_norm):
        with pytest.raises(ValueError, match="has undefined rank"):
            layer(unknown)
    for call in (layers.max_pool2d, lambda x, size, **more: layers.conv2d(x, 2, size, **more)):
        with pytest.raises(ValueError, match="data_format has to be either NCHW or NHWC"):
            call(IMAGES, [2, 2], data_format="CHWN")
    with pytest.raises(ValueError, match="num_outputs type should be one of"):
        layers.fully_connected(tf.ones([2, 3]), "3")
    with pytest.raises(ValueError, match="Couldn't find variable nowhere"):
        tf.contrib.framework.get_unique_variable("nowhere")


def test_repeated_layers_are_named_after_functions() -> None:
    made = layers.repeat(tf.constant(IMAGES), 2, layers.conv2d, 3, [3, 3])
    assert made.op.name == "Repeat/convolution2d_2/Relu"


def test_bias_add() -> None:
    first = layers.bias_add(
        IMAGES, tf.nn.relu, initializer=tf.constant_initializer(-2.0), scope="here"
    )
    np.testing.assert_allclose(run(first), np.maximum(IMAGES - 2.0, 0.0), 1e-6)
    assert [each.op.name for each in tf.global_variables()] == ["here/biases"]


def test_maxout() -> None:
    made = layers.maxout(tf.placeholder_with_default(IMAGES, [None, 3, 5, 8]), 4)
    assert made.shape.as_list() == [None, 3, 5, 4]
    np.testing.assert_array_equal(run(made), IMAGES.reshape(2, 3, 5, 4, 2).max(-1))
    with pytest.raises(ValueError, match="not a multiple of num_units"):
        layers.maxout(IMAGES, 3)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_spatial_softmax(data_format: str) -> None:
    peaks = np.zeros([1, 3, 5, 2], np.float32)
    peaks[0, 2, 1, 0] = peaks[0, 0, 4, 1] = 50.0
    images = peaks if data_format == "NHWC" else peaks.transpose(0, 3, 1, 2)
    made = layers.spatial_softmax(images, temperature=0.5, data_format=data_format)
    np.testing.assert_allclose(run(made), [[1.0, -0.5, -1.0, 1.0]], atol=1e-5)
    assert [each.op.name for each in tf.global_variables()] == ["spatial_softmax/temperature"]


@pytest.mark.slow
def test_three_dimensional_layers_and_elu() -> None:
    cube = tf.ones([1, 4, 4, 4, 2])
    assert layers.max_pool3d(cube, [2, 2, 2]).shape.as_list() == [1, 2, 2, 2, 2]
    pooled = layers.avg_pool3d(cube, 2)
    assert pooled.op.name.startswith("AvgPool3D/")
    wider = layers.conv3d_transpose(pooled, 3, [3, 3, 3], stride=2)
    assert wider.shape.as_list() == [1, 4, 4, 4, 3]
    curved = layers.elu(tf.ones([1, 1]), 1, weights_initializer=tf.constant_initializer(-1.0))
    np.testing.assert_allclose(run(curved), [[np.expm1(-1.0)]], 1e-6)
