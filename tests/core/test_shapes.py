"""Static shapes: merging, printing, and the golden facts."""

from __future__ import annotations

import json
import operator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import constant
from estimatorkit.core.dtypes import float32
from estimatorkit.core.graph import Graph
from estimatorkit.core.shapes import SCALAR, UNKNOWN, TensorShape, as_shape
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.math import linalg, reduce

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "graph.json").read_text("utf-8"))

CONCRETE = st.lists(st.integers(0, 5), max_size=4)


@st.composite
def hidden(draw: Any) -> tuple[list[int], TensorShape, TensorShape]:
    """A concrete shape, and two shapes that each know a part of it."""
    dims = draw(CONCRETE)

    def part() -> TensorShape:
        if draw(st.integers(0, 4)) == 0:
            return UNKNOWN
        return TensorShape([None if draw(st.booleans()) else dim for dim in dims])

    return dims, part(), part()


@given(hidden())
@settings(max_examples=200, deadline=None)
def test_merge_with(case: tuple[list[int], TensorShape, TensorShape]) -> None:
    dims, one, other = case
    assert one.is_compatible_with(dims)
    merged = one.merge_with(other)
    assert merged == other.merge_with(one)
    assert merged.is_compatible_with(dims)
    assert merged.merge_with(dims) == dims
    assert one.merge_with(one) == one
    if one.is_fully_defined():
        assert merged == dims
        assert one.num_elements() == int(np.prod(dims))
    if merged.rank is None:
        assert one.rank is None
        assert other.rank is None


@given(hidden(), hidden())
@settings(max_examples=100, deadline=None)
def test_concatenate(first: Any, second: Any) -> None:
    joined = first[1].concatenate(second[1])
    assert joined.is_compatible_with(first[0] + second[0])
    assert joined == first[1] + second[1]


def test_shape_constructor() -> None:
    for value in ([2, None], (2, None), TensorShape([2, None]), iter([2, None])):
        assert as_shape(value) == TensorShape([2, None])
    assert TensorShape(3) == [3]
    assert TensorShape(None).rank is None
    assert TensorShape([SimpleNamespace(value=4), SimpleNamespace(value=None)]) == [4, None]
    with pytest.raises(TypeError, match="is not an integer"):
        TensorShape([1.5])
    with pytest.raises(ValueError, match="must be >= 0"):
        TensorShape([-2])


def test_shapes_are_hashable_values() -> None:
    assert TensorShape([1, None]) == TensorShape([1, None]) == [1, None]
    assert TensorShape([1]) != TensorShape([2])
    assert TensorShape([1]) != "nonsense"
    assert len({TensorShape([1]), TensorShape((1,)), UNKNOWN, SCALAR}) == 3
    assert list(TensorShape([1, 2])) == [1, 2]
    assert len(TensorShape([1, 2])) == 2
    assert TensorShape([1, 2])[0] == 1
    assert UNKNOWN[0] is None
    assert UNKNOWN[1:] == UNKNOWN
    assert bool(SCALAR)
    assert not UNKNOWN


def test_unknown_rank_errors() -> None:
    for refused in (len, list, TensorShape.as_list):
        with pytest.raises(ValueError, match="unknown"):
            refused(UNKNOWN)


def test_incompatible_shapes_raise() -> None:
    shape = TensorShape([2, None])
    for other in ([3, None], [2], [2, None, None]):
        assert not shape.is_compatible_with(other)
        with pytest.raises(ValueError, match="not compatible"):
            shape.merge_with(other)
        with pytest.raises(ValueError, match="incompatible"):
            shape.assert_is_compatible_with(other)
    with pytest.raises(ValueError, match="must have rank 3"):
        shape.with_rank(3)
    with pytest.raises(ValueError, match="rank 3"):
        shape.assert_has_rank(3)


