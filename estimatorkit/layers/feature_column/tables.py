"""Tables of trainable rows, and lookups that combine rows by ids.

Ids are padded rows `(..., width)`, looked up on the device by one gather. What counts for nothing
reads the index one past the table: its row is masked, and its gradient's row is outside the table,
where optimizers drop it. So no row that no example used is touched.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.feature_column.column_values import Ids
from estimatorkit.layers.feature_column.columns import FeatureColumn
from estimatorkit.ops.array import array
from estimatorkit.ops.array.own_rows import Lookup, length_of, own_rows
from estimatorkit.ops.files.checkpoint_ops import restore_v2
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.variables.initializers import TruncatedNormal
from estimatorkit.ops.variables.partitioned_variables import parts_of_rows
from estimatorkit.storage.checkpoint import locate_checkpoint, read_contents

COMBINERS = ("mean", "sqrtn", "sum")


# -- looking up


def combined_rows(table: Any, ids: Ids, combiner: str, max_norm: float | None = None) -> Tensor:
    """The rows of a table at some ids, those of one example (or step) combined.

    Args:
        table: a variable `(n, d)`; a partitioned one, in slices of the first dimension; or an
            object whose method `find(ids)` returns variables and the numbers of the rows in each
            of them, negative where there is none: an id's vector is their sum.
        ids: made by a categorical column.
        combiner: 'sum', 'mean' (by the sum of weights) or 'sqrtn' (by the root of the sum of their
            squares). Weights of 0 or less count only for 'sum'.
        max_norm: rows are scaled down to this Euclidean length; None: not.

    Returns:
        float32 `(..., d)`; 0 if nothing counts.
    """
    numbers, weights = ids
    found = table.find(numbers) if hasattr(table, "find") else [(table, numbers)]
    alone = weights is None and bool(numbers.shape.rank) and numbers.shape[-1] == 1
    if alone:  # the usual case; without the axis of length 1 XLA's gather takes half the time
        found = [(variable, array.squeeze(each, [-1])) for variable, each in found]
    rows, counts = _summed_rows(found, None if combiner == "sum" else weights)
    if max_norm is not None:
        length = elementwise.sqrt(reduce.reduce_sum(elementwise.square(rows), -1, keepdims=True))
        rows = rows * (max_norm / elementwise.maximum(length, max_norm))
    if alone:
        return rows
    if weights is not None:
        rows = rows * array.expand_dims(weights, -1)
    total = reduce.reduce_sum(rows, -2)
    if combiner == "sum":
        return total
    share = elementwise.cast(counts, float32)
    if weights is not None:
        share = share * weights
    if combiner == "sqrtn":
        by = elementwise.sqrt(reduce.reduce_sum(elementwise.square(share), -1, keepdims=True))
    else:
        by = reduce.reduce_sum(share, -1, keepdims=True)
    return elementwise.div_no_nan(total, by)


def _summed_rows(
    found: Sequence[tuple[Any, Tensor]], weights: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The sum of rows of variables, `(..., d)`, and whether there is any, `(...)`."""
    rows, counts = [], []
    for variable, numbers in found:
        has = elementwise.greater_equal(numbers, 0)
        if weights is not None:
            has = elementwise.logical_and(has, elementwise.greater(weights, 0.0))
        rows.append(_rows(variable, numbers, has))
        counts.append(has)
    if len(found) == 1:
        return rows[0], counts[0]
    return elementwise.add_n(rows), functools.reduce(elementwise.logical_or, counts)


def _rows(table: Any, ids: Tensor, counts: Tensor) -> Tensor:
    """The rows `(..., width, d)`, 0 where `counts` is False."""
    start: Any = 0
    lookups: list[Lookup] = []
    parts = parts_of_rows(table)
    for part in parts:
        size = length_of(part, ids)
        own = counts
        if len(parts) > 1:
            inside = elementwise.logical_and(
                elementwise.greater_equal(ids, start), elementwise.less(ids, start + size)
            )
            own = elementwise.logical_and(counts, inside)
        lookups.append(Lookup(part, ids - start if lookups else ids, own))
        start += size
    return own_rows(lookups, 0.0)


# -- tables


@dataclass(frozen=True)
class Table:
    """What an embedding's table is.

    Attributes:
        num_buckets, dimension: its shape.
        initializer: of its values; None: normal, cut off, with deviation 1 / sqrt(dimension).
        ckpt_to_load_from, tensor_name_in_ckpt: where its first values are read, or None.
        trainable: whether it is.
    """

    num_buckets: int
    dimension: int
    initializer: Any
    ckpt_to_load_from: str | None
    tensor_name_in_ckpt: str | None
    trainable: bool

    @property
    def shape(self) -> tuple[int, int]:
        """`(num_buckets, dimension)`."""
        return self.num_buckets, self.dimension

    def made_by(self, make: Callable[..., Any], column: FeatureColumn, name: str) -> Any:
        """The variable, made by `WeightMaker.make` or `make_shared`."""
        return make(column, name, self.shape, self._first_value, self.trainable)

    def _first_value(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        if self.ckpt_to_load_from is not None and self.tensor_name_in_ckpt is not None:
            return _restored(
                self.ckpt_to_load_from, self.tensor_name_in_ckpt, self.shape, shape, partition_info
            )
        chosen = self.initializer
        if chosen is None:
            chosen = TruncatedNormal(0.0, 1 / math.sqrt(self.dimension))
        if isinstance(chosen, type):
            chosen = chosen()
        try:
            return chosen(shape, dtype=dtype or float32, partition_info=partition_info)
        except TypeError:
            return chosen(shape, dtype or float32)


def _restored(
    checkpoint: str, name: str, whole: Sequence[int], shape: Any, partition_info: Any
) -> Tensor:
    """A tensor of a checkpoint, or the slice of it that a part of the variable is."""
    path = locate_checkpoint(checkpoint)
    contents = read_contents(path)
    entry = contents.get(name)
    if entry is None:
        raise value_error(
            f"Tensor {name} is not found in {path} checkpoint",
            expected=f"one of its {len(contents)} tensors",
            hint=did_you_mean(name, contents),
        )
    if list(entry.shape) != list(whole):
        raise value_error(
            f"the embedding's shape {list(whole)} doesn't match with shape of tensor {name} "
            f"({list(entry.shape)}) from checkpoint reader",
            received=f"the checkpoint {path}",
        )
    spec = ""
    if partition_info is not None:
        places = (
            f"{start},{size}"
            for start, size in zip(partition_info.var_offset, list(shape), strict=True)
        )
        spec = f"{' '.join(map(str, whole))} {':'.join(places)}"
    (value,) = restore_v2(path, [name], [spec], [entry.dtype], "checkpoint_initializer")
    value.set_shape(list(shape))
    return value
