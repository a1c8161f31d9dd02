"""Indexed columns: row numbers stand for elements, which are gathered when needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from estimatorkit.core.errors import OutOfRangeError
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.execution.block_iterator import BlockIterator
from estimatorkit.runtime.steps.columns import RaggedColumn
from estimatorkit.runtime.steps.indexed_columns import IndexedColumn, materialize

ROWS = 11
SEED = 3


def rows() -> Dataset:
    numbers = np.arange(ROWS)
    words = np.array([b"w%d" % number for number in numbers], object)
    return Dataset.from_tensor_slices((np.stack([numbers, -numbers], axis=1), words))


MOVING: dict[str, Callable[[Dataset], Dataset]] = {
    "rows": lambda data: data,
    "shuffled": lambda data: data.shuffle(4, seed=1).repeat(2),
    "batches": lambda data: data.shuffle(ROWS).repeat(3).batch(4),
    "epochs of batches": lambda data: data.shuffle(ROWS).batch(4).repeat(3),
    "epochs of whole batches": lambda data: data.batch(4, drop_remainder=True).repeat(3),
    "some": lambda data: data.skip(1).shard(2, 1).take(4).batch(2),
    "ahead": lambda data: data.batch(3).prefetch(2).repeat(2).prefetch(1),
    "cached": lambda data: data.shuffle(5).cache().batch(2).repeat(2),
}


def read(iterator: BlockIterator, size: int) -> list[Any]:
    """All blocks, asked for by this size."""
    blocks = []
    while True:
        try:
            blocks.append(iterator.next_block(size))
        except OutOfRangeError:
            iterator.close()
            return blocks


@pytest.mark.parametrize("name", MOVING)
@pytest.mark.parametrize("size", [1, 5])
def test_row_numbers_stand_for_same_elements(name: str, size: int) -> None:
    data = MOVING[name](rows())
    arrays, numbers, most = data.make_number_iterator(SEED) or pytest.fail("no numbers")
    blocks = read(numbers, size)
    sizes = [np.size(block[place]) for (block,) in blocks for place in range(len(block))]
    assert max(sizes) == most
    expected = read(data.make_block_iterator(SEED), size)
    assert len(blocks) == len(expected) > 0
    for (block,), columns in zip(blocks, expected, strict=True):
        for array, column in zip(arrays, columns, strict=True):
            numbered = IndexedColumn(array, block)
            whole = materialize(numbered)
            assert len(numbered) == len(whole) == len(column)
            assert isinstance(whole, RaggedColumn) == isinstance(column, RaggedColumn)
            assert numbered.nbytes == whole.nbytes
            assert whole.dtype == array.dtype
            for place in range(len(column)):
                for found in (whole[place], numbered[place], numbered[place:][0]):
                    np.testing.assert_array_equal(found, column[place])


@pytest.mark.parametrize(
    "data",
    [
        rows().map(lambda numbers, word: (numbers + 1, word)),
        rows().filter(lambda numbers, word: numbers[0] > 2),
        rows().padded_batch(2),
        rows().batch(2).batch(3),
        Dataset.zip((rows(), Dataset.range(ROWS))),
        Dataset.range(ROWS).batch(2),
        Dataset.from_generator(lambda: iter(range(3)), "int64", ()),
    ],
    ids=["map", "filter", "padded", "batches of batches", "zip", "range", "generator"],
)
def test_other_elements_are_not_indexed(data: Dataset) -> None:
    assert data.make_number_iterator(SEED) is None
