"""Parsing of examples against TensorFlow 2.15.1 (tests/golden/parsing.json)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import estimatorkit as tf
from estimatorkit.core.dtypes import float32, int64, string
from estimatorkit.ops.parsing.example_parsing import Column, parse_examples, parse_sequence_examples
from tests.golden.golden_files import error_of
from tests.golden.golden_values import plain
from tests.golden.snippets_parsing import ERRORS, EXPRESSIONS, example

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/parsing.json").read_text("utf-8"))

# What differs by intent: ours, and the reason.
DIFFERENT_ERRORS = {
    "sparse out of range": ("InvalidArgumentError", "TensorFlow gives a tensor that is none"),
}
# Words that TensorFlow's message and ours share; its first line without its dtypes by default.
WORDS = {
    "another dtype": "Name: <unknown>, Key: x, Index: 0.  Data types don't match.",
    "another dtype of lists": "Data types don't match. Expected type: int64, Actual type: float",
    "another size": "values != expected.  Values size: 2 but output shape: [3]",
    "unknown shape": "First dimension of shape for feature x unknown. Consider using",
    "unsupported dtype": "has DataType int32 not in list of allowed values: float32, int64, string",
    "a feature that is none": "",
    "steps of another size": "",
    "missing single": "Feature: q (data type: string) is required but could not be found.",
    "steps of another dtype": "Feature list: m, Index: 0.  Data types don't match. Expected type: ",
    "steps of lists of different lengths": "i, Index: 1.  Number of ",
    "steps of another size in a batch": "",
    "a context without a feature": "",
    "a context of another dtype": "Data types don't match. Expected type: float",
    "json that is none": "Error while parsing JSON: ",
}


def run(function: Callable[[Any], Any]) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(function(tf))


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expression(name: str) -> None:
    assert plain(run(EXPRESSIONS[name])) == GOLDEN["expressions"][name]


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str) -> None:
    got = error_of(lambda: run(ERRORS[name]))
    assert got is not None
    golden = GOLDEN["errors"][name]
    expected, _ = DIFFERENT_ERRORS.get(name, (golden and golden["class"], ""))
    assert got["class"] == expected, got
    if golden:
        words = WORDS.get(name, golden["first_line"])
        assert words in golden["first_line"]
        assert words in got["first_line"]


# -- beyond the golden file


def test_static_shapes() -> None:
    features = {
        "x": tf.FixedLenFeature([2], tf.float32),
        "k": tf.FixedLenSequenceFeature([3], tf.int64, allow_missing=True),
        "v": tf.VarLenFeature(tf.string),
        "f": tf.SparseFeature("k", "v", tf.float32, 5),
    }
    with tf.Graph().as_default():
        batch = tf.parse_example(tf.placeholder(tf.string, [None]), features)
        assert batch["x"].shape.as_list() == [None, 2]
        assert batch["k"].shape.as_list() == [None, None, 3]
        assert batch["v"].indices.shape.as_list() == [None, 2]
        assert batch["f"].shape.rank == 2
        one = tf.parse_single_example(tf.placeholder(tf.string), features)
        assert one["x"].shape.as_list() == [2]
        assert one["k"].shape.as_list() == [None, 3]
        assert one["v"].dense_shape.shape.as_list() == [1]


def test_default_may_be_tensor() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        default = tf.placeholder(tf.int64, [])
        feature = tf.FixedLenFeature([], tf.int64, default_value=default)
        parsed = tf.parse_example([example(tf), example(tf, n=[1])], {"n": feature})
        np.testing.assert_array_equal(session.run(parsed["n"], {default: 5}), [5, 1])


def test_messages_match_protobuf() -> None:
    made = tf.train.Example()
    made.features.feature["a"].int64_list.value.extend([1, 2])
    read = tf.train.Example.FromString(made.SerializeToString())
    assert read == made
    assert list(read.features.feature["a"].int64_list.value) == [1, 2]
    other = tf.train.Example()
    other.ParseFromString(made.SerializeToString())
    assert other.features.feature["a"].WhichOneof("kind") == "int64_list"
    with pytest.raises(TypeError):
        tf.train.Feature(bytes_list=tf.train.BytesList(value=["text"]))


COLUMNS = (
    Column("lists", "a", int64),
    Column("padded", "b", float32),
    Column("lists", "c", string),
    Column("sparse", "b", float32, (9,), False, ("a",)),
)


@pytest.mark.slow
@given(st.lists(st.binary(max_size=60), max_size=3))
def test_arbitrary_bytes_parse_or_raise(serialized: list[bytes]) -> None:
    for parse in (
        lambda: parse_examples(serialized, [], COLUMNS, []),
        lambda: parse_sequence_examples(serialized, [], COLUMNS, COLUMNS[:1], []),
    ):
        try:
            parse()
        except tf.errors.InvalidArgumentError:
            continue


VALUES = st.one_of(
    st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=4),
    st.lists(st.binary(max_size=4), min_size=1, max_size=4),
    st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=4),
)


@given(st.lists(VALUES, min_size=1, max_size=4), st.data())
def test_write_then_read(rows: list[Any], data: Any) -> None:
    """Examples cut short or with a changed byte never give anything but values or our error."""
    dtypes = {int: int64, bytes: string, float: float32}
    for row in rows:
        text = example(tf, a=row)
        column = Column("dense", "a", dtypes[type(row[0])], (len(row),))
        assert parse_examples([text], [], [column], [])[0][0].tolist() == row
        at = data.draw(st.integers(0, len(text) - 1))
        changed = text[:at] + bytes([text[at] ^ data.draw(st.integers(1, 255))]) + text[at + 1 :]
        for damaged in (text[:at], changed):
            try:
                parse_examples([damaged], [], [column], [])
            except tf.errors.InvalidArgumentError:
                continue
