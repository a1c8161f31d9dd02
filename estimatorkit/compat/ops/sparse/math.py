"""Elementwise ops, reductions, softmax and indicators of sparse tensors, on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import as_dtype, bool_, int64
from estimatorkit.core.errors import type_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import (
    Case,
    Spec,
    apply,
    constant_value,
    constant_value_as_shape,
    output,
    register,
)
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.array import array
from estimatorkit.ops.array.filling import ones_like, range_
from estimatorkit.ops.math.elementwise import cast
from estimatorkit.ops.sparse.joining import sparse_merge
from estimatorkit.ops.sparse.sparse import (
    Array,
    as_sparse,
    back_through_destinations,
    check_in_bounds,
    convert_to_tensor_or_sparse_tensor,
    floats,
    keys,
    length_of,
    longs,
    sparse_from,
    sparse_specs,
    sparse_tensor_to_dense,
)

_INDICES = np.array([[0, 1], [0, 2], [2, 0]], np.int64)
_VALUES = np.array([1.5, -2.0, 3.0], np.float32)
_SHAPE = np.array([3, 4], np.int64)


# -- two sparse tensors of one shape


def _merged(a_indices: Array, b_indices: Array, shape: Array) -> tuple[Array, Array, Array]:
    """The union of two sets of indices, and the position of each input's elements in it."""
    both = np.concatenate([a_indices, b_indices])
    numbers = keys(both, shape)
    of_a, of_b = numbers[: len(a_indices)], numbers[len(a_indices) :]
    if not ((np.diff(of_a) > 0).all() and (np.diff(of_b) > 0).all()):
        return _interleaved(both, of_a.tolist(), of_b.tolist())
    _, first, place = np.unique(numbers, return_index=True, return_inverse=True)
    place = place.reshape(-1).astype(np.int64)
    return both[first], place[: len(a_indices)], place[len(a_indices) :]


def _interleaved(both: Array, a_keys: list[int], b_keys: list[int]) -> tuple[Array, Array, Array]:
    """As `_merged`, of indices that are not sorted, or repeated: each step takes the next index of
    one input, or of both if they are equal, as in TensorFlow.
    """
    in_a, in_b = np.empty(len(a_keys), np.int64), np.empty(len(b_keys), np.int64)
    a = b = count = 0
    while a < len(a_keys) or b < len(b_keys):
        from_a = b == len(b_keys) or (a < len(a_keys) and a_keys[a] <= b_keys[b])
        from_b = a == len(a_keys) or (b < len(b_keys) and b_keys[b] <= a_keys[a])
        if from_a:
            in_a[a] = count
        if from_b:
            in_b[b] = count
        a, b, count = a + from_a, b + from_b, count + 1
    places = np.empty((count, both.shape[1]), np.int64)
    places[np.concatenate([in_a, in_b])] = both
    return places, in_a, in_b


def _check_same_shape(a_shape: Array, b_shape: Array) -> None:
    if a_shape.shape != b_shape.shape or (a_shape != b_shape).any():
        raise ValueError(
            f"Operands' shapes do not match: got {a_shape.tolist()} and {b_shape.tolist()}"
        )


def _add(
    a_indices: Array,
    a_values: Array,
    a_shape: Array,
    b_indices: Array,
    b_values: Array,
    b_shape: Array,
    threshold: Array,
) -> Any:
    _check_same_shape(a_shape, b_shape)
    places, in_a, in_b = _merged(a_indices, b_indices, a_shape)
    total = np.zeros(len(places), a_values.dtype)
    total[in_a] = a_values
    total[in_b] += b_values
    in_both = np.intersect1d(in_a, in_b)
    kept = np.ones(len(total), np.bool_)
    kept[in_both] = np.abs(total[in_both]) >= threshold
    numbers = np.where(kept, np.cumsum(kept) - 1, -1)
    return places[kept], total[kept], a_shape, numbers[in_a], numbers[in_b]


