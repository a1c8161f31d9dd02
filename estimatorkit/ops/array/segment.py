"""Segment reductions: sums, means and extremes of rows by segment id.

`unsorted_segment_*` take the number of segments and run on the device. For `segment_*` the last id
determines it, so the result's shape depends on values: they run on the host unless the ids are
constant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import int32
from estimatorkit.core.errors import value_error
from estimatorkit.core.faults import Fault, in_range
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import (
    Case,
    Spec,
    check_allowed,
    constant_value,
    fixed_value,
    register,
)
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.sizes import dims_of, traced_size
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.math import elementwise


def _ascending(position: int, ids: Any, text: str) -> list[Fault]:
    """The test that the elements of a vector do not decrease."""
    if ids.shape[0] < 2:
        return []

    def text_of(index: tuple[int, ...], values: tuple[int, ...]) -> str:
        (place,) = index
        return f"{text}: [{place}] = {values[0]}, [{place + 1}] = {values[1]}"

    before, after = ids[:-1], ids[1:]
    return [Fault(position, after < before, (before, after), text_of)]


_DATA = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 4.0], [2.0, 2.0]], np.float32)
_IDS = np.array([0, 0, -1, 0], np.int32)


def _limits(dtype: Any) -> Any:
    info: Any = jnp.finfo if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo
    return info(dtype)


def _lowest(dtype: Any) -> Any:
    return _limits(dtype).min


def _highest(dtype: Any) -> Any:
    return _limits(dtype).max


def _flat(data: Any, ids: Any) -> tuple[Any, Any]:
    """Rows and ids with the ids' dimensions flattened; negative ids count as out of range."""
    data, ids = jnp.asarray(data), jnp.asarray(ids)
    rows = data.reshape(ids.size, *data.shape[ids.ndim :])
    return rows, ids.reshape(-1)


def _products(rows: Any, ids: Any, count: int) -> Any:
    # JAX cannot differentiate a scattered product; this form has all derivatives.
    own = ids == jnp.arange(count)[:, None]
    own = own.reshape(*own.shape, *[1] * (rows.ndim - 1))
    return jnp.prod(jnp.where(own, rows, jnp.ones((), rows.dtype)), axis=1)


def _unsorted(kind: str) -> Callable[..., Any]:
    function = _products if kind == "prod" else getattr(jax.ops, f"segment_{kind}")

    def kernel(data: Any, ids: Any, count: Any) -> Any:
        rows, flat = _flat(data, ids)
        (number,) = dims_of(count)
        dropped = jnp.where(
            flat < 0, traced_size(number), flat
        )  # in an extra segment, which is dropped
        result = function(rows, dropped, number + 1)[:number]
        if kind in ("max", "min"):  # an empty segment has the dtype's limit, as in TensorFlow
            empty = jax.ops.segment_sum(jnp.ones_like(dropped), dropped, number + 1)[:number] == 0
            empty = empty.reshape(-1, *[1] * (result.ndim - 1))
            limit = (_lowest if kind == "max" else _highest)(result.dtype)
            result = jnp.where(empty, jnp.asarray(limit, result.dtype), result)
        return result.astype(rows.dtype)

    return kernel


