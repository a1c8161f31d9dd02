"""`from_generator`: conversion, checks, passes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.data import Dataset, TensorSpec


def test_elements_are_converted_to_declared_types() -> None:
    def generate(limit: int) -> Iterator[Any]:
        for i in range(limit):
            yield {"x": [i, i + 0.5], "s": f"row {i}"}, i

    made = Dataset.from_generator(
        generate,
        output_types=({"x": np.float32, "s": str}, "int64"),
        output_shapes=({"x": (2,), "s": ()}, ()),
        args=(3,),
    )
    assert made.element_spec == (
        {"x": TensorSpec((2,), "float32"), "s": TensorSpec((), "string")},
        TensorSpec((), "int64"),
    )
    assert made.cardinality() == -2
    elements = list(made)
    assert elements[2][0]["x"].tolist() == [2.0, 2.5]
    assert elements[2][0]["x"].dtype == np.float32
    assert elements[2][0]["s"] == b"row 2"
    assert len(list(made.repeat(2))) == 6  # a new generator for each pass


def test_output_signature() -> None:
    made = Dataset.from_generator(
        lambda: [(1, 2), (3, 4)], output_signature=TensorSpec((2,), "int32")
    )
    assert [x.tolist() for x in made] == [[1, 2], [3, 4]]
    with pytest.raises(TypeError, match="either"):
        Dataset.from_generator(lambda: [])
    with pytest.raises(TypeError, match="without calling it"):
        Dataset.from_generator(iter([1]), "int32")  # type: ignore[arg-type]


def test_conversion_matches_numpy() -> None:
    rows = [(np.float64(1.75), [1, 2]), (True, np.array([3.5, -4.5]))]
    made = Dataset.from_generator(lambda: rows, ("int32", "float32"), ((), (2,)))
    assert [(a.tolist(), b.tolist()) for a, b in made] == [(1, [1.0, 2.0]), (1, [3.5, -4.5])]


@pytest.mark.parametrize(
    ("element", "message"),
    [
        ((1,), "declared structure"),
        ((1, [1, 2, 3]), r"shape other than declared for component \[1\]"),
        ((1.5, [1, 2]), r"could not be converted(.|\n)*int32 for component \[0\]"),
        (("a", [1, 2]), r"could not be converted(.|\n)*int32 for component \[0\]"),
        ((None, [1, 2]), r"could not be converted(.|\n)*int32 for component \[0\]"),
        ((1 << 31, [1, 2]), r"could not be converted(.|\n)*int32 for component \[0\]"),
    ],
)
def test_mismatched_elements_raise(element: Any, message: str) -> None:
    good = (0, [1.0, 2.0])
    made = Dataset.from_generator(lambda: [good, element], ("int32", "float32"), ((), (2,)))
    iterator = made.make_block_iterator()
    assert len(iterator.next_block(5)[0]) == 1  # what came before the bad one is not lost
    with pytest.raises(InvalidArgumentError, match=message):
        iterator.next_block(5)


@pytest.mark.parametrize(
    ("dtype", "wrong"),
    [("uint8", 256), ("uint8", -1), ("int8", 128), ("int32", 2.5), ("string", 1), ("bool", 2)],
)
def test_lossy_values_are_refused(dtype: str, wrong: Any) -> None:
    """TensorFlow wraps, truncates, or fails with an internal error."""
    iterator = Dataset.from_generator(lambda: iter([wrong]), dtype, ()).make_block_iterator()
    with pytest.raises(InvalidArgumentError, match="could not be converted"):
        iterator.next_block(1)


@pytest.mark.parametrize("dtype", [np.float32, object])
def test_reused_buffer_is_copied(dtype: Any) -> None:
    """TensorFlow may give a later element in place of an earlier one."""

    def generate() -> Iterator[Any]:
        buffer = np.zeros(2, dtype)
        for number in range(4):
            buffer[:] = b"%d" % number if dtype is object else number
            yield buffer

    made = Dataset.from_generator(generate, "string" if dtype is object else "float32", [2])
    assert [int(each[0]) for each in made] == [0, 1, 2, 3]


def test_closing_ends_generator() -> None:
    ended = []

    def generate() -> Iterator[int]:
        try:
            yield from range(10)
        finally:
            ended.append(True)

    iterator = Dataset.from_generator(generate, "int32").make_block_iterator()
    iterator.next_block(2)
    assert not ended
    iterator.close()
    assert ended
