"""Helpers of the matrix ops: shape inference, 16-bit inputs, test matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core.errors import value_error
from estimatorkit.core.registry import Spec
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.tensor import Tensor

SQUARE = np.array([[[4.0, 1.0], [0.5, 3.0]], [[2.0, -1.0], [1.0, 5.0]]], np.float32)
POSITIVE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.25], [0.5, -0.25, 2.0]], np.float32)
RIGHT = np.array([[[1.0], [2.0]], [[-1.0], [0.5]]], np.float32)
TALL = np.array([[1.0, 2.0], [-0.5, 3.0], [2.0, 0.25]], np.float32)


def batch_and(keep: Callable[[Any, Any], list[Any]]) -> Callable[..., list[Spec]]:
    """Infers one output: the batch dimensions, followed by `keep(rows, columns)`."""

    def infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
        dims = inputs[0].shape.dims
        if dims is None:
            return [Spec(inputs[0].dtype, UNKNOWN)]
        check_rank(inputs[0])
        return [Spec(inputs[0].dtype, TensorShape([*dims[:-2], *keep(dims[-2], dims[-1])]))]

    return infer


def check_rank(tensor: Tensor, square: bool = False) -> None:
    dims = tensor.shape.dims
    if dims is None:
        return
    if len(dims) < 2:
        raise value_error(
            f"Shape must be at least rank 2 but is rank {len(dims)}: a matrix is expected",
            received=tensor,
            made_at=tensor.op.source,
        )
    if square and None not in dims[-2:] and dims[-2] != dims[-1]:
        raise value_error(
            f"Dimensions must be equal, but are {dims[-2]} and {dims[-1]}: a square matrix is "
            "expected",
            received=tensor,
            made_at=tensor.op.source,
        )


def square_infer(keep: Callable[[Any, Any], list[Any]]) -> Callable[..., list[Spec]]:
    inner = batch_and(keep)

    def infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
        check_rank(inputs[0], square=True)
        return inner(inputs, attrs)

    return infer


def same_dims(rows: Any, columns: Any) -> list[Any]:
    return [rows, columns]


def smaller(rows: int | None, columns: int | None) -> int | None:
    return None if rows is None or columns is None else min(rows, columns)


def conjugate_transpose(x: Any, module: Any = jnp) -> Any:
    return module.conj(module.swapaxes(x, -1, -2))


def mirrored(x: Any) -> Any:
    """The Hermitian matrix whose lower triangle is that of x."""
    below = jnp.tril(x, -1)
    diagonal = jnp.where(np.eye(x.shape[-1], dtype=np.bool_), x.real, 0).astype(x.dtype)
    return below + diagonal + conjugate_transpose(below, jnp)


from_lower = jax.custom_jvp(mirrored)
"""`mirrored`, but that its gradient is Hermitian as well."""


@from_lower.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x,), (change,) = primals, tangents
    return from_lower(x), (change + conjugate_transpose(change, jnp)) / 2


def in_32_bits(function: Callable[..., Any]) -> Callable[..., Any]:
    """Computes 16-bit inputs in float32, as LAPACK has no 16-bit routines, and casts the result
    back.
    """

    def call(x: Any, *rest: Any, **attrs: Any) -> Any:
        x = jnp.asarray(x)
        wide = jnp.promote_types(x.dtype, np.float32)
        result = function(x.astype(wide), *(jnp.asarray(r).astype(wide) for r in rest), **attrs)
        if x.dtype == wide:
            return result
        if isinstance(result, tuple):
            return tuple(each.astype(x.dtype) for each in result)
        return result.astype(x.dtype)

    return call
