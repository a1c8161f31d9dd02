"""Diagonals, triangles and transposes of matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import float32, int32
from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.core.faults import Fault
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, register, same_as_input
from estimatorkit.core.shapes import UNKNOWN, TensorShape, differ
from estimatorkit.core.sizes import is_comparable
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array, filling, joining
from estimatorkit.ops.linalg.diagonal_bands import alignment, with_ends
from estimatorkit.ops.linalg.matrix_parts import (
    POSITIVE,
    SQUARE,
    TALL,
    batch_and,
    check_rank,
    smaller,
)
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.math.axes import axis_of

# -- diagonals and triangles


def _matrix_diag(x: Any, module: Any = jnp) -> Any:
    if not x.ndim:
        raise ValueError("diagonal must be at least 1-dim, received shape: []")
    return x[..., None] * module.eye(x.shape[-1], dtype=x.dtype)


register(
    "MatrixDiag",
    lambda x: _matrix_diag(jnp.asarray(x)),
    accepts="",
    numpy_kernel=lambda x: _matrix_diag(x, np),
    cases=lambda: [Case((TALL,))],
)
register(
    "MatrixDiagPart",
    lambda x: jnp.diagonal(jnp.asarray(x), axis1=-2, axis2=-1),
    infer=batch_and(lambda rows, columns: [smaller(rows, columns)]),
    numpy_kernel=lambda x: np.diagonal(x, axis1=-2, axis2=-1),
    accepts="ficb",
    cases=lambda: [Case((SQUARE,)), Case((TALL,))],
)


def matrix_diag(
    diagonal: Any,
    name: str = "diag",
    k: Any = 0,
    num_rows: int = -1,
    num_cols: int = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Matrices with given diagonals.

    Args:
        diagonal: `(..., n)`; for several diagonals `(..., diagonals, longest)`, the highest first.
        k: 0 for the main diagonal, positive above it; or the lowest and the highest diagonal.
        num_rows, num_cols: the size of the matrices; -1 for the smallest that fits.
        padding_value: the value of all other elements.
        align: 'RIGHT_LEFT', 'LEFT_RIGHT', 'LEFT_LEFT' or 'RIGHT_RIGHT': how shorter diagonals above
            the main one, and those below, are aligned in `diagonal`.

    Returns:
        `(..., rows, columns)`.

    Raises:
        ValueError: the arguments are invalid, or the diagonals do not fit the rows and columns.
        InvalidArgumentError: the same, if shapes are known only at run time.
    """
    inputs, attrs = with_ends({"diagonal": diagonal, "padding_value": padding_value}, k)
    rows, columns = (None if int(size) == -1 else int(size) for size in (num_rows, num_cols))
    plain = attrs["lower"] == attrs["upper"] == 0 and rows is columns is None
    if plain and not isinstance(padding_value, Tensor) and padding_value == 0:
        diagonal = convert_to_tensor(diagonal, name="diagonal")
        if diagonal.shape.rank == 0:
            raise value_error("Shape must be at least rank 1 but is rank 0", received=diagonal)
        return make("MatrixDiag", {"diagonal": diagonal}, name=name)
    attrs |= {"align": alignment(align), "rows": rows, "columns": columns}
    return make("MatrixDiagV3", inputs, attrs, name, same_dtype=True)