def _infer_unsorted(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    data, ids, count = inputs
    if data.shape.dims is None or ids.shape.rank is None:
        return [Spec(data.dtype, UNKNOWN)]
    count.shape.assert_has_rank(0)
    number = constant_value(count)
    if not data.shape[: ids.shape.rank].is_compatible_with(ids.shape):
        raise value_error(
            "data.shape does not start with segment_ids.shape",
            received=f"{data.name} {data.shape}, {ids.name} {ids.shape}",
            made_at=ids.op.source,
        )
    rest = data.shape.dims[ids.shape.rank :]
    return [Spec(data.dtype, TensorShape([None if number is None else int(number), *rest]))]


def _unsorted_fault(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[Fault]:
    words = "segment_ids{at} = {value} is out of range [0, {bound})"
    return in_range(1, inputs[1], int(inputs[2]), words, None)  # negative ids are dropped


def sorted_fault(position: int, ids: Any) -> list[Fault]:
    """The tests of ids in ascending order, of which the last one is known to be the greatest."""
    if ids.shape[0] == 0:
        return []
    words = (
        "Segment id {value} out of range [0, {bound}), possibly because 'segment_ids' input is not "
        "sorted"
    )
    order = _ascending(position, ids, "segment ids are not increasing")
    return [*order, *in_range(position, ids[:1], ids[-1] + 1, words)]


def _reference(kind: str) -> Callable[..., Any]:
    reduce: dict[str, Callable[..., Any]] = {
        "sum": np.sum,
        "prod": np.prod,
        "max": np.max,
        "min": np.min,
    }

    def compute(data: Any, ids: Any, count: Any) -> Any:
        rows = data.reshape(ids.size, *data.shape[ids.ndim :])
        flat = ids.reshape(-1)
        out = np.zeros((int(count), *rows.shape[1:]), data.dtype)
        for number in range(int(count)):
            own = rows[flat == number]
            if len(own):
                own_dtype = {"dtype": data.dtype} if kind in ("sum", "prod") else {}
                out[number] = reduce[kind](own, axis=0, **own_dtype)
            elif kind == "prod":
                out[number] = 1
            elif kind in ("max", "min"):
                out[number] = (_lowest if kind == "max" else _highest)(data.dtype)
        return out

    return compute


for _kind in ("sum", "prod", "max", "min"):
    register(
        f"UnsortedSegment{_kind.capitalize()}",
        _unsorted(_kind),
        fault=_unsorted_fault,
        infer=_infer_unsorted,
        numpy_kernel=_reference(_kind),
        moves=_kind in ("max", "min"),
        static=(2,),
        accepts=(
            "fic" if _kind in ("sum", "prod") else "fi",
            "x int16" if _kind == "sum" else "x",
            "x",
        ),
        cases=lambda kind=_kind: [
            Case((_DATA, _IDS, np.int32(3 if kind in ("sum", "prod") else 1))),
            Case((_DATA, np.array([[0, 1], [1, -1], [2, 0], [1, 1]], np.int32), np.int32(3))),
        ],
    )


def _function(kind: str, doc: str) -> Callable[..., Tensor]:
    def unsorted(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
        inputs = {"data": data, "segment_ids": segment_ids, "num_segments": num_segments}
        return make(f"UnsortedSegment{kind.capitalize()}", inputs, name=name)

    unsorted.__name__ = unsorted.__qualname__ = f"unsorted_segment_{kind}"
    unsorted.__doc__ = (
        f"{doc}\n\nArgs:\n    data: a tensor.\n    segment_ids: int; its shape is a prefix of that "
        "of `data`. Rows with a negative id are\n        ignored.\n    num_segments: the "
        "number of segments.\n    name: the operation's name."
    )
    return unsorted


unsorted_segment_sum = _function("sum", "The sum of the rows of each segment; 0 if empty.")
unsorted_segment_prod = _function("prod", "The product of the rows of each segment; 1 if empty.")
unsorted_segment_max = _function(
    "max", "The maximum of the rows of each segment; the dtype's lowest value if empty."
)
unsorted_segment_min = _function(
    "min", "The minimum of the rows of each segment; the dtype's highest value if empty."
)


def _counts(data: Tensor, ids: Tensor, count: Any) -> Tensor:
    ones = filling.ones_like(ids, dtype=data.dtype.real_dtype)
    number = elementwise.maximum(unsorted_segment_sum(ones, ids, count), 1)
    return _beside(number, data, ids)


def _beside(of_segments: Tensor, data: Tensor, ids: Tensor) -> Tensor:
    """A number of each segment, with dimensions of length 1 for those of a row of the data."""
    ranks = data.shape.rank, ids.shape.rank
    if None in ranks:
        lengths = filling.ones_like(array.shape(data)[array.rank(ids) :])
        return array.reshape(of_segments, joining.concat([[-1], lengths], 0))
    for _ in range(ranks[0] - ranks[1]):  # type: ignore[operator]
        of_segments = array.expand_dims(of_segments, -1)
    return of_segments


def unsorted_segment_mean(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """The mean of the rows of each segment; 0 if it is empty."""
    with get_default_graph().name_scope(name or "UnsortedSegmentMean"):
        x, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        return unsorted_segment_sum(x, ids, num_segments) / _counts(x, ids, num_segments)


def unsorted_segment_sqrt_n(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """The sum of the rows of each segment divided by the square root of their number."""
    with get_default_graph().name_scope(name or "UnsortedSegmentSqrtN"):
        x, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        number = elementwise.sqrt(_counts(x, ids, num_segments))
        return unsorted_segment_sum(x, ids, num_segments) / number


# -- sorted ids: the last one tells how many segments there are


def _out_of_order(ids: Any) -> bool:
    return bool(ids.size and (np.any(np.diff(ids) < 0) or ids[0] < 0))


def _segments_of(ids: Any) -> Any:
    ids = np.asarray(ids)
    return np.asarray(ids[-1] + 1 if ids.size else 0, np.int32)


register(
    "SegmentCount",
    _segments_of,
    fault=lambda inputs, attrs: sorted_fault(0, inputs[0]),
    where="host",
    infer=lambda inputs, attrs: [Spec(int32, TensorShape([]))],
    gradient=None,
    cases=lambda: [Case((np.array([0, 0, 2], np.int32),), {}, np.int32(3))],
)


def _check_ids(data: Tensor, ids: Tensor) -> None:
    """Raises ValueError if sorted ids do not match the data's rows."""
    if ids.shape.rank not in (1, None) or data.shape.rank == 0:
        raise value_error(
            f"Shape must be rank 1 but is rank {ids.shape.rank}: segment ids are a vector"
            if ids.shape.rank != 1
            else "Shape must be at least rank 1 but is rank 0: the data have rows",
            received=f"{data.name} {data.shape}, {ids.name} {ids.shape}",
            made_at=ids.op.source,
        )
    if data.shape.rank and not data.shape[:1].is_compatible_with(ids.shape):
        raise value_error(
            "segment_ids should be the same size as dimension 0 of input",
            received=f"{data.name} {data.shape}, {ids.name} {ids.shape}",
            made_at=ids.op.source,
        )


def _sorted(kind: str) -> Callable[..., Tensor]:
    def segment(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
        with get_default_graph().name_scope(name or f"Segment{kind.capitalize()}") as scope:
            x, ids = convert_to_tensor(data, name="data"), convert_to_tensor(segment_ids)
            check_allowed(ids, "x", f"segment_{kind}", "segment_ids")
            _check_ids(x, ids)
            known = fixed_value(ids)
            if known is not None and not _out_of_order(known):
                count: Any = convert_to_tensor(int(_segments_of(known)), int32)
            else:
                count = make("SegmentCount", {"segment_ids": ids})
            if kind == "mean":
                total = unsorted_segment_sum(x, ids, count)
                number = elementwise.cast(_counts(x, ids, count), x.dtype)
                divide = elementwise.truncatediv if x.dtype.is_integer else elementwise.realdiv
                return divide(total, number, name=scope)
            if kind in ("max", "min"):  # empty segments are 0 here
                found = make(
                    f"UnsortedSegment{kind.capitalize()}",
                    {"data": x, "segment_ids": ids, "num_segments": count},
                )
                ones = filling.ones_like(ids)
                empty = elementwise.equal(unsorted_segment_sum(ones, ids, count), 0)
                mask = elementwise.logical_and(
                    _beside(empty, x, ids), filling.ones_like(found, dtype=bool)
                )
                return indexing.where(mask, filling.zeros_like(found), found, name=scope)
            inputs = {"data": x, "segment_ids": ids, "num_segments": count}
            return make(f"UnsortedSegment{kind.capitalize()}", inputs, name=scope)

    segment.__name__ = segment.__qualname__ = f"segment_{kind}"
    segment.__doc__ = (
        f"The {kind} of the rows of each segment; empty segments are 0 (1 for products).\n\n"
        "Args:\n    data: `(rows, ...)`.\n    segment_ids: int `(rows,)`, the segment of each row, "
        "in ascending order.\n    name: the name scope."
    )
    return segment


segment_sum = _sorted("sum")
segment_mean = _sorted("mean")
segment_prod = _sorted("prod")
segment_max = _sorted("max")
segment_min = _sorted("min")
