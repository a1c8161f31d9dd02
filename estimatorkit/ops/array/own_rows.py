"""Rows of one of several tables: their lookup, and their gradient without rows of the others.

An index that is not the table's own becomes a surplus one (`core.indexed_slices.SURPLUS`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from estimatorkit.core import registry
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import int32
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.indexed_slices import SURPLUS, IndexedSlices
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array, filling, indexing
from estimatorkit.ops.math import elementwise


class Lookup(NamedTuple):
    """A lookup in one of several tables.

    Attributes:
        table: a tensor or variable `(rows, ...)`.
        indices: integers of any shape.
        own: bool, of the shape of `indices`: which of them are rows of the table.
    """

    table: Any
    indices: Tensor
    own: Tensor


def own_rows(lookups: Sequence[Lookup], otherwise: Any = None) -> Tensor:
    """The rows `(*indices.shape, ...)` that several tables have for ids.

    Args:
        lookups: one for each table, all of the same ids; at most one owns an id.
        otherwise: the value where none does; by default one does.
    """
    found = otherwise
    for table, indices, own in lookups:
        chosen = own_indices(own, indices, length_of(table, indices))
        with get_default_graph().without_tests():  # surplus indices are out of range
            rows = indexing.gather(table, chosen)
        found = rows if found is None else indexing.where(_for_rows(own, rows), rows, found)
    return convert_to_tensor(found)


def wide(indices: Tensor) -> Tensor:
    """Indices in a dtype that can hold the number of rows of any table: int32 or int64."""
    return elementwise.cast(indices, int32) if indices.dtype.size < int32.size else indices


def length_of(table: Any, indices: Tensor) -> Any:
    """The number of rows of a table: an int, or a scalar like `indices` if it is not known."""
    known = table.shape[0] if table.shape.rank else None
    return elementwise.cast(array.shape(table)[0], indices.dtype) if known is None else known


def own_indices(own: Tensor, indices: Tensor, rows: Any) -> Tensor:
    """The indices that a table owns, and `rows` in place of the others."""
    surplus = convert_to_tensor(rows, indices.dtype, "surplus")
    return registry.output("Select", [own, indices, surplus], {SURPLUS: True})


def own_slices(slices: IndexedSlices, start: Any, part: Tensor) -> IndexedSlices:
    """The slices of a part of a tensor, the rows from `start` on; those of others are surplus."""
    indices = wide(slices.all_indices)
    rows = length_of(part, indices)
    own = elementwise.logical_and(
        elementwise.greater_equal(indices, start), elementwise.less(indices, start + rows)
    )
    zero = convert_to_tensor(0, slices.all_values.dtype)
    values = indexing.where(_for_rows(own, slices.all_values), slices.all_values, zero)
    return IndexedSlices(values, own_indices(own, indices - start, rows), array.shape(part))


def _for_rows(mask: Tensor, rows: Tensor) -> Tensor:
    """Expands a mask of indices with dimensions of 1 to broadcast over rows."""
    ranks = (mask.shape.rank, rows.shape.rank)
    if ranks[0] is not None and ranks[1] is not None:
        for _ in range(ranks[1] - ranks[0]):
            mask = array.expand_dims(mask, -1)
        return mask
    ones = filling.ones_like(array.shape(rows)[array.rank(mask) :])
    shape = registry.output("ConcatV2", [array.shape(mask), ones], {"axis": 0})
    return array.reshape(mask, shape)
