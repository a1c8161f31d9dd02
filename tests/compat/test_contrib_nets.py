"""`contrib.slim.nets`, and outputs that `contrib.layers` collects under aliases."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf

slim = tf.contrib.slim
utils = importlib.import_module("estimatorkit.compat.v1.contrib.layers.python.layers.utils")


def net(name: str) -> Any:
    return importlib.import_module(f"estimatorkit.compat.v1.contrib.slim.nets.{name}")


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def collected(made: Any, collection: str = "outputs") -> Any:
    (found,) = tf.get_collection(collection)
    assert found is made
    return found.aliases


@pytest.mark.parametrize(
    ("layer", "alias"),
    [
        (lambda x, **to: slim.conv2d(x, 2, [3, 3], scope="CONV", **to), "CONV"),
        (lambda x, **to: slim.max_pool2d(x, [2, 2], **to), "MaxPool2D"),
        (lambda x, **to: slim.batch_norm(x, **to), "BatchNorm"),
        (lambda x, **to: slim.layer_norm(x, scope="a/b", **to), "a/b"),
        (lambda x, **to: slim.flatten(x, **to), "Flatten"),
        (lambda x, **to: slim.one_hot_encoding(tf.zeros([2], tf.int32), 3, **to), "OneHotEncoding"),
    ],
)
def test_layers_collect_outputs_under_scope(layer: Any, alias: str) -> None:
    x = tf.ones([2, 4, 4, 3])
    assert collected(layer(x, outputs_collections="outputs")) == [alias]


def test_aliases_become_end_point_keys() -> None:
    plain, twice = tf.constant(1.0, name="plain"), tf.constant(2.0, name="twice")
    utils.collect_named_outputs(None, "nowhere", plain)
    utils.collect_named_outputs(["end"], "first/", twice)
    utils.append_tensor_alias(twice, "second")
    tf.add_to_collection("end", plain)
    assert utils.gather_tensors_aliases([plain, twice]) == ["plain", "first", "second"]
    points = utils.convert_collection_to_dict("end", clear_collection=True)
    assert points == {"first": twice, "second": twice, "plain": plain}
    assert tf.get_collection("end") == []


def test_utilities_validate_arguments() -> None:
    assert utils.n_positive_integers(2, 3) == (3, 3)
    assert utils.n_positive_integers(2, (3, 4)) == (3, 4)
    for n, value in ((0, 1), (2, (1,)), (2, "ab"), (1, -1), (2, (1, 0)), (1.5, 1)):
        with pytest.raises(ValueError, match="positive integer"):
            utils.n_positive_integers(n, value)
    assert utils.two_element_tuple(tf.TensorShape([2, 3])) == (2, 3)
    assert utils.two_element_tuple([2, 3]) == (2, 3)
    for wrong in ([1], tf.TensorShape([1]), None):
        with pytest.raises(ValueError, match="list with 2 elements"):
            utils.two_element_tuple(wrong)
    assert utils.last_dimension(tf.TensorShape([2, 3, 5])) == 5
    assert utils.channel_dimension(tf.TensorShape([2, 3, 5]), "channels_first") == 3
    for shape, rank in ((None, 1), ([2, None], 1), ([2], 4)):
        with pytest.raises(ValueError, match="must be"):
            utils.last_dimension(tf.TensorShape(shape), min_rank=rank)


def test_smart_cond_of_static_predicate() -> None:
    assert utils.smart_cond(True, lambda: "yes", lambda: "no") == "yes"
    assert utils.smart_cond(tf.constant(False), lambda: "yes", lambda: "no") == "no"
    unknown = tf.placeholder_with_default(True, [])
    chosen = utils.smart_cond(unknown, lambda: tf.constant(1), lambda: tf.constant(2))
    with tf.Session() as session:
        assert session.run([chosen, chosen], {unknown: False}) == [2, 2]
    assert utils.constant_value(tf.Variable(1.0)) is None
    with pytest.raises(ValueError, match="cannot be None"):
        utils.constant_value(None)
    with pytest.raises(ValueError, match="wrong type"):
        utils.constant_value(tf.constant(1.0), tf.int32)
    with pytest.raises(TypeError, match="fn2 must be callable"):
        utils.static_cond(True, lambda: 1, 2)


@pytest.mark.parametrize(
    ("module", "name", "size", "layers"),
    [
        ("vgg", "vgg_a", 224, 11),
        ("vgg", "vgg_19", 224, 19),
        ("alexnet", "alexnet_v2", 224, 8),
        ("overfeat", "overfeat", 231, 8),
    ],
)
def test_convolutional_networks(module: str, name: str, size: int, layers: int) -> None:
    made = getattr(net(module), name)
    assert made.default_image_size == size
    scope_of = {"alexnet": "alexnet_v2_arg_scope"}.get(module, f"{module}_arg_scope")
    images = tf.placeholder(tf.float32, [2, size, size, 3])
    with slim.arg_scope(getattr(net(module), scope_of)()):
        logits, points = made(images, 7)
    assert logits.op.name == f"{name}/fc8/squeezed"
    assert logits.shape.as_list() == [2, 7]
    assert points[f"{name}/fc8"] is logits
    assert {f"{name}/{each}" for each in ("pool1", "pool2", "pool5", "fc6", "fc7")} <= set(points)
    weights = [each.op.name for each in slim.get_model_variables() if "weights" in each.op.name]
    assert len(weights) == layers
    assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == layers


def test_network_without_squeeze_keeps_spatial_dimensions() -> None:
    logits, _ = net("vgg").vgg_a(tf.zeros([1, 256, 256, 3]), 5, spatial_squeeze=False)
    assert logits.shape.as_list() == [1, 2, 2, 5]


def small(version: int, inputs: Any, **arguments: Any) -> Any:
    module = net(f"resnet_v{version}")
    block = getattr(module, f"resnet_v{version}_block")
    blocks = [block("block1", 1, 2, 2), block("block2", 2, 2, 2), block("block3", 4, 1, 1)]
    with slim.arg_scope(net("resnet_utils").resnet_arg_scope()):
        return getattr(module, f"resnet_v{version}")(inputs, blocks, scope="r", **arguments)


@pytest.mark.parametrize("version", [1, 2])
def test_residual_network_end_points(version: int) -> None:
    logits, points = small(version, tf.zeros([2, 64, 64, 3]), num_classes=10)
    assert logits.shape.as_list() == [2, 1, 1, 10]
    shapes = {key: value.shape.as_list() for key, value in points.items()}
    unit = f"r/block1/unit_1/bottleneck_v{version}"
    assert shapes["r/block1"] == [2, 8, 8, 4]
    assert shapes["r/block3"] == [2, 4, 4, 16]
    assert {f"{unit}/{each}" for each in ("shortcut", "conv1", "conv2", "conv3")} <= set(points)
    assert shapes["predictions"] == [2, 1, 1, 10]
    norms = [each for each in slim.get_model_variables() if each.op.name.endswith("gamma")]
    assert any("/preact/" in each.op.name for each in norms) is (version == 2)
    biases = {each.op.name for each in slim.get_model_variables("r") if "biases" in each.op.name}
    assert "r/logits/biases" in biases
    assert ("r/conv1/biases" in biases) is (version == 2)


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 2])
def test_dilation_matches_stride(version: int) -> None:
    images = tf.constant(np.random.RandomState(0).uniform(size=[1, 33, 33, 3]).astype(np.float32))
    arguments = {"is_training": False, "global_pool": False}
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        dense, _ = small(version, images, output_stride=4, **arguments)
        strided, _ = small(version, images, **arguments)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        one, other = session.run([dense[:, ::4, ::4], strided])
    np.testing.assert_allclose(one, other, 1e-4, 1e-5)


def test_unreachable_output_strides_raise() -> None:
    images = tf.zeros([1, 33, 33, 3])
    with pytest.raises(ValueError, match="multiple of 4"):
        small(1, images, output_stride=6)
    with pytest.raises(ValueError, match="cannot be reached"):
        small(2, images, output_stride=64)
    assert net("resnet_v1").bottleneck is not net("resnet_v2").bottleneck
    assert net("resnet_v1").resnet_v1_152.default_image_size == 224