def matrix_diag_part(
    input: Any,
    name: str = "diag_part",
    k: Any = 0,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """The diagonals of matrices, `(..., m, n)` to `(..., min(m, n))`.

    Args:
        input: the matrices.
        name, k, align: see `diag`; several diagonals are `(..., diagonals, longest)`.
        padding_value: the padding of shorter diagonals.

    Raises:
        ValueError: the arguments are invalid, or there is no such diagonal.
        InvalidArgumentError: the same, if shapes are known only at run time.
    """
    inputs, attrs = with_ends({"input": input, "padding_value": padding_value}, k)
    if attrs["lower"] == attrs["upper"] == 0:
        return make("MatrixDiagPart", {"input": input}, name=name)
    attrs["align"] = alignment(align)
    return make("MatrixDiagPartV3", inputs, attrs, name, same_dtype=True)


def _set_diag(x: Any, diagonal: Any, module: Any = jnp) -> Any:
    rows, columns = x.shape[-2:]
    is_known = is_comparable(rows, columns)
    wanted = (*x.shape[:-2], min(rows, columns) if is_known else None)
    if differ(diagonal.shape, wanted):
        raise ValueError(
            f"The diagonal of matrices of shape {x.shape} must have shape {wanted}, but has "
            f"{diagonal.shape}"
        )
    on = module.arange(rows)[:, None] == module.arange(columns)
    width = max(columns, diagonal.shape[-1])
    row = module.concatenate(
        [
            diagonal,
            module.zeros((*diagonal.shape[:-1], width - diagonal.shape[-1]), diagonal.dtype),
        ],
        -1,
    )[..., :columns]
    return module.where(on, row[..., None, :], x)


def _infer_set_diag(inputs: Any, attrs: Any) -> list[Spec]:
    x, diagonal = inputs
    check_rank(x)
    if x.shape.dims is not None:
        *batch, rows, columns = x.shape.dims
        wanted = TensorShape([*batch, smaller(rows, columns)])
        if not diagonal.shape.is_compatible_with(wanted):
            raise InvalidArgumentError.explained(
                f"The diagonal of matrices of shape {x.shape} must have shape {wanted}",
                received=diagonal,
                made_at=diagonal.op.source,
            )
    return [Spec(x.dtype, x.shape)]


register(
    "MatrixSetDiag",
    lambda x, diagonal: _set_diag(jnp.asarray(x), jnp.asarray(diagonal)),
    infer=_infer_set_diag,
    numpy_kernel=lambda x, diagonal: _set_diag(x, diagonal, np),
    cases=lambda: [Case((TALL, np.array([9.0, 8.0], np.float32)))],
)


def matrix_set_diag(
    input: Any,
    diagonal: Any,
    name: str = "set_diag",
    k: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Replaces diagonals of matrices; see `diag` and `diag_part` for the arguments."""
    inputs, attrs = with_ends({"input": input, "diagonal": diagonal}, k)
    if attrs["lower"] == attrs["upper"] == 0:
        return make("MatrixSetDiag", inputs, name=name, same_dtype=True)
    attrs["align"] = alignment(align)
    return make("MatrixSetDiagV3", inputs, attrs, name, same_dtype=True)


def _band_part(x: Any, lower: Any, upper: Any, module: Any = jnp) -> Any:
    rows, columns = x.shape[-2:]
    distance = module.arange(rows)[:, None] - module.arange(columns)
    inside = ((lower < 0) | (distance <= lower)) & ((upper < 0) | (-distance <= upper))
    return module.where(inside, x, module.zeros((), x.dtype))


def _band_fault(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[Fault]:
    x, lower, upper = inputs
    if len(x.shape) < 2:
        raise InvalidArgumentError.explained(
            f"input must be at least 2-dim, received shape: {list(x.shape)}"
        )
    rows, columns = x.shape[-2:]
    return [
        _too_wide(1, lower, "num_lower", "rows", rows),
        _too_wide(2, upper, "num_upper", "columns", columns),
    ]


def _too_wide(position: int, width: Any, name: str, what: str, size: Any) -> Fault:
    def text(_: tuple[int, ...], values: tuple[int, ...]) -> str:
        return (
            f"{name} must be negative or less or equal to number of {what} ({size}) got: "
            f"{values[0]}"
        )

    return Fault(position, width >= size + 1, (width,), text)


register(
    "MatrixBandPart",
    lambda x, lower, upper: _band_part(jnp.asarray(x), lower, upper),
    fault=_band_fault,
    infer=same_as_input(),
    numpy_kernel=lambda x, lower, upper: _band_part(x, lower, upper, np),
    accepts=("", "x", "x"),
    cases=lambda: [
        Case((POSITIVE, np.int32(1), np.int32(0))),
        Case((POSITIVE, np.int32(-1), np.int32(1))),
    ],
)


def matrix_band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Sets everything outside a central band of each matrix to zero.

    Args:
        input: `(..., m, n)`.
        num_lower, num_upper: the number of diagonals to keep below and above; all if negative.
    """
    inputs = {"input": input, "num_lower": num_lower, "num_upper": num_upper}
    return make("MatrixBandPart", inputs, name=name)


def matrix_transpose(a: Any, name: str | None = None, conjugate: bool = False) -> Tensor:
    """Transposes matrices, and conjugates them if `conjugate`."""
    x = convert_to_tensor(a, name="a")
    rank: Any = x.shape.rank
    if rank is None:
        rank = array.rank(x)
        order: Any = joining.concat(
            [filling.range_(rank - 2), joining.stack([rank - 1, rank - 2])], 0
        )
        return array.transpose(x, order, name or "matrix_transpose", conjugate)
    if rank < 2:
        raise value_error(
            "Argument `a` should be a (batch) matrix with rank >= 2",
            received=x,
            made_at=x.op.source,
        )
    order = [*range(rank - 2), rank - 1, rank - 2]
    return array.transpose(x, order, name or "matrix_transpose", conjugate)


def trace(x: Any, name: str | None = None) -> Tensor:
    """The trace of each matrix: the sum of its diagonal."""
    with get_default_graph().name_scope(name or "Trace"):
        return reduce.reduce_sum(matrix_diag_part(x), [-1])


def diag(diagonal: Any, name: str | None = None) -> Tensor:
    """A tensor of twice the rank of `diagonal`, with its elements on the diagonal and 0 elsewhere.

    An element is on the diagonal if both halves of its index are equal.
    """
    with get_default_graph().name_scope(name or "Diag") as scope:
        x = convert_to_tensor(diagonal, name="diagonal")
        if x.shape.rank == 0:
            raise value_error("diag: Shape must be at least rank 1 but is rank 0", received=x)
        if x.shape.rank == 1:
            return make("MatrixDiag", {"diagonal": x}, name=scope)
        whole = matrix_diag(array.reshape(x, [-1]))
        dims = array.shape(x)
        return array.reshape(whole, joining.concat([dims, dims], 0), name=scope)


def _diag_part(x: Any, module: Any = jnp) -> Any:
    half = x.ndim // 2
    if x.ndim % 2 or not half:
        raise ValueError(
            f"The rank of the tensor should be even and positive, got shape {list(x.shape)}"
        )
    dims = x.shape[:half]
    if dims != x.shape[half:]:
        raise ValueError(f"Invalid shape {list(x.shape)}: its halves differ")
    count = math.prod(dims)
    return module.diagonal(module.reshape(x, (count, count))).reshape(dims)


register(
    "DiagPart",  # of an unknown rank
    _diag_part,
    infer=lambda inputs, attrs: [
        Spec(
            inputs[0].dtype,
            UNKNOWN
            if inputs[0].shape.rank is None
            else inputs[0].shape[: inputs[0].shape.rank // 2],
        )
    ],
    numpy_kernel=lambda x: _diag_part(x, np),
    accepts="ficb",
    cases=lambda: [Case((POSITIVE,), {}, np.diagonal(POSITIVE))],
)


def diag_part(input: Any, name: str | None = None) -> Tensor:
    """The diagonal of a tensor of even rank: the elements with both halves of the index equal."""
    with get_default_graph().name_scope(name or "DiagPart") as scope:
        x = convert_to_tensor(input, name="input")
        rank = x.shape.rank
        if rank is None:
            return make("DiagPart", {"input": x}, name=scope)
        if rank % 2 or rank == 0:
            raise value_error("diag_part: the rank must be even and not 0", received=x)
        x.shape[: rank // 2].assert_is_compatible_with(x.shape[rank // 2 :])
        if rank == 2 and x.shape.is_fully_defined():
            return make("MatrixDiagPart", {"input": x}, name=scope)
        dims = array.shape(x)[: rank // 2]
        count = reduce.reduce_prod(dims)
        square = array.reshape(x, joining.stack([count, count]))
        return array.reshape(matrix_diag_part(square), dims, name=scope)


# As `tf.linalg` calls them, where `diag` is `matrix_diag`.
tensor_diag = diag
tensor_diag_part = diag_part


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = float32,
    name: str | None = None,
) -> Tensor:
    """Identity matrices.

    Args:
        num_rows, num_columns: ints or scalar tensors; square by default.
        batch_shape: the batch dimensions; none by default.
        dtype: the dtype.
    """
    with get_default_graph().name_scope(name or "eye"):
        rows, columns = (
            elementwise.cast(
                each if isinstance(each, Tensor) else convert_to_tensor(axis_of(each, "eye")),
                int32,
            )
            for each in (num_rows, num_rows if num_columns is None else num_columns)
        )
        batch = convert_to_tensor([] if batch_shape is None else batch_shape, int32)
        smaller = elementwise.minimum(rows, columns)
        ones = filling.ones(joining.concat([batch, [smaller]], 0), dtype)
        if num_columns is None:
            return matrix_diag(ones, "diag")
        zeros = filling.zeros(joining.concat([batch, [rows], [columns]], 0), dtype)
        return matrix_set_diag(zeros, ones)
