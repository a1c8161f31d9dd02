"""A model that tests of exports share: trained for a few steps, exported once a test run.

Tests that change an export change a copy of it.
"""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import estimatorkit as tf
from estimatorkit.estimator.export import (
    build_parsing_serving_input_receiver_fn,
    serving_input_receiver_fn_from_columns,
)
from estimatorkit.estimator.serving.exporting import export_saved_model

_RANDOM = np.random.default_rng(0)
DATA: dict[str, NDArray[Any]] = {
    "x": _RANDOM.normal(size=(24, 3)).astype(np.float32),
    "word": np.array([b"a", b"b", b"other"] * 8, object),
    "name": np.array([b"u", b"v", b"w", b"u"] * 6, object),
}
LABELS = np.arange(24) % 3


def columns(vocabulary: Path | None = None) -> list[Any]:
    """Numbers, words of a vocabulary (of a file, where one is given), and hashed names."""
    column = tf.feature_column
    words = (
        column.categorical_column_with_vocabulary_list("word", ["a", "b"], num_oov_buckets=1)
        if vocabulary is None
        else column.categorical_column_with_vocabulary_file("word", str(vocabulary))
    )
    return [
        column.numeric_column("x", shape=(3,)),
        column.embedding_column(words, 2),
        column.indicator_column(column.categorical_column_with_hash_bucket("name", 5)),
    ]


def input_fn(labels: NDArray[Any] = LABELS) -> tf.Dataset:
    """The data, in batches of 8."""
    return tf.data.Dataset.from_tensor_slices((DATA, labels)).batch(8)


def classifier(folder: Path, vocabulary: Path | None = None) -> Any:
    """A trained `DNNClassifier` of three classes."""
    config = tf.estimator.RunConfig(tf_random_seed=1, log_step_count_steps=None)
    made = tf.estimator.DNNClassifier(
        [4], columns(vocabulary), model_dir=folder, n_classes=3, config=config
    )
    return made.train(input_fn, steps=2)


def export(estimator: Any, base: Path, parse: bool = False, **options: Any) -> Path:
    """Exports a classifier, fed with features or (`parse`) with `Example`s."""
    spec = tf.feature_column.make_parse_example_spec(columns())
    receiver = (
        build_parsing_serving_input_receiver_fn(spec)
        if parse
        else serving_input_receiver_fn_from_columns(columns())
    )
    return Path(export_saved_model(estimator, base, receiver, **options).decode())


@functools.cache
def _place() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="exported-")  # removed at the end of the program


@functools.cache
def shared_model() -> Any:
    """A trained classifier."""
    return classifier(Path(_place().name) / "model")


@functools.cache
def shared_export(parse: bool = False) -> Path:
    """Its export (see `export`)."""
    return export(shared_model(), Path(_place().name) / f"exports-{parse}", parse)


def batch(start: int, end: int) -> dict[str, NDArray[Any]]:
    """Rows of the data as the classifier that is fed features takes them."""
    return {
        key: each[start:end].reshape(end - start, -1) if each.dtype == object else each[start:end]
        for key, each in DATA.items()
    }
