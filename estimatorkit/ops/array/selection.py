"""Value-dependent selection: masks, unique values, sorting, partitioning, counting.

Ops whose result size depends on values run on the host; gradients flow through the `gather` of the
selected elements.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import as_dtype, bool_, int32, int64
from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.core.faults import in_range
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.array.segment import unsorted_segment_sum
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.math.axes import axis_of, unknown_numbers
from estimatorkit.ops.math.checked import checked

_SAMPLE = np.array([[3.0, 1.0, 2.0], [-1.0, 5.0, 0.5]], np.float32)


def boolean_mask(tensor: Any, mask: Any, name: str = "boolean_mask", axis: Any = None) -> Tensor:
    """Selects the elements (or slices) where a mask is true.

    Args:
        tensor: a tensor.
        mask: bool; its shape is that of the tensor's dimensions from `axis` on.
        axis: the first dimension that the mask is about, 0 by default.

    Returns:
        `(..., true elements, rest)`.

    Raises:
        ValueError: the mask is a scalar, or does not fit.
    """
    with get_default_graph().name_scope(name or "boolean_mask"):
        x = convert_to_tensor(tensor, name="tensor")
        chosen = convert_to_tensor(mask, bool_, name="mask")
        if chosen.shape.rank is None:
            raise ValueError(
                "Number of mask dimensions must be specified, even if some dimensions are None."
            )
        if chosen.shape.rank == 0:
            raise ValueError("mask cannot be scalar.")
        start: Any = unknown_numbers(axis, "boolean_mask")
        known, count = x.shape if start is None else UNKNOWN, chosen.shape.rank
        start = axis_of(0 if axis is None else axis, "boolean_mask") if start is None else start
        if known.rank is not None:
            known[start : start + count].assert_is_compatible_with(chosen.shape)
        if count > 1:
            dims = array.shape(x)
            flat = joining.concat([dims[:start], [-1], dims[start + count :]], 0)
            x = array.reshape(x, flat)
            if known.rank is not None:
                x.set_shape([*known.as_list()[:start], None, *known.as_list()[start + count :]])
            chosen = array.reshape(chosen, [-1])
        places = array.squeeze(indexing.where(chosen), [1])
        return indexing.gather(x, places, axis=start)


# -- different values


class Unique(NamedTuple):
    """The result of `unique`.

    Attributes:
        y: the different values, in the order in which they first come.
        idx: for each element its place in `y`.
    """

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """The result of `unique_with_counts`: `Unique` with the `count` of each value."""

    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]  # TensorFlow's name, over the tuple's method


def _sortable(x: Any) -> Any:
    """An array that NumPy sorts right: its NaN of bfloat16 come anywhere."""
    return x.astype(np.float32) if x.dtype.kind == "V" else x


def _unique(x: Any, dtype: Any) -> Any:
    values, first, inverse, counts = np.unique(
        _sortable(x), return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    order = np.argsort(first, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    numpy = dtype.numpy_dtype
    return (
        values[order].astype(x.dtype),
        place[inverse.reshape(-1)].astype(numpy),
        counts[order].astype(numpy),
    )


register(
    "Unique",
    _unique,
    where="host",
    infer=lambda inputs, attrs: [
        Spec(inputs[0].dtype, TensorShape([None])),
        Spec(attrs["dtype"], inputs[0].shape),
        Spec(attrs["dtype"], TensorShape([None])),
    ],
    gradient="undefined",
    cases=lambda: [
        Case(
            (np.array([4, 1, 4, 2], np.int32),),
            {"dtype": int32},
            (
                np.array([4, 1, 2], np.int32),
                np.array([0, 1, 0, 2], np.int32),
                np.array([2, 1, 1], np.int32),
            ),
        )
    ],
)


def unique(x: Any, out_idx: Any = int32, name: str | None = None) -> Unique:
    """The distinct values of a vector, in order of first occurrence.

    Args:
        x: a vector.
        out_idx: the dtype of the places.
    """
    op = registry.apply("Unique", [_vector(x, "unique")], {"dtype": as_dtype(out_idx)}, name)
    return Unique(*op.outputs[:2])


def unique_with_counts(x: Any, out_idx: Any = int32, name: str | None = None) -> UniqueWithCounts:
    """`unique` with the number of occurrences of each value."""
    attrs = {"dtype": as_dtype(out_idx)}
    op = registry.apply(
        "Unique", [_vector(x, "unique_with_counts")], attrs, name or "UniqueWithCounts"
    )
    return UniqueWithCounts(*op.outputs)


def _vector(x: Any, what: str) -> Tensor:
    tensor = convert_to_tensor(x, name="x")
    if tensor.shape.rank not in (1, None):
        raise value_error(
            f"{what} expects a 1D vector",
            received=tensor,
            made_at=tensor.op.source,
            hint="reshape(x, [-1])",
        )
    return tensor


def _difference(x: Any, y: Any, dtype: Any) -> Any:
    keep = ~np.isin(_sortable(x), _sortable(y))
    return x[keep], np.flatnonzero(keep).astype(dtype.numpy_dtype)


register(
    "ListDiff",
    _difference,
    where="host",
    infer=lambda inputs, attrs: [
        Spec(inputs[0].dtype, TensorShape([None])),
        Spec(attrs["dtype"], TensorShape([None])),
    ],
    gradient="undefined",
    cases=lambda: [
        Case(
            (np.array([1, 2, 3, 2], np.int32), np.array([2], np.int32)),
            {"dtype": int32},
            (np.array([1, 3], np.int32), np.array([0, 2], np.int32)),
        )
    ],
)


class ListDiff(NamedTuple):
    """The result of `setdiff1d`: the remaining values and their indices."""

    out: Tensor
    idx: Tensor


def setdiff1d(x: Any, y: Any, index_dtype: Any = int32, name: str | None = None) -> ListDiff:
    """The values of x that are not in y, and their indices in x."""
    one = _vector(x, "setdiff1d")
    other = _vector(convert_to_tensor(y, one.dtype, name="y"), "setdiff1d")
    op = registry.apply("ListDiff", [one, other], {"dtype": as_dtype(index_dtype)}, name)
    return ListDiff(*op.outputs)


# -- sorting


def _sort(x: Any, axis: int, descending: bool, module: Any = jnp) -> Any:
    x = module.asarray(x)
    if not descending:
        return module.sort(x, axis=axis)
    # In reverse, so that equal values (and their gradients) keep their order.
    backwards = module.negative if x.dtype.kind in "fV" else module.invert
    return backwards(module.sort(backwards(x), axis=axis))


def _argsort(x: Any, axis: int, descending: bool, module: Any = jnp) -> Any:
    x = module.asarray(x)
    extra = {"stable": True}
    if not descending:
        return module.argsort(x, axis=axis, **extra).astype(np.int32)
    # A stable sort.
    last = module.flip(module.argsort(module.flip(x, axis), axis=axis, **extra), axis)
    return (x.shape[axis] - 1 - last).astype(np.int32)


def _sorted_by_numpy(x: Any, axis: int, descending: bool, kernel: Callable[..., Any]) -> Any:
    found = kernel(_sortable(x), axis, descending, np)
    return found.astype(x.dtype) if kernel is _sort else found


for _type, _kernel in (("Sort", _sort), ("ArgSort", _argsort)):
    register(
        _type,
        _kernel,
        numpy_kernel=functools.partial(_sorted_by_numpy, kernel=_kernel),
        gradient="auto" if _type == "Sort" else None,
        accepts="fi",
        cases=lambda: [
            Case((_SAMPLE,), {"axis": -1, "descending": False}),
            Case((_SAMPLE,), {"axis": 0, "descending": True}),
        ],
    )


def _order(direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise value_error(
            "direction is none of its values",
            expected="'ASCENDING' or 'DESCENDING'",
            received=repr(direction),
        )
    return direction == "DESCENDING"


def sort(
    values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None
) -> Tensor:
    """Sorts along an axis."""
    attrs = {"axis": axis_of(axis, "sort"), "descending": _order(direction)}
    return make("Sort", {"values": values}, attrs, name or "sort")


def argsort(
    values: Any,
    axis: int = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: str | None = None,
) -> Tensor:
    """The int32 indices that sort values along an axis; the sort is stable."""
    attrs = {"axis": axis_of(axis, "sort"), "descending": _order(direction)}
    return make("ArgSort", {"values": values}, attrs, name or "argsort")


def _searched(ordered: Any, values: Any, side: str, dtype: Any, module: Any = jnp) -> Any:
    ordered, values = module.asarray(ordered), module.asarray(values)
    sequences = module.reshape(ordered, (math.prod(ordered.shape[:-1]), 1, ordered.shape[-1]))
    rows = module.reshape(values, (math.prod(values.shape[:-1]), values.shape[-1], 1))
    if sequences.shape[0] != rows.shape[0]:
        raise ValueError(
            "Leading dim_size of both tensors must match: there are "
            f"{sequences.shape[0]} sequences and {rows.shape[0]} rows of values"
        )
    # NaN compares false: it comes last from the right, first from the left.
    compare = ~(rows < sequences) if side == "right" else sequences < rows
    return module.sum(compare, -1).astype(dtype.numpy_dtype).reshape(values.shape)


def _infer_searched(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    ordered, values = inputs
    for tensor in inputs:
        if tensor.shape.rank == 0:
            raise value_error("searchsorted: Shape must be at least rank 1", received=tensor)
    rows = [None if t.shape.rank is None else t.shape[:-1].num_elements() for t in inputs]
    if None not in rows and rows[0] != rows[1]:
        raise value_error(
            f"Leading dim_size of both tensors must match: there are {rows[0]} sequences and "
            f"{rows[1]} rows of values",
            received=f"{ordered.name} {ordered.shape}, {values.name} {values.shape}",
        )
    return [Spec(attrs["dtype"], values.shape)]


register(
    "SearchSorted",
    _searched,
    infer=_infer_searched,
    numpy_kernel=lambda ordered, values, side, dtype: _searched(ordered, values, side, dtype, np),
    gradient=None,
    accepts="fi",
    cases=lambda: [
        Case(
            (np.sort(_SAMPLE, -1), np.array([[1.0, 9.0], [0.5, -2.0]], np.float32)),
            {"side": side, "dtype": int32},
        )
        for side in ("left", "right")
    ],
)


def searchsorted(
    sorted_sequence: Any,
    values: Any,
    side: str = "left",
    out_type: Any = int32,
    name: str | None = None,
) -> Tensor:
    """Insertion indices that keep a sequence sorted.

    Args:
        sorted_sequence: `(..., n)`, in rising order.
        values: `(..., m)` of the same dtype, with as many rows as there are sequences.
        side: 'left' for the first such place, 'right' for the last.
        out_type: the dtype of the result.
    """
    if side not in ("left", "right"):
        raise ValueError(f"side must be either 'right' or 'left'.  Saw: {side}.")
    inputs = {"sorted_inputs": sorted_sequence, "values": values}
    attrs = {"side": side, "dtype": as_dtype(out_type)}
    return make("SearchSorted", inputs, attrs, name or "searchsorted", same_dtype=True)


# -- dividing and putting together


def dynamic_partition(
    data: Any, partitions: Any, num_partitions: int, name: str | None = None
) -> list[Tensor]:
    """Partitions the rows into several tensors.

    Args:
        data: a tensor.
        partitions: int, a prefix of the data's shape: the number of the tensor for each row.
        num_partitions: how many tensors there are.
    """
    with get_default_graph().name_scope(name or "DynamicPartition"):
        x, numbers = convert_to_tensor(data, name="data"), convert_to_tensor(partitions)
        registry.check_allowed(numbers, "int32", "dynamic_partition", "partitions")
        if num_partitions < 1:
            raise value_error("num_partitions must be at least 1", received=num_partitions)
        rows = _rows_of(x, numbers, "partitions")
        places = registry.apply(
            "PartitionPlaces", [array.reshape(numbers, [-1])], {"count": int(num_partitions)}
        )
        return [indexing.gather(rows, each) for each in places.outputs]


def _rows_of(data: Tensor, numbers: Tensor, what: str) -> Tensor:
    """Reshapes the data to one row per index; its shape must begin with the indices' shape."""
    rank = numbers.shape.rank
    start = None if rank is None or data.shape.dims is None else data.shape[:rank]
    if start is not None and not start.is_compatible_with(numbers.shape):
        raise value_error(
            f"data.shape must start with {what}.shape",
            received=f"data.shape = {data.shape}, {what}.shape = {numbers.shape}",
            made_at=numbers.op.source,
        )
    at = array.rank(numbers) if rank is None else rank
    rows = array.reshape(data, joining.concat([[array.size(numbers)], array.shape(data)[at:]], 0))
    if data.shape.dims is not None and rank is not None:
        rows.set_shape([numbers.shape.num_elements(), *data.shape.dims[rank:]])
    return rows


