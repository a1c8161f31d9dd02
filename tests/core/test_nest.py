"""Nested structures: flatten and pack_sequence_as are inverse, map_structure keeps it."""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import estimatorkit as tf
from estimatorkit.core import nest


class Point(NamedTuple):
    x: Any
    y: Any


LEAVES = st.integers() | st.text(max_size=3) | st.none() | st.floats(allow_nan=False)
STRUCTURES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | st.dictionaries(st.integers(), inner, max_size=2).map(collections.OrderedDict)
        | st.builds(Point, inner, inner)
    ),
    max_leaves=12,
)


@pytest.mark.slow
@given(STRUCTURES, st.booleans())
@settings(max_examples=150, deadline=None)
def test_pack_inverts_flatten(structure: Any, lists_are_leaves: bool) -> None:
    flat = nest.flatten(structure, lists_are_leaves=lists_are_leaves)
    packed = nest.pack_sequence_as(structure, flat, lists_are_leaves=lists_are_leaves)
    assert packed == structure
    assert type(packed) is type(structure)
    numbers = nest.pack_sequence_as(structure, range(len(flat)), lists_are_leaves=lists_are_leaves)
    assert nest.flatten(numbers, lists_are_leaves=lists_are_leaves) == list(range(len(flat)))
    nest.assert_same_structure(structure, numbers, lists_are_leaves=lists_are_leaves)


@given(STRUCTURES)
@settings(max_examples=80, deadline=None)
def test_map_structure(structure: Any) -> None:
    paired = nest.map_structure(lambda a, b: (a, b), structure, structure)
    leaves = nest.flatten(structure)
    assert nest.flatten(paired) == [each for leaf in leaves for each in (leaf, leaf)]


@given(STRUCTURES, st.booleans())
@settings(max_examples=80, deadline=None)
def test_packer_keeps_none(structure: Any, lists_are_leaves: bool) -> None:
    flat = nest.flatten(structure, lists_are_leaves=lists_are_leaves)
    packed = nest.packer(structure, lists_are_leaves=lists_are_leaves)(
        [leaf for leaf in flat if leaf is not None]
    )
    assert packed == structure
    assert type(packed) is type(structure)


def test_dicts_flatten_in_sorted_key_order() -> None:
    structure = {"b": 1, "a": {"z": 2, "y": 3}}
    assert nest.flatten(structure) == [3, 2, 1]
    packed = nest.pack_sequence_as(structure, "xyz")
    assert list(packed) == ["b", "a"]
    assert packed == {"b": "z", "a": {"y": "x", "z": "y"}}


def test_leaves() -> None:
    array = np.zeros([2, 2])
    assert nest.flatten(array)[0] is array
    assert nest.flatten("ab") == ["ab"]
    assert nest.flatten(None) == [None]
    assert nest.flatten([]) == []
    assert nest.flatten([[1, 2], 3]) == [1, 2, 3]
    assert nest.flatten(([1, 2], 3), lists_are_leaves=True) == [[1, 2], 3]
    assert not nest.is_nested({1, 2})
    assert nest.is_namedtuple(Point(1, 2))
    assert not nest.is_namedtuple((1, 2))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, [1]),
        ([1], [1, 2]),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, [1]),
        ((1, [2]), (1, 2)),
        ({"a": 1}, {"a": 1, "b": 2}),
    ],
)
def test_structure_mismatch_raises(first: Any, second: Any) -> None:
    with pytest.raises(ValueError, match="have the same nested structure"):
        nest.assert_same_structure(first, second)
    with pytest.raises(ValueError, match="have the same nested structure"):
        nest.map_structure(lambda a, b: a, first, second)


def test_wrong_counts_and_keys_raise() -> None:
    with pytest.raises(ValueError, match="2 leaves"):
        nest.pack_sequence_as([1, 2], [1, 2, 3])
    with pytest.raises(TypeError, match="cannot be sorted"):
        nest.flatten({"a": 1, 2: 3})


def test_expand_composites() -> None:
    sparse = tf.SparseTensor([[0, 1]], [2.0], [2, 2])
    structure = {"b": [sparse, 1], "a": 2}
    assert nest.flatten(structure) == [2, sparse, 1]
    parts = nest.flatten(structure, expand_composites=True)
    assert parts == [2, sparse.indices, sparse.values, sparse.dense_shape, 1]
    packed = nest.pack_sequence_as(structure, parts, expand_composites=True)
    assert isinstance(packed["b"][0], tf.SparseTensor)
    assert packed["b"][0].values is sparse.values
    names = nest.map_structure(lambda x, _: x, structure, structure)
    assert names == structure
    again = nest.map_structure(tf.identity, sparse, expand_composites=True)
    assert isinstance(again, tf.SparseTensor)
    assert again.values is not sparse.values
    with pytest.raises(ValueError, match="have the same nested structure"):
        nest.assert_same_structure(sparse, (1, 2, 3), expand_composites=True)
    nest.assert_same_structure(sparse, 1)
