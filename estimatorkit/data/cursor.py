"""`Cursor`: where a session stands in a dataset.

A cursor reads its iterator in blocks and hands out single elements (to `session.run`) or spans of a
block (to the loop that runs many steps in one call); both move the same position. While one block
is used, a thread prepares the next. The position that is saved is that of the next element to be
handed out, however far the thread has read.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import nest
from estimatorkit.core.errors import OutOfRangeError
from estimatorkit.data.block_iterator import BlockIterator
from estimatorkit.data.buffers import aligned_empty
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.plan import Plan

BLOCK_BYTES = 8 << 20
"""Bytes: enough that the 30 us of a call vanish (20 batches of MNIST), and still in the caches."""

MAX_BLOCK = 1024
"""Elements of a block at most: Iris batches of 512 bytes would give blocks of 16,384 steps."""


@dataclass(eq=False)
class Block:
    """Consecutive elements of equal shape.

    Attributes:
        columns: for each leaf the elements, `(capacity, ...)`; only the first `count` are filled.
        count: how many elements there are.
        state: the iterator's position before the first of them.
        offset: how many have been handed out.
    """

    columns: list[NDArray[Any]]
    count: int
    state: Mapping[str, Any]
    offset: int = 0


class Cursor:
    """Where a session stands in a dataset.

    Args:
        dataset: the dataset.
        seed: the graph's seed, or None.
    """

    def __init__(self, dataset: Dataset, seed: int | None) -> None:
        self._iterator: BlockIterator = dataset.make_block_iterator(seed)
        self._description = describe(dataset._plan)
        self._block: Block | None = None
        self._ended = False
        self._rows: int | None = None
        self._capacities: dict[Any, int] = {}
        self._thread: ThreadPoolExecutor | None = None
        self._next: Future[Block] | None = None
        self._finalizer: Any = None

    def block(self) -> Block:
        """The block that holds the next element.

        Raises:
            OutOfRangeError: there is no more.
        """
        if self._block is None or self._block.offset == self._block.count:
            try:
                self._block = self._fetch()
            except OutOfRangeError:
                self._ended = True
                raise
        return self._block

    def next_element(self) -> list[NDArray[Any]]:
        """The next element's leaves.

        Raises:
            OutOfRangeError: there is no more.
        """
        block = self.block()
        position = block.offset
        block.offset += 1
        return [column[position] for column in block.columns]

    def get_state(self) -> dict[str, Any]:
        """The position of the next element, small and JSON-able."""
        if self._block is None:
            position, skip = dict(self._settled().get_state()), 0
        else:
            position, skip = dict(self._block.state), self._block.offset
        return {
            "dataset": self._description,
            "ended": self._ended,
            "position": position,
            "skip": skip,
        }

    def set_state(self, state: Mapping[str, Any]) -> bool:
        """Goes to a position that `get_state` gave.

        A position at the end, or in a dataset put together in another way, is not gone to: the
            cursor then stays at the
        beginning, as a training with new data wants it.

        Returns:
            Whether the cursor moved.
        """
        if state["ended"] or state["dataset"] != self._description:
            return False
        iterator = self._settled()
        self._block = None
        iterator.set_state(state["position"])
        iterator.skip(int(state["skip"]))
        return True

    def close(self) -> None:
        """Stops the thread; closing twice is no error."""
        self._settled()
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None
            self._finalizer.detach()
        self._iterator.close()

    def _settled(self) -> BlockIterator:
        """The iterator, with no thread at work on it."""
        if self._next is not None:
            waiting, self._next = self._next, None
            waiting.exception()  # waits; what was read ahead is dropped
        return self._iterator

    def _fetch(self) -> Block:
        if self._next is not None:
            waiting, self._next = self._next, None
            block = waiting.result()
        else:
            if self._rows is None:
                self._rows = self._measure()
            block = self._read()
        if block.count == self._rows:  # a short block means that the end is near: no thread for it
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, "estimatorkit-input")
                self._finalizer = weakref.finalize(self, self._thread.shutdown, wait=False)
            self._next = self._thread.submit(
                _read, self._iterator, self._rows or 1, self._capacities
            )
        return block

    def _read(self) -> Block:
        return _read(self._iterator, self._rows or 1, self._capacities)

    def _measure(self) -> int:
        """How many elements a block holds: reads one to see its size, and puts it back."""
        state = self._iterator.get_state()
        try:
            columns = self._iterator.next_block(1)
        except OutOfRangeError:
            self._iterator.set_state(state)
            return 1
        self._iterator.set_state(state)
        size = sum(column.nbytes for column in columns)
        return max(1, min(MAX_BLOCK, BLOCK_BYTES // max(size, 1)))


def _read(iterator: BlockIterator, rows: int, capacities: dict[Any, int]) -> Block:
    state = iterator.get_state()
    columns = iterator.next_block(rows)
    count = len(columns[0])
    # All blocks of one kind of element get the length of the first, so that XLA compiles one loop
    # for them.
    kind = tuple((column.shape[1:], column.dtype.str) for column in columns)
    capacity = capacities.setdefault(kind, count)
    if capacity > count:
        columns = [_lengthened(column, capacity) for column in columns]
    elif capacity < count:
        capacities[kind] = count
    return Block(columns, count, state)


def _lengthened(column: NDArray[Any], capacity: int) -> NDArray[Any]:
    longer = aligned_empty((capacity, *column.shape[1:]), column.dtype)
    longer[: len(column)] = column
    longer[len(column) :] = b"" if column.dtype == np.dtype(object) else 0
    return longer


def describe(plan: Plan) -> str:
    """How a dataset is put together, without its data; a saved position fits where it is equal."""
    parts = [
        describe(value) if isinstance(value, Plan) else f"{field.name}={value!r}"
        for field in fields(plan)  # type: ignore[arg-type]
        if isinstance(value := getattr(plan, field.name), (Plan, int, str, range, NoneType))
    ]
    sizes = f"{plan.cardinality} x {nest.flatten(plan.element_spec, lists_are_leaves=True)}"
    return f"{type(plan).__name__}({', '.join([*parts, sizes])})"
