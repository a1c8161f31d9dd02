"""`EmbeddingRows`: the operation that finds, and in training assigns, the rows of a dynamic
embedding table.

What the table knows of its ids is an int64 variable `(ids, 4)`, so that checkpoints, parameter
servers and exported models have it like any other. `RowIndex` finds ids in it on the host. The rows
are those of another variable, which grows with them (see `ops.tables.row_growth`).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from estimatorkit.core.dtypes import int64
from estimatorkit.core.graph import Graph
from estimatorkit.core.registry import Case, Role, Spec, register
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.tables.feature_ids import ABSENT
from estimatorkit.ops.tables.hash_index import MISSING, HashIndex, Ints, mixed
from estimatorkit.ops.tables.row_growth import RowGrowth, RowValues, TableRows

ID, ROW, COUNT, SEEN = range(4)
"""The columns of the variable: an id, its row or -1, how often and in which batch it was seen."""

_LEAST_IDS = 1 << 10
_TYPE = "EmbeddingRows"


class RowIndex:
    """The ids of a dynamic table in a session.

    Args:
        table: the name of the variable of ids.
        weights: the name of the variable of rows.
        values: the distribution of new rows.
    """

    def __init__(self, table: str, weights: str, values: RowValues) -> None:
        self._table = table
        self._weights = weights
        self._values = values
        self._lock = threading.Lock()
        self._published: Any = None  # the variable's value: the used part of `_entries`
        self._entries: Ints = np.zeros((0, 4), np.int64)
        self._used = 0
        self._index = HashIndex(self._entries[:, ID])
        self._wanted = TableRows(weights, values, 0)
        self._free: Ints = np.zeros(0, np.int64)  # rows below `_next` that no id has
        self._next = 0
        self._batch = 0
        self._swept = 0

    def find(self, ids: Any, state: Any) -> Ints:
        """The rows of ids; ABSENT for those that have none."""
        with self._lock:
            self._follow(state)
            known = self._entries[:, ID]
            rows = self._rows_at(self._index.find(np.ravel(ids), known))
        return rows.reshape(np.shape(ids))

    def see(
        self, ids: Any, state: Any, min_count: int, max_age: int | None, starts_batch: bool
    ) -> Ints:
        """Looks ids up in training: counts them, assigns rows to new ones and evicts old ones.

        Args:
            ids: negative ones are missing values.
            state: the session's state.
            min_count: how often an id must have been seen to get a row.
            max_age: the number of batches without it after which an id is forgotten; or None.
            starts_batch: whether these are the first ids of a batch.
        """
        flat = np.ravel(ids)
        there = flat >= 0
        rows = np.full(len(flat), ABSENT, np.int64)
        with self._lock:
            self._follow(state)
            self._batch += starts_batch
            if max_age is not None and self._batch - self._swept > max(1, max_age // 4):
                self._evict(state, self._batch - max_age)
            at = self._positions(flat[there])
            entries = self._entries
            np.add.at(entries[:, COUNT], at, 1)
            entries[at, SEEN] = self._batch
            ready = at[(entries[at, ROW] < 0) & (entries[at, COUNT] >= min_count)]
            if len(ready):
                self._assign(np.unique(ready), state)
            rows[there] = self._rows_at(at)
            self._publish(state)
        return rows.reshape(np.shape(ids))

    def _rows_at(self, at: Ints) -> Ints:
        if not self._used:
            return np.full(len(at), ABSENT, np.int64)
        rows = self._entries[at, ROW]
        return np.where((at == MISSING) | (rows < 0), ABSENT, rows)

    def _positions(self, keys: Ints) -> Ints:
        """The positions of ids; new ones are entered."""
        at = self._index.find(keys, self._entries[:, ID])
        missing = at == MISSING
        if not missing.any():
            return at
        new = np.unique(keys[missing])
        start, end = self._used, self._used + len(new)
        if end > len(self._entries):
            room = np.zeros((max(_LEAST_IDS, end, 2 * start) - start, 4), np.int64)
            self._entries = np.concatenate([self._entries[:start], room])
        self._entries[start:end] = 0
        self._entries[start:end, ID] = new
        self._entries[start:end, ROW] = -1
        self._used = end
        if self._index.has_room(end):
            self._index.add(new, start)
        else:
            self._index = HashIndex(self._entries[:end, ID])
        at[missing] = self._index.find(keys[missing], self._entries[:, ID])
        return at

    def _assign(self, at: Ints, state: Any) -> None:
        """Gives rows to the entries at some positions: free ones first."""
        again, self._free = np.split(self._free, [min(len(at), len(self._free))])
        end = self._next + len(at) - len(again)
        self._entries[at, ROW] = np.concatenate([again, np.arange(self._next, end)])
        self._next = end
        growth = RowGrowth.of(state)
        with state.held.mutex:
            self._wanted.used = end
            if end >= self._wanted.count:
                growth.grow()

    def _evict(self, state: Any, before: int) -> None:
        """Forgets ids that were last seen before a batch; their rows become free."""
        self._swept = self._batch
        used = self._entries[: self._used]
        kept = used[:, SEEN] >= before
        if kept.all():
            return
        rows = used[~kept, ROW]
        rows = rows[rows >= 0]
        with state.held.mutex:
            self._wanted.reset(rows)
        self._free = np.concatenate([self._free, rows])
        self._enter(used[kept])

    def _enter(self, entries: Ints) -> None:
        self._entries, self._used = entries, len(entries)
        self._index = HashIndex(entries[:, ID])

    def _follow(self, state: Any) -> None:
        """Rebuilds the index if the variable was set elsewhere, for example from a checkpoint."""
        value = state.values.get(self._table)
        if value is not None and value is self._published:
            return
        if value is None:
            state.take([self._table])  # raises the error for it
        self._enter(np.array(value, np.int64).reshape(-1, 4))
        rows = self._entries[:, ROW]
        self._next = int(rows.max(initial=-1)) + 1
        taken = np.zeros(self._next, bool)
        taken[rows[rows >= 0]] = True
        self._free = np.flatnonzero(~taken)
        self._batch = self._swept = int(self._entries[:, SEEN].max(initial=0))
        weights = state.values.get(self._weights)
        if weights is not None:
            self._wanted = TableRows(self._weights, self._values, weights.shape[0])
            self._wanted.used = self._next
            growth = RowGrowth.of(state)
            with state.held.mutex:
                growth.request(self._weights, self._wanted)
                if self._next >= weights.shape[0]:  # saved when it was about to grow
                    self._wanted.grow()
        self._publish(state)

    def _publish(self, state: Any) -> None:
        """Makes the entries the variable's value."""
        self._published = self._entries[: self._used]
        with state.held.mutex:
            state.values[self._table] = self._published


