"""Sparse tensors: placeholders, conversion from and to dense tensors, and helpers of kernels.

Ops whose output size depends on values run on the host. Gradients of values rely on each input
value contributing to at most one output value: a kernel returns which one as an additional output,
`destinations`, from which `back_through_destinations` builds the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.conversion import as_index_tensor, constant, convert_to_tensor, make
from estimatorkit.core.dtypes import as_dtype, float32, int64
from estimatorkit.core.errors import InvalidArgumentError, type_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import (
    Case,
    Spec,
    apply,
    constant_value_as_shape,
    output,
    register,
)
from estimatorkit.core.shapes import UNKNOWN, TensorShape, as_shape
from estimatorkit.core.sparse_tensor import SparseTensor, SparseTensorValue
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.array.array import placeholder_with_default
from estimatorkit.ops.array.filling import ones, range_
from estimatorkit.ops.array.joining import stack
from estimatorkit.ops.math.elementwise import cast, minimum
from estimatorkit.ops.math.reduce import reduce_sum


def convert_to_tensor_or_sparse_tensor(
    value: Any, dtype: Any = None, name: str | None = None
) -> Tensor | SparseTensor:
    """Converts to a `SparseTensor` if sparse, else to a tensor.

    Args:
        value: a `SparseTensor`, a `SparseTensorValue`, or any argument of `convert_to_tensor`.
        dtype: the dtype.
        name: the name of the constant, if one is created.

    Raises:
        TypeError, ValueError: the value cannot be converted to the dtype.
    """
    if isinstance(value, SparseTensorValue):
        value = SparseTensor.from_value(value)
    if not isinstance(value, SparseTensor):
        return convert_to_tensor(value, dtype, name)
    if dtype is not None and value.dtype != dtype:
        raise type_error(
            "a sparse tensor has the wrong dtype",
            expected=dtype,
            received=value.dtype.name,
            made_at=value.op.source,
            hint="use cast(sparse, dtype)",
        )
    return value


Array = NDArray[Any]


def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A sparse tensor that must be fed in every run, as a `SparseTensorValue`.

    Args:
        dtype: the dtype of the values.
        shape: the dense shape, with None for unknown dimensions, or a tensor; None if unknown.
        name: prefix of the three parts, `name/values`, `name/indices` and `name/shape`; by
            default they are called `Placeholder`.
    """

    def part(kind: str) -> str | None:
        return f"{name}/{kind}" if name else None

    known = None if shape is None or isinstance(shape, Tensor) else as_shape(shape)
    if isinstance(shape, Tensor):
        dense_shape, rank = shape, shape.shape[0] if shape.shape.rank else None
    elif known is None:
        rank = None
        dense_shape = placeholder(int64, [None], part("shape"))
    else:
        rank = known.rank
        with get_default_graph().name_scope(name or "sparse_placeholder"):
            lengths = [-1 if dim is None else dim for dim in known]
            default = constant(np.array(lengths, np.int64))
        dense_shape = placeholder_with_default(default, [rank], part("shape"))
    made = SparseTensor(
        values=placeholder(dtype, [None], part("values")),
        indices=placeholder(int64, [None, rank], part("indices")),
        dense_shape=dense_shape,
    )
    if known is not None:
        made.set_shape(known)
    return made


def as_sparse(value: Any) -> SparseTensor:
    """Converts `value` to a sparse tensor; raises TypeError for dense values."""
    sparse = convert_to_tensor_or_sparse_tensor(value)
    if not isinstance(sparse, SparseTensor):
        raise type_error(
            "Input must be a SparseTensor",
            expected="SparseTensor or SparseTensorValue",
            received=repr(value)[:200],
            hint="use sparse.from_dense(x)",
        )
    return sparse


def sparse_from(op: Operation, shape: TensorShape = UNKNOWN) -> SparseTensor:
    """The sparse tensor of an operation's first three outputs, with the given static shape."""
    made = SparseTensor(*op.outputs[:3])
    made.set_shape(shape)
    return made


# -- helpers of kernels


