"""`Cursor`: where a session stands in a dataset.

A cursor reads its iterator in blocks and hands out single elements (to `session.run`) or blocks of
elements of one shape (to the loop that runs many steps in one call); both move the same position.
While one block is used, a thread reads the next. The position that is saved is that of the next
element to be handed out, however far the thread has read. Several threads may share a cursor: each
element goes to one of them.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, fields, replace
from types import NoneType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import nest
from estimatorkit.core.errors import CancelledError, OutOfRangeError
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.execution.block_iterator import BlockIterator
from estimatorkit.data.execution.buffers import Columns, aligned_empty, slice_rows
from estimatorkit.data.plan import Plan
from estimatorkit.runtime.columns import RaggedColumn, as_plain, count_equal_shapes, parts_of
from estimatorkit.runtime.indexed_columns import IndexedColumn, materialize
from estimatorkit.runtime.partial_batch import PartialBatches, in_partial_batches

THREAD_NAME = "estimatorkit-input"

BLOCK_BYTES = 8 << 20
"""Bytes: enough that the 30 us of a call vanish (20 batches of MNIST), and still in the caches."""

MAX_BLOCK = 1024
"""Elements of a block at most: Iris batches of 512 bytes would give blocks of 16,384 steps."""

READ_SECS = 0.1
"""Seconds aimed at for reading a block: a slow generator's elements are not held back for long."""

CLOSE_SECS = 5.0
"""Seconds that closing waits for a generator that is in the midst of an element."""


Prepare: TypeAlias = Callable[[Columns, int], Columns]
"""Makes the columns that a loop takes of those of elements, some of which may be `IndexedColumn`s:
(columns, how many elements)."""


@dataclass(eq=False)
class Block:
    """Consecutive elements.

    Attributes:
        columns: for each tensor of an element a column.
        count: how many elements there are.
        state: the iterator's position before the first of them ...
        skip: ... or so many elements before it.
        number: how many elements of the input came before the first of them.
        whole: whether these are as many elements as were asked for.
        secs: how long the reading took.
        offset: how many have been handed out.
        ready: the columns that the loop takes, arrays `(capacity, ...)` of which only the first
            `count` rows are filled; or ragged columns, until elements of one shape are asked for.
        prepare: what made them.
        two_shapes: which rows of `ready` are how large, where they are of two shapes.
    """

    columns: Columns
    count: int
    state: Mapping[str, Any]
    whole: bool
    secs: float
    offset: int = 0
    skip: int = 0
    number: int = 0
    ready: Columns = field(default_factory=list)
    prepare: Prepare | None = None
    two_shapes: PartialBatches | None = None


