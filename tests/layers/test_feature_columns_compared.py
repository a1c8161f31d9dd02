"""Fingerprints of feature columns, compared between processes: whatever assigns rows to ids."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import estimatorkit as tf
from estimatorkit.layers.feature_column import column_texts

fc = tf.feature_column


def texts(*columns: Any, by: Callable[..., Any] = fc.input_layer) -> dict[str, str]:
    """Of a graph with a layer of these columns."""
    with tf.Graph().as_default() as graph:
        features = {
            "word": tf.constant([["a"], ["b"]]),
            "number": tf.constant([[1.0], [2.0]]),
            "id": tf.constant([[1], [2]]),
        }
        by(features, list(columns))
        return column_texts(graph)


def words(vocabulary: list[str], **options: Any) -> Any:
    listed = fc.categorical_column_with_vocabulary_list("word", vocabulary, **options)
    return fc.indicator_column(listed)


def embedded(**options: Any) -> Any:
    return fc.embedding_column(fc.categorical_column_with_identity("id", 5), 3, **options)


def number(**options: Any) -> Any:
    return fc.numeric_column("number", **options)


def buckets(*boundaries: float) -> Any:
    return fc.bucketized_column(number(), boundaries)


def halved(values: Any, by: Any = 2.0) -> Any:
    return values / (2.0 if isinstance(by, Scale) else by)


DIFFERENT = {
    "order": (words(["a", "b"]), words(["b", "a"])),
    "buckets for other words": (words(["a"]), words(["a"], num_oov_buckets=1)),
    "boundaries": (buckets(1.0, 2.0), buckets(1.0, 2.5)),
    "combiner": (embedded(combiner="mean"), embedded(combiner="sum")),
    "normalizer": (
        number(normalizer_fn=lambda x: x / 2.0),
        number(normalizer_fn=lambda x: x / 3.0),
    ),
    "operation": (number(normalizer_fn=lambda x: x / 2.0), number(normalizer_fn=lambda x: x * 2.0)),
    "argument": (
        number(normalizer_fn=functools.partial(halved, by=2.0)),
        number(normalizer_fn=functools.partial(halved, by=4.0)),
    ),
    "kind": (
        fc.indicator_column(fc.categorical_column_with_identity("id", 5)),
        fc.indicator_column(fc.categorical_column_with_hash_bucket("id", 5, tf.int64)),
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_reading_differs(name: str) -> None:
    one, other = DIFFERENT[name]
    assert texts(one) != texts(other)
    assert list(texts(one)) == list(texts(other))


class Scale:
    """Without a repr of its own."""

    def __call__(self, values: Any, *_: Any) -> Any:
        return values * 2.0


def of_some(values: Any) -> Any:
    return values * (2.0 if values.op.name in {"price", "size", "weight", "age"} else 1.0)


@pytest.mark.slow
def test_process_local_names_do_not_matter() -> None:
    def seen(seed: str) -> str:
        program = (
            "from tests.layers.test_feature_columns_compared import *\n"
            "print(texts(number(normalizer_fn=of_some)))\n"
            "print(texts(number(normalizer_fn=functools.partial(halved, by=Scale()))))\n"
            "print(texts(number(normalizer_fn=Scale())))\n"
        )
        return subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    found = seen("1")
    assert found == seen("2")
    assert found.count("Scale") == 2


def by_mean(mean: float) -> Any:
    return number(normalizer_fn=lambda x: x - mean)


@pytest.mark.parametrize(
    "make",
    [
        lambda at: words(["a", "b"]),
        lambda at: buckets(1.0, 2.0),
        lambda at: number(normalizer_fn=halved),
        lambda at: by_mean(at),  # what a process has found in its own data
        lambda at: embedded(initializer=tf.random_normal_initializer(seed=at)),  # the chief's
    ],
)
def test_equal_reading_is_equal(make: Callable[[int], Any]) -> None:
    assert texts(make(1)) == texts(make(2)) != {}


def test_vocabulary_file_counts_by_content(tmp_path: Path) -> None:
    def column(folder: str, content: str) -> Any:
        path = tmp_path / folder
        path.mkdir(exist_ok=True)
        (path / "words.txt").write_text(content)
        listed = fc.categorical_column_with_vocabulary_file("word", str(path / "words.txt"))
        return fc.indicator_column(listed)

    late = fc.categorical_column_with_vocabulary_file(
        "word", str(tmp_path / "host0" / "words.txt"), vocabulary_size=2
    )  # made before there is a file
    before = column("host0", "a\nb\n")
    assert texts(fc.indicator_column(late)) == texts(before)
    one, same = texts(column("host1", "a\nb\n")), texts(column("host2", "a\nb\n"))
    assert one == same
    assert texts(column("host3", "b\na\n")) != one


def test_long_texts_end_with_digest() -> None:
    many = [f"word {count}" for count in range(1000)]
    (one,) = texts(words(many)).values()
    (other,) = texts(words([*many[:-1], "last"])).values()
    assert one != other
    assert len(one) == len(other) < 250


@pytest.mark.parametrize(
    "by",
    [
        fc.input_layer,
        fc.linear_model,
        lambda features, columns: tf.keras.layers.DenseFeatures(columns)(features),
    ],
)
def test_columns_of_every_layer_count(by: Callable[..., Any]) -> None:
    assert list(texts(words(["a"]), number(), by=by)) == [
        "column number",
        "column word_indicator",
    ]