def longs(*values: Any) -> Array:
    """An int64 array of the arguments, or of a single list."""
    return np.array(values[0] if len(values) == 1 else values, np.int64)


def floats(values: Any) -> Array:
    """A float32 array."""
    return np.array(values, np.float32)


def keys(indices: Array, shape: Array) -> Array:
    """One integer per row of `indices`, ordered like the rows (row-major)."""
    if float(np.prod([float(dim) for dim in shape])) < 2.0**62:
        strides = np.cumprod([1, *[int(dim) for dim in shape][:0:-1]], dtype=np.int64)[::-1]
        return indices @ strides if indices.shape[1] else np.zeros(len(indices), np.int64)
    _, numbers = np.unique(indices, axis=0, return_inverse=True)
    return numbers.reshape(-1).astype(np.int64)


def check_in_bounds(indices: Array, shape: Array) -> None:
    """Raises InvalidArgumentError if an index is out of bounds."""
    if not indices.size or all(  # 14x as fast as checking each row (50,000 rows)
        column.min() >= 0 and column.max() < length
        for column, length in zip(indices.T, shape, strict=True)
    ):
        return
    wrong = ((indices < 0) | (indices >= shape)).any(axis=1)
    first = int(np.argmax(wrong))
    raise InvalidArgumentError.explained(
        f"indices[{first}] = {indices[first].tolist()} is out of bounds: need 0 <= index < "
        f"{np.asarray(shape).tolist()}"
    )


def check_in_order(indices: Array, shape: Array) -> None:
    """Raises InvalidArgumentError unless indices are in row-major order without duplicates."""
    steps = np.diff(keys(indices, shape))
    if (steps <= 0).any():
        first = int(np.argmax(steps <= 0)) + 1
        what = "is repeated" if steps[first - 1] == 0 else "is out of order"
        raise InvalidArgumentError.explained(
            f"indices[{first}] = {indices[first].tolist()} {what}. Many sparse ops require sorted "
            "indices. Use `sparse_reorder` to create a correctly ordered copy"
        )


def sparse_specs(
    dtype: Any, rank: int | None, count: int | None = None, destinations: Sequence[int | None] = ()
) -> list[Spec]:
    """The specs of indices, values and shape, and of the destinations of each count of input
    values.
    """
    return [
        Spec(int64, TensorShape([count, rank])),
        Spec(dtype, TensorShape([count])),
        Spec(int64, TensorShape([rank])),
        *(Spec(int64, TensorShape([length])) for length in destinations),
    ]


def length_of(tensor: Tensor, axis: int = 0) -> int | None:
    """The static size of an axis, None if unknown."""
    return tensor.shape[axis] if tensor.shape.rank is not None else None


def back_through_destinations(
    values_at: Mapping[int, int], output_at: int
) -> Callable[..., list[Any]]:
    """Makes the gradient function of an op that maps each input value to at most one output value.

    Args:
        values_at: for each input of values, its position and that of the output with its
            destinations: flat positions in the output, -1 for dropped values.
        output_at: the position of the output of values.
    """

    def gradient(op: Operation, *incoming: Any) -> list[Any]:
        found: list[Any] = [None] * len(op.inputs)
        for value_at, destination_at in values_at.items():
            if op.inputs[value_at].dtype.is_differentiable:
                found[value_at] = _take(incoming[output_at], op.outputs[destination_at])
        return found

    return gradient


def _take(x: Tensor, positions: Tensor) -> Tensor:
    return output("SparseTake", [x, positions])


def put_like(values: Tensor, positions: Tensor, like: Tensor) -> Tensor:
    """Zeros in the shape of `like`, with values added at flat positions (-1 drops the value)."""
    return output("SparsePut", [values, positions, like])


def _take_kernel(x: Array, positions: Array) -> Array:
    flat = x.reshape(-1)
    kept = positions >= 0
    if kept.all():
        return flat[positions]
    result = np.zeros(len(positions), x.dtype)
    result[kept] = flat[positions[kept]]
    return result


def _put_kernel(values: Array, positions: Array, like: Array) -> Array:
    result = np.zeros(like.size, values.dtype)
    kept = positions >= 0
    np.add.at(result, positions[kept], values[kept])
    return result.reshape(like.shape)