def _rows(
    ids: Any,
    training: Any,
    *,
    table: str,
    weights: str,
    values: tuple[Any, ...],
    part: tuple[int, int],
    min_count: int,
    max_age: int | None,
    starts_batch: bool,
    context: Any,
) -> Ints:
    state = context.variables
    number, parts = part
    if parts > 1:
        ids = np.where(mixed(np.asarray(ids)) % np.uint64(parts) == number, ids, ABSENT)
    index: RowIndex = state.resource(
        ("embedding rows", table), lambda: RowIndex(table, weights, RowValues(*values))
    )
    if training:
        return index.see(ids, state, min_count, max_age, starts_batch)
    return index.find(ids, state)


def drop_unused_rows(graph: Graph, state: Any) -> None:
    """Removes from a session's dynamic tables the ids without a row and the rows without an id.

    Args:
        graph: the session's graph.
        state: the session's state, whose slots are not adapted: for a model that is not trained.
    """
    tables = {
        (op.attrs["table"], op.attrs["weights"])
        for op in graph.get_operations()
        if op.type == _TYPE
    }
    for table, weights in tables:
        entries, rows = state.read([table, weights])
        kept = entries[entries[:, ROW] >= 0]
        last = rows.shape[0] - 1  # one row without an id: XLA refuses to gather from none
        state.put(weights, rows[np.append(kept[:, ROW], last)])
        kept[:, ROW] = np.arange(len(kept))
        state.put(table, kept)


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    return [Spec(int64, inputs[0].shape)]


register(
    _TYPE,
    _rows,
    infer=_infer,
    gradient=None,
    where="host",
    context=True,
    pure=False,
    role=Role.LOOKUP,
    holder="table",
)


# -- several hashes


def _hashed(ids: Any, *, rows: int, hashes: int) -> Ints:
    given = np.asarray(ids, np.int64)
    seeds = np.arange(hashes, dtype=np.int64) * 0x5851F42D4C957F2D
    found = mixed(mixed(given)[..., None].astype(np.int64) ^ seeds) % np.uint64(rows)
    return np.where(given[..., None] < 0, ABSENT, found.astype(np.int64))


def _infer_hashed(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    return [Spec(int64, inputs[0].shape.concatenate([attrs["hashes"]]))]


register(
    "HashedRows",
    _hashed,
    infer=_infer_hashed,
    gradient=None,
    where="host",
    cases=lambda: [
        Case(
            (np.array([[3], [7], [ABSENT]]),),
            {"rows": 50, "hashes": 2},
            np.array([[[42, 47]], [[15, 46]], [[ABSENT, ABSENT]]]),
        )
    ],
)