def _partition_places(numbers: Any, count: int) -> Any:
    return tuple(np.flatnonzero(numbers == each).astype(np.int32) for each in range(count))


register(
    "PartitionPlaces",
    _partition_places,
    fault=lambda inputs, attrs: in_range(
        0, inputs[0], attrs["count"], "partitions{at} = {value} is not in [0, {bound})"
    ),
    where="host",
    infer=lambda inputs, attrs: [Spec(int32, TensorShape([None]))] * attrs["count"],
    gradient=None,
    cases=lambda: [
        Case(
            (np.array([1, 0, 1], np.int32),),
            {"count": 2},
            (np.array([1], np.int32), np.array([0, 2], np.int32)),
        )
    ],
)


def _stitch_places(*indices: Any) -> Any:
    """For each result row, the position of the last input row written to it; -1 if none."""
    flat = np.concatenate([np.asarray(each).reshape(-1) for each in indices])
    if flat.size and flat.min() < 0:
        raise InvalidArgumentError(None, None, f"indices = {flat.min()} is not in [0, inf)")
    result = np.full(int(flat.max()) + 1 if flat.size else 0, -1, np.int32)
    result[flat] = np.arange(len(flat), dtype=np.int32)
    return result


def _infer_stitch(inputs: Any, attrs: Any) -> list[Spec]:
    known = [registry.constant_value(each) for each in inputs]
    for each in known:
        if each is not None and np.any(each < 0):
            return [Spec(int32, TensorShape([None]))]  # refused in a run
    length = None if any(each is None for each in known) else len(_stitch_places(*known))
    return [Spec(int32, TensorShape([length]))]


