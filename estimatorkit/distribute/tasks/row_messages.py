"""`RowMessages`: rows of variables in messages of steps, each row once.

The ids of an embedding lookup on another task are sent once each, and the rows that come back are
repeated here. The gradients of equal ids are summed before they are sent. The parts of a table get
all ids of a batch, those of other parts as one surplus index (see `ops.array.own_rows`).

Rows and gradients of float32 may be sent as bfloat16, with half the bytes: each number is then off
by at most a 256th of itself. The tables and what optimizers keep stay float32.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import DType, bfloat16, float32
from estimatorkit.core.indexed_slices import may_hold_surplus
from estimatorkit.core.registry import Role, role_of
from estimatorkit.core.tensor import Tensor
from estimatorkit.distribute.tasks.partitions import Partition
from estimatorkit.lazy import LazyFunctions

scipy_sparse = LazyFunctions("scipy.sparse")

Distinct = dict[tuple[np.dtype[Any], bytes], tuple[NDArray[Any] | None, NDArray[Any]]]
"""A cache of distinct ids and inverse indices (see `np.unique`), by dtype and bytes of the ids."""


class RowMessages:
    """The inputs and outputs of a partition on another task, as they are sent.

    Args:
        part: the partition.
        takes: the tensors sent to the task, in order.
        gives: the tensors sent back, in order.
        kept: tensors that the task keeps for later partitions, which need them as they are.
        bfloat16_rows: whether gradients of rows are rounded to bfloat16.
    """

    def __init__(
        self,
        part: Partition,
        takes: Sequence[Tensor],
        gives: Sequence[Tensor],
        kept: Collection[Tensor],
        bfloat16_rows: bool = False,
    ) -> None:
        self._rounds = bfloat16_rows
        self._takes = list(takes)
        self._gives = list(gives)
        self._lookups: dict[Tensor, list[Tensor]] = {}
        self._updates: dict[Tensor, list[Tensor]] = {}
        self._places: dict[Tensor, tuple[NDArray[Any], tuple[int, ...]]] = {}
        self._most: dict[Tensor, int] = {}
        self._numbers = np.empty(0, np.int32)
        used: dict[Tensor, int] = {}
        for tensor in (tensor for op in part.ops for tensor in op.inputs):
            used[tensor] = used.get(tensor, 0) + 1
        own = set(takes)
        for op in part.ops:
            if op.type == "GatherV2" and op.inputs[1] in own:
                rows = op.outputs[0]
                if (
                    op.attrs["axis"] == op.attrs["batch_dims"] == 0
                    and rows in gives
                    and rows not in used
                    and rows not in kept
                ):
                    self._lookups.setdefault(op.inputs[1], []).append(rows)
            elif op.type.startswith("SparseApply"):
                for values, indices in zip(op.inputs, op.inputs[1:], strict=False):
                    if indices in own and values in own and _is_ids(indices) and used[values] == 1:
                        self._updates.setdefault(indices, []).append(values)
        for found in (self._lookups, self._updates):
            for ids in [ids for ids, rows in found.items() if used[ids] != len(rows)]:
                del found[ids]
        self._lengths = self._lengths_of(part)

    def _lengths_of(self, part: Partition) -> dict[Tensor, int] | None:
        """The rows of the variable that each tensor of ids is for, an id that stands for those of
        other parts; None if the partition does more than look up and update rows.
        """
        lengths: dict[Tensor, int] = {}
        taken = dict.fromkeys([*self._lookups, *self._updates])
        taken.update(dict.fromkeys(each for rows in self._updates.values() for each in rows))
        given = {each for rows in self._lookups.values() for each in rows}
        for op in part.ops:
            if role_of(op) in (Role.READ, Role.NO_OP):
                continue
            ids = next((each for each in op.inputs if each in self._lookups), None)
            if ids is None and op.type in _OF_TOUCHED_ROWS:
                ids = next((each for each in op.inputs if each in self._updates), None)
            if ids is None or not may_hold_surplus(ids):
                return None
            table = op.inputs[0]
            shape = table.op.attrs["shape"] if ids in self._updates else table.shape
            if not shape.is_fully_defined():
                return None
            lengths[ids] = next(map(int, shape))
        is_all = not part.kept and taken.keys() == set(self._takes) and given == set(self._gives)
        return lengths if is_all else None

    def are_elsewhere(self, values: Mapping[Tensor, Any]) -> bool:
        """Whether the task holds none of the rows, so that it need not be asked."""
        return self._lengths is not None and all(
            bool((np.asarray(values[ids]) == length).all()) for ids, length in self._lengths.items()
        )

    def unused(self, values: Mapping[Tensor, Any]) -> dict[Tensor, Any]:
        """Zeros in place of rows that are elsewhere, which nobody reads."""
        found = {}
        for ids, rows in self._lookups.items():
            for each in rows:
                row = tuple(map(int, each.op.inputs[0].shape[1:]))
                found[each] = np.zeros(np.shape(values[ids]) + row, each.dtype.numpy_dtype)
        return found

    def sent(self, values: Mapping[Tensor, Any], known: Distinct) -> list[NDArray[Any]]:
        """Returns the arrays to send, with duplicate ids merged.

        Args:
            values: by tensor.
            known: distinct ids that have been computed; updated. A step's gradients have the ids
                that it has looked up.
        """
        arrays = {tensor: np.asarray(values[tensor]) for tensor in self._takes}
        self._places = {}
        for ids in self._lookups:
            given = arrays[ids]
            distinct, place = self._distinct(ids, given, known)
            if distinct is not None:
                arrays[ids] = distinct.reshape(-1, *(1,) * (given.ndim - 1))
                for rows in self._lookups[ids]:
                    self._places[rows] = place, given.shape
        for indices, gradients in self._updates.items():
            if not all(arrays[each].dtype in _SUMMED for each in gradients):
                continue
            distinct, place = self._distinct(indices, arrays[indices], known)
            if distinct is not None:
                arrays[indices] = distinct
                for each in gradients:
                    arrays[each] = _summed(arrays[each], place, len(distinct))
            for each in gradients if self._rounds else ():
                arrays[each] = rounded(arrays[each])
        return list(arrays.values())

    def _distinct(
        self, tensor: Tensor, ids: NDArray[Any], known: Distinct
    ) -> tuple[NDArray[Any] | None, NDArray[Any]]:
        """Returns the distinct ids, and the inverse indices of the flat `ids`; None in place of the
        distinct ids if padding makes them as many.

        They are padded by repeats of the first id. The padded size of a tensor's ids only grows,
        because the task recompiles the update of all its tables for a new size (4 s for 26).
        """
        key = ids.dtype, ids.tobytes()
        if key not in known:
            known[key] = None, ids
            most = self._most.get(tensor, 0)
            if ids.ndim and max(most, 1) < ids.size:
                distinct, place = self._unique(ids.reshape(-1))
                if len(distinct) > most:
                    most = _room(len(distinct))
                self._most[tensor] = most
                if most < ids.size:
                    padding = np.full(most - len(distinct), distinct[0])
                    known[key] = np.concatenate([distinct, padding]), place
        return known[key]

    def _unique(self, ids: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The distinct ids, in any order, and the index of each id among them.

        Small ids index an array, which takes 10 us for 2,048 of them, and `np.unique` 28.
        """
        most = int(ids.max())
        if most >= _SMALL_ID or int(ids.min()) < 0:
            distinct, place = np.unique(ids, return_inverse=True)
            return distinct, place.reshape(-1)
        if most >= len(self._numbers):
            self._numbers = np.empty(1 << most.bit_length(), np.int32)
        numbers = np.arange(len(ids), dtype=np.int32)
        self._numbers[ids] = numbers
        distinct = ids[self._numbers[ids] == numbers]  # one place of each id
        self._numbers[distinct] = numbers[: len(distinct)]
        return distinct, self._numbers[ids]

    def received(self, found: Sequence[Any]) -> list[Any]:
        """The values of `gives`, from the reply to what was `sent` last."""
        values = []
        for tensor, value in zip(self._gives, found, strict=True):
            if tensor in self._places:
                place, shape = self._places[tensor]
                rows = value.reshape(len(value), *value.shape[len(shape) :])
                value = rows.take(place, 0).reshape(*shape, *rows.shape[1:])
            values.append(widened(value, tensor.dtype))
        return values


