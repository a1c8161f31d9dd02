"""Functional models accept inputs with or without a last dimension of 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from tests.sweep import sweep


def _model() -> Any:
    number = tf.keras.Input((1,), name="number")
    word = tf.keras.Input((1,), name="word", dtype="int32")
    vector = tf.keras.layers.Embedding(5, 3, embeddings_initializer="ones")(word)
    assert vector.shape.as_list() == [None, 1, 3]
    joined = tf.keras.layers.Concatenate()([number, tf.keras.layers.Flatten()(vector)])
    outputs = tf.keras.layers.Dense(1, kernel_initializer="ones")(joined)
    model = tf.keras.Model([number, word], outputs)
    model.compile("sgd", "mse")
    return model


@sweep("shape", [(4,), (4, 1), (4, 1, 1)], quick=1)
@sweep("by_name", [True, False], quick=1)
def test_column_with_or_without_last_dimension(by_name: bool, shape: tuple[int, ...]) -> None:
    with tf.Graph().as_default():
        model = _model()
        values = [(np.arange(4) / 4).reshape(shape), np.arange(4).reshape(shape)]
        x = dict(zip(("number", "word"), values, strict=True)) if by_name else values
        assert model.predict(x).ravel().tolist() == [3.0, 3.25, 3.5, 3.75]
        # Numbers of TensorFlow 2.15.
        history = model.fit(x, np.ones(4), batch_size=2, epochs=2, verbose=0, shuffle=False)
        np.testing.assert_allclose(history.history["loss"], [5.2782376, 3.5292807], rtol=1e-5)


def test_tensor_annotations_are_kept() -> None:
    with tf.Graph().as_default():
        tensor = tf.zeros([2])
        tensor._uses_learning_phase = True
        assert tensor._uses_learning_phase


@pytest.mark.slow
def test_named_columns_as_vectors() -> None:
    number = tf.keras.layers.Input((1,), name="number")
    word = tf.keras.layers.Input((1,), name="word", dtype="string")
    ids = tf.keras.layers.StringLookup(vocabulary=["u", "v"], output_mode="multi_hot")(word)
    output = tf.keras.layers.Dense(1)(tf.keras.layers.concatenate([number, ids]))
    model = tf.keras.Model([number, word], output)
    with pytest.raises(ValueError, match="did you mean 'mean_squared_error'"):
        model.compile("sgd", "mean_sqared_error")
    with pytest.raises(ValueError, match="Unknown loss function"):
        model.compile("sgd", {model.output_names[0]: "squares"})
    model.compile("sgd", {"class_name": "Huber", "config": {"delta": 2.0}})
    model.compile("sgd", "mse")
    columns = {"number": np.arange(8.0) / 8, "word": np.array(["u", "v"] * 4)}
    first = model.fit(columns, np.arange(8.0), epochs=5, verbose=0).history["loss"]
    assert first[-1] < first[0]
    assert model.predict(columns).shape == (8, 1)
    again = model.fit(list(columns.values()), np.arange(8.0), verbose=0).history["loss"]
    assert again[0] < first[0]


def test_input_without_values() -> None:
    """A model of an empty input learns its bias; TensorFlow 2.15's predict aborts the process."""
    with tf.Graph().as_default():
        inputs = tf.keras.Input((0,))
        model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(inputs))
        model.compile(tf.keras.optimizers.SGD(0.5), "mse")
        empty = np.zeros((4, 0), np.float32)
        model.fit(empty, np.full((4, 1), 3.0), batch_size=2, epochs=9, verbose=0)
        np.testing.assert_allclose(model.predict(empty, verbose=0), np.full((4, 1), 3.0), rtol=1e-2)
        same = tf.keras.Model(inputs, tf.keras.layers.Activation("relu")(inputs))
        assert same.predict(empty, batch_size=2, verbose=0).shape == (4, 0)
