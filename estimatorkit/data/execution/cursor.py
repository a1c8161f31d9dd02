"""`Cursor`: a session's position in a dataset.

A cursor reads its iterator in blocks and yields single elements (to `session.run`) or blocks of
elements of equal shape (to loops that run many steps per call); both advance the same position. A
thread prefetches the next block. The saved position is that of the next element to be consumed,
however far the thread has read. Threads may share a cursor: each element goes to one of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import CancelledError, DataLossError, OutOfRangeError
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.execution.block_iterator import BlockIterator, check_numbers
from estimatorkit.data.execution.buffers import Columns, aligned_empty, slice_rows
from estimatorkit.data.execution.checksums import PipelineChecksums
from estimatorkit.data.identity import Identity, identify
from estimatorkit.logger import logger
from estimatorkit.runtime.steps.columns import RaggedColumn, as_plain, count_equal_shapes, parts_of
from estimatorkit.runtime.steps.indexed_columns import IndexedColumn, materialize
from estimatorkit.runtime.steps.partial_batch import PartialBatches, in_partial_batches
from estimatorkit.runtime.xla.at_exit import counted

THREAD_NAME = "estimatorkit-input"

BLOCK_BYTES = 8 << 20
"""Bytes: amortizes the 30 us per call (20 batches of MNIST), and still fits the caches."""

MAX_BLOCK = 1024
"""Maximum elements per block: Iris batches of 512 bytes would make blocks of 16,384 steps."""

READ_SECS = 0.1
"""Target seconds per block, to limit the delay of a slow generator's elements."""

_OTHER_DATA = "the saved position belongs to other data"

CLOSE_SECS = 5.0
"""Seconds that closing waits for a generator that is producing an element."""


Prepare: TypeAlias = Callable[[Columns, int], Columns]
"""Makes the columns that a loop takes of those of elements, some of which may be `IndexedColumn`s:
(columns, how many elements)."""


