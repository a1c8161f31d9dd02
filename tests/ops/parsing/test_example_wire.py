"""Vectorized parsing of `Example`s matches protobuf for every encoding."""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings, strategies as st

import estimatorkit as tf
from estimatorkit.core.dtypes import float32, int64, string
from estimatorkit.ops.parsing import example_parsing, example_wire
from estimatorkit.ops.parsing.example_blocks import parse_block
from estimatorkit.ops.parsing.example_parsing import (
    Column,
    parse_examples,
    parse_rows,
    without_batch,
)
from estimatorkit.runtime.steps.columns import NO_DIM, RaggedColumn
from estimatorkit.storage.example_proto import Example
from estimatorkit.storage.wire import encoded_varint, message as fields

# -- every encoding that protobuf allows


def number(value: int, padding: int = 0) -> bytes:
    """A varint, perhaps longer than needed."""
    short = encoded_varint(value % (1 << 64))
    if not padding or len(short) + padding > 5:
        return short
    return short[:-1] + bytes([short[-1] | 128]) + b"\x80" * (padding - 1) + b"\0"


class Encoder:
    """Encodes examples, in the common form or in any other, as a random choice has it."""

    def __init__(self, seed: int, strange: float) -> None:
        self._random = random.Random(seed)
        self._strange = strange

    def often(self) -> bool:
        return self._random.random() < self._strange

    def field(self, key: int, value: bytes) -> bytes:
        padding = self._random.randrange(3) if self.often() else 0
        return bytes([key << 3 | 2]) + number(len(value), padding) + value

    def unknown(self) -> bytes:
        if not self.often():
            return b""
        return self._random.choice(
            [fields((9, 5)), fields((7, b"unknown")), b"\x75abcd", b"\x79abcdefgh"]
        )

    def pieces(self, values: list[Any]) -> list[list[Any]]:
        if not self.often():
            return [values] if values else []
        cut = sorted(self._random.randrange(len(values) + 1) for _ in range(2))
        return [values[: cut[0]], values[cut[0] : cut[1]], values[cut[1] :]]

    def list_of(self, kind: int, values: list[Any]) -> bytes:
        if kind == 1:
            return b"".join(self.unknown() + self.field(1, value) for value in values)
        result = b""
        for piece in self.pieces(values):
            if kind == 2:
                one = [struct.pack("<f", value) for value in piece]
                key = b"\x0d"
            else:
                one = [number(value) for value in piece]
                key = b"\x08"
            if self.often():
                result += b"".join(key + each for each in one)
            else:
                result += self.field(1, b"".join(one))
        return result + self.unknown()

    def feature(self, kind: int, values: list[Any]) -> bytes:
        if not kind:
            return self.unknown()
        result = self.field(kind, self.list_of(kind, values))
        if self.often():  # another list before: the last one counts
            result = self.field(self._random.randrange(1, 4), b"") + result
        return result + self.unknown()

    def entry(self, key: bytes, value: bytes) -> bytes:
        parts = [self.field(1, key), self.field(2, value)]
        if self.often():
            parts.reverse()
        if self.often():
            parts.insert(0, self.field(1, b"overwritten"))
        return b"".join(parts) + self.unknown()

    def example(self, features: Mapping[bytes, tuple[int, list[Any]]]) -> bytes:
        entries = [self.entry(key, self.feature(*value)) for key, value in features.items()]
        if entries and self.often():  # the last one counts
            entries.insert(0, self.entry(next(iter(features)), self.feature(3, [7])))
        if self.often():
            self._random.shuffle(entries)
        maps = [self.field(1, each) for each in entries]
        cut = self._random.randrange(len(maps) + 1) if self.often() else 0
        result = self.field(1, b"".join(maps[:cut])) if cut else b""
        return self.unknown() + result + self.field(1, b"".join(maps[cut:])) + self.unknown()


