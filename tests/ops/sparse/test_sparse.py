"""Sparse tensors against TensorFlow's results; feeds, fetches, errors and product placement."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.ops.sparse.sparse import convert_to_tensor_or_sparse_tensor
from tests.golden.golden_files import error_of
from tests.golden.snippets_sparse import LEGACY, SNIPPETS, SPARSE_ERRORS, run, sample

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "sparse.json").read_text("utf-8"))

# What is known before running and TensorFlow leaves open, or the other way round.
DIFFERENT_SHAPES: set[str] = set()

WORDS = {
    "out_of_bounds": "is out of bounds: need 0 <= index <",
    "out_of_order": "is out of order",
    "repeated": "is repeated",
    "reshape": "",
    "add_shapes": "",
    "parts_do_not_fit": "",
    "dense_for_sparse": "Input must be a SparseTensor",
    "negative_counted": "Input values must all be non-negative",
    "extremes_shapes": "Operands' shapes do not match",
    "extremes_out_of_bounds": "is out of bounds",
    "counted_out_of_bounds": "",
    "segments_out_of_order": "segment ids are not increasing",
}


@pytest.mark.parametrize("name", sorted(SNIPPETS.keys() - LEGACY))
def test_results(name: str) -> None:
    found, expected = run(tf, SNIPPETS[name]), GOLDEN["snippets"][name]
    assert len(found) == len(expected)
    for at, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        value = [each.decode() if isinstance(each, bytes) else each for each in flat(ours["value"])]
        if theirs["dtype"].startswith("float"):
            np.testing.assert_allclose(value, flat(theirs["value"]), rtol=1e-5, atol=1e-6)
        else:
            assert value == flat(theirs["value"]), at
        assert ours["dtype"] == theirs["dtype"], at
        assert np.shape(ours["value"]) == np.shape(theirs["value"]), at
        if name not in DIFFERENT_SHAPES:
            assert at_least_as_much(ours["shape"], theirs["shape"]), (at, ours, theirs)


def flat(value: Any) -> list[Any]:
    return [leaf for each in value for leaf in flat(each)] if isinstance(value, list) else [value]


def at_least_as_much(ours: Any, theirs: Any) -> bool:
    """Whether ours says all that theirs says of a shape, and does not contradict it."""
    if theirs is None:
        return True
    return ours is not None and all(
        known in (None, dim) for dim, known in zip(ours, theirs, strict=True)
    )


@pytest.mark.parametrize("name", sorted(SPARSE_ERRORS.keys() - LEGACY))
def test_errors(name: str) -> None:
    got, golden = error_of(lambda: run(tf, SPARSE_ERRORS[name])), GOLDEN["errors"][name]
    assert got is not None
    assert got["class"] == golden["class"], got
    assert WORDS[name] in golden["first_line"]
    assert WORDS[name] in got["first_line"]


def test_components_of_sparse_tensor() -> None:
    with tf.Graph().as_default() as graph:
        sparse = sample(tf)
        dense = tf.sparse.to_dense(sparse)
        assert sparse.shape == [3, 4]
        assert sparse.get_shape() == [3, 4]
        assert sparse.dtype == tf.float32
        assert sparse.indices.dtype == tf.int64
        assert sparse.graph is graph
        assert sparse.op is sparse.values.op
        assert sparse.name == sparse.values.name
        assert sparse.consumers() == [dense.op]
        assert "SparseTensor(indices=" in repr(sparse)
        assert tf.SparseTensor.from_value(sparse) is sparse
        with pytest.raises(TypeError, match="expected a sparse value"):
            tf.SparseTensor.from_value([1])
        with pytest.raises(ValueError, match="not compatible"):
            sparse.set_shape([3, 5])


def test_feed_and_fetch() -> None:
    value = tf.SparseTensorValue(np.array([[0, 1]]), np.array([b"x"], object), np.array([1, 2]))
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.sparse_placeholder(tf.string, name="words")
        assert fed.values.name == "words/values:0"
        assert fed.shape.rank is None
        found = session.run({"a": fed, "b": [fed.values]}, {fed: value})
        again = fed.eval({fed: tuple(value)})
    assert isinstance(found["a"], tf.SparseTensorValue)
    assert found["a"].values.tolist() == found["b"][0].tolist() == again.values.tolist() == [b"x"]
    assert found["a"].dense_shape.tolist() == [1, 2]


def test_conversion() -> None:
    with tf.Graph().as_default():
        sparse = sample(tf)
        assert convert_to_tensor_or_sparse_tensor(sparse, tf.float32) is sparse
        assert convert_to_tensor_or_sparse_tensor([1, 2]).dtype == tf.int32
        made = convert_to_tensor_or_sparse_tensor(tf.SparseTensorValue([[0]], [1.0], [2]))
        assert made.shape == [2]
        with pytest.raises(TypeError, match="wrong dtype"):
            convert_to_tensor_or_sparse_tensor(sparse, tf.int32)


@pytest.mark.parametrize("use", ["sparse * [[2.0]]", "sparse / [[0.5]]"])
def test_sparse_operator_in_fresh_process(use: str) -> None:
    code = (
        "import estimatorkit as tf\n"
        "sparse = tf.SparseTensor([[0, 1]], [3.0], [1, 2])\n"
        f"print(tf.Session().run(({use}).values))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[6.]"
