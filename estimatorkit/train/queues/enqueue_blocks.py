"""The enqueue operation of a queue runner, run for many elements at a time.

A program of queues makes each element by a run: a record is read, decoded, resized and put into a
queue. `EnqueueBlocks` takes as many elements from the source as are there, maps them as a dataset
would (`BatchedExecutor`), and puts the results into the queue: 10 us an element of a CSV file
instead of 150.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.dtypes import resource
from estimatorkit.core.errors import OpError
from estimatorkit.core.registry import Role
from estimatorkit.core.tensor import Operation
from estimatorkit.ops.queues.queue_resource import component
from estimatorkit.ops.queues.queues import host_queue
from estimatorkit.ops.queues.readers import host_reader
from estimatorkit.runtime.local_state import LocalState
from estimatorkit.runtime.plan import make_plan, needed_operations
from estimatorkit.runtime.steps.batched_executor import BatchedExecutor
from estimatorkit.runtime.steps.columns import stack
from estimatorkit.runtime.xla.at_exit import native

LARGEST = 64
"""The most records of a reader in a block."""

USUAL = 32
"""The most elements of another queue in a block: the default capacity of an input producer. The
first block may have one; executables for it, or for more than 32, would hardly be used again."""

_ENQUEUE = "QueueEnqueueV2"
_FILES = frozenset({"ReadFile"})
"""Operations that are not pure, but may run ahead."""


def _records(op: Operation, state: LocalState) -> list[tuple[Any, ...]]:
    reader = host_reader(state, op.attrs["reader"])
    read = reader.read(op.attrs["queue"], LARGEST, state)
    return [tuple(np.array(each, object) for each in record) for record in read]


def _elements(op: Operation, state: LocalState) -> list[tuple[Any, ...]]:
    queue = host_queue(state, op.attrs["queues"][0])
    first = queue.dequeue(1, state)
    return [*first, *queue.take_at_once(USUAL - 1)]


_SOURCES: dict[str, Callable[[Operation, LocalState], list[tuple[Any, ...]]]] = {
    "ReaderReadV2": _records,
    "QueueDequeueV2": _elements,
}


class EnqueueBlocks:
    """Runs an enqueue operation for a block of elements (see `of`); threads may share it.

    Args:
        state: the session's state.
        enqueue: the operation.
        source: the operation that gives the elements which it depends on.
    """

    def __init__(self, state: LocalState, enqueue: Operation, source: Operation) -> None:
        self._state = state
        self._source = source
        self._queue = enqueue.attrs["queues"][0]
        self._dtypes = [tensor.dtype.numpy_dtype for tensor in source.outputs]
        plan = make_plan(enqueue.graph, enqueue.inputs, [], source.outputs, state.placer)
        key = f"{enqueue.graph.seed or 0:x}"
        self._map = BatchedExecutor(plan, source.outputs, {}, state, key, USUAL)
        self._lock = threading.Lock()
        self._done = 0

    @staticmethod
    def of(session: Any, enqueue: Operation) -> EnqueueBlocks | None:
        """The blocks of an operation that puts one element into a queue, if it makes the element of
        one record of a reader, or of one element of another queue, and of nothing that changes."""
        state = getattr(session, "state", None)
        if type(state) is not LocalState or enqueue.type != _ENQUEUE or enqueue.control_inputs:
            return None
        if len(enqueue.attrs["queues"]) != 1:
            return None
        needed = needed_operations(enqueue.inputs, [], frozenset(), must_feed=False)
        sources = [op for op in needed if op.type in _SOURCES]
        others = [op for op in needed if op.type not in _SOURCES]
        if len(sources) != 1 or not all(map(_may_run_ahead, others)):
            return None
        (source,) = sources
        if source.inputs or source.control_inputs:
            return None
        return EnqueueBlocks(state, enqueue, source)

    def __call__(self) -> None:
        """Enqueues a block: at least one element."""
        with native():
            self._enqueue_next()

    def _enqueue_next(self) -> None:
        taken = _SOURCES[self._source.type](self._source, self._state)
        try:
            self._enqueue(taken)
        except OpError:
            if len(taken) == 1:
                raise
            for row in taken:  # all before the failing one
                self._enqueue([row])
        self._state.raise_if_cancelled()

    def _enqueue(self, rows: Sequence[tuple[Any, ...]]) -> None:
        columns = [
            stack(list(column), dtype)
            for column, dtype in zip(zip(*rows, strict=True), self._dtypes, strict=True)
        ]
        with self._lock:
            first = self._done
            self._done += len(rows)
        made = self._map(columns, len(rows), first)
        elements = [tuple(_row(column, row) for column in made) for row in range(len(rows))]
        host_queue(self._state, self._queue).enqueue(elements, self._state)


def _row(column: Any, row: int) -> Any:
    """A row of a column; a string is an array without dimensions, too."""
    return component(column[row, ...] if isinstance(column, np.ndarray) else column[row])


def _may_run_ahead(op: Operation) -> bool:
    row = registry.lookup(op.type)
    known = row.semantics.pure or row.semantics.random or op.type in _FILES
    stateless = not any(tensor.dtype is resource for tensor in op.inputs)
    fixed = row.semantics.role not in (Role.READ, Role.PLACEHOLDER) and "functions" not in op.attrs
    return known and stateless and fixed
