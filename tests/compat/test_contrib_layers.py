"""`contrib.layers`: variable names, defaults, collections, scopes, `optimize_loss`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf

layers = tf.contrib.layers
slim = tf.contrib.slim
ROWS = np.array([[1.0, -2.0, 3.0], [0.5, 1.0, -1.0]], np.float32)
IMAGE = np.linspace(-1.0, 1.0, 2 * 6 * 6 * 3, dtype=np.float32).reshape(2, 6, 6, 3)


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


def names() -> list[str]:
    return [variable.op.name for variable in tf.global_variables()]


def run(fetches: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches)


def test_fully_connected_variables_and_relu() -> None:
    one = layers.fully_connected(ROWS, 2, weights_initializer=tf.constant_initializer(0.5))
    layers.fully_connected(ROWS, 4, activation_fn=None, biases_initializer=None)
    layers.fully_connected(inputs=ROWS, num_outputs=4, scope="own")
    layers.fully_connected(inputs=ROWS, num_outputs=4, scope="own", reuse=True)
    assert names() == [
        *("fully_connected/weights", "fully_connected/biases", "fully_connected_1/weights"),
        *("own/weights", "own/biases"),
    ]
    assert tf.get_collection(tf.GraphKeys.MODEL_VARIABLES) == tf.global_variables()
    np.testing.assert_allclose(run(one), [[1.0, 1.0], [0.25, 0.25]])


@pytest.mark.slow
def test_convolution_and_pooling_names() -> None:
    x = tf.constant(IMAGE)
    normalized = {"normalizer_fn": layers.batch_norm, "normalizer_params": {"scale": True}}
    outputs = [
        layers.conv2d(x, 4, [3, 3], stride=2, **normalized),
        layers.conv2d(tf.transpose(x, [0, 3, 1, 2]), 4, 3, data_format="NCHW", rate=2),
        layers.conv2d_transpose(x, 4, 3, stride=2),
        layers.separable_conv2d(x, 4, 3, depth_multiplier=2, scope="separable"),
        layers.max_pool2d(x, 2),
        layers.avg_pool2d(x, 3, stride=1, padding="SAME"),
        layers.conv1d(x[:, 0], 4, 3, padding="VALID"),
        layers.flatten(x),
    ]
    assert [each.shape.as_list() for each in outputs] == [
        *([2, 3, 3, 4], [2, 4, 6, 6], [2, 12, 12, 4], [2, 6, 6, 4], [2, 3, 3, 3]),
        *([2, 6, 6, 3], [2, 4, 4], [2, 108]),
    ]
    assert names() == [
        *("Conv/weights", "Conv/BatchNorm/gamma", "Conv/BatchNorm/beta"),
        *("Conv/BatchNorm/moving_mean", "Conv/BatchNorm/moving_variance", "Conv_1/weights"),
        *("Conv_1/biases", "Conv2d_transpose/weights", "Conv2d_transpose/biases"),
        *("separable/depthwise_weights", "separable/pointwise_weights", "separable/biases"),
        *("Conv_2/weights", "Conv_2/biases"),
    ]
    assert all(np.isfinite(each).all() for each in run(outputs))


def test_separable_convolution_without_outputs_is_depthwise() -> None:
    x = tf.constant(IMAGE)
    ones = tf.ones_initializer()
    given = {"weights_initializer": ones, "activation_fn": None}
    plain = layers.separable_conv2d(x, None, 3, depth_multiplier=2, scope="plain", **given)
    normalized = layers.separable_conv2d(
        x, None, [3, 3], stride=2, rate=1, normalizer_fn=layers.batch_norm, scope="normalized"
    )
    assert normalized.shape.as_list() == [2, 3, 3, 3]
    assert names() == [
        *("plain/depthwise_weights", "plain/biases", "normalized/depthwise_weights"),
        *(f"normalized/BatchNorm/{each}" for each in ("beta", "moving_mean", "moving_variance")),
    ]
    expected = tf.nn.depthwise_conv2d(x, tf.ones([3, 3, 3, 2]), [1, 1, 1, 1], "SAME")
    np.testing.assert_allclose(*run([plain, expected]))


def test_invalid_data_formats_raise() -> None:
    for function in (
        lambda: layers.max_pool2d(IMAGE, 2, data_format="HWCN"),
        lambda: layers.batch_norm(IMAGE, data_format="channels_last"),
    ):
        with pytest.raises(ValueError, match="data_format has to be either NCHW or NHWC"):
            function()


def test_arg_scopes_collections_and_regularizers() -> None:
    regularizer = layers.l2_regularizer(0.1)
    with slim.arg_scope(
        [slim.conv2d, slim.fully_connected],
        weights_regularizer=regularizer,
        variables_collections={"weights": ["kernels"]},
        outputs_collections="outputs",
    ):
        net = slim.conv2d(IMAGE, 4, 3, scope="one")
        net = slim.fully_connected(slim.flatten(net), 2, scope="two")
    assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 2
    assert [each.op.name for each in tf.get_collection("kernels")] == ["one/weights", "two/weights"]
    assert tf.get_collection("outputs")[1] is net


def test_stack_and_repeat_number_their_layers() -> None:
    net = layers.stack(ROWS, layers.fully_connected, [4, 5], activation_fn=tf.nn.tanh)
    layers.stack(ROWS, layers.fully_connected, [[4], [5]], scope="own")
    layers.repeat(net, 2, layers.fully_connected, 5, scope="again")
    assert net.shape.as_list() == [2, 5]
    assert [each for each in names() if each.endswith("weights")] == [
        *("Stack/fully_connected_1/weights", "Stack/fully_connected_2/weights"),
        *("own/own_1/weights", "own/own_2/weights", "again/again_1/weights"),
        "again/again_2/weights",
    ]


@pytest.mark.parametrize("collections", [None, "own", tf.GraphKeys.UPDATE_OPS])
def test_batch_norm_updates_collection(collections: Any) -> None:
    outputs = layers.batch_norm(ROWS, decay=0.9, updates_collections=collections)
    assert names() == [f"BatchNorm/{each}" for each in ("beta", "moving_mean", "moving_variance")]
    updates = tf.get_collection(collections) if collections else []
    assert len(updates) == (2 if collections else 0)
    assert bool(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == (collections == "update_ops")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run(outputs)
        session.run(updates)
        mean = session.run(tf.global_variables()[1])
    expected = (ROWS - ROWS.mean(0)) / np.sqrt(ROWS.var(0) + 1e-3)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    np.testing.assert_allclose(mean, 0.1 * ROWS.mean(0), rtol=1e-5)


def test_layer_norm_normalizes_all_axes_but_first() -> None:
    outputs = layers.layer_norm(IMAGE)
    assert names() == ["LayerNorm/beta", "LayerNorm/gamma"]
    found = run(outputs)
    np.testing.assert_allclose(found.mean((1, 2, 3)), 0.0, atol=1e-5)
    np.testing.assert_allclose(found.var((1, 2, 3)), 1.0, rtol=1e-4)
    with pytest.raises(ValueError, match="must be known"):
        layers.layer_norm(tf.placeholder(tf.float32, [2, None]))


def test_dropout_keep_prob() -> None:
    kept, dropped = run(
        [
            layers.dropout(np.ones([100, 100], np.float32), 0.25, is_training=False),
            layers.dropout(np.ones([100, 100], np.float32), keep_prob=0.25),
        ]
    )
    assert (kept == 1.0).all()
    assert abs((dropped == 4.0).mean() - 0.25) < 0.03


@pytest.mark.parametrize(
    "optimizer",
    [
        *("SGD", "Adam", "Momentum", tf.train.AdagradOptimizer, tf.train.AdamOptimizer(0.1)),
        lambda rate: tf.train.GradientDescentOptimizer(rate),
    ],
    ids=["SGD", "Adam", "Momentum", "class", "instance", "function"],
)
def test_optimize_loss_trains(optimizer: Any) -> None:
    weight = tf.get_variable("w", initializer=3.0)
    step = tf.train.get_or_create_global_step()
    train = layers.optimize_loss(
        tf.square(weight), step, 0.1, optimizer, clip_gradients=1.0, summaries=["gradients", "loss"]
    )
    assert "OptimizeLoss/learning_rate" in names()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(train) == 9.0
        assert session.run(step) == 1
        assert session.run(weight) < 3.0


def test_optimize_loss_options() -> None:
    weight, other = (tf.get_variable(name, initializer=3.0) for name in "wv")
    counter = tf.get_variable("counter", initializer=0, trainable=False)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, counter.assign_add(1))
    step = tf.train.get_or_create_global_step()
    train = layers.optimize_loss(
        loss=weight + other,
        global_step=step,
        learning_rate=1.0,
        optimizer="SGD",
        learning_rate_decay_fn=lambda rate, step: rate * 0.5,
        gradient_multipliers={"w:0": 0.25, "v": 9.0},
        increment_global_step=False,
        name="train",
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        found = session.run([weight, other, counter, step])
    assert found == [3.0 - 0.125, 2.5, 1, 0]


def test_optimize_loss_without_global_step() -> None:
    weight = tf.get_variable("w", initializer=3.0)
    train = layers.optimize_loss(tf.square(weight), None, 0.5, "SGD")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run(weight) == 0.0
    with pytest.raises(ValueError, match="global_step is required"):
        layers.optimize_loss(
            weight, None, 0.5, "SGD", learning_rate_decay_fn=lambda rate, step: rate
        )


def test_optimize_loss_summaries_match_tensorflow() -> None:
    weight = tf.get_variable("w", initializer=3.0)
    step = tf.train.get_or_create_global_step()
    for summaries in (None, tf.contrib.layers.OPTIMIZER_SUMMARIES):
        layers.optimize_loss(
            *(tf.square(weight), step, 0.5, "SGD"), clip_gradients=1.0, summaries=summaries
        )
    names = [each.op.name for each in tf.get_collection(tf.GraphKeys.SUMMARIES)]
    assert names == [
        "OptimizeLoss/global_norm/gradient_norm",
        "OptimizeLoss/loss",
        "OptimizeLoss/global_norm/clipped_gradient_norm",
        "OptimizeLoss_1/global_norm/gradient_norm",
        "OptimizeLoss_1/loss",
        "OptimizeLoss_1/gradients/w_0",
        "OptimizeLoss_1/gradient_norm/w_0",
        "OptimizeLoss_1/global_norm/clipped_gradient_norm",
    ]


def test_optimize_loss_refuses_unknown_arguments() -> None:
    weight = tf.get_variable("w", initializer=3.0)
    step = tf.train.get_or_create_global_step()
    with pytest.raises(ValueError, match="Optimizer name should be one of"):
        layers.optimize_loss(weight, step, 0.1, "Adamm")
    with pytest.raises(ValueError, match="Invalid learning_rate"):
        layers.optimize_loss(weight, step, -1.0, "Adam")
    with pytest.raises(ValueError, match="Summaries should be one of"):
        layers.optimize_loss(weight, step, 0.1, "Adam", summaries=["loses"])


def test_encoders_and_summaries() -> None:
    layers = tf.contrib.layers
    ids = tf.constant([[1, 2, 2], [0, 0, 3]])
    rows = layers.embed_sequence(ids, 4, 2, scope="shared")
    again = layers.embed_sequence(ids, scope="shared", reuse=True)
    mean = layers.bow_encoder(ids, 4, 2, scope="shared", reuse=True)
    assert rows.shape == (2, 3, 2)
    assert [each.op.name for each in tf.model_variables()] == ["shared/embeddings"]
    x = tf.constant([[3.0, 4.0], [0.0, -2.0]])
    line = layers.linear(x, 2, weights_initializer=tf.ones_initializer())
    active = layers.relu(x, 2, weights_initializer=tf.ones_initializer(), scope="active")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first, second, third = session.run([rows, again, mean])
        np.testing.assert_array_equal(first, second)
        np.testing.assert_allclose(third, first.mean(1), rtol=1e-6)
        np.testing.assert_allclose(session.run(layers.unit_norm(x, 1))[0], [0.6, 0.8], rtol=1e-5)
        assert session.run(line).tolist() == [[7, 7], [-2, -2]]
        assert session.run(active).tolist() == [[7, 7], [0, 0]]
        assert session.run(layers.one_hot_encoding([2, 0], 3)).tolist() == [[0, 0, 1], [1, 0, 0]]
        np.testing.assert_allclose(session.run(layers.softmax([[0.0, 0.0]])), [[0.5, 0.5]])
        layers.summarize_activation(active)
        layers.summarize_tensors([line, tf.reduce_sum(line)])
        layers.summarize_collection(tf.GraphKeys.MODEL_VARIABLES, "shared")
        assert layers.summarize_tensor(tf.constant("text")) is None
        found = session.run(tf.summary.merge_all())
    tags = {each.tag for each in tf.Summary.FromString(found).value}
    assert {"active/Relu/zeros", "active/Relu/activation"} <= tags
    assert any(each.startswith("shared/embeddings") for each in tags)
    with pytest.raises(ValueError, match="Must specify vocab size"):
        layers.embed_sequence(ids)
    with pytest.raises(ValueError, match="dim must be positive"):
        layers.unit_norm(x, 2)


def test_regularizers_name_losses_and_check_scales() -> None:
    layers = tf.contrib.layers
    weights = tf.constant([1.0, -2.0])
    for make in (layers.l1_regularizer, layers.l2_regularizer):
        for scale, message in ((-1.0, "less than 0"), (1, "cannot be an integer")):
            with pytest.raises(ValueError, match=message):
                make(scale)
        assert make(0.0)(weights) is None
    both = layers.l1_l2_regularizer(1.0, 2.0)(weights)
    layers.fully_connected(
        tf.ones([2, 3]), 4, scope="fc", weights_regularizer=layers.l2_regularizer(0.5)
    )
    loss = tf.losses.get_regularization_losses()[0]
    assert loss.op.name == "fc/kernel/Regularizer/l2_regularizer"
    assert both.op.name == "l1_l2_regularizer"
    assert layers.sum_regularizer([None]) is None
    with pytest.raises(ValueError, match="must return a scalar Tensor"):
        layers.apply_regularization(lambda _: weights, [weights])
    with tf.Session() as session:
        assert session.run(both) == 3.0 + 5.0


def test_pool_and_variance_scaling_modes() -> None:
    layers = tf.contrib.layers
    pooled = layers.pool(tf.ones([2, 7, 9, 3]), [3, 3], "AVG", outputs_collections="pools")
    assert (pooled.op.name, pooled.shape.as_list()) == ("avg_pool", [2, 5, 7, 3])
    assert tf.get_collection("pools") == [pooled]
    with pytest.raises(ValueError, match="Rank of input must be known"):
        layers.pool(tf.ones([2, 3]), 3, "MAX")
    for wrong in ({"mode": "FAN"}, {"dtype": tf.int32}):
        with pytest.raises(TypeError, match=r"Unknown mode FAN|non-floating"):
            layers.variance_scaling_initializer(**wrong)