INTS = st.one_of(st.integers(0, 200), st.integers(-(1 << 63), (1 << 63) - 1))
FLOATS = st.floats(width=32, allow_nan=False)
STRINGS = st.one_of(
    st.binary(max_size=5), st.sampled_from([b"", b"\0", b"a\0", b"x" * 130, b"y" * 17000])
)
FEATURES: st.SearchStrategy[tuple[int, list[Any]]] = st.one_of(
    st.tuples(st.just(3), st.lists(INTS, max_size=4)),
    st.tuples(st.just(2), st.lists(FLOATS, max_size=4)),
    st.tuples(st.just(1), st.lists(STRINGS, max_size=4)),
    st.just((0, [])),
)
KEYS = st.sampled_from([b"a", b"b", b"c", b"other", b"k" * 300, "ü".encode()])
COLUMNS = [
    Column(kind, key, dtype, *rest)  # type: ignore[arg-type]
    for key in ("a", "b", "c", "k" * 300)
    for dtype in (int64, float32, string)
    for kind, *rest in (("lists",), ("padded", (2,)), ("dense", (1,), True))
] + [Column("sparse", "a", string, (300, 300), False, ("b", "c"))]
DEFAULT = {int64: np.array([5]), float32: np.array([0.5]), string: np.array([b"d"], object)}


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return [part.tolist() if isinstance(part, np.ndarray) else part for part in call()]
    except tf.errors.InvalidArgumentError as error:
        return str(error)


