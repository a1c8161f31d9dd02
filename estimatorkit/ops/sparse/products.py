"""Sparse-dense operations: matrix products, and elementwise `*`, `/` and `+`.

All run on the host, except that XLA compiles products with a dense matrix (`on_host` false) if the
sparse matrix has a static shape and number of values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import as_dtype, int64
from estimatorkit.core.errors import value_error
from estimatorkit.core.faults import Fault, outside
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
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.sparse_tensor import (
    SparseTensor,
    SparseTensorValue,
    operators,
)
from estimatorkit.core.tensor import Operation, Tensor, operators as dense_operators
from estimatorkit.ops.array.array import transpose
from estimatorkit.ops.array.filling import ones_like
from estimatorkit.ops.math import linalg
from estimatorkit.ops.math.elementwise import cast, multiply, negative
from estimatorkit.ops.sparse.sparse import (
    Array,
    as_sparse,
    check_in_bounds,
    floats,
    length_of,
    longs,
    put_like,
)

_INDICES = np.array([[0, 1], [0, 2], [2, 0]], np.int64)
_VALUES = np.array([1.5, -2.0, 3.0], np.float32)
_SHAPE = np.array([3, 4], np.int64)
_DENSE = np.arange(8, dtype=np.float32).reshape(4, 2) - np.float32(2.5)


# -- products with a dense matrix. The two ops are each other's gradient: for y = a @ b with
# sparse a, da is the products of rows of dy and b at the positions of a, and db is
# transpose(a) @ dy.


def _place(attrs: Any) -> Any:
    return "host" if attrs["on_host"] else "device"


def _matmul(indices: Any, values: Any, shape: Any, b: Any, on_host: bool) -> Any:
    rows = jnp.asarray(indices)[:, 0]
    products = jnp.asarray(values)[:, None] * jnp.asarray(b)[jnp.asarray(indices)[:, 1]]
    start = jnp.zeros([int(shape[0]), b.shape[1]], b.dtype).at[rows]
    return start.max(products) if b.dtype == np.bool_ else start.add(products)


def _matmul_on_host(indices: Array, values: Array, shape: Array, b: Array, on_host: bool) -> Array:
    if values.dtype.kind not in "fc" or values.dtype.itemsize < 4:
        result = np.zeros([int(shape[0]), b.shape[1]], b.dtype)
        np.add.at(result, indices[:, 0], values[:, None] * b[indices[:, 1]])
        return result
    # 20x as fast as np.add.at (100,000 values, 64 columns).
    product: Array = _compressed(indices, values, (int(shape[0]), b.shape[0])) @ b
    return product


def _compressed(indices: Array, values: Array, shape: tuple[int, int]) -> Any:
    """A SciPy sparse matrix.

    Indices sorted by row, or by column (of a transposed matrix), are not sorted again: 3x as fast
    (3000 rows, 50,000 values, 16 columns of the other).
    """
    from scipy.sparse import csc_matrix, csr_matrix

    rows, columns = (np.ascontiguousarray(each) for each in indices.T)
    for major, minor, length, make in (
        (rows, columns, shape[0], csr_matrix),
        (columns, rows, shape[1], csc_matrix),
    ):
        if not (major[1:] < major[:-1]).any():
            starts = np.zeros(length + 1, np.int64)
            np.cumsum(np.bincount(major, minlength=length), out=starts[1:])
            return make((values, minor, starts), shape)
    return csr_matrix((values, (rows, columns)), shape)


def _sampled(indices: Any, a: Any, b: Any, on_host: bool) -> Any:
    rows, columns = jnp.asarray(indices).T
    return (jnp.asarray(a)[rows] * jnp.asarray(b)[columns]).sum(axis=1).astype(a.dtype)


def _sampled_on_host(indices: Array, a: Array, b: Array, on_host: bool) -> Array:
    rows, columns = indices.T
    products: Array = (a[rows] * b[columns]).sum(axis=1).astype(a.dtype)
    return products


def _matmul_gradient(op: Operation, dy: Tensor) -> list[Any]:
    indices, values, _, b = op.inputs
    da = output("SampledMatMul", [indices, dy, _conjugate(b)], op.attrs)
    return [None, da, None, _adjoint(indices, values, b, dy, op.attrs)]


def _sampled_gradient(op: Operation, dy: Tensor) -> list[Any]:
    indices, a, b = op.inputs
    rows = _lengths(a, b)
    da = output("SparseTensorDenseMatMul", [indices, dy, rows, _conjugate(b)], op.attrs)
    return [None, da, _conjugate(_adjoint(indices, dy, b, a, op.attrs))]


def _lengths(rows: Tensor, columns: Tensor) -> Tensor:
    """The dense shape of a sparse matrix with the rows of one tensor, and those of another as
    columns.
    """
    parts = [output("Shape", [each], {"dtype": int64})[:1] for each in (rows, columns)]
    return output("ConcatV2", parts, {"axis": 0})


def _adjoint(
    indices: Tensor, values: Tensor, like: Tensor, b: Tensor, attrs: dict[str, Any]
) -> Tensor:
    """The adjoint of a sparse matrix times b; `like` has the number of rows of the result."""
    inputs = [indices[:, ::-1], _conjugate(values), _lengths(like, b), b]
    return output("SparseTensorDenseMatMul", inputs, attrs)


def _matmul_fault(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[Fault]:
    indices, _, shape, b = inputs
    if int(shape[1]) != b.shape[0]:
        raise ValueError(
            "Cannot multiply A and B because inner dimension does not match: "
            f"{int(shape[1])} vs. {b.shape[0]}.  Did you forget a transpose?  Dimensions of A: "
            f"{[int(each) for each in shape]}.  Dimensions of B: {list(b.shape)}"
        )

    def test(column: int, size: int, name: str) -> Fault:
        own = indices[:, column]

        def text(index: tuple[int, ...], values: tuple[int, ...]) -> str:
            place = f"index[{index[0]},{column}]"
            return f"{name} ({values[0]}) from {place} out of bounds (>={size})"

        return Fault(0, outside(own, size), (own,), text)

    return [test(1, int(b.shape[0]), "k"), test(0, int(shape[0]), "m")]


register(
    "SparseTensorDenseMatMul",
    _matmul,
    fault=_matmul_fault,
    where=_place,
    numpy_kernel=_matmul_on_host,
    infer=lambda inputs, attrs: [
        Spec(
            inputs[3].dtype,
            TensorShape([_dimension(inputs[2], 0), length_of(inputs[3], 1)]),
        )
    ],
    static=(2,),
    gradient=_matmul_gradient,
    cases=lambda: [
        Case((_INDICES, _VALUES, _SHAPE, _DENSE), {"on_host": on_host}) for on_host in (False, True)
    ],
)
register(
    "SampledMatMul",
    _sampled,
    where=_place,
    numpy_kernel=_sampled_on_host,
    infer=lambda inputs, attrs: [Spec(inputs[1].dtype, TensorShape([length_of(inputs[0])]))],
    gradient=_sampled_gradient,
    cases=lambda: [
        Case(
            (_INDICES, _DENSE[:3] * np.float32(0.5), _DENSE),
            {"on_host": on_host},
            floats([0.25, -3.75, -3.75]),
        )
        for on_host in (False, True)
    ],
)


def _dimension(shape: Tensor, axis: int) -> int | None:
    known = constant_value_as_shape(shape)
    return known[axis] if known.rank is not None and axis < known.rank else None


def sparse_tensor_dense_matmul(
    sp_a: Any,
    b: Any,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of a sparse and a dense matrix, in either order.

    Args:
        sp_a: `(n, m)`.
        b: `(m, k)`, of the same dtype.
        adjoint_a, adjoint_b: whether to transpose (and conjugate) first.

    Returns:
        Dense `(n, k)`.
    """
    with get_default_graph().name_scope(
        name or "SparseTensorDenseMatMul/SparseTensorDenseMatMul"
    ) as scope:
        if isinstance(b, (SparseTensor, SparseTensorValue)):
            product = sparse_tensor_dense_matmul(b, sp_a, not adjoint_b, not adjoint_a)
            return transpose(product)
        sparse = as_sparse(sp_a)
        dense = convert_to_tensor(b, sparse.dtype, name="b")
        indices, values, shape = sparse._components()
        if adjoint_a:
            indices, shape = indices[:, ::-1], shape[::-1]
            values = _conjugate(values)
        if adjoint_b:
            dense = _conjugate(transpose(dense))
        _check_inner(sparse, dense, adjoint_a)
        known = values.shape.is_fully_defined() and constant_value(shape) is not None
        inputs = [indices, values, shape, dense]
        product = output("SparseTensorDenseMatMul", inputs, {"on_host": not known}, scope)
        if sparse.shape.dims is not None:
            product.set_shape([sparse.shape[1 if adjoint_a else 0], None])
        return product


