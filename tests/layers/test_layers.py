"""Layers beyond TensorFlow's numbers: masks, training, names, configs, errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit import keras
from estimatorkit.keras import layers
from estimatorkit.layers.engine import configured
from estimatorkit.layers.engine.base import mask_of
from estimatorkit.layers.engine.call_record import learning_phase
from estimatorkit.layers.serialization import custom_object_scope, register_keras_serializable

STEPS = np.array([[[1.0, 2.0], [0.0, 0.0], [3.0, 0.0]], [[0.0, 0.0]] * 3], np.float32)
KEPT = [[True, False, True], [False, False, False]]
PASSED_ON: dict[str, dict[str, Any]] = {
    "Activation": {"activation": "relu"},
    "ActivityRegularization": {},
    "AlphaDropout": {"rate": 0.5},
    "BatchNormalization": {},
    "Dense": {"units": 2},
    "Dropout": {"rate": 0.5},
    "ELU": {},
    "GaussianDropout": {"rate": 0.5},
    "GaussianNoise": {"stddev": 0.5},
    "GroupNormalization": {"groups": 1},
    "LayerNormalization": {},
    "LeakyReLU": {},
    "PReLU": {},
    "ReLU": {},
    "Softmax": {"axis": 1},
    "SpatialDropout1D": {"rate": 0.5},
    "ThresholdedReLU": {},
    "UnitNormalization": {},
}


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        graph.seed = 1
        yield graph


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


def masked() -> Any:
    return layers.Masking()(tf.constant(STEPS))


@pytest.mark.parametrize("kind", PASSED_ON)
def test_masks_are_propagated(kind: str) -> None:
    x = masked()
    if kind == "Softmax":  # its mask has the inputs' shape: none is computed along steps
        x = layers.Dense(2)(x)
        outputs = layers.Softmax()(x, mask=tf.ones_like(x, "bool"))
        assert mask_of(outputs) is not None
        return
    assert mask_of(getattr(layers, kind)(**PASSED_ON[kind])(x)) is mask_of(x)


def test_masks_end_where_steps_end() -> None:
    x = masked()
    for layer in (layers.Flatten(), layers.GlobalAveragePooling1D(), layers.Conv1D(2, 2)):
        assert mask_of(layer(x)) is None


def test_masks_of_several_inputs_are_joined() -> None:
    x, plain = masked(), tf.constant(STEPS + 1.0)
    other = layers.Masking(mask_value=3.0)(tf.constant(STEPS[..., :1]))
    joined = layers.concatenate([x, plain, other])
    found = run(
        {
            "masking": mask_of(x),
            "outputs": layers.Masking(3.0)(tf.constant([[[3.0, 3.0], [3.0, 1.0]]])),
            "add": mask_of(layers.add([x, plain])),
            "joined": mask_of(joined),
            "mean": layers.GlobalAveragePooling1D()(layers.Masking()(tf.constant(STEPS[:1]))),
        }
    )
    assert found["masking"].tolist() == KEPT
    assert found["outputs"].tolist() == [[[0.0, 0.0], [3.0, 1.0]]]
    assert found["add"].tolist() == KEPT
    assert found["joined"].tolist() == [[True, False, False], [False, False, False]]
    assert found["mean"].tolist() == [[2.0, 1.0]]


def test_attention_uses_input_masks() -> None:
    x = masked()
    ones = tf.ones([2, 3, 2])
    _, scores = layers.Attention()([ones, layers.Masking()(x)], return_attention_scores=True)
    _, heads = layers.MultiHeadAttention(1, 2)(ones, x, return_attention_scores=True)
    for found in run([scores, heads[:, 0]]):
        assert (found[0, :, 1] == 0.0).all()
        assert (found[0, :, [0, 2]] > 0.1).all()


NOISE: dict[str, dict[str, Any]] = {
    "Dropout": {"rate": 0.25},
    "SpatialDropout1D": {"rate": 0.25},
    "GaussianNoise": {"stddev": 0.5},
    "GaussianDropout": {"rate": 0.2},
    "AlphaDropout": {"rate": 0.25},
}


@pytest.mark.slow
def test_noise_only_in_training_keeps_mean() -> None:
    x = np.random.RandomState(0).randn(100, 20, 30).astype(np.float32)
    training = tf.placeholder(tf.bool, [])
    outputs = {kind: getattr(layers, kind)(**given)(x) for kind, given in NOISE.items()}
    outputs["fed"] = layers.Dropout(0.25)(x, training=training)
    outputs["always"] = layers.GaussianNoise(0.5)(x, training=True)
    with tf.Session() as session:
        off = session.run(outputs, {training: False})
        found = session.run(outputs, {training: True, learning_phase(): True})
    assert (off.pop("always") != x).any()
    for kind, noisy in found.items():
        assert (noisy != x).any()
        assert abs(noisy.mean() - x.mean()) < 0.02, kind
    for kind, same in off.items():
        np.testing.assert_array_equal(same, x, kind)
    dropped = found["SpatialDropout1D"] == 0.0
    assert (dropped == dropped[:, :1]).all()
    np.testing.assert_allclose(found["AlphaDropout"].std(), x.std(), rtol=0.02)
    np.testing.assert_allclose((found["GaussianNoise"] - x).std(), 0.5, rtol=0.02)
    np.testing.assert_allclose((found["GaussianDropout"] / x).std(), 0.5, rtol=0.02)


def test_dropout_noise_shape() -> None:
    x = tf.placeholder(tf.float32, [None, 40, 50])
    outputs = layers.Dropout(0.5, noise_shape=(None, 1, 50))(x, training=True)
    everything = layers.Dropout(1.0)(x, training=True)
    found, nothing = run([outputs, everything], {x: np.ones([6, 40, 50])})
    assert (found == found[:, :1]).all()
    assert len(np.unique(found)) == 2
    assert not nothing.any()


def test_frozen_batch_normalization_uses_moving_averages() -> None:
    layer = layers.BatchNormalization()
    layer.trainable = False
    rows = np.array([[1.0, 2.0], [3.0, 6.0]], np.float32)
    outputs = layer(rows, training=True)
    assert not layer.updates
    np.testing.assert_allclose(run(outputs), rows / np.sqrt(1.001), rtol=1e-5)


def test_second_derivatives_of_fused_batch_normalization() -> None:
    """A bias in front of it changes nothing, so no gradient penalty depends on it (TensorFlow's
    kernel without fusion takes the mean in the variance as constant)."""
    images = np.random.RandomState(0).randn(4, 3, 3, 2).astype(np.float32)
    x, bias = tf.constant(images), tf.Variable([0.3, -0.2])
    outputs = layers.BatchNormalization()(x * x + bias, training=True)
    value = tf.reduce_sum(outputs**3 * np.arange(72, dtype=np.float32).reshape(images.shape))
    slope = tf.gradients(value, x)[0]
    penalty = tf.reduce_sum(slope**2)
    found, size = run([tf.gradients(penalty, bias)[0], penalty])
    assert np.abs(found).max() < 1e-5 * size


def test_lambda_layer() -> None:
    x = tf.constant(STEPS)
    scaled = layers.Lambda(lambda x, factor: x * factor, arguments={"factor": 3.0})(x)
    steps = layers.Lambda(lambda x, mask, training: [x, mask, training])(masked(), training=True)
    shaped = layers.Lambda(tf.reduce_sum, output_shape=(7,))
    assert steps[2] is True
    assert shaped.compute_output_shape((None, 3)).as_list() == [None, 7]
    np.testing.assert_array_equal(run(scaled), STEPS * 3.0)
    assert run(steps[1]).tolist() == KEPT


def _another_double() -> Any:
    def double(x: Any) -> Any:
        return x + x

    return double


def test_lambda_configs_name_functions() -> None:
    def double(x: Any) -> Any:
        return x * 2.0

    described = json.loads(json.dumps(layers.serialize(layers.Lambda(double))))
    assert described["config"]["function"] == "double"
    assert layers.deserialize(described, {"double": double}).function is double
    assert layers.deserialize(described).function is double  # a layer of this process has it
    other = layers.Lambda(_another_double())
    with pytest.raises(ValueError, match="Unknown function of a Lambda layer: 'double'"):
        layers.deserialize(described)  # which of the two?
    del other
    unnamed = layers.serialize(layers.Lambda(lambda x: x, mask=lambda x, mask: mask))
    assert layers.deserialize(unnamed).function(3) == 3
    with pytest.raises(TypeError, match="not JSON serializable"):
        json.dumps(unnamed)
    register_keras_serializable("tests")(double)
    described = json.loads(json.dumps(layers.serialize(layers.Lambda(double))))
    assert described["config"]["function"] == "tests>double"
    assert layers.deserialize(described).function is double
    for code in ("lambda x: x", "os.system", ["4wEAAAAA", None, None]):
        described["config"]["function"] = code
        with pytest.raises((ValueError, TypeError)):
            layers.deserialize(described)
    described["config"]["function"] = "double"
    assert layers.deserialize(described, {"double": double}).function is double


def test_custom_layers_are_found_by_name() -> None:
    class Twice(layers.Layer):  # type: ignore[misc]
        def call(self, inputs: Any) -> Any:
            return inputs * 2

    class Wider(layers.Dense):  # type: ignore[misc]
        def __init__(self, units: int, factor: int = 2, **kwargs: Any) -> None:
            super().__init__(units * factor, **kwargs)
            self.factor = factor

    with pytest.raises(ValueError, match="Unknown layer: 'Twice'"):
        layers.deserialize(layers.serialize(Twice()))
    with custom_object_scope({"Twice": Twice}):
        assert isinstance(layers.deserialize(layers.serialize(Twice())), Twice)
    assert Wider(3, activation="relu").get_config()["factor"] == 2
    with pytest.raises(ValueError, match="did you mean 'Conv2D'"):
        layers.deserialize({"class_name": "Conv2d", "config": {}})


@pytest.mark.slow
def test_unknown_shapes_stay_unknown_and_run() -> None:
    images = tf.placeholder(tf.float32, [None, None, None, 2])
    made = {
        "conv": layers.Conv2D(3, 2, padding="same"),
        "transposed": layers.Conv2DTranspose(3, 2, strides=2),
        "up": layers.UpSampling2D(2),
        "bilinear": layers.UpSampling2D(2, interpolation="bilinear"),
        "pad": layers.ZeroPadding2D(1),
        "crop": layers.Cropping2D(1),
        "norm": layers.GroupNormalization(2),
        "pool": layers.GlobalMaxPooling2D(),
        "flat": layers.Flatten(),
        "shape": layers.Reshape((-1, 4)),
    }
    outputs = {name: layer(images) for name, layer in made.items()}
    assert outputs["conv"].shape.as_list() == [None, None, None, 3]
    assert outputs["transposed"].shape.as_list() == [None, None, None, 3]
    assert outputs["up"].shape.as_list() == [None, None, None, 2]
    assert outputs["shape"].shape.as_list() == [None, None, 4]
    found = run(outputs, {images: np.ones([3, 4, 6, 2])})
    assert {name: value.shape for name, value in found.items()} == {
        "conv": (3, 4, 6, 3),
        "transposed": (3, 8, 12, 3),
        "up": (3, 8, 12, 2),
        "bilinear": (3, 8, 12, 2),
        "pad": (3, 6, 8, 2),
        "crop": (3, 2, 4, 2),
        "norm": (3, 4, 6, 2),
        "pool": (3, 2),
        "flat": (3, 48),
        "shape": (3, 12, 4),
    }


def test_default_data_format() -> None:
    try:
        configured.set_image_data_format("channels_first")
        assert layers.Conv2D(2, 3).data_format == "channels_first"
        assert layers.MaxPooling2D(data_format="channels_last").data_format == "channels_last"
        assert tf.layers.Conv2D(2, 3).data_format == "channels_last"
    finally:
        configured.set_image_data_format("channels_last")
    with pytest.raises(ValueError, match="data_format"):
        configured.set_image_data_format("NHWC")


def test_weight_and_activity_losses() -> None:
    layer = layers.Conv1D(
        2,
        2,
        kernel_initializer="ones",
        kernel_regularizer=tf.keras.regularizers.l2(0.5),
        activity_regularizer="l2",
    )
    outputs = layer(np.ones([4, 3, 2], np.float32))
    found, losses = run([outputs, layer.losses])
    assert (found == 4.0).all()
    np.testing.assert_allclose(sorted(losses), sorted([0.5 * 8, 0.01 * (16 * 16) / 4]), rtol=1e-6)


def test_normalization_adapts_incrementally() -> None:
    rows = np.random.RandomState(0).randn(20, 3).astype(np.float32) * [1.0, 10.0, 100.0] + 5.0
    whole, parts = layers.Normalization(), layers.Normalization()
    whole.adapt(rows)
    parts.adapt(iter([rows[:3], rows[3:15], rows[15:]]))
    for layer in (whole, parts):
        mean, variance, count = layer.get_weights()
        np.testing.assert_allclose(mean, rows.mean(0), rtol=1e-5)
        np.testing.assert_allclose(variance, rows.var(0), rtol=1e-5)
        assert count == 20
    with pytest.raises(ValueError, match="was given a mean"):
        layers.Normalization(mean=1.0, variance=1.0).adapt(rows)


REFUSED: dict[str, tuple[Any, str]] = {
    "boundaries": (lambda: layers.Discretization(), "either bin_boundaries or num_bins"),
    "mode": (lambda: layers.CategoryEncoding(3, "int"), "Unknown value for `output_mode`"),
    "sparse": (lambda: layers.Hashing(3, sparse=True), "outputs are dense"),
    "bins": (lambda: layers.Hashing(0), "non-positive"),
    "padding": (lambda: layers.Conv2D(2, 3, padding="causal"), "padding"),
    "window": (lambda: layers.Conv2D(2, (3, 3, 3)), "kernel_size.*tuple of 2 integers"),
    "strides": (lambda: layers.MaxPooling2D(2, 0), "strides.*tuple of 2 integers"),
    "filters": (lambda: layers.Conv2D(0, 3), "strictly positive"),
    "groups": (lambda: layers.Conv2D(3, 3, groups=2), "evenly divisible by the number of groups"),
    "channels": (
        lambda: layers.Conv2D(4, 3, groups=4)(np.ones([1, 4, 4, 6], np.float32)),
        "input channels must be evenly divisible",
    ),
    "unknown channels": (
        lambda: layers.Conv2D(4, 3)(tf.placeholder(tf.float32, [None, 4, 4, None])),
        "should be defined",
    ),
    "rank": (lambda: layers.Conv2D(4, 3)(np.ones([4, 4, 6], np.float32)), "expected min_ndim=4"),
    "output padding": (
        lambda: layers.Conv2DTranspose(4, 3, strides=1, output_padding=1),
        "greater than output padding",
    ),
    "renorm": (lambda: layers.BatchNormalization(renorm=True), "renorm is not supported"),
    "axis": (
        lambda: layers.BatchNormalization(axis=4)(np.ones([2, 3], np.float32)),
        "Invalid value for `axis`",
    ),
    "norm groups": (
        lambda: layers.GroupNormalization(2)(np.ones([2, 4, 3], np.float32)),
        "multiple of the number of groups",
    ),
    "rate": (lambda: layers.Dropout(1.5), "between 0 and 1"),
    "dims": (lambda: layers.Permute((0, 1)), "must be consecutive and start from 1"),
    "reshape": (
        lambda: layers.Reshape((4,))(np.ones([2, 3], np.float32)),
        "total size of new array must be unchanged",
    ),
    "crop": (lambda: layers.Cropping1D(2)(np.ones([2, 3, 1], np.float32)), "less than the input"),
    "merge": (lambda: layers.Add()(np.ones([2, 3], np.float32)), "on a list of inputs"),
    "merged shapes": (
        lambda: layers.Add()([np.ones([2, 3], np.float32), np.ones([2, 4], np.float32)]),
        "incompatible shapes",
    ),
    "subtract": (lambda: layers.Subtract()([np.ones([2, 3], np.float32)] * 3), "exactly 2 inputs"),
    "joined shapes": (
        lambda: layers.Concatenate()(
            [np.ones([2, 3, 1], np.float32), np.ones([2, 4, 1], np.float32)]
        ),
        "matching shapes except for the concatenation axis",
    ),
    "dot": (
        lambda: layers.Dot(1)([np.ones([2, 3], np.float32), np.ones([2, 4], np.float32)]),
        "axis values 3 .* != 4",
    ),
    "equation": (
        lambda: layers.EinsumDense("ab,bc->ad", 4)(np.ones([2, 3], np.float32)),
        "length of 'c' is not known",
    ),
    "attention": (lambda: layers.Attention()(np.ones([2, 3, 4], np.float32)), "list of inputs"),
    "score mode": (lambda: layers.Attention(score_mode="product"), "score_mode"),
    "negative": (lambda: layers.ReLU(max_value=-1.0), "max_value of a ReLU layer"),
    "implementation": (
        lambda: layers.LocallyConnected1D(2, 2, implementation=3),
        "=3 is not there",
    ),
    "unknown": (lambda: layers.Conv2D(2, 3, kernel="ones"), "not understood: kernel"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_invalid_arguments_raise(what: str) -> None:
    action, words = REFUSED[what]
    with pytest.raises((ValueError, TypeError), match=words):
        action()


def test_call_losses_precede_weight_losses() -> None:
    x = keras.Input((3,))
    layer = layers.Dense(
        2, kernel_initializer="ones", kernel_regularizer="l1", activity_regularizer="l2"
    )
    model = keras.Model(x, layer(x))
    layer.trainable = False  # a frozen layer is still regularized
    activity, weight = model.losses
    assert model.get_losses_for(None) == [weight]
    assert model.get_losses_for(x) == [activity]
    assert not model.get_losses_for(tf.ones(()))
    values = keras.backend.get_session().run([activity, weight], {x: np.ones((1, 3))})
    np.testing.assert_allclose(values, [0.18, 0.06], 1e-6)


def test_updates_are_filtered_by_inputs() -> None:
    x, other = keras.Input((3,)), keras.Input((3,))
    layer = layers.BatchNormalization()
    layer(x)
    layer(other)
    assert len(layer.updates) == 4
    assert layer.get_updates_for(x) == layer.updates[:2]
    assert layer.get_updates_for(other) == layer.updates[2:]
    assert not layer.get_updates_for(None)


def test_lambda_must_not_create_variables() -> None:
    dense = layers.Dense(2)
    with pytest.raises(ValueError, match="were created within a Lambda layer"):
        layers.Lambda(lambda x: dense(x + 1.0))(tf.ones((2, 3)))
    scale = tf.Variable(2.0)
    layer = layers.Lambda(lambda x, scale: x * scale, arguments={"scale": scale})
    assert not layer.weights
    layer.scale = scale
    assert layer.weights == [scale]
