"""Norms, and products other than matmul: tensordot, einsum, cross."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor, make
from estimatorkit.core.dtypes import bfloat16
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, fixed_value, inference, register
from estimatorkit.core.shapes import TensorShape, differ
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array
from estimatorkit.ops.linalg.decompositions import svd
from estimatorkit.ops.linalg.diagonals import matrix_transpose
from estimatorkit.ops.linalg.matrix_parts import POSITIVE, RIGHT, SQUARE, TALL
from estimatorkit.ops.math import elementwise, linalg, reduce, special
from estimatorkit.ops.math.axes import unknown_numbers

# -- norms and general products


def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The norm of vectors, of matrices, or of a whole tensor.

    Args:
        tensor: floats.
        ord: 'euclidean' (for matrices 'fro'), 1, 2, infinity, or for vectors any positive number.
        axis: None for the whole tensor as a vector, an int for vectors, two ints for matrices.
        keepdims, keep_dims: whether to keep the axes with length 1.

    Raises:
        ValueError: ord is invalid.
    """
    keep = bool(keep_dims if keepdims is None else keepdims)
    matrix = isinstance(axis, (list, tuple)) and len(axis) == 2
    whole = all(isinstance(each, (int, np.integer)) for each in (axis if matrix else [axis]))
    if axis is not None and not (whole and (not matrix or axis[0] != axis[1])):
        raise value_error(
            "norm: 'axis' must be None, an integer, or a tuple of 2 unique integers", received=axis
        )
    allowed = ("fro", "euclidean", 1, 2, np.inf) if matrix else ("euclidean", 1, 2, np.inf)
    number = isinstance(ord, (int, float)) and not matrix and ord > 0
    if ord not in allowed and not number:
        raise value_error("norm: invalid ord", expected=list(allowed), received=ord)
    with get_default_graph().name_scope(name or "norm"):
        x = convert_to_tensor(tensor)
        if ord in ("fro", "euclidean") or (ord == 2 and not matrix):
            squares = reduce.reduce_sum(x * special.conj(x), axis, True)
            result = elementwise.sqrt(squares)
        else:
            size = elementwise.abs(x)
            if not matrix:
                result = _vector_norm(size, ord, axis)
            elif ord == 2:
                if x.shape.rank is None:
                    raise value_error("norm: the rank must be known", received=x)
                rank = x.shape.rank
                rows, columns = (int(a) % rank for a in axis)
                rest = [a for a in range(rank) if a not in (rows, columns)]
                moved = array.transpose(x, [*rest, rows, columns])
                result = reduce.reduce_max(svd(moved, compute_uv=False), -1)
                for a in sorted((rows, columns)):
                    result = array.expand_dims(result, a)
            else:
                along, across = (axis[1], axis[0]) if ord == np.inf else (axis[0], axis[1])
                result = reduce.reduce_max(reduce.reduce_sum(size, along, True), across, True)
        if keep:
            return result
        if axis is None and x.shape.rank is None:  # all axes are of length 1
            return array.reshape(result, [])
        axes = range(x.shape.rank or 0) if axis is None else np.atleast_1d(axis)
        return array.squeeze(result, [int(a) for a in axes]) if len(axes) else result


def _vector_norm(size: Tensor, ord: Any, axis: Any) -> Tensor:
    if ord == np.inf:
        return reduce.reduce_max(size, axis, True)
    if ord == 1:
        return reduce.reduce_sum(size, axis, True)
    powers = reduce.reduce_sum(elementwise.pow(size, float(ord)), axis, True)
    return elementwise.pow(powers, 1.0 / float(ord))


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """The product of two tensors, summed over pairs of axes.

    Args:
        a, b: tensors of one dtype.
        axes: an int n, to pair the last n axes of a with the first n of b; or a pair of lists, the
            axes of a and those of b.

    Raises:
        ValueError: the axes are incompatible.
    """
    with get_default_graph().name_scope(name or "Tensordot"):
        x = convert_to_tensor(a, name="a")
        y = convert_to_tensor(b, x.dtype, name="b")
        unknown = unknown_numbers(axes, "tensordot")
        if unknown is not None or x.shape.rank is None or y.shape.rank is None:
            places = as_index_tensor(axes, "axes") if unknown is None else unknown
            return make("Tensordot", {"a": x, "b": y, "axes": places}, name="MatMul")
        known = fixed_value(axes) if isinstance(axes, Tensor) else axes
        equation = _tensordot_equation(known, x.shape.rank, y.shape.rank)
        return make("Einsum", {"a": x, "b": y}, {"equation": equation}, "MatMul")