def _conjugate(x: Tensor) -> Tensor:
    return output("SparseConjugate", [x]) if x.dtype.is_complex else x


register(
    "SparseConjugate",
    np.conj,
    where="host",
    infer=lambda inputs, attrs: [Spec(inputs[0].dtype, inputs[0].shape)],
    gradient=lambda op, dy: [_conjugate(dy)],
    cases=lambda: [Case((np.array([1 + 2j], np.complex64),), {}, np.array([1 - 2j], np.complex64))],
)


def _check_inner(sparse: SparseTensor, dense: Tensor, adjoint: bool) -> None:
    dims = sparse.shape.dims
    ranks = (sparse.shape.rank, dense.shape.rank)
    inner = None if dims is None or len(dims) != 2 else dims[0 if adjoint else 1]
    rows = length_of(dense)
    if any(rank not in (None, 2) for rank in ranks) or (
        inner is not None and rows is not None and inner != rows
    ):
        raise value_error(
            f"Dimensions must be equal, but are {inner} and {rows}",
            expected="two matrices, the columns of the first as many as the rows of the second",
            received=f"{sparse.shape} and {dense.shape}",
            made_at=dense.op.source,
        )


# -- elementwise operations


def _flat_places(indices: Array, shape: Array, dense_shape: tuple[int, ...]) -> Array:
    """The flat positions of the elements in a dense array that broadcasts to the sparse shape."""
    lacking = len(shape) - len(dense_shape)
    dims = np.array([1] * lacking + list(dense_shape), np.int64)
    if lacking < 0 or any(dim not in (1, whole) for dim, whole in zip(dims, shape, strict=True)):
        raise ValueError(
            f"SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: "
            f"{shape.tolist()} vs. {list(dense_shape)}"
        )
    axes = np.flatnonzero(dims != 1)
    if not len(axes):
        return np.zeros(len(indices), np.int64)
    places = np.ravel_multi_index(tuple(indices.T[axes]), tuple(dims[axes]))
    return np.asarray(places, np.int64)


