"""Matrix products."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.errors import value_error
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.tensor import Tensor, operators

_A = np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]], np.float32)
_B = np.array([[2.0, 0.0], [1.0, -1.0], [0.5, 4.0]], np.float32)


_NARROW = 48
"""The number of columns of `b` up to which XLA computes `(b.T @ a).T` faster than `a.T @ b` on
CPUs, if it is kept from moving the transposition back into the product. On 2 cores, 784 x 100 by
100 x 10 takes 31 us instead of 50, and 256 x 128 by 128 x 48 22 instead of 35; by 128 x 128 it
would take 107 instead of 50."""


def transposed_product(a: Any, b: Any) -> Any:
    """a.T @ b of two matrices."""
    if jax.default_backend() == "cpu" and b.shape[1] <= _NARROW and b.shape[1] < a.shape[1]:
        barrier: Any = lax.optimization_barrier
        return barrier(barrier(b.T) @ a).T
    return a.T @ b


@jax.custom_vjp
def matrix_product(a: Any, b: Any) -> Any:
    """a @ b of two matrices."""
    return a @ b


def _backward(matrices: tuple[Any, Any], dy: Any) -> tuple[Any, Any]:
    a, b = matrices
    return dy @ b.T, transposed_product(a, dy)


matrix_product.defvjp(lambda a, b: (a @ b, (a, b)), _backward)


def product_of_rows(a: Any, b: Any) -> Any:
    """a @ b, where b is a matrix and a has more dimensions.

    The gradient of b is then a product of matrices, too. As one over several dimensions XLA would
    copy the transposed gradient, and have the product of two transposed matrices: 0.47 ms instead
    of 0.68 of the processor for 64x10x64 by 64x256 and both gradients.
    """
    rows = a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
    return matrix_product(rows, jnp.asarray(b)).reshape(*a.shape[:-1], b.shape[-1])


def _product(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    if np.ndim(a) == np.ndim(b) == 2:
        if transpose_a and not transpose_b:
            return transposed_product(jnp.asarray(a), jnp.asarray(b))
        a, b = jnp.asarray(a), jnp.asarray(b)
        return matrix_product(a.T if transpose_a else a, b.T if transpose_b else b)
    if np.ndim(b) == 2 and not transpose_a:
        return product_of_rows(jnp.asarray(a), b.T if transpose_b else b)
    return _batched(a, b, transpose_a, transpose_b, jnp)


def _batched(a: Any, b: Any, transpose_a: bool, transpose_b: bool, module: Any) -> Any:
    return module.matmul(
        module.swapaxes(a, -1, -2) if transpose_a else a,
        module.swapaxes(b, -1, -2) if transpose_b else b,
    )


def _infer_matmul(inputs: Any, attrs: Any) -> list[Spec]:
    a, b = inputs
    if a.shape.dims is None or b.shape.dims is None:
        return [Spec(a.dtype, UNKNOWN)]
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise value_error(
            "Shape must be at least rank 2: MatMul multiplies matrices",
            received=f"{a.name} {a.shape}, {b.name} {b.shape}",
            made_at=(a if len(a.shape) < 2 else b).op.source,
            hint="use expand_dims, or tensordot for other products",
        )
    *batch_a, rows, inner_a = a.shape.dims
    *batch_b, inner_b, columns = b.shape.dims
    if attrs["transpose_a"]:
        rows, inner_a = inner_a, rows
    if attrs["transpose_b"]:
        inner_b, columns = columns, inner_b
    if inner_a is not None and inner_b is not None and inner_a != inner_b:
        raise value_error(
            f"Dimensions must be equal, but are {inner_a} and {inner_b} for MatMul",
            expected="as many columns in the first matrix as rows in the second",
            received=f"{a.name} {a.shape}"
            + " transposed" * attrs["transpose_a"]
            + f", {b.name} {b.shape}"
            + " transposed" * attrs["transpose_b"],
            made_at=a.op.source,
        )
    batch = batch_a if len(batch_a) >= len(batch_b) else batch_b
    return [Spec(a.dtype, TensorShape((*batch, rows, columns)))]


MATMUL = register(
    "MatMul",
    _product,
    infer=_infer_matmul,
    accepts="fcx uint8 uint16 uint32 uint64",
    numpy_kernel=lambda a, b, transpose_a, transpose_b: _batched(
        a, b, transpose_a, transpose_b, np
    ),
    cases=lambda: [
        Case((_A, _B), {"transpose_a": False, "transpose_b": False}),
        Case((_A, _A), {"transpose_a": True, "transpose_b": False}),
        Case((np.stack([_A, _A + 1]), _A), {"transpose_a": False, "transpose_b": True}),
    ],
)


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The matrix product of a and b, batched over all but the last two dimensions.

    Args:
        a: `(..., rows, inner)`.
        b: `(..., inner, columns)`, of the same dtype.
        transpose_a, transpose_b: whether to transpose the matrix first.
        adjoint_a, adjoint_b: whether to transpose and conjugate the matrix first.
        a_is_sparse, b_is_sparse: accepted for compatibility only; without effect.

    Raises:
        ValueError: the inner dimensions differ, or both transpose and adjoint are set.
    """
    for which, transposed, adjoint in (
        ("a", transpose_a, adjoint_a),
        ("b", transpose_b, adjoint_b),
    ):
        if transposed and adjoint:
            raise ValueError(f"Only one of `transpose_{which}` and `adjoint_{which}` can be True.")
    a, b = _conjugate(a) if adjoint_a else a, _conjugate(b) if adjoint_b else b
    attrs = {
        "transpose_a": bool(transpose_a or adjoint_a),
        "transpose_b": bool(transpose_b or adjoint_b),
    }
    return make("MatMul", {"a": a, "b": b}, attrs, name, same_dtype=True)


def _conjugate(matrix: Any) -> Tensor:
    tensor = convert_to_tensor(matrix)
    return make("Conj", {"x": tensor}) if tensor.dtype.is_complex else tensor


operators["matmul"] = lambda a, b: matmul(a, b, name="matmul")