def assert_alike(serialized: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    for column in COLUMNS:
        defaults = [DEFAULT[column.dtype]] if column.default else []
        results = []
        for few in (0, 1 << 30):
            monkeypatch.setattr(example_parsing, "_FEW", few)
            results.append(outcome(lambda: parse_rows(serialized, [column], defaults)[0]))  # noqa: B023
        assert results[0] == results[1], column


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(
    st.lists(st.dictionaries(KEYS, FEATURES, max_size=4), max_size=6),
    st.sampled_from([0.0, 0.05, 0.3]),
    st.integers(0, 1 << 30),
)
def test_every_encoding_matches_protobuf(rows: list[Any], strange: float, seed: int) -> None:
    encoder = Encoder(seed, strange)
    serialized = [encoder.example(row) for row in rows]
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert_alike(serialized, monkeypatch)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(st.dictionaries(KEYS, FEATURES, max_size=3), st.integers(0, 1 << 30), st.data())
def test_damaged_examples_are_refused_alike(row: Any, seed: int, data: Any) -> None:
    """Of what is not asked for, or asked for by another example, nothing but values comes."""
    text = Encoder(seed, 0.05).example({key: row[key] for key in row if key != b"k" * 300})
    at = data.draw(st.integers(0, len(text)))
    changed = (
        text[:at] + data.draw(st.binary(max_size=2)) + text[at + data.draw(st.integers(0, 2)) :]
    )
    with pytest.MonkeyPatch.context() as monkeypatch:
        for column in COLUMNS[:9]:
            defaults = [DEFAULT[column.dtype]] if column.default else []
            results = []
            for few in (0, 1 << 30):
                monkeypatch.setattr(example_parsing, "_FEW", few)
                rows = [text, changed, text]
                results.append(outcome(lambda: parse_rows(rows, [column], defaults)[0]))  # noqa: B023
            try:
                Example.FromString(changed)
            except DecodeError:
                # protobuf refuses all of it; features that nobody asked for are not looked into
                assert isinstance(results[1], str)
            else:
                assert results[0] == results[1], column


# -- what it costs, and what it gives


def made(rows: list[dict[str, Any]]) -> list[bytes]:
    texts = []
    for row in rows:
        example = Example()
        for key, values in row.items():
            feature = example.features.feature[key]
            if isinstance(values[0], bytes):
                feature.bytes_list.value.extend(values)
            elif isinstance(values[0], float):
                feature.float_list.value.extend(values)
            else:
                feature.int64_list.value.extend(values)
        texts.append(example.SerializeToString())
    return texts


def test_common_examples_never_become_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lengths of one, two and three bytes, missing features, any order, one or many strings."""
    values: list[dict[str, Any]] = []
    order = random.Random(1)
    for number in range(300):
        row: dict[str, Any] = {
            "age": [number * 37 - 100],
            "text": [b"t" * (number * 7)],
            "words": [b"w%d" % each for each in range(1 + number % 9)],
            "image": [float(number + each) for each in range(100)],
            "unused": [b"u" * (number % 200)],
        }
        if number % 5 == 0:
            del row["age"]
        if number % 50 == 0:
            row["text"] = [b"t" * 70_000]
        values.append({key: row[key] for key in order.sample(list(row), len(row))})
    serialized = made(values)
    monkeypatch.setattr(example_parsing, "_common_form", lambda *_: pytest.fail("not read at once"))
    age, text, words, image = parse_examples(
        serialized,
        [],
        [
            Column("dense", "age", int64, (), True),
            Column("dense", "text", string),
            Column("padded", "words", string, ()),
            Column("dense", "image", float32, (10, 10)),
        ],
        [np.array(-5)],
    )
    assert age.tolist() == [row.get("age", [-5])[0] for row in values]
    assert text.tolist() == [row["text"][0] for row in values]
    assert [[each for each in row if each] for row in words.tolist()] == [
        row["words"] for row in values
    ]
    assert image.reshape(300, 100).tolist() == [row["image"] for row in values]
    assert image.dtype == np.float32
    assert image.flags.c_contiguous


def test_block_rows_stay_separate() -> None:
    serialized = made([{"n": list(range(1, count + 1)), "s": [b"x"]} for count in range(1, 31)])
    columns = [
        Column("dense", "s", string),
        Column("padded", "n", int64, ()),
        Column("lists", "n", int64),
    ]
    dense, padded, lists = parse_rows(serialized, columns, [])
    assert dense[0] == "dense"
    assert dense[1].tolist() == [b"x"] * 30
    assert padded[0] == "ragged"
    assert padded[2].tolist() == list(range(1, 31))
    assert padded[1].tolist() == [each for count in range(1, 31) for each in range(1, count + 1)]
    kind, indices, values, shapes, offsets = lists
    assert kind == "sparse"
    for row in range(30):
        part = slice(offsets[row], offsets[row + 1])
        assert indices[part].tolist() == [[each] for each in range(row + 1)]
        assert values[part].tolist() == list(range(1, row + 2))
        assert shapes[row].tolist() == [row + 1]


def test_sparse_rows_of_block() -> None:
    serialized = made(
        [{"x": [2, 0], "y": [1, 3], "v": [1.0, 2.0]}, {"x": [1], "y": [0], "v": [3.0]}] * 20
    )
    column = Column("sparse", "v", float32, (5, 6), False, ("x", "y"))
    ((kind, indices, values, shapes, offsets),) = parse_rows(serialized, [column], [])
    assert kind == "sparse"
    assert indices.tolist() == [[0, 3], [2, 1], [1, 0]] * 20
    assert values.tolist() == [2.0, 1.0, 3.0] * 20
    assert shapes.tolist() == [[5, 6]] * 40
    assert offsets.tolist() == [0, *np.cumsum([2, 1] * 20)]


@pytest.mark.parametrize("total", [3, 50])
def test_error_names_first_bad_example(total: int) -> None:
    good = {"n": [1], "x": [1.0, 2.0], "i": [0, 4]}
    columns = {
        "n": Column("dense", "n", int64),
        "x": Column("padded", "x", float32, (2,)),
        "i": Column("sparse", "x", float32, (5,), False, ("i",)),
    }
    for key, values, words in (
        ("n", [1, 2], r"Key: n, Index: {}.  Number of int64 values != expected.  Values size: 2"),
        ("n", None, r"Feature: n \(data type: int64\) is required but could not be found"),
        ("n", [b"1"], r"Key: n, Index: {}.  Data types don't match. Expected type: int64, Actual"),
        ("x", [1.0], r"Index: {}.  Number of float32 values is not a multiple of stride length."),
        ("x", [1], r"Index: {}.  Data types don't match. Expected type: float32, Actual type: int"),
        ("i", [0], r"the features 'i' and 'x' have different numbers of values"),
        ("i", [0, 5], r"an index in 'i' is out of range"),
    ):
        rows: list[Any] = [dict(good) for _ in range(total)]
        for at in (total // 2, total - 1):
            rows[at].pop(key)
            if values:
                rows[at][key] = values
        names = [b"name %d" % each for each in range(total)]
        pattern = f"Name: name {total // 2}, .*" + words.format(total // 2)
        with pytest.raises(tf.errors.InvalidArgumentError, match=pattern):
            parse_examples(made(rows), names, [columns[key]], [])
    texts = made([good] * total)
    texts[total // 2] = b"\1garbage"
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse example input, valu"):
        parse_examples(texts, [], list(columns.values()), [])


def test_similar_examples_take_few_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One array pass a feature, not one an example."""
    calls = []
    form = example_wire._Scan._form

    def counted(*args: Any) -> Any:
        calls.append(1)
        return form(*args)

    monkeypatch.setattr(example_wire._Scan, "_form", counted)
    serialized = made([{"a": [n], "b": [b"s" * (n % 50)], "c": [0.5]} for n in range(1000)])
    columns = [Column("dense", "a", int64), Column("dense", "b", string)]
    parse_rows(serialized, columns, [])
    assert len(calls) <= 6


@pytest.mark.parametrize(
    "strange",
    [
        fields((1, b"one"), (7, b"unknown"), (1, b"two")),
        fields((1, b"one"), (1, b"two"), (7, 5)),
        fields((1, b"one")) + b"\x0a\x83\x80\x00two",
    ],
)
def test_strings_among_unknown_fields(strange: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    common = fields((1, b"one"), (1, b"two"), (1, b"three"))
    texts = [
        fields((1, fields((1, fields((1, b"a"), (2, fields((1, each))))))))
        for each in (common, strange, common)
    ]
    assert_alike(texts, monkeypatch)


# -- blocks


def rows_of(outputs: list[Any], row: int) -> list[Any]:
    return [np.asarray(column[row]).tolist() for column in outputs]


@pytest.mark.parametrize("few", [0, 100])
@pytest.mark.parametrize("sizes", [None, [4, 4, 4], [4, 4, 1], [1, 0, 5], []])
def test_block_matches_single_elements(
    sizes: list[int] | None, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One parsing of a block is as many parsings of its elements."""
    monkeypatch.setattr(example_parsing, "_FEW", few)
    draw = random.Random(3)
    rows = [
        {
            "n": [number],
            "p": [draw.randrange(300) for _ in range(2 * draw.randrange(4))] or None,
            "s": [b"s%d" % each for each in range(draw.randrange(4))] or None,
            "i": [4, 0],
            "v": [1.0, 2.0],
        }
        for number in range(12)
    ]
    texts = made([{key: values for key, values in row.items() if values} for row in rows])
    columns = (
        Column("dense", "n", int64, (1,)),
        Column("padded", "p", int64, (2,), True),
        Column("lists", "s", string),
        Column("sparse", "v", float32, (5,), False, ("i",)),
        Column("padded", "s", string),
        Column("dense", "none", string, (), True),
    )
    defaults = [np.array(-1), np.array(b"nothing", object)]
    block: Any
    if sizes is None:
        elements: list[Any] = [np.array(text, object) for text in texts]
        block = np.array(texts, object)
    else:
        starts = np.cumsum([0, *sizes])
        elements = [np.array(texts[a:b], object) for a, b in itertools.pairwise(starts.tolist())]
        shapes = np.array(sizes, np.int64).reshape(-1, 1)
        block = RaggedColumn(np.array(texts[: sum(sizes)], object), shapes)
        if len(set(sizes)) == 1:
            block = block.flat.reshape(len(sizes), -1)
    attrs = {"columns": tuple(map(tuple, columns))}
    found = parse_block([block, np.array([], object), *defaults], attrs)
    assert found is not None
    for row, element in enumerate(elements):
        expected = parse_examples(element.reshape(-1).tolist(), [], columns, defaults)
        if sizes is None:
            expected = without_batch(expected, columns)
        assert rows_of(found, row) == [np.asarray(each).tolist() for each in expected]
    assert all(len(column) == len(elements) for column in found)


def test_other_elements_fall_back_to_operation() -> None:
    attrs = {"columns": (tuple(Column("dense", "n", int64)),)}
    texts = np.array([b""] * 4, object)
    mixed = RaggedColumn(texts, np.array([[2, 1], [2, NO_DIM]]))
    for column in (texts.reshape(1, 2, 2), mixed):
        assert parse_block([column, np.array([], object)], attrs) is None


def test_block_errors_name_batch_position() -> None:
    good, bad = made([{"n": [1]}, {"n": [1, 2]}])
    block = np.array([[good] * 10] * 3 + [[good] * 6 + [bad] + [good] * 3], object)
    attrs = {"columns": (tuple(Column("dense", "n", int64)),)}
    names = np.array([b"name %d" % each for each in range(10)], object)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Name: name 6, Key: n, Index: 6"):
        parse_block([block, names], attrs)
