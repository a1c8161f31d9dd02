"""Out of memory: errors name the operation, and the process goes on."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core.errors import InvalidArgumentError, ResourceExhaustedError
from estimatorkit.runtime.xla.memory_errors import free_memory

MANY = 1 << 46  # elements of 4 bytes: more than an address space of 47 bits


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: tf.fill([MANY], 1.0), "Fill"),
        (lambda: tf.fill(tf.placeholder_with_default(np.int64(MANY), [])[None], 1.0), "Fill"),
        (lambda: tf.fill([MANY], "text"), "Fill"),
        (lambda: tf.tile([1.0], [MANY]), "Tile"),
        (lambda: tf.range(MANY), "Range"),
        (lambda: tf.one_hot([1], MANY), "OneHot"),
        (lambda: tf.random_uniform([MANY]), "RandomUniform"),
        (lambda: tf.linspace(0.0, 1.0, MANY), "LinSpace"),
    ],
)
def test_huge_allocation_raises(make: Callable[[], Any], name: str) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        big = make()
        small = tf.constant([1.0]) + 1.0
        for _ in range(2):
            with pytest.raises(ResourceExhaustedError, match=rf"out of memory in .*{name}") as it:
                sess.run(big)
        assert __file__ in str(it.value)
        assert sess.run(small).tolist() == [2.0]


@pytest.mark.parametrize("shape", [[1 << 62], [1 << 40, 1 << 40]])
def test_size_beyond_address_space_raises(shape: list[int]) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        with pytest.raises(InvalidArgumentError, match=r"\(Fill\) has an output that is too large"):
            sess.run(tf.zeros(shape) + 1.0)
        with pytest.raises(ValueError, match=r"a dimension is too large|out of range"):
            tf.zeros([1 << 70])


def test_too_wide_layer_raises() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.layers.dense(tf.placeholder(tf.float32, [None, 3]), MANY)
        with pytest.raises(ResourceExhaustedError, match="use a smaller model, with fewer buckets"):
            sess.run(tf.global_variables_initializer())


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what is free")
def test_variables_are_compared_with_what_is_free() -> None:
    """Linux gives 110 % of what is free, and kills the process that uses it."""
    free = free_memory()
    assert free is not None
    rows = int(1.1 * free) // 4 // 8
    column = tf.feature_column.categorical_column_with_hash_bucket("user", rows)
    embedded = tf.feature_column.embedding_column(column, 8)
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.feature_column.input_layer({"user": tf.constant(["a"])}, [embedded])
        small = tf.get_variable("small", initializer=1.0)
        with pytest.raises(ResourceExhaustedError) as caught:
            sess.run(tf.global_variables_initializer())
        assert f"user_embedding/embedding_weights [{rows}, 8] of" in str(caught.value)
        assert "the memory that is free" in str(caught.value)
        sess.run(small.initializer)
        assert sess.run(small) == 1.0


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what is free")
def test_words_are_compared_with_what_is_free(tmp_path: Path) -> None:
    """100 GiB of words, most of which are holes in the file."""
    path = tmp_path / "words.txt"
    path.write_bytes(b"".join(b"%07d\n" % number for number in range(1 << 17)))
    os.truncate(path, 100 * (free_memory() or 0))
    with pytest.raises(ResourceExhaustedError, match=r"words\.txt' takes .*TiB") as caught:
        tf.feature_column.categorical_column_with_vocabulary_file("word", str(path))
    assert re.search(r"about \d+,\d{3},\d{3},\d{3} words", str(caught.value))


def test_variables_survive_out_of_memory_step() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        variable = tf.get_variable("v", initializer=1.0)
        step = variable.assign_add(tf.reduce_max(tf.one_hot([1], MANY)))
        sess.run(tf.global_variables_initializer())
        for _ in range(2):
            with pytest.raises(ResourceExhaustedError):
                sess.run(step)
        sess.run(tf.global_variables_initializer())
        assert sess.run(variable) == 1.0


def wide(rows: Any) -> Any:
    return tf.reduce_max(tf.one_hot(tf.cast(rows[:, 0], tf.int32), MANY))


NAMED = r"the largest tensors are one_hot:0 float32\[5, \d+\] of .* TiB.*; the batch has 5 rows"


def test_the_largest_tensors_and_the_batch_are_named() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        rows = tf.placeholder(tf.float32, [None, 2])
        largest = wide(rows)
        with pytest.raises(ResourceExhaustedError, match=NAMED):
            sess.run(largest, {rows: np.zeros((5, 2))})


def test_in_a_training_of_many_steps_a_call() -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        weight = tf.get_variable("w", initializer=1.0)
        step = tf.train.get_global_step().assign_add(1)
        return tf.estimator.EstimatorSpec(mode, loss=weight * wide(features), train_op=step)

    data = tf.data.Dataset.from_tensor_slices(np.zeros((10, 2), np.float32)).repeat().batch(5)
    with pytest.raises(ResourceExhaustedError, match=NAMED):
        tf.estimator.Estimator(model_fn).train(lambda: data, steps=3)
