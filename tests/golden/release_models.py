"""The models whose files of each release are kept in `releases/`: small, and of several kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import estimatorkit as tf
from estimatorkit import keras

X = np.linspace(-1.0, 1.0, 24, dtype=np.float32).reshape(12, 2)
WORDS = np.array([[b"a"], [b"bc"], [b"other"]] * 4, object)
LABELS = (X.sum(1) > 0).astype(np.int64)
ROWS = {"x": X[:3], "word": WORDS[:3]}


def input_fn() -> Any:
    """Twelve rows, in batches of four, shuffled without end."""
    data = tf.data.Dataset.from_tensor_slices(({"x": X, "word": WORDS}, LABELS))
    return data.shuffle(12, seed=1).repeat().batch(4)


def rows_fn() -> Any:
    """The first three rows."""
    return tf.data.Dataset.from_tensor_slices(ROWS).batch(3)


def columns() -> list[Any]:
    """Two numbers, and an embedded word of a vocabulary."""
    words = tf.feature_column.categorical_column_with_vocabulary_list("word", ["a", "bc"], None, 0)
    return [
        tf.feature_column.numeric_column("x", shape=2),
        tf.feature_column.embedding_column(words, 2),
    ]


def _network(folder: Path) -> Any:
    return tf.estimator.DNNClassifier(
        [3], columns(), str(folder), optimizer=tf.train.AdamOptimizer(0.01), config=_config()
    )


def _trees(folder: Path) -> Any:
    buckets = [
        tf.feature_column.bucketized_column(tf.feature_column.numeric_column(key), [-0.5, 0.0, 0.5])
        for key in ("x0", "x1")
    ]
    return tf.estimator.BoostedTreesClassifier(
        buckets, 1, str(folder), n_trees=9, max_depth=2, config=_config()
    )


def _config() -> Any:
    return tf.estimator.RunConfig(
        tf_random_seed=1, save_summary_steps=None, keep_checkpoint_max=1, log_step_count_steps=None
    )


def _split(dataset: Any) -> Any:
    """The two numbers as features of their own, for trees."""

    def split(features: Any, *labels: Any) -> Any:
        numbers = {"x0": features["x"][:, 0], "x1": features["x"][:, 1]}
        return (numbers, *labels) if labels else numbers

    return dataset.map(split)


ESTIMATORS: dict[str, tuple[Any, Any, Any]] = {
    "network": (_network, input_fn, rows_fn),
    "trees": (_trees, lambda: _split(input_fn()), lambda: _split(rows_fn())),
}
"""By name: makes the estimator, its input, and the rows to predict."""


def probabilities(estimator: Any, rows: Any) -> list[list[float]]:
    """What an estimator predicts for the first rows."""
    return [each["probabilities"].tolist() for each in estimator.predict(rows)]


def keras_model() -> Any:
    """A compiled model of two layers."""
    model = keras.Sequential(
        [
            keras.layers.Dense(2, activation="tanh", input_shape=(2,), name="one"),
            keras.layers.BatchNormalization(name="norm"),
            keras.layers.Dense(1, name="two"),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "mse")
    return model