register(
    "StitchPlaces",
    _stitch_places,
    fault=lambda inputs, attrs: [
        fault
        for number, each in enumerate(inputs)
        for fault in in_range(number, each, 1 << 31, "indices{at} is out of range: {value}")
    ],
    where="host",
    infer=_infer_stitch,
    gradient=None,
    cases=lambda: [
        Case(
            (np.array([0, 2], np.int32), np.array([1, 2], np.int32)),
            {},
            np.array([0, 2, 3], np.int32),
        )
    ],
)


def dynamic_stitch(indices: Sequence[Any], data: Sequence[Any], name: str | None = None) -> Tensor:
    """Merges rows of several tensors by index; for a duplicate index the last row wins.

    Args:
        indices: int tensors.
        data: tensors; each has the shape of its indices, and then that of a row.
    """
    with get_default_graph().name_scope(name or "DynamicStitch"):
        if len(indices) != len(data):
            raise value_error(
                "List argument 'data' with length "
                f"{len(data)} must match length {len(indices)} "
                "of argument 'indices'"
            )
        places = [convert_to_tensor(each, name="indices") for each in indices]
        for place in places:
            registry.check_allowed(place, "int32", "dynamic_stitch", "indices")
        rows = [
            _rows_of(convert_to_tensor(each, name="data"), place, "indices")
            for place, each in zip(places, data, strict=True)
        ]
        source = registry.output("StitchPlaces", places)
        return indexing.gather(joining.concat(rows, 0), elementwise.maximum(source, 0))