_OF_TOUCHED_ROWS = {
    "SparseApplyAdagrad",
    "SparseApplyFtrl",
    "SparseApplyGradientDescent",
    "SparseApplyLazyAdam",
    "SparseApplyRowwiseAdagrad",
}
"""Updates that change only the rows of their indices."""

_SUMMED = (np.dtype(np.float32), np.dtype(np.float64))
"""Gradients of 16 bits are summed by the task, in 32 bits."""


def rounded(rows: NDArray[Any]) -> NDArray[Any]:
    """Rows of float32 as bfloat16, others as they are."""
    return rows.astype(bfloat16.numpy_dtype) if rows.dtype == np.float32 else rows


def widened(array: Any, dtype: DType) -> Any:
    """An array that `rounded` may have made, in the dtype of its tensor."""
    is_rounded = dtype is float32 and array.dtype == bfloat16.numpy_dtype
    return array.astype(np.float32) if is_rounded else array


def _is_ids(tensor: Tensor) -> bool:
    return bool(tensor.dtype.is_integer) and tensor.shape.rank == 1


_SMALL_ID = 1 << 23
"""Ids below it are small: their array has 32 MB, of which only pages in use take memory."""


def _room(count: int) -> int:
    """The padded size for a number of ids: a power of two, at least 16, with a quarter to spare."""
    return 1 << max(4, (count + count // 4 - 1).bit_length())


def _summed(rows: NDArray[Any], place: NDArray[Any], count: int) -> NDArray[Any]:
    """The segment sum of rows, `(count, ...)`; 8 times as fast as `np.add.at` (1,325 of 2,048)."""
    flat = rows.reshape(len(rows), -1)
    ones = np.ones(len(rows), rows.dtype)
    chosen = scipy_sparse.csc_array((ones, place, np.arange(len(rows) + 1)), (count, len(rows)))
    total: NDArray[Any] = chosen @ flat
    return total.reshape(count, *rows.shape[1:])
