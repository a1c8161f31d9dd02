"""The tests of `tests/layers/test_embedding_table.py` that need names of TensorFlow 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from tests.layers.test_embedding_table import Lookup, Table


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: tf.train.AdagradOptimizer(0.5),
        lambda: tf.train.LazyAdamOptimizer(0.5),
        lambda: tf.train.FtrlOptimizer(0.5),
        lambda: tf.train.RowwiseAdagradOptimizer(0.5),
        lambda: tf.keras.optimizers.legacy.Adagrad(0.5),
    ],
)
def test_slots_grow_with_table(optimizer: Any) -> None:
    """The same numbers as a table that was large enough from the start."""
    ids = np.random.default_rng(0).integers(0, 3000, [40, 200])
    column = tf.feature_column.categorical_column_with_identity("id", 3000)
    zeros = tf.zeros_initializer()
    fixed = Lookup(Table(initializer=zeros, optimizer=optimizer()), column=column)
    grown = Lookup(Table(initializer=zeros, optimizer=optimizer(), dynamic=True), column=column)
    for batch in ids:
        np.testing.assert_allclose(grown.see(*batch), fixed.see(*batch), rtol=1e-6, atol=1e-7)
    assert np.abs(fixed.see(*ids[0])).max() > 1