# -- counting


def count_nonzero(
    input_tensor: Any = None,
    axis: Any = None,
    keepdims: bool | None = None,
    dtype: Any = int64,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
    input: Any = None,
) -> Tensor:
    """The number of nonzero elements (nonempty strings), along axes or in total."""
    with get_default_graph().name_scope(name or "count_nonzero"):
        x = convert_to_tensor(input if input_tensor is None else input_tensor)
        zero = filling.zeros([], x.dtype)
        there = elementwise.cast(elementwise.not_equal(x, zero), as_dtype(dtype))
        axes = reduction_indices if axis is None else axis
        return reduce.reduce_sum(there, axes, bool(keep_dims if keepdims is None else keepdims))


def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = int32,
    name: str | None = None,
) -> Tensor:
    """Counts the occurrences of each integer from 0 (or sums their weights).

    Args:
        arr: ints of at least 0.
        weights: weights of the integers, of the shape of `arr`.
        minlength: the minimum length of the result.
        maxlength: the maximum length of the result; integers of at least `maxlength` are ignored.
        dtype: the dtype of the counts; weights keep theirs.
    """
    with get_default_graph().name_scope(name or "bincount"):
        given = convert_to_tensor(arr, name="arr")
        if given.dtype.is_integer:
            registry.check_allowed(given, "x", "bincount", "input")
        x = elementwise.cast(array.reshape(checked(given, "count"), [-1]), int32)
        length = elementwise.add(reduce.reduce_max(joining.concat([x, [-1]], 0)), 1)
        if minlength is not None:
            length = elementwise.maximum(length, _bound_of_length(minlength, "minlength"))
        if maxlength is not None:
            length = elementwise.minimum(length, _bound_of_length(maxlength, "maxlength"))
        if weights is None:
            counted: Tensor = filling.ones_like(x, dtype=as_dtype(dtype))
        else:
            weighed = convert_to_tensor(weights, name="weights")
            if not weighed.shape.is_compatible_with(given.shape) and weighed.shape != (0,):
                raise InvalidArgumentError.explained(
                    "`weights` must be the same shape as `arr`",
                    received=f"{given.shape} and {weighed.shape}",
                    made_at=given.op.source,
                )
            counted = array.reshape(weighed, [-1])
            if weighed.shape == (0,):
                counted = filling.ones_like(x, dtype=weighed.dtype)
        inside = elementwise.cast(elementwise.less(x, length), counted.dtype)
        kept = indexing.where(elementwise.less(x, length), x, -filling.ones_like(x))
        return unsorted_segment_sum(counted * inside, kept, length)


