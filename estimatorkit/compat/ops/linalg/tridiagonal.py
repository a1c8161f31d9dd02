"""Tridiagonal matrices: products and linear systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array
from estimatorkit.ops.array.filling import pad
from estimatorkit.ops.array.joining import stack
from estimatorkit.ops.linalg.diagonals import matrix_diag_part, matrix_transpose
from estimatorkit.ops.linalg.matrix_parts import check_rank
from estimatorkit.ops.math.special import conj

_DIAGONALS = np.array([[2.0, 1.0, 0.0], [4.0, 5.0, 3.0], [0.0, -1.0, 0.5]], np.float32)
_RIGHT = np.array([[1.0, 2.0], [-1.0, 0.5], [3.0, 0.0]], np.float32)


class _Bands(NamedTuple):
    above: Any
    main: Any
    below: Any


def _bands(diagonals: Any, module: Any = jnp) -> _Bands:
    """The three diagonals of the compact form, zeroed where they leave the matrix."""
    above, main, below = (module.asarray(diagonals)[..., row, :] for row in range(3))
    places = module.arange(main.shape[-1])
    last = main.shape[-1] - 1
    return _Bands(module.where(places == last, 0, above), main, module.where(places == 0, 0, below))


def _solve(diagonals: Any, right: Any) -> Any:
    bands = _bands(diagonals)
    return jax.lax.linalg.tridiagonal_solve(bands.below, bands.main, bands.above, right)


def _numpy_solve(diagonals: Any, right: Any) -> Any:
    bands = _bands(diagonals, np)
    size = bands.main.shape[-1]
    matrix = bands.main[..., None] * np.eye(size, dtype=right.dtype)
    matrix += bands.above[..., None] * np.eye(size, k=1, dtype=right.dtype)
    matrix += bands.below[..., None] * np.eye(size, k=-1, dtype=right.dtype)
    return np.linalg.solve(matrix, right)


def _product(diagonals: Any, right: Any, module: Any = jnp) -> Any:
    bands, right = _bands(diagonals, module), module.asarray(right)
    nothing = module.zeros_like(right[..., :1, :])
    after = module.concatenate([right[..., 1:, :], nothing], -2)
    before = module.concatenate([nothing, right[..., :-1, :]], -2)
    return (
        bands.main[..., None] * right
        + bands.above[..., None] * after
        + bands.below[..., None] * before
    )


def _infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    return [Spec(inputs[1].dtype, inputs[1].shape)]


for _type, _kernel, _numpy_kernel in (
    ("TridiagonalSolve", _solve, _numpy_solve),
    ("TridiagonalMatMul", _product, lambda d, x: _product(d, x, np)),
):
    register(
        _type,
        _kernel,
        infer=_infer,
        accepts=("dc", "dc"),
        numpy_kernel=_numpy_kernel,
        cases=lambda: [Case((_DIAGONALS, _RIGHT))],
    )


def _compact(diagonals: Any, diagonals_format: str) -> Tensor:
    """Converts diagonals to `(..., 3, n)`: super-, main and subdiagonal."""
    if diagonals_format == "compact":
        return convert_to_tensor(diagonals, name="diagonals")
    if diagonals_format == "matrix":
        matrix = convert_to_tensor(diagonals, name="diagonals")
        check_rank(matrix, square=True)
        return matrix_diag_part(matrix, k=(-1, 1), align="LEFT_RIGHT")
    if diagonals_format == "sequence":
        if not isinstance(diagonals, (tuple, list)) or len(diagonals) != 3:
            raise ValueError("Expected diagonals to be a sequence of length 3.")
        above, main, below = map(convert_to_tensor, diagonals)
        for other in (above, below):
            if not other.shape[:-1].is_compatible_with(main.shape[:-1]):
                raise ValueError(
                    "Tensors representing the three diagonals must have the same shape, except "
                    f"for the last dimension, got {below.shape}, {main.shape}, {above.shape}"
                )
        above = _with_length(above, main, "superdiagonal", [0, 1])
        below = _with_length(below, main, "subdiagonal", [1, 0])
        return stack([above, main, below], axis=-2)
    raise ValueError(f"Unrecognized diagonals_format: {diagonals_format}")


def _with_length(diagonal: Tensor, main: Tensor, what: str, padding: list[int]) -> Tensor:
    length, wanted = diagonal.shape.as_list()[-1], main.shape.as_list()[-1]
    if length is None or wanted is None or length == wanted:
        return diagonal
    if length != wanted - 1:
        raise ValueError(f"Expected {what} to have length {wanted} or {wanted - 1}, got {length}.")
    return pad(diagonal, [[0, 0]] * (len(diagonal.shape) - 1) + [padding])


def tridiagonal_solve(
    diagonals: Any,
    rhs: Any,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
    perturb_singular: bool = False,
) -> Tensor:
    """Solves A X = rhs for tridiagonal A.

    Args:
        diagonals: 'compact': `(..., 3, n)`, the superdiagonal, main diagonal and subdiagonal; the
            last element of the first and the first of the third are ignored. 'sequence': a list of
            these three; the outer ones may have n - 1 elements. 'matrix': `(..., n, n)`.
        rhs: `(..., n)` or `(..., n, k)`, of the same dtype.
        diagonals_format: the format of `diagonals`.
        transpose_rhs: whether `rhs` is `(..., k, n)`.
        conjugate_rhs: whether to conjugate `rhs`.
        partial_pivoting: accepted for compatibility only; on a CPU pivoting is always used.
        perturb_singular: must be False; singular matrices yield infinities or NaN.

    Raises:
        ValueError: the static shapes are incompatible, or the format is invalid.
        NotImplementedError: `perturb_singular` is True.
    """
    if perturb_singular and not partial_pivoting:
        raise ValueError("partial_pivoting must be True if perturb_singular is.")
    if perturb_singular:
        raise NotImplementedError("tridiagonal_solve: perturb_singular is not supported.")
    compact = _compact(diagonals, diagonals_format)
    right = convert_to_tensor(rhs, compact.dtype, name="rhs")
    rank, right_rank = compact.shape.rank, right.shape.rank
    if rank is not None:
        _check_compact(compact, right)
    is_vector = rank is not None and right_rank == rank - 1
    if conjugate_rhs and (is_vector or not transpose_rhs):
        right = conj(right)
    if is_vector:
        right = array.expand_dims(right, -1)
    elif transpose_rhs:
        right = matrix_transpose(right, conjugate=conjugate_rhs)
    _check_lengths(compact, right)
    inputs = {"diagonals": compact, "rhs": right}
    result = make("TridiagonalSolve", inputs, name=name, same_dtype=True)
    return array.squeeze(result, [-1]) if is_vector else result


def _check_compact(compact: Tensor, right: Tensor) -> None:
    rank, right_rank = len(compact.shape), right.shape.rank
    if rank < 2:
        raise ValueError(f"Expected diagonals to have rank at least 2, got {rank}")
    if right_rank is not None and right_rank not in (rank, rank - 1):
        raise ValueError(f"Expected the rank of rhs to be {rank - 1} or {rank}, got {right_rank}")
    batch = compact.shape[:-2], right.shape[: rank - 2]
    if not batch[0].is_compatible_with(batch[1]):
        raise ValueError(f"Batch shapes {batch[0]} and {batch[1]} are incompatible")
    if compact.shape.as_list()[-2] not in (3, None):
        raise ValueError(f"Expected 3 diagonals got {compact.shape.as_list()[-2]}")


def _check_lengths(compact: Tensor, right: Tensor) -> None:
    if compact.shape.rank is None or right.shape.rank is None:
        return
    size, rows = compact.shape.as_list()[-1], right.shape.as_list()[-2]
    if None not in (size, rows) and size != rows:
        raise value_error(
            "Expected number of left-hand sided and right-hand sides to be equal, got "
            f"{size} and {rows}",
            received=f"{compact.name} {compact.shape}, {right.name} {right.shape}",
        )


def tridiagonal_matmul(
    diagonals: Any, rhs: Any, diagonals_format: str = "compact", name: str | None = None
) -> Tensor:
    """The product A rhs for tridiagonal A.

    Args:
        diagonals, diagonals_format: see `tridiagonal_solve`.
        rhs: `(..., n, k)`, of the same dtype.

    Raises:
        ValueError: the static shapes are incompatible, or the format is invalid.
    """
    with get_default_graph().name_scope(name or "tridiagonal_matmul"):
        compact = _compact(diagonals, diagonals_format)
        right = convert_to_tensor(rhs, compact.dtype, name="rhs")
        _check_lengths(compact, right)
        inputs = {"diagonals": compact, "rhs": right}
        return make("TridiagonalMatMul", inputs, same_dtype=True)