register(
    "SparseAdd",
    _add,
    where="host",
    infer=lambda inputs, attrs: sparse_specs(
        inputs[1].dtype,
        length_of(inputs[2]),
        destinations=[length_of(inputs[0]), length_of(inputs[3])],
    ),
    gradient=back_through_destinations({1: 3, 4: 4}, 1),
    accepts=("int64", "fic"),
    cases=lambda: [
        Case(
            (
                _INDICES,
                _VALUES,
                _SHAPE,
                longs([[0, 2], [1, 1]]),
                floats([2, 7]),
                _SHAPE,
                np.float32(0.5),
            ),
            {},
            (
                longs([[0, 1], [1, 1], [2, 0]]),
                floats([1.5, 7, 3]),
                _SHAPE,
                longs(0, -1, 2),
                longs(-1, 1),
            ),
        )
    ],
)


def _of_two(pick: Callable[[Array, Array], Array]) -> Callable[..., Any]:
    def kernel(
        a_indices: Array,
        a_values: Array,
        a_shape: Array,
        b_indices: Array,
        b_values: Array,
        b_shape: Array,
    ) -> Any:
        _check_same_shape(a_shape, b_shape)
        check_in_bounds(a_indices, a_shape)
        check_in_bounds(b_indices, b_shape)
        places, in_a, in_b = _merged(a_indices, b_indices, a_shape)
        both = np.zeros([2, len(places)], a_values.dtype)
        both[0, in_a] = a_values
        both[1, in_b] = b_values
        first = pick(both[0], both[1])
        chosen = np.where(first, both[0], both[1])
        to_a = np.where(first[in_a], in_a, -1)
        return places, chosen, a_shape, to_a, np.where(first[in_b], -1, in_b)

    return kernel


for _type, _pick in (
    ("SparseSparseMaximum", np.greater_equal),
    ("SparseSparseMinimum", np.less_equal),
):
    register(
        _type,
        _of_two(_pick),
        where="host",
        accepts=("int64", "fi" if _pick is np.greater_equal else "fic"),
        infer=lambda inputs, attrs: sparse_specs(
            inputs[1].dtype,
            length_of(inputs[2]),
            destinations=[length_of(inputs[0]), length_of(inputs[3])],
        ),
        gradient=back_through_destinations({1: 3, 4: 4}, 1),
        cases=lambda least=_pick is np.less_equal: [
            Case(
                (_INDICES, _VALUES, _SHAPE, longs([[0, 2], [1, 1]]), floats([2, 7]), _SHAPE),
                {},
                (
                    longs([[0, 1], [0, 2], [1, 1], [2, 0]]),
                    floats([0, -2, 0, 0] if least else [1.5, 2, 7, 3]),
                    _SHAPE,
                    longs([-1, 1, -1] if least else [0, -1, 3]),
                    longs([-1, -1] if least else [1, 2]),
                ),
            )
        ],
    )


def _two(op_type: str, a: Any, b: Any, more: list[Tensor], name: str | None) -> SparseTensor:
    one, two = as_sparse(a), as_sparse(b)
    if one.dtype is not two.dtype:
        raise type_error(
            f"{op_type}: the inputs have different dtypes",
            received=f"{one.dtype.name} and {two.dtype.name}",
            made_at=two.op.source,
        )
    op = apply(op_type, [*one._components(), *two._components(), *more], name=name)
    if op_type != "SparseAdd" and not one.shape.is_compatible_with(two.shape):
        return sparse_from(op, one.shape)  # refused at run time, as in TensorFlow
    return sparse_from(op, one.shape.merge_with(two.shape))


def sparse_maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The elementwise maximum of two sparse tensors (missing values count as 0)."""
    return _two("SparseSparseMaximum", sp_a, sp_b, [], name)


def sparse_minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The elementwise minimum of two sparse tensors (missing values count as 0)."""
    return _two("SparseSparseMinimum", sp_a, sp_b, [], name)