def _bound_of_length(bound: Any, name: str) -> Tensor:
    return elementwise.cast(convert_to_tensor(bound, name=name), int32)


def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = int32, name: str | None = None
) -> Tensor:
    """Histogram of `nbins` equal bins over a range; the outer bins include all values beyond.

    Args:
        values: numbers.
        value_range: the least and the greatest value.
        nbins: the number of parts.
        dtype: int32 or int64.

    Raises:
        ValueError: `nbins` is known not to be positive.
        InvalidArgumentError: the range is known to be empty.
    """
    with get_default_graph().name_scope(name or "histogram_fixed_width"):
        places = histogram_fixed_width_bins(values, value_range, nbins)
        ones = filling.ones_like(array.reshape(places, [-1]), dtype=as_dtype(dtype))
        return unsorted_segment_sum(ones, array.reshape(places, [-1]), nbins)


def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = int32, name: str | None = None
) -> Tensor:
    """The histogram bin index of each value."""
    with get_default_graph().name_scope(name or "histogram_fixed_width_bins"):
        x = convert_to_tensor(values, name="values")
        registry.check_allowed(x, "dx", "histogram_fixed_width_bins", "values")
        low_high = convert_to_tensor(value_range, x.dtype, name="value_range")
        low_high = checked(low_high, "range")
        bins = convert_to_tensor(nbins, int32, name="nbins")
        if (known := registry.constant_value(bins)) is not None and known <= 0:
            raise ValueError(f"Requires nbins > 0: {known}")
        low, high = low_high[0], low_high[1]
        count = elementwise.cast(bins, x.dtype)
        scaled = elementwise.truediv(x - low, high - low) * elementwise.cast(
            count, elementwise.truediv(x - low, high - low).dtype
        )
        place = elementwise.cast(elementwise.floor(scaled), int32)
        last = elementwise.cast(count, int32) - 1
        clipped = elementwise.clip_by_value(place, 0, last)
        return elementwise.cast(clipped, as_dtype(dtype))
