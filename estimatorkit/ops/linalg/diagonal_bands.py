"""Bands of diagonals of matrices.

Diagonal k consists of the elements (i, i + k): 0 is the main diagonal, positive ones are above it.
A band from `lower` to `upper` is an array with one row per diagonal, the highest first, padded to
the longest; `align` selects the side. `diagonals` handles the main diagonal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.core.registry import Case, Spec, fixed_value, same_as_input
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.linalg.matrix_parts import TALL, batch_and
from estimatorkit.ops.math.axes import input_attr, register_with_axis, unknown_numbers

ALIGNMENTS = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")
"""Side to which diagonals above the main one are aligned, then side of those below."""


class Band(NamedTuple):
    """Matrix positions of the elements of a band; all `(diagonals, longest)`.

    Attributes:
        rows, columns: the position of each element, 0 for padding.
        inside: False for padding.
    """

    rows: NDArray[Any]
    columns: NDArray[Any]
    inside: NDArray[Any]


def longest(rows: int, columns: int, lower: int, upper: int) -> int:
    """The length of the longest diagonal of a band."""
    return min(rows + min(upper, 0), columns - max(lower, 0))


def band(rows: int, columns: int, lower: int, upper: int, align: str) -> Band:
    """The band of a matrix; raises InvalidArgumentError if a diagonal is outside the matrix."""
    for end in (lower, upper):
        if end and not -rows < end < columns:
            raise InvalidArgumentError.explained(
                f"the diagonal {end} is out of bounds",
                expected=f"above {-rows} and below {columns}, for matrices of {rows} rows and "
                f"{columns} columns",
                received=f"k = ({lower}, {upper})",
            )
    length = longest(rows, columns, lower, upper)
    above, below = (side == "LEFT" for side in align.split("_"))
    at = np.arange(upper, lower - 1, -1)[:, None]
    own = np.minimum(rows + np.minimum(at, 0), columns - np.maximum(at, 0))
    to_left = ((at >= 0) & above) | ((at <= 0) & below)
    place = np.arange(length) - np.where(to_left, 0, length - own)
    inside = (place >= 0) & (place < own)
    place = np.where(inside, place, 0)
    down, right = (np.where(inside, place + np.maximum(by, 0), 0) for by in (-at, at))
    return Band(down, right, inside)


def matrix_shape(
    length: int, lower: int, upper: int, rows: int | None, columns: int | None
) -> tuple[int, int]:
    """The shape of matrices with a given band, from the `length` of its longest diagonal.

    `rows` and `columns` are the requested sizes, None for the smallest ones (square if both are
    None). Raises InvalidArgumentError if the diagonals do not fit.
    """
    least_rows, least_columns = length - min(upper, 0), length + max(lower, 0)
    if rows is None and columns is None:
        rows = columns = max(least_rows, least_columns)
    shape = (rows or least_rows, columns or least_columns)
    if longest(*shape, lower, upper) != length or min(shape) < 1:
        raise InvalidArgumentError.explained(
            "the number of rows or columns does not match the diagonals",
            expected=f"at least {least_rows} rows and {least_columns} columns, with equality "
            "for one of them",
            received=f"{shape[0]} rows and {shape[1]} columns, diagonals of {length} elements",
        )
    return shape


# -- ops


def _diagonals(x: Any, padding: Any, lower: int, upper: int, align: str) -> Any:
    x = jnp.asarray(x)
    where = band(x.shape[-2], x.shape[-1], lower, upper, align)
    found = jnp.where(where.inside, x[..., where.rows, where.columns], padding)
    return found[..., 0, :] if lower == upper else found


def _put(x: Any, diagonals: Any, lower: int, upper: int, align: str) -> Any:
    x, values = jnp.asarray(x), jnp.asarray(diagonals)
    where = band(x.shape[-2], x.shape[-1], lower, upper, align)
    if lower == upper:
        values = values[..., None, :]
    if values.shape[-2:] != where.inside.shape:
        raise InvalidArgumentError.explained(
            "the diagonals do not match the matrices",
            expected=f"{where.inside.shape[0]} diagonals of {where.inside.shape[1]} elements",
            received=f"shape {diagonals.shape} for k = ({lower}, {upper})",
        )
    places = (..., where.rows[where.inside], where.columns[where.inside])
    return x.at[places].set(values[..., where.inside])


def _make(
    diagonals: Any,
    padding: Any,
    lower: int,
    upper: int,
    rows: int | None,
    columns: int | None,
    align: str,
) -> Any:
    diagonals = jnp.asarray(diagonals)
    shape = matrix_shape(diagonals.shape[-1], lower, upper, rows, columns)
    batch = diagonals.shape[: -1 if lower == upper else -2]
    empty = jnp.broadcast_to(jnp.asarray(padding, diagonals.dtype), (*batch, *shape))
    return _put(empty, diagonals, lower, upper, align)


def _known(function: Any, *sizes: Any) -> Any:
    """Calls `function` on known sizes at graph construction; its errors become ValueErrors."""
    try:
        return function(*sizes)
    except InvalidArgumentError as error:
        raise ValueError(error.message) from error


def _infer_diagonals(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    lower, upper = attrs["lower"], attrs["upper"]

    def keep(rows: int | None, columns: int | None) -> list[Any]:
        length = None
        if rows is not None and columns is not None:
            length = _known(band, rows, columns, lower, upper, attrs["align"]).inside.shape[1]
        return [length] if lower == upper else [upper - lower + 1, length]

    return batch_and(keep)(inputs, attrs)


def _infer_made(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    lower, upper = attrs["lower"], attrs["upper"]
    dims, dtype = inputs[0].shape.dims, inputs[0].dtype
    if dims is None:
        return [Spec(dtype, UNKNOWN)]
    few = 1 if lower == upper else 2
    count = 1 if few == 1 or len(dims) < 2 else dims[-2]
    if len(dims) < few or count not in (None, upper - lower + 1):
        raise value_error(
            "the number of diagonals does not match k",
            expected=f"{upper - lower + 1} diagonals: a shape (..., {upper - lower + 1}, n)"
            if few == 2
            else "a shape (..., n)",
            received=inputs[0],
            made_at=inputs[0].op.source,
        )
    shape: tuple[int | None, ...] = (attrs["rows"], attrs["columns"])
    if dims[-1] is not None:
        sizes = (dims[-1], lower, upper, attrs["rows"], attrs["columns"])
        shape = _known(matrix_shape, *sizes)
    return [Spec(dtype, TensorShape([*dims[:-few], *shape]))]


def _read_ends(k: Any) -> dict[str, int]:
    lower, upper = ends(k)
    return {"lower": lower, "upper": upper}


def _unknown(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    return [Spec(inputs[0].dtype, UNKNOWN)]


_BAND = np.array([[0.0, 2.0], [1.0, 3.0], [-0.5, 0.25]], np.float32)  # of TALL, -1 to 1
_ZERO = np.zeros((), np.float32)
_K = {"lower": -1, "upper": 1, "align": "RIGHT_LEFT"}
_WHOLE = np.array([[1.0, 2.0], [-0.5, 3.0], [9.0, 0.25]], np.float32)

register_with_axis(
    "MatrixDiagPartV3",
    _diagonals,
    infer=_infer_diagonals,
    attr="lower",
    read=_read_ends,
    unknown=_unknown,
    accepts="",
    cases=lambda: [
        Case((TALL, _ZERO), _K, _BAND),
        Case((TALL, _ZERO), {**_K, "lower": 1}, TALL[:1, 1]),
    ],
)
register_with_axis(
    "MatrixSetDiagV3",
    _put,
    infer=same_as_input(),
    attr="lower",
    read=_read_ends,
    unknown=same_as_input(),
    accepts="",
    cases=lambda: [Case((np.full((3, 2), 9, np.float32), _BAND), _K, _WHOLE)],
)
register_with_axis(
    "MatrixDiagV3",
    _make,
    infer=_infer_made,
    attr="lower",
    read=_read_ends,
    unknown=_unknown,
    accepts="",
    cases=lambda: [
        Case((_BAND, np.float32(9)), {**_K, "rows": 3, "columns": 2}, _WHOLE),
    ],
)


# -- arguments


def ends(k: Any) -> tuple[int, int]:
    """The lowest and highest diagonal that `k` specifies.

    Raises ValueError if `k` is neither one nor two diagonals, or unknown at graph construction.
    """
    known = fixed_value(k) if isinstance(k, Tensor) else k
    numbers = [] if known is None else [int(each) for each in np.atleast_1d(known)]
    if len(numbers) not in (1, 2) or numbers[0] > numbers[-1]:
        raise value_error(
            "invalid k",
            expected="a number, or the lowest and the highest diagonal; known at graph "
            "construction",
            received=k,
        )
    return numbers[0], numbers[-1]


def with_ends(inputs: dict[str, Any], k: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inputs and the attributes `lower` and `upper` of an operation on the diagonals `k`.

    Raises ValueError as `ends`.
    """
    unknown = unknown_numbers(k, "k")
    if unknown is None:
        return inputs, _read_ends(k)
    return {**inputs, "lower": unknown}, {"lower": input_attr(len(inputs)), "upper": None}


def alignment(align: str) -> str:
    """Returns `align`; raises ValueError if it is invalid."""
    if align not in ALIGNMENTS:
        raise value_error("unknown align", expected=", ".join(ALIGNMENTS), received=repr(align))
    return align