_SAMPLE = np.arange(6, dtype=np.float32).reshape(2, 3) - np.float32(2.5)
_POSITIONS = np.array([4, -1, 0, 4], np.int64)

register(
    "SparseTake",
    _take_kernel,
    where="host",
    infer=lambda inputs, attrs: [Spec(inputs[0].dtype, inputs[1].shape)],
    gradient=lambda op, dy: [put_like(dy, op.inputs[1], op.inputs[0]), None],
    cases=lambda: [Case((_SAMPLE, _POSITIONS), {}, floats([1.5, 0, -2.5, 1.5]))],
)
register(
    "SparsePut",
    _put_kernel,
    where="host",
    infer=lambda inputs, attrs: [Spec(inputs[0].dtype, inputs[2].shape)],
    gradient=lambda op, dy: [_take(dy, op.inputs[1]), None, None],
    cases=lambda: [
        Case((floats([1, 2, 3, 4]), _POSITIONS, _SAMPLE), {}, floats([[3, 0, 0], [0, 5, 0]]))
    ],
)


# -- to dense


def _as_matrix(indices: Array, rank: int) -> Array:
    """Converts scalar or vector indices to `(n, rank)`."""
    if indices.ndim < 2:
        indices = indices.reshape(-1, 1) if rank == 1 else indices.reshape(1, -1)
    if indices.shape[1] != rank:
        raise ValueError(
            f"sparse_indices of shape {indices.shape} do not match an output of rank {rank}"
        )
    return indices


def _to_dense(
    indices: Array, shape: Array, values: Array, default: Array, validate_indices: bool
) -> Any:
    matrix = _as_matrix(indices, len(shape)).astype(np.int64)
    if np.ndim(values) > 1 or (np.ndim(values) and len(values) != len(matrix)):
        raise ValueError(
            f"sparse_values has incorrect shape {list(np.shape(values))}, should be [] or "
            f"[{len(matrix)}]"
        )
    if np.ndim(default):
        raise ValueError(f"default_value should be a scalar, not of shape {np.shape(default)}")
    check_in_bounds(matrix, shape)
    if validate_indices:
        check_in_order(matrix, shape)
    dense = np.full([int(dim) for dim in shape], np.asarray(default, values.dtype), values.dtype)
    dense[tuple(matrix.T)] = values
    where = np.ravel_multi_index(tuple(matrix.T), dense.shape) if dense.ndim else np.zeros(1)
    return dense, np.asarray(where, np.int64)


def _to_dense_gradient(op: Operation, dy: Tensor, _: Any) -> list[Any]:
    values = _take(dy, op.outputs[1])
    whole = reduce_sum(values)
    scalar = op.inputs[2].shape.rank == 0
    return [None, None, whole if scalar else values, reduce_sum(dy) - whole]


register(
    "SparseToDense",
    _to_dense,
    where="host",
    infer=lambda inputs, attrs: [
        Spec(inputs[2].dtype, constant_value_as_shape(inputs[1])),
        Spec(int64, TensorShape([length_of(inputs[0]) if inputs[0].shape.rank == 2 else None])),
    ],
    gradient=_to_dense_gradient,
    cases=lambda: [
        Case(
            (
                np.array([[0, 1], [2, 0]], np.int64),
                np.array([3, 2], np.int64),
                floats([5, 6]),
                np.float32(-1),
            ),
            {"validate_indices": True},
            (floats([[-1, 5], [-1, -1], [6, -1]]), np.array([1, 4], np.int64)),
        )
    ],
    accepts=("x", "x"),
)


