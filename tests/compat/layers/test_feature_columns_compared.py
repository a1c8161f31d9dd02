"""The tests of `tests/layers/test_feature_columns_compared.py` that need names of TensorFlow 1."""

from __future__ import annotations

import numpy as np

import estimatorkit.compat.v1 as tf
from estimatorkit.layers.feature_column import column_texts
from tests.layers.test_feature_columns_compared import fc


def test_sequences_count() -> None:
    listed = fc.sequence_categorical_column_with_vocabulary_list("word", ["a", "b"])
    with tf.Graph().as_default() as graph:
        features = {"word": tf.sparse.from_dense(np.array([["a", "b"]]))}
        tf.keras.experimental.SequenceFeatures([fc.indicator_column(listed)])(features)
        assert list(column_texts(graph)) == ["column word_indicator"]
