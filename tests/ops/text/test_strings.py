"""Strings, numbers in text and CSV against TensorFlow 2.15.1 (tests/golden/strings.json)."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import estimatorkit as tf
from estimatorkit.core import registry
from estimatorkit.ops.text.csv_records import csv_fields
from estimatorkit.ops.text.regular_expressions import compiled, replacer
from estimatorkit.ops.text.strings import string_array
from tests.golden.golden_files import error_of
from tests.golden.golden_values import plain
from tests.golden.snippets_strings import ERRORS, EXPRESSIONS

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/strings.json").read_text("utf-8"))

# What differs by intent: ours (None: no error), and the reason.
DIFFERENT_ERRORS = {
    "rewrite of no group": ("InvalidArgumentError", "TensorFlow gives the string unchanged"),
    "lower of another encoding": ("ValueError", "refused when the graph is built"),
}
# Words that TensorFlow's message and ours share; its first line without its dtypes by default.
WORDS = {
    "rewrite of no group": "",
    "lower of another encoding": "",
    "to_number of nothing": "StringToNumberOp could not correctly convert string:",
    "regex that is none": "Invalid pattern: (, error: missing )",
    "hash into no buckets": "Attr 'num_buckets'",
    "join of other shapes": "hape",
    "format with too few": "The template expects 2 tensors, but the inputs only has 1.",
    "parse_tensor of nothing": "Could not parse `serialized` as TensorProto",
    "parse_tensor of others": "Type mismatch between parsed tensor (float",
    "segments of other shapes": "",
    "substr at a float": "has DataType float32 not in list of allowed values: int32, int64",
    "csv of a long delimiter": "field_delim should be only 1 char",
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


def test_strings_computed_from_device_values() -> None:
    """Numbers that XLA computes become strings, and numbers again for XLA."""
    with tf.Graph().as_default(), tf.Session() as session:
        number = tf.placeholder(tf.float32, [2])
        text = tf.as_string(number * 2.0, precision=1)
        assert text.shape.as_list() == [2]
        back = tf.string_to_number(text) + 1.0
        np.testing.assert_array_equal(session.run(back, {number: [1.25, 3.0]}), [3.5, 7.0])


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("[^[:alpha:]]", "a1é", "a__"),
        ("[[|&~]", "a[b|c&d~", "a_b_c_d_"),
        (r"[\]\\]", "a]b\\", "a_b_"),
        ("(?m)a$", "a\na", "_\n_"),
        (r"a\z", "aa", "a_"),
        ("[]a]", "]ab", "__b"),
        ("x$|y", "yx", "__"),
    ],
)
def test_re2_syntax(pattern: str, text: str, expected: str) -> None:
    assert replacer(pattern.encode(), b"_", True)(text.encode()) == expected.encode()


@pytest.mark.parametrize("pattern", ["[[:^alpha:]]", "[[:none:]]", r"\pL", "a**", "["])
def test_unsupported_patterns_raise(pattern: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid pattern"):
        compiled(pattern.encode())


def test_kernels_accept_numpy_strings() -> None:
    """A graph's input may come as a NumPy scalar of bytes."""
    assert string_array(np.array([b"a", b"bc"])).tolist() == [b"a", b"bc"]
    assert string_array(np.array(b"ab"))[()] == b"ab"
    assert string_array(b"a\0")[()] == b"a\0"
    plain = {"precision": -1, "scientific": False, "shortest": False, "width": -1, "fill": ""}
    assert registry.lookup("AsString").kernel(np.array(b"ab"), **plain) == b"ab"
    serialize, parse = (registry.lookup(f"{each}Tensor").kernel for each in ("Serialize", "Parse"))
    assert parse(serialize(np.array(b"ab")), out_type=tf.string) == b"ab"


def test_scalar_of_string_vector_stays_string() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        one = tf.constant(["a\0", "b"])[0]
        joined = tf.string_join([one, tf.string_split(["c\0 d"]).values[0]])
        assert session.run([joined, tf.strings.length(one)]) == [b"a\0c\0", 2]


def test_static_errors() -> None:
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="there is no RaggedTensor"):
            tf.strings.split(["a b"], result_type="RaggedTensor")
        with pytest.raises(tf.errors.InvalidArgumentError, match="precision not supported"):
            tf.as_string(1, precision=2)
        with pytest.raises(TypeError, match="input 'input' cannot be used"):
            tf.string_strip([1])
        with pytest.raises(TypeError, match="not in list of allowed values"):
            tf.string_strip(tf.constant(1))
        with pytest.raises(ValueError, match="Invalid reduction dimension"):
            tf.reduce_join(["a"], 1)
        with pytest.raises(ValueError, match="'len' is not in the list of allowed values"):
            tf.strings.length("a", unit="len")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="record default 0 cannot be used"):
            tf.decode_csv("1", [[1, 2]])


@given(st.lists(st.text(alphabet='ab", \n', max_size=5), min_size=1, max_size=4))
def test_csv_round_trip(fields: list[str]) -> None:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="").writerow(fields)
    assert csv_fields(text.getvalue().encode(), b",", True) == [each.encode() for each in fields]


@given(
    st.lists(st.text(alphabet='ab",\n', max_size=6).map(str.encode), min_size=1, max_size=3),
    st.sampled_from([(), (0,), (0, 1), (1, 3)]),
)
def test_csv_records_of_batch_are_parsed_as_alone(records: list[bytes], chosen: Any) -> None:
    def parsed(*batch: bytes) -> Any:
        defaults = [np.array(b"-", object)] * (len(chosen) or 2)
        attrs = {"field_delim": ",", "use_quote_delim": True, "na_value": "b"}
        try:
            columns = kernel(np.array(batch, object), *defaults, **attrs, select_cols=chosen)
        except tf.errors.InvalidArgumentError:
            return None
        return [column.tolist() for column in columns]

    kernel = registry.lookup("DecodeCSV").kernel
    alone = [parsed(record) for record in records]
    columns = zip(*filter(None, alone), strict=True)
    joined = None if None in alone else [list(itertools.chain(*each)) for each in columns]
    assert parsed(*records) == joined


@given(st.binary(max_size=30))
def test_arbitrary_bytes_parse_or_raise(data: bytes) -> None:
    kernel = registry.lookup("ParseTensor").kernel
    try:
        kernel(data, out_type=tf.float32)
    except tf.errors.InvalidArgumentError:
        return


@pytest.mark.parametrize("array", [np.arange(6).reshape(2, 3), np.array(True), np.zeros([0, 2])])
def test_tensor_proto_round_trip(array: Any) -> None:
    np.testing.assert_array_equal(tf.make_ndarray(tf.make_tensor_proto(array)), array)
    filled = tf.make_ndarray(tf.make_tensor_proto([1, 2], tf.int64, [2, 2]))
    np.testing.assert_array_equal(filled, [[1, 2], [2, 2]])
