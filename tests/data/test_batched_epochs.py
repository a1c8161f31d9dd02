"""Repeated batches of arrays: cut from many epochs at once, equal to one epoch at a time."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from estimatorkit.core.errors import OutOfRangeError
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.execution.block_iterator import BlockIterator
from estimatorkit.data.execution.iterators import BatchedEpochsIterator

ROWS = 11


def made(
    size: int, drop: bool, shuffled: bool, epochs: int | None, one_by_one: bool
) -> BlockIterator:
    numbers = np.arange(ROWS, dtype=np.float32)
    data = Dataset.from_tensor_slices((np.stack([numbers, -numbers], axis=1), np.arange(ROWS)))
    if shuffled:
        data = data.shuffle(ROWS, seed=5)
    data = data.batch(size, drop)
    if one_by_one:
        data = data.prefetch(1)
    iterator = data.repeat(epochs).make_block_iterator(3)
    assert isinstance(iterator, BatchedEpochsIterator) is not one_by_one
    return iterator


def elements(block: Any) -> list[Any]:
    return [
        tuple(np.asarray(column[row]).tolist() for column in block) for row in range(len(block[0]))
    ]


def read(iterator: BlockIterator, most: int, sizes: tuple[int, ...]) -> list[Any]:
    """Elements, asked for in blocks of these sizes."""
    found: list[Any] = []
    while len(found) < most:
        try:
            found += elements(iterator.next_block(sizes[len(found) % len(sizes)]))
        except OutOfRangeError:
            break
    return found


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("size", [1, 3, 4, 11])
@pytest.mark.parametrize("epochs", [1, 3, None])
def test_matches_one_epoch_at_a_time(
    size: int, drop: bool, shuffled: bool, epochs: int | None
) -> None:
    one_by_one = made(size, drop, shuffled, epochs, True)
    wanted = read(one_by_one, 40, (1,))
    one_by_one.close()
    for sizes in ((1,), (40,), (2, 5, 1)):
        assert read(made(size, drop, shuffled, epochs, False), 40, sizes)[:40] == wanted[:40]


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("passed", range(0, 14, 3))
def test_positions_and_skipping(drop: bool, passed: int) -> None:
    wanted = read(made(4, drop, True, 4, False), 40, (40,))
    skipped = made(4, drop, True, 4, False)
    assert skipped.skip(passed) == min(passed, len(wanted))
    position = json.loads(json.dumps(skipped.get_state()))
    assert read(skipped, 40, (3,)) == wanted[passed:]
    restored = made(4, drop, True, 4, False)
    restored.set_state(position)
    assert read(restored, 40, (2,)) == wanted[passed:]
    assert made(4, drop, True, 4, False).skip(100) == len(wanted)
    restored.restart(0)
    assert read(restored, 40, (40,)) == wanted


def test_full_batches_have_one_shape() -> None:
    block = made(4, True, True, None, False).next_block(6)
    assert [column.shape for column in block] == [(6, 4, 2), (6, 4)]
    ragged = made(4, False, True, None, False).next_block(6)
    assert [len(ragged[1][row]) for row in range(6)] == [4, 4, 3, 4, 4, 3]


def test_fewer_rows_than_batch_size() -> None:
    assert read(made(20, False, False, 2, False), 9, (4,))[1][1] == list(range(ROWS))
    data = Dataset.from_tensor_slices(np.arange(3)).batch(5, drop_remainder=True).repeat()
    with pytest.raises(OutOfRangeError):
        data.make_block_iterator(0).next_block(1)