def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """A dense tensor with the given values at the given indices.

    Args:
        sparse_indices: int32 or int64: `(n, rank)`, or `(n,)` for a vector, or a scalar.
        output_shape: the dense shape, `(rank,)`.
        sparse_values: `(n,)`, or a scalar for all indices.
        default_value: the value of all other elements.
        validate_indices: whether to reject unsorted or duplicate indices.

    Raises:
        InvalidArgumentError: at run time, an index is out of bounds or out of order.
    """
    with get_default_graph().name_scope(name or "SparseToDense") as scope:
        values = convert_to_tensor(sparse_values, name="sparse_values")
        inputs = [
            as_index_tensor(sparse_indices, "sparse_indices"),
            as_index_tensor(output_shape, "output_shape"),
            values,
            convert_to_tensor(default_value, values.dtype, name="default_value"),
        ]
        attrs = {"validate_indices": bool(validate_indices)}
        return apply("SparseToDense", inputs, attrs, scope).outputs[0]


def sparse_tensor_to_dense(
    sp_input: Any,
    default_value: Any = None,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """Converts a sparse tensor to a dense one.

    Args:
        sp_input: a sparse tensor.
        default_value: the value of missing elements; 0 (or '') by default.
        validate_indices: whether to reject unsorted or duplicate indices.

    Raises:
        InvalidArgumentError: at run time, an index is out of bounds or out of order.
    """
    sparse = as_sparse(sp_input)
    dense = sparse_to_dense(
        sparse.indices,
        sparse.dense_shape,
        sparse.values,
        _zero(sparse.values) if default_value is None else default_value,
        validate_indices,
        name,
    )
    dense.set_shape(sparse.shape)
    return dense


def _zero(tensor: Tensor) -> Any:
    return b"" if tensor.dtype.on_host else tensor.dtype.as_numpy_dtype(0)


# -- from dense


def _from_dense(x: Array, absent: Array) -> Any:
    places = np.asarray(x != absent)
    indices = np.argwhere(places).astype(np.int64)
    where = np.flatnonzero(places).astype(np.int64)
    return indices, x.reshape(-1)[where], np.array(x.shape, np.int64), where


register(
    "SparseFromDense",
    _from_dense,
    where="host",
    infer=lambda inputs, attrs: sparse_specs(
        inputs[0].dtype, inputs[0].shape.rank, destinations=[None]
    ),
    gradient=lambda op, _, dy, *rest: [put_like(dy, op.outputs[3], op.inputs[0]), None],
    cases=lambda: [
        Case(
            (floats([[0, 1.5, 0], [2, 0, 0]]), np.float32(0)),
            {},
            (
                np.array([[0, 1], [1, 0]], np.int64),
                floats([1.5, 2]),
                np.array([2, 3], np.int64),
                np.array([1, 3], np.int64),
            ),
        )
    ],
)


def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """The nonzero (or nonempty) elements of a dense tensor."""
    dense = convert_to_tensor(tensor, name="tensor")
    return _without(dense, _zero(dense), name or "dense_to_sparse")


def dense_to_sparse(tensor: Any, eos_token: Any = 0, outputs_collections: Any = None) -> Any:
    """The elements of a dense tensor other than the padding `eos_token`.

    Equivalent of `tf.contrib.layers.dense_to_sparse`.
    """
    made = _without(convert_to_tensor(tensor, name="tensor"), eos_token, "dense_to_sparse")
    if outputs_collections is not None:
        get_default_graph().add_to_collections(outputs_collections, made)
    return made


def _without(dense: Tensor, absent: Any, name: str) -> SparseTensor:
    with get_default_graph().name_scope(name) as scope:
        inputs = [dense, convert_to_tensor(absent, dense.dtype, name="absent")]
        return sparse_from(apply("SparseFromDense", inputs, name=scope), dense.shape)


def eye(
    num_rows: Any, num_columns: Any = None, dtype: Any = float32, name: str | None = None
) -> SparseTensor:
    """The identity matrix, possibly rectangular, as a sparse tensor."""
    with get_default_graph().name_scope(name or "eye"):
        rows, columns = (
            cast(convert_to_tensor(length), int64)
            for length in (num_rows, num_rows if num_columns is None else num_columns)
        )
        places = range_(minimum(rows, columns))
        indices = stack([places, places], axis=1)
        count = make("Size", {"input": places}, {"dtype": int64})
        return SparseTensor(indices, ones([count], as_dtype(dtype)), stack([rows, columns]))