class Cursor:
    """Where a session stands in a dataset. All methods may be called from any thread.

    Attributes:
        lock: held while the position is looked at or moved. Who takes elements of a block holds it
            from `block` until the block's `offset` has moved.

    Args:
        dataset: the dataset, which depends on no tensor.
        seed: the graph's seed, or None.
        state: the session's state.
        epoch: the number of the pass: shuffles of one seed differ from pass to pass.
    """

    def __init__(
        self, dataset: Dataset, seed: int | None, state: Any = None, epoch: int = 0
    ) -> None:
        self.lock = threading.RLock()
        self._closed = False
        numbered = dataset.make_number_iterator(seed, state)
        self._arrays: Columns | None = None
        self._iterator: BlockIterator
        if numbered is None:
            self._iterator, self._first = dataset.make_block_iterator(seed, state), 1
        else:
            self._arrays, self._iterator, rows = numbered
            self._first = max(1, min(MAX_BLOCK, BLOCK_BYTES // (8 * rows)))
        if epoch:
            self._iterator.restart(epoch)
        self._plan = dataset._plan
        self._block: Block | None = None
        self._rest: Block | None = None  # what follows in a block of elements of several shapes
        self._prepare: Prepare | None = None
        self._ended = False
        self._number = 0  # of the next element to be read
        self._rows = 0  # to be read next time; 0 where nothing is known yet
        self._secs_per_row = 0.0  # of a row that is read already
        self._most = 1
        self._capacities: dict[Any, int] = {}
        self._next: Future[Block | None] | None = None

    def block(self, prepare: Prepare) -> Block:
        """The block that holds the next element, all of one shape, ready for a loop.

        Args:
            prepare: what the loop needs done; later blocks are prepared when they are read. Where
                its `two_shapes` is true, elements may be of two shapes (see
                `runtime.partial_batch`); blocks are a multiple of `together` elements long, where
                it has that.

        Raises:
            OutOfRangeError: there is no more.
        """
        with self.lock:
            self._prepare = prepare
            block = self._any_block()
            if block.prepare is not prepare:
                block = self._block = _cut(block, block.offset, block.count)
                self._make_ready(block, prepare)
            if not all(isinstance(column, np.ndarray) for column in block.ready):
                rest = _cut(block, block.offset, block.count)
                block = self._block = self._of_two_shapes(rest) or self._first_of_one_shape(rest)
            return block

    def _of_two_shapes(self, block: Block) -> Block | None:
        """The elements, of two shapes, as one block; None if they are of others."""
        if not getattr(self._prepare, "two_shapes", False):
            return None
        found = in_partial_batches(block.ready, max(self._most, block.count))
        if found is None:
            return None
        block.ready, block.two_shapes = found
        return block

    def _any_block(self) -> Block:
        if self._block is None or self._block.offset == self._block.count:
            try:
                self._block, self._rest = self._rest or self._fetch(), None
            except OutOfRangeError:
                self._ended = True
                raise
        return self._block

    def _make_ready(self, block: Block, prepare: Prepare) -> None:
        columns = prepare(block.columns, block.count)
        block.ready, block.prepare = self._filled_up(columns, block.count), prepare

    def _first_of_one_shape(self, block: Block) -> Block:
        """The first elements, of one shape, as a block of their own; the others wait."""
        count = min(map(count_equal_shapes, block.ready))
        first = _cut(block, 0, count)
        first.ready = self._filled_up([as_plain(column) for column in first.ready], count, True)
        if count < block.count:
            self._rest = _cut(block, count, block.count)
        return first

    def _filled_up(self, columns: Columns, count: int, of_several: bool = False) -> Columns:
        """All blocks of one kind of element get one length, so that XLA compiles one loop for them:
        of the first kind the length of the largest block, of others that of their largest so far.

        Args:
            columns: of elements of one shape, or ragged.
            count: how many elements.
            of_several: whether they stood among elements of other shapes: how many there are is
                then a matter of the data (the batches of an epoch), and not of the block.
        """
        if any(isinstance(column, RaggedColumn) for column in columns):
            return columns
        kind = tuple((column.shape[1:], column.dtype.str) for column in columns)
        capacity = self._capacities.get(kind, 0)
        if count > capacity:
            is_first = not self._capacities and not of_several
            # Powers of two, so that blocks that grow compile a few times only.
            capacity = self._most if is_first else 1 << (count - 1).bit_length()
            capacity = self._capacities[kind] = max(capacity, count)
        return columns if capacity == count else [_lengthened(each, capacity) for each in columns]

    def next_element(self) -> list[NDArray[Any]]:
        """The next element's tensors.

        Raises:
            OutOfRangeError: there is no more.
            CancelledError: the cursor is closed.
        """
        with self.lock:
            if self._closed:
                raise CancelledError(None, None, "The iterator is closed.")
            block = self._any_block()
            block.columns = [materialize(column) for column in block.columns]
            position = block.offset
            block.offset += 1
            return [column[position] for column in block.columns]

    def unread(self) -> None:
        """Lets the last element come once more.

        Raises:
            OutOfRangeError: there was none.
        """
        with self.lock:
            if self._block is None or not self._block.offset:
                raise OutOfRangeError(None, None, "There is no element before the first.")
            self._block.offset -= 1

    def get_state(self) -> dict[str, Any]:
        """The position of the next element, small and JSON-able."""
        with self.lock:
            if self._block is None:
                position, skip = dict(self._settled().get_state()), 0
            else:
                block = self._block
                position, skip = dict(block.state), block.skip + block.offset
            return {
                "dataset": describe(self._plan),
                "ended": self._ended,
                "position": position,
                "skip": skip,
                "taken": self.taken,
            }

    @property
    def taken(self) -> int:
        """How many elements have been handed out since the beginning of the input."""
        with self.lock:
            block = self._block
            return self._number if block is None else block.number + block.offset

    def skip_elements(self, count: int) -> None:
        """Goes on by so many elements, before any has been handed out; to the end where there are
        fewer.
        """
        with self.lock:
            self._number += self._settled().skip(count)

    def set_state(self, state: Mapping[str, Any]) -> bool:
        """Goes from the beginning to a position that `get_state` gave.

        A position at the end, or in a dataset put together in another way, is not gone to: the
        cursor then stays at the beginning, as a training with new data wants it.

        Returns:
            Whether the cursor moved.
        """
        if state["ended"] or state["dataset"] != describe(self._plan):
            return False
        with self.lock:
            return self._go_to(state)

    def _go_to(self, state: Mapping[str, Any]) -> bool:
        iterator = self._settled()
        beginning = iterator.get_state()
        self._block = self._rest = None
        iterator.set_state(state["position"])
        iterator.skip(int(state["skip"]))
        self._number = int(state.get("taken", 0))
        started = time.perf_counter()
        try:  # the last element may have been used without the end being noticed
            iterator.unread(iterator.next_stretch(1), 0)
        except OutOfRangeError:
            iterator.set_state(beginning)
            self._number = 0
            return False
        self._secs_per_row = time.perf_counter() - started
        return True

    def close(self) -> None:
        """Gives back what the iterator holds; closing twice is not an error."""
        self._closed = True
        end = time.monotonic() + CLOSE_SECS
        if self.lock.acquire(timeout=CLOSE_SECS):  # another thread may wait for an element
            try:
                left = max(0.0, end - time.monotonic())
                if self._next is None or wait([self._next], left).done:
                    self._settled().close()
                    return
            finally:
                self.lock.release()
        logging.getLogger("estimatorkit").warning(
            "The input is left behind, busy: its next element did not come within %g s. "
            "Does a generator wait for something?",
            CLOSE_SECS,
        )

    def _settled(self) -> BlockIterator:
        """The iterator, with no thread at work on it."""
        if self._next is not None:
            waiting, self._next = self._next, None
            waiting.exception()  # waits; what was read ahead is dropped
        return self._iterator

    def _fetch(self) -> Block:
        block = None
        if self._next is not None:
            waiting, self._next = self._next, None
            block = waiting.result()
        if block is None:
            if not self._rows:
                self._measure()
            block = self._read()
        fitting = int(block.count * READ_SECS / max(block.secs, 1e-9))
        self._rows = self._whole(max(1, min(self._most, 2 * block.count, fitting)))
        if block.whole:  # otherwise the end is near: no thread for it
            self._next = Future()
            threading.Thread(
                target=_read_into,
                args=(self._next, self._read_ahead),
                name=THREAD_NAME,
                daemon=True,
            ).start()
        return block

    def _read(self) -> Block:
        started, state = time.perf_counter(), self._iterator.get_state()
        return self._made(self._iterator.next_stretch(self._rows), state, started)

    def _read_ahead(self) -> Block | None:
        started, state = time.perf_counter(), self._iterator.get_state()
        found = self._iterator.next_ahead(self._rows)
        return None if found is None else self._made(found, state, started)

    def _made(self, rows: Columns, state: Mapping[str, Any], started: float) -> Block:
        """A block of rows that were read, by when that began and where the iterator stood."""
        read = self._columns(rows)
        count = len(read[0])
        block = Block(parts_of(read), count, state, count == self._rows, 0, number=self._number)
        self._number += count
        if self._prepare is not None:
            self._make_ready(block, self._prepare)
        block.secs = time.perf_counter() - started
        return block

    def _columns(self, read: Columns) -> Columns:
        """What the iterator gave as columns of elements: rows of arrays are picked when needed."""
        if self._arrays is None:
            return read
        return [IndexedColumn(array, read[0]) for array in self._arrays]

    def _measure(self) -> None:
        """How many elements a block holds: reads one to see size and time, and gives it back; of
        numbers of rows, which cost little, as many as a block may have."""
        started = time.perf_counter()
        first = self._iterator.next_stretch(self._first)
        count = len(first[0])
        secs = max((time.perf_counter() - started) / count, self._secs_per_row)
        self._iterator.unread(first, 0)
        size = sum(column.nbytes for column in self._columns(first)) // count
        self._most = self._whole(max(1, min(MAX_BLOCK, BLOCK_BYTES // max(size, 1))))
        self._rows = self._whole(max(1, min(self._most, int(READ_SECS / max(secs, 1e-9)))))

    def _whole(self, rows: int) -> int:
        """So many elements, or a few more, that a step which takes several takes the last, too."""
        together: int = getattr(self._prepare, "together", 1)
        return -(-rows // together) * together


def _read_into(future: Future[Block | None], read: Callable[[], Block | None]) -> None:
    try:
        future.set_result(read())
    except BaseException as error:  # whatever a generator raises reaches the caller
        future.set_exception(error)


def _cut(block: Block, start: int, stop: int) -> Block:
    """Some of a block's elements as a block of their own."""
    if (start, stop) == (0, block.count):
        return block
    return replace(
        block,
        columns=slice_rows(block.columns, start, stop),
        ready=slice_rows(block.ready, start, stop),
        count=stop - start,
        skip=block.skip + start,
        number=block.number + start,
        offset=0,
        two_shapes=None,
    )


def _lengthened(column: NDArray[Any], capacity: int) -> NDArray[Any]:
    longer = aligned_empty((capacity, *column.shape[1:]), column.dtype)
    longer[: len(column)] = column  # nobody looks at the rows behind, which need no time either
    return longer


def describe(plan: Plan) -> str:
    """How a dataset is put together, without its data; a saved position fits where it is equal."""
    parts = [
        f"{field.name}={_described(value)}"
        for field in fields(plan)  # type: ignore[arg-type]
        if _is_description(value := getattr(plan, field.name))
    ]
    sizes = f"{plan.cardinality} x {nest.flatten(plan.element_spec, lists_are_leaves=True)}"
    return f"{type(plan).__name__}({', '.join([*parts, sizes])})"


def _is_description(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(each, Plan) for each in value)
    return isinstance(value, (Plan, int, str, range, NoneType)) or _are_names(value)


def _are_names(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.dtype(object)


def _described(value: Any) -> str:
    if isinstance(value, Plan):
        return describe(value)
    if isinstance(value, tuple):
        return ", ".join(map(describe, value))
    if _are_names(value):
        names = b"\n".join(map(bytes, value.reshape(-1).tolist()))
        return hashlib.blake2b(names, digest_size=8).hexdigest()
    return repr(value)