def sparse_add(a: Any, b: Any, threshold: Any = None, thresh: Any = None) -> Any:
    """a + b, where either or both are sparse.

    Args:
        a, b: tensors or sparse tensors of one shape.
        threshold: a sparse result omits sums of two present values that are smaller in magnitude
            (`thresh` is a deprecated alias).

    Returns:
        A sparse tensor if both are sparse, else a tensor.
    """
    least = 0 if threshold is None and thresh is None else (threshold if thresh is None else thresh)
    one, two = map(convert_to_tensor_or_sparse_tensor, (a, b))
    if isinstance(one, SparseTensor) and isinstance(two, SparseTensor):
        real = one.dtype.name.replace("complex128", "float64").replace("complex64", "float32")
        return _two("SparseAdd", one, two, [convert_to_tensor(least, as_dtype(real))], None)
    if isinstance(one, SparseTensor):
        one, two = two, one
    if not isinstance(two, SparseTensor):
        raise TypeError("At least one input should be SparseTensor; do you mean to use add()?")
    return output("SparseTensorDenseAdd", [*two._components(), convert_to_tensor(one)])


# -- reductions


def _reduced_places(indices: Array, shape: Array, axes: Array) -> tuple[Array, Array, list[int]]:
    """The indices in the reduced shape, 0 along the axes, and that shape with 1 there."""
    rank = len(shape)
    gone = np.zeros(rank, np.bool_)
    for axis in np.atleast_1d(axes):
        if not -rank <= axis < rank:
            raise ValueError(f"Invalid reduction dimension {axis} for a tensor of rank {rank}")
        gone[axis] = True
    kept_shape = np.where(gone, 1, shape)
    return np.where(gone, 0, indices), gone, [int(dim) for dim in kept_shape]


def _reduce(function: Any) -> Callable[..., Any]:
    def kernel(
        indices: Array, values: Array, shape: Array, axes: Array, keepdims: bool, sparse: bool
    ) -> Any:
        places, gone, dims = _reduced_places(indices, shape, axes)
        numbers, first, place = np.unique(
            keys(places, longs(dims)), return_index=True, return_inverse=True
        )
        place = place.reshape(-1).astype(np.int64)
        lowest = np.zeros((), values.dtype) if function is np.add else _lowest(values.dtype)
        totals = np.full(len(numbers), lowest, values.dtype)
        function.at(totals, place, values)
        columns = np.full(len(shape), True) if keepdims else ~gone
        result_shape = longs(dims)[columns]
        if sparse:
            return places[first][:, columns], totals, result_shape, place
        dense = np.zeros(int(np.prod(dims)), values.dtype)
        flat = np.ravel_multi_index(tuple(places[first].T), dims) if len(first) else longs([])
        dense[flat] = totals
        return dense.reshape(result_shape), np.asarray(flat, np.int64)[place]

    return kernel


def _lowest(dtype: Any) -> Any:
    return as_dtype(dtype).min if dtype.kind in "iu" else -np.inf


def _infer_reduce(inputs: Any, attrs: Any) -> list[Spec]:
    shape = _reduced_shape(constant_value_as_shape(inputs[2]), inputs[3], attrs["keepdims"])
    where = Spec(int64, TensorShape([length_of(inputs[0])]))
    if attrs["sparse"]:
        return [*sparse_specs(inputs[1].dtype, shape.rank), where]
    return [Spec(inputs[1].dtype, shape), where]


def _reduced_shape(shape: TensorShape, axes: Tensor, keepdims: bool) -> TensorShape:
    given = constant_value(axes)
    dims, rank = shape.dims, shape.rank
    if dims is None or rank is None or given is None:
        return UNKNOWN
    gone = {int(axis) % max(rank, 1) for axis in np.atleast_1d(given)}
    return TensorShape(
        [1 if at in gone else dim for at, dim in enumerate(dims) if keepdims or at not in gone]
    )


