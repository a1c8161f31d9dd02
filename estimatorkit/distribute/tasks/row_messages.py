"""`RowMessages`: rows of variables in messages of steps, each row once.

The ids of an embedding lookup on another task are sent once each, and the rows that come back are
repeated here. The gradients of equal ids are summed before they are sent. The shards of a table get
all ids of a batch, those of other shards replaced by 0 (see `ops.nn.embedding`), which become one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.tensor import Tensor
from estimatorkit.distribute.tasks.partitions import Partition


class RowMessages:
    """The inputs and outputs of a partition on another task, as they are sent.

    Args:
        part: the partition.
        takes: the tensors sent to the task, in order.
        gives: the tensors sent back, in order.
        kept: tensors that the task keeps for later partitions, which need them as they are.
    """

    def __init__(
        self,
        part: Partition,
        takes: Sequence[Tensor],
        gives: Sequence[Tensor],
        kept: Collection[Tensor],
    ) -> None:
        self._takes = list(takes)
        self._gives = list(gives)
        self._lookups: dict[Tensor, list[Tensor]] = {}
        self._updates: dict[Tensor, list[Tensor]] = {}
        self._places: dict[Tensor, tuple[NDArray[Any], tuple[int, ...]]] = {}
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

    def sent(self, values: Mapping[Tensor, Any]) -> list[NDArray[Any]]:
        """The arrays to send."""
        arrays = {tensor: np.asarray(values[tensor]) for tensor in self._takes}
        self._places = {}
        for ids in self._lookups:
            given = arrays[ids]
            distinct, place = _distinct(given)
            if distinct is not None:
                arrays[ids] = distinct.reshape(-1, *(1,) * (given.ndim - 1))
                for rows in self._lookups[ids]:
                    self._places[rows] = place, given.shape
        for indices, gradients in self._updates.items():
            if not all(arrays[each].dtype in _SUMMED for each in gradients):
                continue
            distinct, place = _distinct(arrays[indices])
            if distinct is not None:
                arrays[indices] = distinct
                for each in gradients:
                    summed = np.zeros((len(distinct), *arrays[each].shape[1:]), arrays[each].dtype)
                    np.add.at(summed, place, arrays[each])
                    arrays[each] = summed
        return list(arrays.values())

    def received(self, found: Sequence[Any]) -> list[Any]:
        """The values of `gives`, of the arrays that came back for what was `sent` last."""
        values = []
        for tensor, value in zip(self._gives, found, strict=True):
            if tensor in self._places:
                place, shape = self._places[tensor]
                rows = value.reshape(len(value), *value.shape[len(shape) :])
                value = rows[place].reshape(*shape, *rows.shape[1:])
            values.append(value)
        return values


_SUMMED = (np.dtype(np.float32), np.dtype(np.float64))
"""Gradients in 16 bits are summed by the task, in 32."""


def _is_ids(tensor: Tensor) -> bool:
    return bool(tensor.dtype.is_integer) and tensor.shape.rank == 1


def _distinct(ids: NDArray[Any]) -> tuple[NDArray[Any] | None, NDArray[Any]]:
    """The ids once each, and the place of each of `ids`, flat; None where that is not shorter.

    Their number is rounded up to a power of two, by repeats of the first: each number is compiled.
    """
    if ids.ndim == 0 or ids.size < 2:
        return None, ids
    distinct, place = np.unique(ids, return_inverse=True)
    count = 1 << (len(distinct) - 1).bit_length()
    if count >= ids.size:
        return None, ids
    padded = np.concatenate([distinct, np.full(count - len(distinct), distinct[0], ids.dtype)])
    return padded, place.reshape(-1)