def _cwise(function: Callable[[Array, Array], Array]) -> Callable[..., Any]:
    def kernel(indices: Array, values: Array, shape: Array, dense: Array) -> Any:
        where = _flat_places(indices, shape, dense.shape)
        return function(values, dense.reshape(-1)[where]).astype(values.dtype), where

    return kernel


def _multiply_gradient(op: Operation, dy: Tensor, _: Any) -> list[Any]:
    indices, values, shape, dense = op.inputs
    inputs = [indices, dy, shape, _conjugate(dense)]
    from_values = apply("SparseDenseCwiseMul", inputs).outputs[0]
    down = multiply(dy, _conjugate(values))
    return [None, from_values, None, put_like(down, op.outputs[1], dense)]


def _divide_gradient(op: Operation, dy: Tensor, _: Any) -> list[Any]:
    indices, _, shape, dense = op.inputs
    inputs = [indices, dy, shape, _conjugate(dense)]
    from_values = apply("SparseDenseCwiseDiv", inputs).outputs[0]
    down = negative(multiply(from_values, _conjugate(op.outputs[0])))
    return [None, from_values, None, put_like(down, op.outputs[1], dense)]


for _type, _function, _gradient in (
    ("SparseDenseCwiseMul", np.multiply, _multiply_gradient),
    ("SparseDenseCwiseDiv", np.divide, _divide_gradient),
):
    register(
        _type,
        _cwise(_function),
        where="host",
        infer=lambda inputs, attrs: [
            Spec(inputs[1].dtype, inputs[1].shape),
            Spec(int64, TensorShape([length_of(inputs[0])])),
        ],
        gradient=_gradient,
        cases=lambda function=_function: [
            Case(
                (_INDICES, _VALUES, _SHAPE, floats([[2], [4], [8]])),
                {},
                (function(_VALUES, floats([2, 2, 8])), longs(0, 0, 2)),
            )
        ],
    )