_REDUCTIONS: tuple[tuple[str, np.ufunc], ...] = (
    ("SparseReduceSum", np.add),
    ("SparseReduceMax", np.maximum),
)
for _name, _ufunc in _REDUCTIONS:
    register(
        _name,
        _reduce(_ufunc),
        where="host",
        accepts=("int64", "fic" if _ufunc is np.add else "fi"),
        infer=_infer_reduce,
        gradient=(
            lambda op, *dy: back_through_destinations(
                {1: 3 if op.attrs["sparse"] else 1}, 1 if op.attrs["sparse"] else 0
            )(op, *dy)
        )
        if _ufunc is np.add
        else "undefined",
        cases=lambda most=_ufunc is np.maximum: [
            Case(
                (_INDICES, _VALUES, _SHAPE, longs([1])),
                {"keepdims": False, "sparse": False},
                (floats([1.5 if most else -0.5, 0, 3]), longs(0, 0, 2)),
            ),
            Case(
                (_INDICES, _VALUES, _SHAPE, longs([-1])),
                {"keepdims": True, "sparse": True},
                (
                    longs([[0, 0], [2, 0]]),
                    floats([1.5 if most else -0.5, 3]),
                    longs(3, 1),
                    longs(0, 0, 1),
                ),
            ),
        ],
    )


def _reduction(op_type: str, sparse_result: bool, doc: str) -> Callable[..., Any]:
    def function(
        sp_input: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        reduction_axes: Any = None,
        keep_dims: bool | None = None,
        output_is_sparse: bool = False,
        name: str | None = None,
    ) -> Any:
        sparse = as_sparse(sp_input)
        chosen = reduction_axes if axis is None else axis
        with get_default_graph().name_scope(name or op_type) as scope:
            if chosen is None:
                rank = sparse.shape.rank
                chosen = range_(array.size(sparse.dense_shape)) if rank is None else np.arange(rank)
            axes = cast(convert_to_tensor(chosen, name="reduction_axes"), int64)
            attrs = {
                "keepdims": bool(keep_dims if keepdims is None else keepdims),
                "sparse": sparse_result or output_is_sparse,
            }
            op = apply(op_type, [*sparse._components(), axes], attrs, scope)
            shape = _reduced_shape(sparse.shape, axes, attrs["keepdims"])
            if attrs["sparse"]:
                return sparse_from(op, shape)
            op.outputs[0].set_shape(shape)
            return op.outputs[0]

    function.__name__ = function.__qualname__ = doc.split(":")[0]
    function.__doc__ = (
        f"{doc.split(': ')[1]}\n\nArgs:\n    sp_input: a sparse tensor.\n"
        "    axis: the dimensions to reduce; all by default (deprecated alias: `reduction_axes`).\n"
        "    keepdims: whether to keep them with length 1.\n"
        "    output_is_sparse: whether the result is sparse.\n"
        "\nSlices without values yield 0."
    )
    return function


sparse_reduce_sum = _reduction(
    "SparseReduceSum", False, "sparse_reduce_sum: The sum along dimensions, dense."
)
sparse_reduce_max = _reduction(
    "SparseReduceMax", False, "sparse_reduce_max: The maximum along dimensions, dense."
)
sparse_reduce_sum_sparse = _reduction(
    "SparseReduceSum", True, "sparse_reduce_sum_sparse: The sum along dimensions, sparse."
)
sparse_reduce_max_sparse = _reduction(
    "SparseReduceMax", True, "sparse_reduce_max_sparse: The maximum along dimensions, sparse."
)


# -- softmax


def _rows(indices: Array, shape: Array) -> Array:
    _, row = np.unique(keys(indices[:, :-1], shape[:-1]), return_inverse=True)
    return row.reshape(-1)


