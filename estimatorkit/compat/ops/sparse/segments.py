"""Segment sums and means of selected rows: `sparse_segment_sum`, `_mean` and `_sqrt_n`.

They run on the host because the number of segments depends on the ids; XLA compiles them (`on_host`
false) if that number and the number of ids are static.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor
from estimatorkit.core.faults import Fault, in_range
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import (
    Case,
    Spec,
    check_allowed,
    constant_value,
    output,
    register,
)
from estimatorkit.core.shapes import SCALAR, UNKNOWN, TensorShape
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.array.segment import sorted_fault
from estimatorkit.ops.math.elementwise import cast
from estimatorkit.ops.sparse.sparse import Array, floats, longs

_DATA = floats([[1, 2], [3, 4], [-5, 6]])
_CHOSEN = longs(0, 2, 1, 1)
_SEGMENTS = longs(0, 0, 2, 2)


def _weights(module: Any, segments: Any, count: int, combiner: str, dtype: Any) -> Any:
    """The weight of each selected row."""
    if combiner == "sum":
        return module.ones(segments.shape, dtype)
    sizes = module.bincount(segments, minlength=count, **_length(module, count))[segments]
    power = 1.0 if combiner == "mean" else 0.5
    return (1.0 / sizes.astype(dtype) ** module.asarray(power, dtype)).astype(dtype)


def _length(module: Any, count: int) -> dict[str, int]:
    return {} if module is np else {"length": count}


def _by_row(weights: Any, rows: Any) -> Any:
    return weights.reshape(weights.shape + (1,) * (rows.ndim - 1))


def _on_device(
    data: Any, indices: Any, segments: Any, count: Any, combiner: str, on_host: bool
) -> Any:
    segments, number = jnp.asarray(segments), int(count)
    rows = jnp.asarray(data)[jnp.asarray(indices)]
    weights = _weights(jnp, segments, number, combiner, data.dtype)
    start = jnp.zeros([number, *data.shape[1:]], data.dtype)
    return start.at[segments].add(rows * _by_row(weights, rows))


def _on_host(
    data: Array, indices: Array, segments: Array, count: Array, combiner: str, on_host: bool
) -> Array:
    number = int(count)
    rows = data[indices]
    result = np.zeros([number, *data.shape[1:]], data.dtype)
    weights = _weights(np, segments, number, combiner, data.dtype)
    np.add.at(result, segments, rows * _by_row(weights, rows))
    return result


def _gradient_on_device(
    dy: Any, indices: Any, segments: Any, rows: Any, combiner: str, on_host: bool
) -> Any:
    segments = jnp.asarray(segments)
    weights = _weights(jnp, segments, dy.shape[0], combiner, dy.dtype)
    parts = jnp.asarray(dy)[segments]
    start = jnp.zeros([int(rows), *dy.shape[1:]], dy.dtype)
    return start.at[jnp.asarray(indices)].add(parts * _by_row(weights, parts))


def _gradient_on_host(
    dy: Array, indices: Array, segments: Array, rows: Array, combiner: str, on_host: bool
) -> Array:
    weights = _weights(np, segments, len(dy), combiner, dy.dtype)
    result = np.zeros([int(rows), *dy.shape[1:]], dy.dtype)
    parts = dy[segments]
    np.add.at(result, indices, parts * _by_row(weights, parts))
    return result


def _place(attrs: Mapping[str, Any]) -> Any:
    return "host" if attrs["on_host"] else "device"


def _infer(inputs: Any, attrs: Any) -> list[Spec]:
    count = constant_value(inputs[3])
    dims = inputs[0].shape.dims
    shape = UNKNOWN if dims is None else TensorShape([None if count is None else count, *dims[1:]])
    return [Spec(inputs[0].dtype, shape)]


def _gradient(op: Operation, dy: Tensor) -> list[Any]:
    data, indices, segments, _ = op.inputs
    rows = output("Shape", [data], {"dtype": indices.dtype})[0]
    attrs = op.attrs if data.shape.rank and data.shape[0] else {**op.attrs, "on_host": True}
    back = output("SparseSegmentGrad", [dy, indices, segments, rows], attrs)
    back.set_shape(data.shape)
    return [back, None, None, None]


def _fault(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[Fault]:
    data, indices, segments, count = inputs
    if indices.shape != segments.shape:
        raise ValueError(
            f"segment_ids and indices should have same size, got {segments.shape} and "
            f"{indices.shape}"
        )
    words = "segment ids must be < num_segments: segment_ids{at} = {value}, of {bound}"
    return [
        *in_range(
            1, indices, data.shape[0], "Bad: indices{at} == {value} out of range [0, {bound})"
        ),
        *sorted_fault(2, segments),
        *in_range(2, segments, int(count), words, None),
    ]


register(
    "SparseSegment",
    _on_device,
    fault=_fault,
    where=_place,
    numpy_kernel=_on_host,
    infer=_infer,
    static=(3,),
    gradient=_gradient,
    accepts=("fi", "x", "x"),
    cases=lambda: (
        [
            Case(
                (_DATA, _CHOSEN, _SEGMENTS, longs(4).reshape(())),
                {"combiner": combiner, "on_host": False},
                floats([[-4, 8], [0, 0], [6, 8], [0, 0]]) / np.float32(divisor),
            )
            for combiner, divisor in (("sum", 1), ("mean", 2), ("sqrt_n", 2**0.5))
        ]
        + [
            Case(
                (_DATA, _CHOSEN, _SEGMENTS, longs(3).reshape(())),
                {"combiner": "mean", "on_host": True},
                floats([[-2, 4], [0, 0], [3, 4]]),
            )
        ]
    ),
)
register(
    "SparseSegmentCount",
    lambda segments: segments[-1] + 1 if len(segments) else np.zeros((), segments.dtype),
    where="host",
    infer=lambda inputs, attrs: [Spec(inputs[0].dtype, SCALAR)],
    gradient=None,
    cases=lambda: [Case((_SEGMENTS,), {}, np.int64(3))],
)
register(
    "SparseSegmentGrad",
    _gradient_on_device,
    where=_place,
    numpy_kernel=_gradient_on_host,
    infer=lambda inputs, attrs: _infer([inputs[0], None, None, inputs[3]], attrs),
    static=(3,),
    gradient=lambda op, dy: [
        output("SparseSegment", _second(op, dy), {**op.attrs, "on_host": True}),
        *[None] * 3,
    ],
    accepts="f",
    cases=lambda: [
        Case(
            (floats([[1, 2], [3, 4], [5, 6]]), _CHOSEN, _SEGMENTS, longs(3).reshape(())),
            {"combiner": "mean", "on_host": on_host},
            floats([[0.5, 1], [5, 6], [0.5, 1]]),
        )
        for on_host in (False, True)
    ],
)


def _second(op: Operation, dy: Tensor) -> list[Tensor]:
    dy0, indices, segments, _ = op.inputs
    return [dy, indices, segments, output("Shape", [dy0], {"dtype": indices.dtype})[0]]


def _segment(op_type: str, combiner: str, doc: str) -> Callable[..., Tensor]:
    def function(
        data: Any,
        indices: Any,
        segment_ids: Any,
        name: str | None = None,
        num_segments: Any = None,
    ) -> Tensor:
        with get_default_graph().name_scope(name or op_type) as scope:
            inputs = [
                convert_to_tensor(data, name="data"),
                as_index_tensor(indices, "indices"),
                as_index_tensor(segment_ids, "segment_ids"),
            ]
            check_allowed(inputs[0], "fi" if combiner == "sum" else "f", op_type, "data")
            count = (
                output("SparseSegmentCount", [inputs[2]])
                if num_segments is None
                else as_index_tensor(num_segments, "num_segments")
            )
            inputs.append(cast(count, inputs[1].dtype))
            known = constant_value(inputs[3]) is not None and inputs[1].shape.is_fully_defined()
            attrs = {"combiner": combiner, "on_host": not known}
            return output("SparseSegment", inputs, attrs, scope)

    function.__name__ = function.__qualname__ = f"sparse_segment_{combiner}"
    function.__doc__ = (
        f"{doc}\n\nArgs:\n    data: `(rows, ...)`.\n"
        "    indices: int32 or int64 `(n,)`, the selected rows.\n"
        "    segment_ids: `(n,)`, the segment of each, in increasing order.\n"
        "    num_segments: the number of segments; by default the last id + 1.\n\n"
        "Returns:\n    `(segments, ...)`; 0 for segments without rows.\n\n"
        "Raises:\n    InvalidArgumentError: at run time, an index is out of range, or the segments "
        "are out of order."
    )
    return function


sparse_segment_sum = _segment("SparseSegmentSum", "sum", "The sum of the selected rows by segment.")
sparse_segment_mean = _segment(
    "SparseSegmentMean", "mean", "The mean of the selected rows by segment."
)
sparse_segment_sqrt_n = _segment(
    "SparseSegmentSqrtN",
    "sqrt_n",
    "The sum of the selected rows by segment, divided by the square root of their number.",
)
