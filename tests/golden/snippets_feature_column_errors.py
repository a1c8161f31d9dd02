"""What fails with feature columns, built or run, as functions of the module used as `tf`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _run_layer(tf: Any, column: Any, **features: Any) -> Any:
    output = tf.feature_column.linear_model(features, [column])
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return session.run(output)


def _error(make: Callable[[Any], Any], **features: Any) -> Callable[[Any], Any]:
    if not features:
        return lambda tf: make(tf.feature_column)
    return lambda tf: _run_layer(tf, make(tf.feature_column), **features)


def _identity(fc: Any, key: str = "x") -> Any:
    return fc.categorical_column_with_identity(key, 4)


_listed = "categorical_column_with_vocabulary_list"
TEXT = np.array(["a", "b"], object)

# Rows that need names of TensorFlow 1.
LEGACY = {
    *("dense numbers as a sequence", "no sequence in SequenceFeatures"),
}
ERRORS: dict[str, Callable[[Any], Any]] = {
    "bucketized of no numeric column": _error(lambda fc: fc.bucketized_column("x", [1.0])),
    "bucketized of two dimensions": _error(
        lambda fc: fc.bucketized_column(fc.numeric_column("x", (2, 2)), [1.0])
    ),
    "no boundaries": _error(lambda fc: fc.bucketized_column(fc.numeric_column("x"), [])),
    "boundaries not sorted": _error(
        lambda fc: fc.bucketized_column(fc.numeric_column("x"), [1.0, 0.0])
    ),
    "boundary twice": _error(lambda fc: fc.bucketized_column(fc.numeric_column("x"), [1.0, 1.0])),
    "identity without buckets": _error(lambda fc: fc.categorical_column_with_identity("x", 0)),
    "identity default out of range": _error(
        lambda fc: fc.categorical_column_with_identity("x", 3, 3)
    ),
    "identity key": _error(lambda fc: fc.categorical_column_with_identity(3, 3)),
    "identity of strings": _error(_identity, x=TEXT),
    "identity of floats": _error(_identity, x=np.array([1.0, 2.0])),
    "identity out of range": _error(_identity, x=np.array([1, 9])),
    "hash without size": _error(lambda fc: fc.categorical_column_with_hash_bucket("x", None)),
    "hash of size 0": _error(lambda fc: fc.categorical_column_with_hash_bucket("x", 0)),
    "hash of float dtype": lambda tf: tf.feature_column.categorical_column_with_hash_bucket(
        "x", 3, tf.float32
    ),
    "hash of integers as strings": _error(
        lambda fc: fc.categorical_column_with_hash_bucket("x", 3), x=np.array([1, 2])
    ),
    "hash of floats": _error(
        lambda fc: fc.categorical_column_with_hash_bucket("x", 3), x=np.array([1.0, 2.0])
    ),
    "hash of strings as integers": lambda tf: _run_layer(
        tf, tf.feature_column.categorical_column_with_hash_bucket("x", 3, tf.int64), x=TEXT
    ),
    "empty list": _error(lambda fc: getattr(fc, _listed)("x", [])),
    "word twice": _error(lambda fc: getattr(fc, _listed)("x", ["a", "b", "a"])),
    "list with buckets and default": _error(
        lambda fc: getattr(fc, _listed)("x", ["a"], default_value=0, num_oov_buckets=1)
    ),
    "list with fewer buckets than none": _error(
        lambda fc: getattr(fc, _listed)("x", ["a"], num_oov_buckets=-1)
    ),
    "list of floats": _error(lambda fc: getattr(fc, _listed)("x", [1.5])),
    "list of another dtype": lambda tf: getattr(tf.feature_column, _listed)("x", ["a"], tf.int64),
    "list given integers": _error(lambda fc: getattr(fc, _listed)("x", ["a"]), x=np.array([1, 2])),
    "list of integers given strings": _error(lambda fc: getattr(fc, _listed)("x", [1]), x=TEXT),
    "no file name": _error(lambda fc: fc.categorical_column_with_vocabulary_file("x", "")),
    "no file": _error(lambda fc: fc.categorical_column_with_vocabulary_file("x", "/nowhere")),
    "file of size 0": _error(
        lambda fc: fc.categorical_column_with_vocabulary_file("x", "/nowhere", 0)
    ),
    "file gone": _error(
        lambda fc: fc.categorical_column_with_vocabulary_file("x", "/nowhere", 2), x=TEXT
    ),
    "file with buckets and default": _error(
        lambda fc: fc.categorical_column_with_vocabulary_file("x", "/nowhere", 2, 1, 0)
    ),
    "weights of strings": lambda tf: tf.feature_column.weighted_categorical_column(
        _identity(tf.feature_column), "w", tf.string
    ),
    "weights of another dtype": _error(
        lambda fc: fc.weighted_categorical_column(_identity(fc), "w"),
        x=np.array([[1]]),
        w=np.array([[1]]),
    ),
    "cross of one": _error(lambda fc: fc.crossed_column(["x"], 3)),
    "cross without buckets": _error(lambda fc: fc.crossed_column(["x", "y"], 0)),
    "cross of a numeric column": _error(
        lambda fc: fc.crossed_column(["x", fc.numeric_column("y")], 3)
    ),
    "cross of a hash": _error(
        lambda fc: fc.crossed_column(["x", fc.categorical_column_with_hash_bucket("y", 3)], 3)
    ),
    "cross of weights": _error(
        lambda fc: fc.crossed_column(["y", fc.weighted_categorical_column(_identity(fc), "w")], 3),
        x=np.array([[1]]),
        y=np.array(["a"], object),
        w=np.array([[1.0]], np.float32),
    ),
    "embedding without dimension": _error(lambda fc: fc.embedding_column(_identity(fc), 0)),
    "embedding with half a checkpoint": _error(
        lambda fc: fc.embedding_column(_identity(fc), 2, ckpt_to_load_from="x")
    ),
    "embedding initializer": _error(
        lambda fc: fc.embedding_column(_identity(fc), 2, initializer="zeros")
    ),
    "shared of two kinds": _error(
        lambda fc: fc.shared_embedding_columns(
            [_identity(fc), fc.categorical_column_with_hash_bucket("y", 4)], 2
        )
    ),
    "shared of two sizes": _error(
        lambda fc: fc.shared_embedding_columns(
            [_identity(fc), fc.categorical_column_with_identity("y", 5)], 2
        )
    ),
    "indicator of a numeric column": _error(
        lambda fc: fc.indicator_column(fc.numeric_column("x")), x=np.array([1.0, 2.0])
    ),
    "categorical column in input_layer": lambda tf: tf.feature_column.input_layer(
        {"x": np.array([1])}, [_identity(tf.feature_column)]
    ),
    "sequence in input_layer": lambda tf: tf.feature_column.input_layer(
        {"x": np.array([[1]])},
        [
            tf.feature_column.indicator_column(
                tf.feature_column.sequence_categorical_column_with_identity("x", 4)
            )
        ],
    ),
    "no sequence in SequenceFeatures": lambda tf: tf.keras.experimental.SequenceFeatures(
        [tf.feature_column.indicator_column(_identity(tf.feature_column))]
    )({"x": np.array([[1]])}),
    "dense numbers as a sequence": lambda tf: tf.keras.experimental.SequenceFeatures(
        [tf.feature_column.sequence_numeric_column("x")]
    )({"x": np.array([[1.0]], np.float32)}),
    "sparse numbers": lambda tf: tf.feature_column.input_layer(
        {"x": tf.SparseTensor([[0, 0]], [1.0], [1, 1])}, [tf.feature_column.numeric_column("x")]
    ),
    "batches of two sizes": lambda tf: tf.feature_column.input_layer(
        {"x": np.array([[1.0]]), "y": np.array([[1.0], [2.0]])},
        [tf.feature_column.numeric_column("x"), tf.feature_column.numeric_column("y")],
    ),
    "two specs of a key": lambda tf: tf.feature_column.make_parse_example_spec(
        [
            tf.feature_column.numeric_column("x"),
            tf.feature_column.indicator_column(
                tf.feature_column.categorical_column_with_hash_bucket("x", 3)
            ),
        ]
    ),
}