def _softmax(indices: Array, values: Array, shape: Array) -> Array:
    if not len(values):
        return values
    row = _rows(indices, shape)
    most = np.full(row.max() + 1, -np.inf, values.dtype)
    np.maximum.at(most, row, values)
    with np.errstate(invalid="ignore", over="ignore"):
        powers = np.exp(values - most[row])
    total = np.zeros_like(most)
    np.add.at(total, row, powers)
    result: Array = powers / total[row]
    return result


def _softmax_gradient(indices: Array, probabilities: Array, shape: Array, dy: Array) -> Array:
    if not len(dy):
        return dy
    row = _rows(indices, shape)
    total = np.zeros(row.max() + 1, dy.dtype)
    np.add.at(total, row, probabilities * dy)
    result: Array = probabilities * (dy - total[row])
    return result


def _back_through_softmax(op: Operation, probabilities: Tensor, dy: Tensor) -> Tensor:
    return output("SparseSoftmaxGrad", [op.inputs[0], probabilities, op.inputs[2], dy])


def _softmax_second_gradient(op: Operation, dz: Tensor) -> list[Any]:
    """Gradients of z = p (dy - sum p dy), summed over the row, with respect to p and dy."""
    indices, probabilities, shape, dy = op.inputs
    row_sums = [
        dense - output("SparseSoftmaxGrad", [indices, ones_like(dense), shape, dense])
        for dense in (probabilities * dz, probabilities * dy)
    ]
    return [
        None,
        dz * (dy - row_sums[1]) - dy * row_sums[0],
        None,
        _back_through_softmax(op, probabilities, dz),
    ]


register(
    "SparseSoftmax",
    _softmax,
    where="host",
    infer=lambda inputs, attrs: [Spec(inputs[1].dtype, inputs[1].shape)],
    gradient=lambda op, dy: [None, _back_through_softmax(op, op.outputs[0], dy), None],
    cases=lambda: [
        Case((_INDICES, floats([np.log(3), 0, 7]), _SHAPE), {}, floats([0.75, 0.25, 1]))
    ],
    accepts=("int64", "d float16", "int64"),
)
register(
    "SparseSoftmaxGrad",
    _softmax_gradient,
    where="host",
    infer=lambda inputs, attrs: [Spec(inputs[3].dtype, inputs[3].shape)],
    gradient=_softmax_second_gradient,
    cases=lambda: [
        Case(
            (_INDICES, floats([0.75, 0.25, 1]), _SHAPE, floats([1, 0, 5])),
            {},
            floats([0.1875, -0.1875, 0]),
        )
    ],
)


def sparse_softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The softmax of the present values along the last dimension.

    Args:
        sp_input: sparse, of rank 2 or more and a floating dtype.
    """
    sparse = as_sparse(sp_input)
    return sparse.with_values(output("SparseSoftmax", sparse._components(), name=name))


# -- indicators


def sparse_to_indicator(sp_input: Any, vocab_size: Any, name: str | None = None) -> Tensor:
    """Multi-hot encoding of the ids in each row.

    Args:
        sp_input: int32 or int64 ids, sparse `(..., n)`.
        vocab_size: the number of ids.

    Returns:
        bool `(..., vocab_size)`.
    """
    sparse = as_sparse(sp_input)
    if not sparse.dtype.is_integer:
        raise type_error(
            "sparse_to_indicator: ids must be integers",
            expected="int32 or int64",
            received=sparse.dtype.name,
            made_at=sparse.op.source,
        )
    with get_default_graph().name_scope(name or "SparseToIndicator") as scope:
        present = sparse.with_values(ones_like(sparse.values, bool_))
        merged = sparse_merge(sparse, present, vocab_size)
        indicator = sparse_tensor_to_dense(merged, False, validate_indices=False, name=scope)
        known = constant_value(convert_to_tensor(vocab_size))
        dims = sparse.shape.dims
        if dims is not None:
            indicator.set_shape([*dims[:-1], None if known is None else int(known)])
        return indicator
