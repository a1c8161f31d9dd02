"""Deduplication of the rows of sparse gradients.

No array has the size of the table or a value-dependent size, so a sparse step compiles once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.core import registry
from estimatorkit.core.indexed_slices import SURPLUS, IndexedSlices, RowsOfUpdate
from estimatorkit.core.registry import Case, Spec
from estimatorkit.core.tensor import Tensor


def deduplicate_slices(gradient: IndexedSlices, rows: int) -> IndexedSlices:
    """Sums repeated rows of a gradient in the place of their first occurrence.

    `rows` is the number of rows of the variable. The result's values `(n, ...)` and indices `(n,)`
    have unchanged shapes, for static compilation (TensorFlow's shrink): unused places have the
    index `rows` and the value 0. `gather` clamps that index, and scatter drops it.
    """
    attrs = {"rows": rows, SURPLUS: True}
    op = registry.apply("SumRepeatedRows", [gradient.all_values, gradient.all_indices], attrs)
    values, indices = op.outputs
    return RowsOfUpdate(values, indices, gradient.dense_shape)


def _sum_repeated_rows(values: Any, indices: Any, rows: int) -> tuple[Any, Any]:
    if indices.shape[0] == 0:
        return values, indices
    touched, position = distinct(indices, rows)
    return segment_sum(values, position, indices.shape[0]), touched


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    return [Spec(each.dtype, each.shape) for each in inputs]


registry.register(
    "SumRepeatedRows",
    _sum_repeated_rows,
    infer=_infer,
    gradient=None,
    accepts="fic",
    cases=lambda: [
        Case(
            (np.array([[1.0], [2.0], [4.0]], np.float32), np.array([1, 0, 1])),
            {"rows": 3},
            (np.array([[5.0], [2.0], [0.0]], np.float32), np.array([1, 0, 3])),
        )
    ],
)


def distinct(indices: Any, rows: int) -> tuple[Any, Any]:
    """Returns the indices, with `rows` for repeats, and the place of each one's first occurrence.

    Uses an array of all rows, or a hash table if there are very many rows.
    """
    count = indices.shape[0]
    if count == 0:
        return indices, indices
    places = jnp.arange(count, dtype=np.int32)
    if rows > _ROWS_PER_INDEX * count:
        position = _first_places(indices, places)
    else:
        first = jnp.full((rows + 1,), count, np.int32)
        position = gather_rows(scatter_rows(lax.scatter_min, first, indices, places), indices)
    return jnp.where(position == places, indices, rows), position


def gather_rows(table: Any, indices: Any) -> Any:
    """Gathers rows of a table; an index beyond its end gives the last row.

    `indices` `(n,)` are not negative, here and below: JAX's indexing counts negative ones from the
    end, by three operations in each use.
    """
    numbers = lax.GatherDimensionNumbers(tuple(range(1, table.ndim)), (0,), (0,))
    sizes = 1, *table.shape[1:]
    return lax.gather(table, lax.expand_dims(indices, (1,)), numbers, sizes, mode="clip")


def scatter_rows(scatter: Callable[..., Any], table: Any, indices: Any, rows: Any) -> Any:
    """Scatters rows into a table by `lax.scatter` or its like; rows beyond its end are dropped."""
    numbers = lax.ScatterDimensionNumbers(tuple(range(1, table.ndim)), (0,), (0,))
    return scatter(table, lax.expand_dims(indices, (1,)), rows, numbers, mode="drop")


def segment_sum(values: Any, position: Any, count: Any) -> Any:
    """Sums the rows of each of `count` positions."""
    sums = jnp.zeros((count, *values.shape[1:]), values.dtype)
    return scatter_rows(lax.scatter_add, sums, position, values)


_ROWS_PER_INDEX = 100
"""1000 indices of 100,000 rows take 28 us by either; 128 of 1,000,000 take 340 us by the list and
15 by the hash table (sorting them takes 25 alone, and 65 within a step)."""


def _first_places(indices: Any, places: Any) -> Any:
    """Returns the first place of each index, by hashing.

    In each iteration, every slot of the hash table goes to the first place that maps to it, which
    resolves all places of the same index; the rest rehash. Two or three iterations are typical.
    """
    count = indices.shape[0]
    bits = (8 * count - 1).bit_length()
    words = indices.astype(np.uint32)

    def is_left(state: tuple[Any, Any]) -> Any:
        return jnp.any(state[1] == count)

    def turn(state: tuple[Any, Any]) -> tuple[Any, Any]:
        factor, position = state
        left = position == count
        slot = jnp.where(left, (words * factor) >> np.uint32(32 - bits), np.uint32(1 << bits))
        winners = jnp.full(((1 << bits) + 1,), count - 1, np.int32)
        winner = gather_rows(scatter_rows(lax.scatter_min, winners, slot, places), slot)
        return factor * _HASH_FACTOR, jnp.where(
            left & (gather_rows(indices, winner) == indices), winner, position
        )

    start = (jnp.asarray(_HASH_FACTOR), jnp.full_like(places, count))
    return jax.lax.while_loop(is_left, turn, start)[1]


_HASH_FACTOR = np.uint32(0x9E3779B1)
"""2^32 by the golden ratio, odd (Knuth, volume 3, section 6.4); its powers are the next hashes."""


__all__ = ["scatter_rows", "deduplicate_slices", "distinct", "gather_rows", "segment_sum"]