@dataclass(eq=False)
class Block:
    """Consecutive elements.

    Attributes:
        columns: one per tensor of an element.
        state, skip: the iterator's position `skip` elements before the first element.
        number: the index of the first element in the input.
        whole: whether the block has as many elements as requested.
        secs: the reading time in seconds.
        offset: elements already consumed.
        ready: the columns for the loop: arrays `(capacity, ...)` with the first `count` rows
            filled, or ragged columns until elements of equal shape are requested.
        prepare: the function that made `ready`.
        sent: `ready` on the device, if it was sent there when it was read.
        two_shapes: the sizes of the rows of `ready`, if they have two shapes.
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
    sent: Columns | None = None
    two_shapes: PartialBatches | None = None


class Cursor:
    """A session's position in a dataset. All methods are thread-safe.

    Attributes:
        lock: guards the position. A thread that takes elements of a block holds it from `block`
            until it has advanced the block's `offset`.

    Args:
        dataset: a dataset that depends on no tensor.
        seed: the graph's seed, or None.
        state: the session's state.
        epoch: the number of the pass; shuffles with the same seed differ between passes.
    """

    def __init__(
        self, dataset: Dataset, seed: int | None, state: Any = None, epoch: int = 0
    ) -> None:
        self.lock = threading.RLock()
        self._closed = False
        self._checksums = PipelineChecksums()
        numbered = dataset.make_number_iterator(seed, state)
        self._arrays: Columns | None = None
        self._iterator: BlockIterator
        if numbered is None:
            self._iterator, self._first = (
                dataset.make_block_iterator(seed, state, self._checksums),
                1,
            )
        else:
            self._arrays, self._iterator, rows = numbered
            self._first = max(1, min(MAX_BLOCK, BLOCK_BYTES // (8 * rows)))
        if epoch:
            self._iterator.restart(epoch)
        self._plan = dataset._plan
        self._block: Block | None = None
        self._rest: Block | None = None  # the rest of a block with several shapes
        self._prepare: Prepare | None = None
        self._ended = False
        self._number = 0  # of the next element to be read
        self._rows = 0  # to read next; 0 if not yet measured
        self._secs_per_row = 0.0  # measured
        self._most = 1
        self._capacities: dict[Any, int] = {}
        self._next: Future[Block | None] | None = None

    def block(self, prepare: Prepare) -> Block:
        """Returns the block with the next element: elements of equal shape, prepared for a loop.

        Args:
            prepare: prepares columns for the loop; later blocks are prepared when they are read. If
                its `two_shapes` is true, elements may have two shapes (see
                `runtime.steps.partial_batch`). Block lengths are multiples of its `together`, if
                present. Its `send`, if present, transfers them to the device.

        Raises:
            OutOfRangeError: at the end of the input.
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
        """Returns elements of two shapes as one block; None if they have other shapes."""
        if not getattr(self._prepare, "two_shapes", False):
            return None
        found = in_partial_batches(
            block.ready, lambda rows: self._capacity(block.ready, rows, block.count)
        )
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
        send = getattr(prepare, "send", None)
        if send is not None and all(isinstance(column, np.ndarray) for column in block.ready):
            block.sent = send(block.ready)

    def _first_of_one_shape(self, block: Block) -> Block:
        """Splits off the leading elements of equal shape as a block; keeps the others for later."""
        count = min(map(count_equal_shapes, block.ready))
        first = _cut(block, 0, count)
        first.ready = self._filled_up([as_plain(column) for column in first.ready], count, True)
        if count < block.count:
            self._rest = _cut(block, count, block.count)
        return first

    def _filled_up(self, columns: Columns, count: int, of_several: bool = False) -> Columns:
        """Pads columns to one length per kind of element, so that XLA compiles one loop for each.

        The length is the largest block's length for the first kind, for others the largest so far.

        Args:
            columns: arrays of elements of equal shape, or ragged columns.
            of_several: whether the elements stood among others of different shapes; their number
                then depends on the data (the batches of an epoch) and not on the block size.
        """
        if any(isinstance(column, RaggedColumn) for column in columns):
            return columns
        rows = [column.shape[1:] for column in columns]
        grows = of_several or bool(self._capacities)
        capacity = self._capacity(columns, rows, count, grows)
        return columns if capacity == count else [_lengthened(each, capacity) for each in columns]

    def _capacity(
        self,
        columns: Columns,
        rows: Sequence[tuple[int, ...]],
        count: int,
        grows: bool = False,
    ) -> int:
        """The padded length of columns: that of earlier ones of the same kind if the rows fit.

        Args:
            columns: the columns.
            rows: the largest row shape of each.
            count: the number of rows there are.
            grows: whether a new length is a power of two, as long as blocks are longer: that bounds
                the number of compilations while blocks grow.
        """
        kind = tuple((row, column.dtype.str) for row, column in zip(rows, columns, strict=True))
        if count > self._capacities.get(kind, 0):
            longest = max(self._most, count)
            least = 1 << (count - 1).bit_length() if grows else longest
            self._capacities[kind] = min(least, longest)
        return self._capacities[kind]

    def next_element(self) -> list[NDArray[Any]]:
        """Returns the tensors of the next element.

        Raises:
            OutOfRangeError: at the end of the input.
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
        """Pushes back the last element.

        Raises:
            OutOfRangeError: no element was consumed yet.
        """
        with self.lock:
            if self._block is None or not self._block.offset:
                raise OutOfRangeError(None, None, "There is no element before the first.")
            self._block.offset -= 1

    def get_state(self) -> dict[str, Any]:
        """The position of the next element: a small dict that JSON can hold."""
        with self.lock:
            if self._block is None:
                position, skip = dict(self._settled().get_state()), 0
            else:
                block = self._block
                position, skip = dict(block.state), block.skip + block.offset
            return {
                "pipeline": self._identity.pipeline,
                "content": self._identity.content,
                "witnesses": self._checksums.get_state(),
                "ended": self._ended,
                "position": position,
                "skip": skip,
                "taken": self.taken,
            }

    @property
    def taken(self) -> int:
        """The number of elements consumed since the beginning of the input."""
        with self.lock:
            block = self._block
            return self._number if block is None else block.number + block.offset

    def skip_elements(self, count: int) -> None:
        """Skips up to `count` elements; allowed only before any was consumed."""
        with self.lock:
            self._number += self._settled().skip(count)

    def set_state(self, state: Mapping[str, Any]) -> bool:
        """Moves from the beginning to a position that `get_state` returned.

        The cursor stays at the beginning, and says so, if the position is at the end, or belongs
        to another pipeline or to other data: all rows of the new data are then used.

        Returns:
            Whether the cursor moved.

        Raises:
            DataLossError: the position is malformed.
        """
        with self.lock:
            iterator = self._settled()
            beginning = iterator.get_state()
            try:
                reason = self._refusal(state)
                if not reason:
                    check_numbers(state)
                    reason = self._go_to(state)
                    if not reason:
                        return True
                    iterator.set_state(beginning)
                logger.info("The input restarts from the beginning: %s.", reason)
                return False
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                iterator.set_state(beginning)
                raise DataLossError.explained(
                    "the saved position of the input cannot be restored",
                    received=f"{type(error).__name__}: {error}",
                    hint="the checkpoint is damaged, or the input raises errors of its own",
                ) from error

    @cached_property
    def _identity(self) -> Identity:
        return identify(self._plan)

    def has_data_of(self, state: Mapping[str, Any]) -> bool:
        """Whether a position that `get_state` returned belongs to this pipeline and its data."""
        return (state.get("pipeline"), state.get("content")) == self._identity

    def _refusal(self, state: Mapping[str, Any]) -> str:
        """Why a position does not apply, or ''."""
        if state["ended"]:
            return "it had ended"
        if state.get("pipeline") != self._identity.pipeline:
            return "the saved position belongs to another pipeline"
        return "" if self.has_data_of(state) else _OTHER_DATA

    def _go_to(self, state: Mapping[str, Any]) -> str:
        """Moves to a position; returns why it does not apply, or ''."""
        iterator = self._settled()
        self._block = self._rest = None
        self._checksums.expect(state["witnesses"])
        try:
            iterator.set_state(state["position"])
            if not self._checksums.differ:
                iterator.skip(int(state["skip"]))
        except OutOfRangeError:  # generators of other elements yield none
            if not self._checksums.differ:
                raise
        finally:
            self._checksums.expect_nothing()
        if self._checksums.differ:
            return _OTHER_DATA
        started = time.perf_counter()
        try:  # the last element may have been used without the end being noticed
            iterator.unread(iterator.next_stretch(1), 0)
        except OutOfRangeError:
            return "it had ended"
        self._number = int(state.get("taken", 0))
        self._secs_per_row = time.perf_counter() - started
        return ""

    def close(self) -> None:
        """Releases the iterator's resources; idempotent."""
        self._closed = True
        end = time.monotonic() + CLOSE_SECS
        if self.lock.acquire(timeout=CLOSE_SECS):  # another thread may be waiting for an element
            try:
                left = max(0.0, end - time.monotonic())
                if self._next is None or wait([self._next], left).done:
                    self._settled().close()
                    return
            finally:
                self.lock.release()
        logger.warning(
            "Abandoning the input while it is busy: its next element did not arrive within %g s. "
            "Is a generator blocked?",
            CLOSE_SECS,
        )

    def _settled(self) -> BlockIterator:
        """The iterator, once no thread works on it."""
        if self._next is not None:
            waiting, self._next = self._next, None
            waiting.exception()  # waits; prefetched elements are dropped
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
        if block.whole:  # otherwise the end is near: do not prefetch
            self._next = Future()
            threading.Thread(
                target=counted(_read_into),
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
        """Makes a block of rows read since `started`, with the iterator's prior position."""
        read = self._columns(rows)
        count = len(read[0])
        block = Block(parts_of(read), count, state, count == self._rows, 0, number=self._number)
        self._number += count
        if self._prepare is not None:
            self._make_ready(block, self._prepare)
        block.secs = time.perf_counter() - started
        return block

    def _columns(self, read: Columns) -> Columns:
        """Converts the iterator's output to columns of elements; gathers rows of arrays."""
        if self._arrays is None:
            return read
        return [IndexedColumn(array, read[0]) for array in self._arrays]

    def _measure(self) -> None:
        """Chooses the block length by the size and reading time of one element, which is unread.

        Row indices are cheap and use the maximum.
        """
        started = time.perf_counter()
        first = self._iterator.next_stretch(self._first)
        count = len(first[0])
        secs = max((time.perf_counter() - started) / count, self._secs_per_row)
        self._iterator.unread(first, 0)
        size = sum(column.nbytes for column in self._columns(first)) // count
        self._most = self._whole(max(1, min(MAX_BLOCK, BLOCK_BYTES // max(size, 1))))
        self._rows = self._whole(max(1, min(self._most, int(READ_SECS / max(secs, 1e-9)))))

    def _whole(self, rows: int) -> int:
        """Rounds `rows` up so that a step that consumes several elements also consumes the last."""
        together: int = getattr(self._prepare, "together", 1)
        return -(-rows // together) * together


def _read_into(future: Future[Block | None], read: Callable[[], Block | None]) -> None:
    try:
        future.set_result(read())
    except BaseException as error:  # whatever a generator raises reaches the caller
        future.set_exception(error)


def _cut(block: Block, start: int, stop: int) -> Block:
    """A slice of a block's elements as a block."""
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
        sent=None,
        two_shapes=None,
    )


def _lengthened(column: NDArray[Any], capacity: int) -> NDArray[Any]:
    longer = aligned_empty((capacity, *column.shape[1:]), column.dtype)
    longer[: len(column)] = column  # the padding rows are never read, and stay uninitialized
    return longer
