"""Calls of trained Estimators, one function each for every package with `tf.estimator`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.workloads import iris_data


def predict_again(tf: Any) -> Callable[[], object]:
    """Returns a call of `predict` for one flower, of a classifier that has predicted before."""
    features, labels = iris_data()
    columns = [tf.feature_column.numeric_column(name) for name in features]
    classifier = tf.estimator.DNNClassifier(
        [10, 10], columns, tempfile.mkdtemp(prefix="benchmark-"), n_classes=3
    )
    one = {name: values[:1] for name, values in features.items()}

    def training() -> Any:
        data = tf.data.Dataset.from_tensor_slices((features, labels))
        return data.shuffle(120).repeat().batch(32)

    def flower() -> Any:
        return tf.data.Dataset.from_tensor_slices(one).batch(1)

    classifier.train(training, steps=100)

    def call() -> object:
        found = list(classifier.predict(flower))
        if len(found) != 1:
            raise RuntimeError(f"{len(found)} predictions")
        return found

    call()
    return call


def embedding(tf: Any, rows: int) -> Callable[[], object]:
    """Returns a call of one training step of a table of 64 columns, which touches 128 rows of it.

    Args:
        tf: the package.
        rows: of the table.
    """
    generator = np.random.default_rng(7)
    ids = generator.integers(0, rows, 100 * 128).astype(np.int64)
    labels = (ids % 2).astype(np.float32)
    with tf.Graph().as_default() as graph:
        data = tf.data.Dataset.from_tensor_slices((ids, labels)).repeat().batch(128)
        places, targets = data.make_one_shot_iterator().get_next()
        table = tf.get_variable("table", [rows, 64])
        logits = tf.reduce_sum(tf.nn.embedding_lookup(table, places), 1)
        loss = tf.losses.sigmoid_cross_entropy(targets, logits)
        train_op = tf.train.AdagradOptimizer(0.05).minimize(loss)
        session = tf.Session(graph=graph)
        session.run(tf.global_variables_initializer())

    def call() -> object:
        return session.run(train_op)

    call()
    return call


PROGRAMS: dict[str, Callable[[Any], Callable[[], object]]] = {
    "predict_again": predict_again,
    "embedding_10_thousand": lambda tf: embedding(tf, 10_000),
    "embedding_1_million": lambda tf: embedding(tf, 1_000_000),
}