def _dense_add(indices: Array, values: Array, shape: Array, dense: Array) -> Any:
    if tuple(shape) != dense.shape:
        raise ValueError(f"Dimensions do not match: {shape.tolist()} and {list(dense.shape)}")
    check_in_bounds(indices, shape)
    total = dense.copy()
    np.add.at(total, tuple(indices.T), values)
    return total


def _dense_add_gradient(op: Operation, dy: Tensor) -> list[Any]:
    indices, values, shape, _ = op.inputs
    ones = ones_like(values)
    return [None, apply("SparseDenseCwiseMul", [indices, ones, shape, dy]).outputs[0], None, dy]


register(
    "SparseTensorDenseAdd",
    _dense_add,
    where="host",
    infer=lambda inputs, attrs: [Spec(inputs[3].dtype, inputs[3].shape)],
    gradient=_dense_add_gradient,
    cases=lambda: [
        Case(
            (_INDICES[:2], _VALUES[:2], longs(1, 3), floats([[1, 1, 1]])),
            {},
            floats([[1, 2.5, -1]]),
        )
    ],
    accepts=("x", "fic", "x", "fic"),
)


def _with_dense(op_type: str) -> Callable[[SparseTensor, Any], SparseTensor]:
    def operate(sparse: SparseTensor, dense: Any) -> SparseTensor:
        other = convert_to_tensor(dense, sparse.dtype, name="y")
        op = apply(op_type, [*sparse._components(), other])
        return sparse.with_values(op.outputs[0])

    return operate


def _integers_too(sparse: SparseTensor, dense: Any) -> SparseTensor:
    if not sparse.dtype.is_integer:
        return _divide(sparse, dense)
    wide = as_dtype("float32" if sparse.dtype.size <= 2 else "float64")
    floating = sparse.with_values(cast(sparse.values, wide))
    return _divide(floating, cast(convert_to_tensor(dense, sparse.dtype), wide))


_multiply = _with_dense("SparseDenseCwiseMul")
_divide = _with_dense("SparseDenseCwiseDiv")
operators["mul"] = _multiply
operators["truediv"] = _integers_too


def _multiplied(
    x: Any, y: Any, dense: Callable[[Any, Any], Tensor] = dense_operators["mul"]
) -> Any:
    """`dense * sparse`; Python calls the dense tensor's operator first."""
    return _multiply(y, x) if isinstance(y, SparseTensor) else dense(x, y)


dense_operators["mul"] = _multiplied


# -- other forms


def sparse_matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """`matmul` of dense matrices; the sparsity hints are ignored."""
    return linalg.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b, name=name)


def map_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> SparseTensor:
    """Applies `op` to the values of sparse tensors with equal indices.

    Args:
        op: a function of tensors that preserves their shape.
        args, kwargs: its arguments; sparse tensors are replaced by their values.
    """
    given = [each for each in [*args, *kwargs.values()] if isinstance(each, SparseTensor)]
    if not given:
        raise ValueError("map_values: no argument is a SparseTensor.")

    def values(each: Any) -> Any:
        return each.values if isinstance(each, SparseTensor) else each

    result = op(*map(values, args), **{key: values(each) for key, each in kwargs.items()})
    return given[0].with_values(result)
