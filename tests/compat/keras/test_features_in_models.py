"""The tests of `tests/keras/test_features_in_models.py` that need names of TensorFlow 1."""

from __future__ import annotations

import numpy as np
import pytest

import estimatorkit as tf
import estimatorkit.compat.v1 as v1
from estimatorkit import keras
from tests.keras.test_features_in_models import graph, names_of, one_calls

__all__ = ["graph"]


@pytest.mark.slow
def test_sequence_features() -> None:
    column = tf.feature_column
    words = column.sequence_categorical_column_with_vocabulary_list("w", ["a", "b"])
    layer = v1.keras.experimental.SequenceFeatures(column.embedding_column(words, 3))
    words_in = keras.Input((4,), name="w", dtype="string")
    steps, lengths = layer({"w": words_in})
    mask = tf.sequence_mask(lengths, 4)
    outputs = keras.layers.Dense(1)(keras.layers.LSTM(5)(steps, mask=mask))
    model = keras.Model({"w": words_in}, outputs)
    model.compile("adam", "mse")
    x = {"w": np.array([["a", "b", "", ""], ["b", "", "", ""]], object)}
    model.fit(x, np.ones(2, np.float32), epochs=2, verbose=0)
    assert one_calls(model) == {"train": True}
    assert names_of(model.weights)[0] == "sequence_features/w_embedding/embedding_weights"
    again = v1.keras.experimental.SequenceFeatures.from_config(layer.get_config())
    assert again._feature_columns == layer._feature_columns