def test_golden_shapes() -> None:
    """Those of the snippet `shapes`, but for `Dimension`, which is an int or None here."""
    some, unknown = TensorShape([None, 3]), TensorShape(None)
    with Graph().as_default():
        x = builtin_ops.placeholder(float32, [None, 3], name="x")
        u = builtin_ops.placeholder(float32, name="u")
        facts = {
            "str": str(some),
            "repr of unknown": repr(unknown),
            "str of unknown": str(unknown),
            "scalar": [repr(TensorShape([])), str(TensorShape([]))],
            "as_list": some.as_list(),
            "ndims": [some.ndims, unknown.ndims],
            "num_elements": [some.num_elements(), TensorShape([2, 3]).num_elements()],
            "is_fully_defined": [some.is_fully_defined(), TensorShape([2]).is_fully_defined()],
            "compatible": [
                some.is_compatible_with([5, 3]),
                some.is_compatible_with([5, 4]),
                unknown.is_compatible_with([5]),
            ],
            "merge_with": str(some.merge_with([5, None])),
            "concatenate": str(some.concatenate([7])),
            "with_rank": str(unknown.with_rank(2)),
            "slice": str(some[1:]),
            "equal": [some == TensorShape([None, 3]), TensorShape([2]) == [2]],
            "repr of placeholder": repr(x),
            "str of placeholder": str(x),
            "repr of unknown rank": repr(u),
            "x + x": repr(x + x),
            "matmul": repr(linalg.matmul(x, filling.zeros([3, 4]))),
            "reduce_sum": repr(reduce.reduce_sum(x, axis=0)),
            "reshape": repr(array.reshape(x, [-1, 1])),
            "concat": repr(joining.concat([x, x], axis=1)),
            "broadcast": repr(x + filling.zeros([1, 1])),
            "get_shape": str(x.get_shape()),
            "shape op": repr(array.shape(x)),
            "x[0]": repr(x[0]),
            "x[:, 0]": repr(x[:, 0]),
            "transpose": repr(array.transpose(x)),
            "expand_dims": repr(array.expand_dims(x, 1)),
            "one_hot": repr(indexing.one_hot([1, 2], 5)),
            "argmax": repr(reduce.argmax(x, axis=1)),
        }
        u.set_shape([4, None])
        facts["set_shape"] = str(u.shape)
    golden = GOLDEN["snippets"]["shapes"]["facts"]
    assert facts == {key: golden[key] for key in facts}


def test_constant_shapes_are_static() -> None:
    with Graph().as_default():
        x = builtin_ops.placeholder(float32, [None, 3])
        assert array.reshape(x, array.shape(x)).shape == [None, 3]
        assert filling.zeros(array.shape(x)).shape == [None, 3]
        assert filling.zeros(array.shape(x)[1:]).shape == [3]
        assert filling.zeros(joining.stack([array.shape(x)[0], 7])).shape == [None, 7]
        assert filling.zeros(joining.concat([array.shape(x), [2]], 0)).shape == [None, 3, 2]
        assert filling.zeros(constant([2, 2]) * 2).shape == [4, 4]
        assert array.reshape(x, [-1, 3, 1]).shape == [None, 3, 1]
        assert array.reshape(filling.zeros([4, 3]), [-1, 6]).shape == [2, 6]
        assert filling.range_(2, 10, 3).shape == [3]


def test_shape_protos() -> None:
    for shape in (TensorShape([1, None]), UNKNOWN, SCALAR):
        assert TensorShape(shape.as_proto()) == shape


def test_most_general_compatible_shape() -> None:
    assert TensorShape([1, 2]).most_specific_compatible_shape([1, 3]) == TensorShape([1, None])
    assert TensorShape([1, 2]).most_specific_compatible_shape([1]) == UNKNOWN
    assert operator.add([4], TensorShape([3])) == TensorShape([4, 3])
    assert UNKNOWN[1:3].as_list() == [None, None]
    assert UNKNOWN[3:] == UNKNOWN
    with pytest.raises(ValueError, match="must have rank 2"):
        TensorShape([1]).with_rank(2)