def _tensordot_equation(axes: Any, rank_x: int, rank_y: int) -> str:
    of_x, of_y = _tensordot_axes(axes, rank_x, rank_y)
    letters = [chr(97 + at) for at in range(rank_x + rank_y)]
    left, right = letters[:rank_x], letters[rank_x:]
    for one, other in zip(of_x, of_y, strict=True):
        right[other] = left[one]
    summed = {left[one] for one in of_x}
    out = [each for each in (*left, *right) if each not in summed]
    return f"{''.join(left)},{''.join(right)}->{''.join(out)}"


def _tensordot_axes(axes: Any, rank_x: int, rank_y: int) -> tuple[list[int], list[int]]:
    if np.ndim(axes) == 0:
        count = int(axes)
        if not 0 <= count <= min(rank_x, rank_y):
            raise value_error(
                "tensordot: invalid axes",
                expected=f"0 to {min(rank_x, rank_y)}",
                received=count,
            )
        return list(range(rank_x - count, rank_x)), list(range(count))
    one, other = ([int(a) for a in np.atleast_1d(each)] for each in axes)
    if len(one) != len(other):
        raise ValueError(
            f"Different number of contraction axes 'a' and 'b', {len(one)} != {len(other)}."
        )
    for axis, rank in [*((a, rank_x) for a in one), *((a, rank_y) for a in other)]:
        if not -rank <= axis < rank:
            raise IndexError(f"tensordot: axis {axis} is out of range for a tensor of rank {rank}")
    return [a % rank_x for a in one], [a % rank_y for a in other]


def _check_labels(equation: str, operands: Sequence[Any]) -> None:
    """Raises ValueError if a label has two lengths; NumPy would repeat a length of 1."""
    lengths: dict[str, int] = {}
    for labels, operand in zip(equation.split("->")[0].split(","), operands, strict=True):
        before, _, after = labels.partition("...")
        dims = list(operand.shape)
        pairs = [*zip(before, dims, strict=False)]
        pairs += zip(after, dims[len(dims) - len(after) :], strict=False)
        for label, length in pairs:
            if differ((lengths.setdefault(label, length),), (length,)):
                raise ValueError(
                    f"Expected dimension {lengths[label]} at label {label} of the input shaped "
                    f"{dims} but got dimension {length}"
                )


_ROWS = re.compile(r"(\w{2,})(\w),\2(\w)->\1\3")
"""Products of the rows of an array and a matrix: `abc,cd->abd`."""


def _einsum(*operands: Any, equation: str) -> Any:
    _check_labels(equation, operands)
    rows = _ROWS.fullmatch(equation)
    if rows is not None and len(set(equation)) == len("".join(rows.groups())) + len(",->"):
        return linalg.product_of_rows(*map(jnp.asarray, operands))
    return jnp.einsum(equation, *map(jnp.asarray, operands))


def _numpy_einsum(*operands: Any, equation: str) -> Any:
    _check_labels(equation, operands)
    dtype = operands[0].dtype
    if dtype != bfloat16.as_numpy_dtype:
        return np.einsum(equation, *operands)
    # NumPy's einsum rejects bfloat16.
    return np.einsum(equation, *(each.astype(np.float32) for each in operands)).astype(dtype)


def _tensordot(einsum: Any) -> Any:
    def kernel(a: Any, b: Any, axes: Any) -> Any:
        return einsum(a, b, equation=_tensordot_equation(axes, np.ndim(a), np.ndim(b)))

    return kernel


register(
    "Tensordot",  # with ranks or axes known at run time
    _tensordot(_einsum),
    numpy_kernel=_tensordot(_numpy_einsum),
    static=(2,),
    accepts=("fic", "fic", "x"),
    cases=lambda: [
        Case((TALL, SQUARE[0], np.int32(1)), {}, TALL @ SQUARE[0]),
        Case((TALL, TALL, np.array([[0], [0]], np.int32)), {}, TALL.T @ TALL),
    ],
)


