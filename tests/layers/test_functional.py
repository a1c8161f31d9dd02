"""`tf.layers`: arguments, names, sharing, defaults; functions and classes of one table."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit import layers
from estimatorkit.layers import functional

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "layers.json").read_text(encoding="utf-8")
)["functions"]
IMAGE = np.linspace(-1.0, 1.0, 2 * 6 * 5 * 3, dtype=np.float32).reshape(2, 6, 5, 3)
# One call of each function that has variables: arguments, the rank of space, their shapes.
CALLS: dict[str, tuple[dict[str, Any], int, dict[str, list[int]]]] = {
    "dense": ({"units": 4}, 0, {"kernel": [3, 4], "bias": [4]}),
    "conv1d": ({"filters": 4, "kernel_size": 2}, 1, {"kernel": [2, 3, 4], "bias": [4]}),
    "conv2d": ({"filters": 4, "kernel_size": 2}, 2, {"kernel": [2, 2, 3, 4], "bias": [4]}),
    "conv3d": ({"filters": 4, "kernel_size": 2}, 3, {"kernel": [2, 2, 2, 3, 4], "bias": [4]}),
    "conv2d_transpose": (
        {"filters": 4, "kernel_size": 2},
        *(2, {"kernel": [2, 2, 4, 3], "bias": [4]}),
    ),
    "conv3d_transpose": (
        {"filters": 4, "kernel_size": 2},
        *(3, {"kernel": [2, 2, 2, 4, 3], "bias": [4]}),
    ),
    "separable_conv1d": (
        {"filters": 4, "kernel_size": 2},
        *(1, {"depthwise_kernel": [2, 3, 1], "pointwise_kernel": [1, 3, 4], "bias": [4]}),
    ),
    "separable_conv2d": (
        {"filters": 4, "kernel_size": 2},
        *(2, {"depthwise_kernel": [2, 2, 3, 1], "pointwise_kernel": [1, 1, 3, 4], "bias": [4]}),
    ),
    "batch_normalization": (
        {},
        *(2, {"gamma": [3], "beta": [3], "moving_mean": [3], "moving_variance": [3]}),
    ),
}
FUNCTIONS = [name for name in functional.__all__ if name.islower()]
POOLINGS = [name for name in FUNCTIONS if "pooling" in name]


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def inputs(rank: int) -> Any:
    return tf.placeholder(tf.float32, [None, *(6, 5, 4)[:rank], 3])


def variables() -> dict[str, list[int]]:
    return {each.op.name: each.shape.as_list() for each in tf.global_variables()}


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_argument_order_matches_tensorflow(name: str) -> None:
    found = inspect.signature(getattr(layers, name)).parameters
    own = [each.name for each in found.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
    wanted = {key: value for key, value in GOLDEN[name].items() if key != "kwargs"}
    if name == "Flatten":
        own.remove("name")
    if name == "BatchNormalization":  # its 18th argument is the 20th here
        own.remove("trainable")
        del wanted["trainable"]
    if name != "InputSpec":
        assert own == list(wanted)
    for key, default in wanted.items():
        given = found[key].default
        if default in ("Zeros", "Ones"):
            assert given == default.lower()
        elif isinstance(default, list):
            assert np.all(np.asarray(given) == np.asarray(default))
        elif default != "required" and key != "data_format":
            assert given == default


def test_every_function_has_class_and_docstring() -> None:
    assert GOLDEN.keys() == {*functional.__all__, "InputSpec"}
    assert set(dir(layers)) == GOLDEN.keys()
    for function in map(functional.__getattr__, FUNCTIONS):
        assert "Args:\n    inputs: a tensor.\n" in (function.__doc__ or "")
        assert "tf.keras" not in (function.__doc__ or "")


@pytest.mark.parametrize("name", CALLS)
def test_variable_names_and_sharing_match_tensorflow(name: str) -> None:
    arguments, rank, shapes = CALLS[name]
    function = getattr(functional, name)
    assert set(CALLS) == {each for each in FUNCTIONS if "reuse" in GOLDEN[each]}
    x = inputs(rank)
    function(x, **arguments)
    function(x, **arguments)
    function(x, **arguments, name="own")
    function(x, **arguments, name="own", reuse=True)
    with tf.variable_scope("outer", reuse=tf.AUTO_REUSE):
        function(x, **arguments, name="own")
        function(x, **arguments, name="own")
    assert variables() == {
        f"{scope}/{part}": shape
        for scope in (name, f"{name}_1", "own", "outer/own")
        for part, shape in shapes.items()
    }
    with pytest.raises(ValueError, match=f"own/{next(iter(shapes))} already exists"):
        function(x, **arguments, name="own")


def test_initializers_default_to_scope() -> None:
    with tf.variable_scope("all_threes", initializer=tf.constant_initializer(3.0)):
        conv = layers.conv2d(inputs(2), 2, 3)
        dense = layers.dense(inputs(0), 2)
        object_of_class = layers.Conv2D(2, 3, use_bias=False)
        object_of_class(inputs(2))
    assert conv.shape.as_list() == [None, 4, 3, 2]
    assert dense.shape.as_list() == [None, 2]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for variable, value in zip(
            tf.global_variables(), session.run(tf.global_variables()), strict=True
        ):
            assert (value == (0.0 if "bias" in variable.op.name else 3.0)).all()


def test_variables_take_input_dtype_and_trainable() -> None:
    layers.conv1d(tf.placeholder(tf.float64, [None, 6, 3]), 2, 3, trainable=False)
    layers.batch_normalization(inputs(2), trainable=False, training=True)
    assert [each.dtype for each in tf.global_variables()[:2]] == [tf.float64] * 2
    assert not tf.trainable_variables()
    assert not tf.get_collection(tf.GraphKeys.UPDATE_OPS)  # as in TensorFlow


def test_layers_without_variables() -> None:
    x = tf.constant(IMAGE)
    made = [
        layers.max_pooling2d(x, 2, 2),
        layers.average_pooling2d(inputs=x, pool_size=(2, 2), strides=(2, 1), padding="SAME"),
        layers.max_pooling1d(x[:, 0], 2, 1),
        layers.average_pooling1d(x[:, 0], 2, 2, "same"),
        layers.max_pooling3d(x[:, None], (1, 2, 2), 1),
        layers.average_pooling3d(x[:, None], (1, 2, 2), 1),
        layers.flatten(x, name="flat"),
        layers.flatten(tf.constant([[["a", "b"]]])),
        layers.max_pooling2d(
            tf.constant(IMAGE.transpose(0, 3, 1, 2)), 2, 2, "valid", "channels_first"
        ),
    ]
    assert not tf.global_variables()
    with tf.Session() as session:
        found = session.run(made)
    windows = IMAGE[:, :, :4].reshape(2, 3, 2, 2, 2, 3)
    np.testing.assert_array_equal(found[0], windows.max((2, 4)))
    assert [each.shape for each in found[1:6]] == [
        *((2, 3, 5, 3), (2, 4, 3), (2, 3, 3), (2, 1, 5, 4, 3), (2, 1, 5, 4, 3))
    ]
    np.testing.assert_array_equal(found[6], IMAGE.reshape(2, -1))
    assert found[7].tolist() == [[b"a", b"b"]]
    np.testing.assert_array_equal(found[8], found[0].transpose(0, 3, 1, 2))


def test_activity_regularizer_is_mean_over_batch() -> None:
    # tf.compat.v1.layers.dense of TensorFlow 2.15 divides by the batch's size.
    layers.dense(
        IMAGE[0, :, 0],
        2,
        kernel_initializer=tf.ones_initializer(),
        activity_regularizer=tf.nn.l2_loss,
    )
    (loss,) = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run(loss)
    sums = IMAGE[0, :, 0].sum(-1)
    np.testing.assert_allclose(found, (sums**2).sum() * 2 / 2 / 6, rtol=1e-5)


def test_custom_layers_get_variables_from_scope() -> None:
    class Scale(layers.Layer):  # type: ignore[name-defined,misc]
        def build(self, input_shape: Any) -> None:
            self.factor = self.add_variable("factor", [3], initializer=tf.ones_initializer())

        def call(self, inputs: Any) -> Any:
            return inputs * self.factor

    one = Scale(name="scale")
    one(inputs(0))
    one(inputs(0))
    Scale(name="scale", _reuse=True)(inputs(0))
    assert variables() == {"scale/factor": [3]}
    assert one.scope_name == "scale"


def test_layer_object_shares_its_variables() -> None:
    layer = layers.Conv2D(4, 3, activation=tf.nn.relu)
    layer(inputs(2))
    layer.apply(inputs(2))
    assert variables() == {"conv2d/kernel": [3, 3, 3, 4], "conv2d/bias": [4]}


def test_missing_name_suggests_alternatives() -> None:
    with pytest.raises(AttributeError, match="did you mean 'conv2d'"):
        functional.conv2  # noqa: B018
    with pytest.raises(TypeError, match="missing a required argument: 'units'"):
        layers.dense(IMAGE)


def test_moving_averages_ignore_partitioner() -> None:
    partitioner = tf.fixed_size_partitioner(2)
    with tf.Graph().as_default(), tf.variable_scope("s", partitioner=partitioner):
        tf.layers.batch_normalization(tf.zeros([2, 4]), training=True, name="norm")
        found = {each.op.name for each in tf.global_variables()}
    cut = {f"s/norm/{name}/part_{part}" for name in ("gamma", "beta") for part in (0, 1)}
    assert found == cut | {"s/norm/moving_mean", "s/norm/moving_variance"}