def _infer_einsum(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> Sequence[Spec]:
    given, arrow, labels = attrs["equation"].partition("->")
    ranks = [each.shape.rank for each in inputs]
    if not arrow or "..." in labels or None not in ranks:
        return inference.infer_from_kernel(registry.lookup("Einsum"), inputs, attrs)
    lengths: dict[str, int | None] = {}  # of the inputs whose ranks are known
    for before, each in zip(given.split(","), inputs, strict=True):
        if each.shape.dims is not None and len(before) == len(each.shape.dims):
            lengths.update((k, v) for k, v in zip(before, each.shape.dims, strict=True) if v)
    return [Spec(inputs[0].dtype, TensorShape([lengths.get(label) for label in labels]))]


register(
    "Einsum",
    _einsum,
    infer=_infer_einsum,
    accepts="fic",
    numpy_kernel=_numpy_einsum,
    cases=lambda: [
        Case((TALL, TALL), {"equation": "ij,kj->ik"}),
        Case((SQUARE,), {"equation": "bij->bji"}),
        Case((SQUARE, RIGHT), {"equation": "...ij,...jk->...ik"}),
    ],
)


_EQUATION = re.compile(r"[a-zA-Z,.]+(->[a-zA-Z.]*)?")


def einsum(equation: str, *inputs: Any, name: str | None = None, optimize: Any = None) -> Tensor:
    """Einstein summation, with NumPy's notation.

    Args:
        equation: for example 'ij,jk->ik'; may have ellipses.
        *inputs: tensors of one dtype.
        optimize: accepted for compatibility only.

    Raises:
        ValueError: the equation does not fit the inputs.
    """
    if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
        inputs = tuple(inputs[0])
    equation = equation.replace(" ", "")
    if _EQUATION.fullmatch(equation) is None:
        raise ValueError(f"Subscripts have incorrect format: {equation}")
    taken, _, given = equation.replace(".", "").partition("->")
    for label in given:
        if given.count(label) > 1:
            raise ValueError(
                f"Output subscripts contain a label appearing more than once: {equation}"
            )
        if label not in taken:
            raise ValueError(
                f"Output subscripts contain the label {label} not present in the input subscripts."
            )
    if equation.split("->")[0].count(",") + 1 != len(inputs):
        raise value_error(
            f"einsum: the equation {equation!r} does not fit the inputs",
            expected=f"{equation.split('->')[0].count(',') + 1} inputs",
            received=len(inputs),
        )
    with get_default_graph().name_scope(name or "einsum"):
        first = convert_to_tensor(inputs[0])
        tensors = [first, *(convert_to_tensor(each, first.dtype) for each in inputs[1:])]
        registry.check_same_dtype("Einsum", tensors, name)
        return registry.output("Einsum", tensors, {"equation": equation}, "Einsum")


def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """The cross product of 3-vectors along the last axis."""
    return make("Cross", {"a": a, "b": b}, name=name, same_dtype=True)


def _infer_cross(inputs: Any, attrs: Any) -> list[Spec]:
    shape = inputs[0].shape.merge_with(inputs[1].shape)
    if shape.rank == 0 or (shape.dims and shape.dims[-1] not in (3, None)):
        raise value_error(
            f"Dimension must be 3 but is {shape[-1:]}: cross takes vectors of 3 elements",
            received=inputs[0],
            made_at=inputs[0].op.source,
        )
    return [Spec(inputs[0].dtype, shape)]


def _crossed(a: Any, b: Any, module: Any = jnp) -> Any:
    if differ(a.shape, b.shape):
        raise ValueError(f"Both inputs must be of same shape: {list(a.shape)} vs. {list(b.shape)}")
    return module.cross(module.asarray(a), module.asarray(b))


register(
    "Cross",
    _crossed,
    infer=_infer_cross,
    accepts="fi",
    numpy_kernel=lambda a, b: _crossed(a, b, np),
    cases=lambda: [
        Case((POSITIVE, np.array([[1.0, 0.5, 2.0], [0.0, 1.0, -1.0], [3.0, 2.0, 1.0]], "f")))
    ],
)


def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Matrix-vector products.

    Args:
        a: `(..., m, n)`.
        b: `(..., n)` of the same dtype.
        transpose_a, adjoint_a: whether to transpose, or conjugate and transpose, the matrices.
        a_is_sparse, b_is_sparse: accepted for compatibility only.

    Returns:
        `(..., m)`.
    """
    with get_default_graph().name_scope(name or "MatVec"):
        columns = array.expand_dims(convert_to_tensor(b, name="b"), -1)
        product = linalg.matmul(a, columns, transpose_a=transpose_a, adjoint_a=adjoint_a)
        return array.squeeze(product, [-1])


def normalize(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Divides a tensor by its norm; see `norm` for the arguments.

    Returns:
        The normalized tensor, and the norm with the reduced axes kept with length 1.
    """
    with get_default_graph().name_scope(name or "normalize"):
        x = convert_to_tensor(tensor)
        size = elementwise.cast(norm(x, ord, axis, keepdims=True), x.dtype)
        return x / size, size


def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """The conjugate transpose of each matrix, `(..., m, n)` to `(..., n, m)`."""
    return matrix_transpose(matrix, name or "adjoint", conjugate=True)
