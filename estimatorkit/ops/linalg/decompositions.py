"""Matrix decompositions (QR, SVD, eigendecomposition) and the matrix exponential."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimatorkit.core import registry
from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.lazy import LazyFunctions
from estimatorkit.ops.linalg.matrix_parts import (
    POSITIVE,
    TALL,
    check_rank,
    conjugate_transpose,
    in_32_bits,
    mirrored,
    same_dims,
    smaller,
    square_infer,
)

scipy_linalg = LazyFunctions("scipy.linalg")

# -- decompositions


def _qr(x: Any, full: bool) -> Any:
    return tuple(jnp.linalg.qr(x, "complete" if full else "reduced"))


def _infer_qr(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    x = inputs[0]
    if x.shape.dims is None:
        return [Spec(x.dtype, UNKNOWN)] * 2
    check_rank(x)
    *batch, rows, columns = x.shape.dims
    inner = smaller(rows, columns)
    if attrs["full"]:
        inner = rows
    return [
        Spec(x.dtype, TensorShape([*batch, rows, inner])),
        Spec(x.dtype, TensorShape([*batch, inner, columns])),
    ]


register(
    "Qr",
    in_32_bits(_qr),
    infer=_infer_qr,
    accepts="dc float16",
    numpy_kernel=lambda x, full: tuple(np.linalg.qr(x, "complete" if full else "reduced")),
    cases=lambda: [Case((TALL,), {"full": False})],
)


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> tuple[Tensor, Tensor]:
    """QR decomposition: q with orthonormal columns and upper triangular r with q r = input.

    Args:
        input: `(..., m, n)`.
        full_matrices: whether q has m columns rather than min(m, n); if so, not differentiable.
    """
    attrs = {"full": bool(full_matrices)}
    op = registry.apply("Qr", [convert_to_tensor(input)], attrs, name)
    return op.outputs[0], op.outputs[1]


def _svd(x: Any, full: bool, vectors: bool) -> Any:
    if not vectors:
        return (jnp.linalg.svd(x, compute_uv=False),)
    u, s, v = jnp.linalg.svd(x, full_matrices=full)
    return s, u, conjugate_transpose(v)


def _infer_svd(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    x = inputs[0]
    if x.shape.dims is None:
        vectors = [Spec(x.dtype, UNKNOWN)] * (2 if attrs["vectors"] else 0)
        return [Spec(x.dtype.real_dtype, UNKNOWN), *vectors]
    check_rank(x)
    *batch, rows, columns = x.shape.dims
    inner = smaller(rows, columns)
    values = Spec(x.dtype.real_dtype, TensorShape([*batch, inner]))
    if not attrs["vectors"]:
        return [values]
    return [
        values,
        Spec(x.dtype, TensorShape([*batch, rows, rows if attrs["full"] else inner])),
        Spec(x.dtype, TensorShape([*batch, columns, columns if attrs["full"] else inner])),
    ]


register(
    "Svd",
    in_32_bits(_svd),
    infer=_infer_svd,
    accepts="dc float16",
    cases=lambda: [
        Case(
            (TALL,),
            {"full": False, "vectors": False},
            (np.linalg.svd(TALL, compute_uv=False),),
        )
    ],
)


def svd(
    tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None
) -> Any:
    """Singular value decomposition: tensor = u diag(s) v^T.

    Args:
        tensor: `(..., m, n)`.
        full_matrices: whether u and v are square; if so, not differentiable.
        compute_uv: whether to return the singular vectors too.

    Returns:
        s in descending order, or `(s, u, v)`.
    """
    attrs = {"full": bool(full_matrices), "vectors": bool(compute_uv)}
    op = registry.apply("Svd", [convert_to_tensor(tensor)], attrs, name)
    return tuple(op.outputs) if compute_uv else op.outputs[0]


def _infer_eigen(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    x = inputs[0]
    check_rank(x, square=True)
    values = UNKNOWN if x.shape.dims is None else TensorShape(x.shape.dims[:-1])
    return [Spec(x.dtype, values), Spec(x.dtype, x.shape)]


def _positive_first(values: Any, vectors: Any) -> tuple[Any, Any]:
    """Flips the signs of vectors so that their first element is not negative, which makes them
    unique.
    """
    sign = jnp.where(vectors[..., :1, :] < 0, -1, 1).astype(vectors.dtype)
    return values, vectors * jax.lax.stop_gradient(sign)


def _numpy_eigen(x: Any) -> Any:
    values, vectors = np.linalg.eigh(x)
    return values, vectors * np.where(vectors[..., :1, :] < 0, -1, 1).astype(x.dtype)


register(
    "SelfAdjointEigV2",
    in_32_bits(lambda x: _positive_first(*jnp.linalg.eigh(mirrored(x), symmetrize_input=False))),
    infer=_infer_eigen,
    accepts="dc float16",
    numpy_kernel=_numpy_eigen,
    cases=lambda: [Case((POSITIVE,))],
)


def self_adjoint_eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues in ascending order, and eigenvectors as columns, of symmetric matrices.

    Only the lower triangles are read, and have gradients. The first element of each eigenvector is
    not negative (TensorFlow leaves the sign unspecified).
    """
    with get_default_graph().name_scope(name or "self_adjoint_eig"):
        op = registry.apply("SelfAdjointEigV2", [convert_to_tensor(tensor)])
        return op.outputs[0], op.outputs[1]


def self_adjoint_eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """The eigenvalues of symmetric matrices, in ascending order."""
    return self_adjoint_eig(tensor, name)[0]


register(
    "MatrixExponential",
    in_32_bits(jax.scipy.linalg.expm),
    infer=square_infer(same_dims),
    accepts="dc float16",
    cases=lambda: [Case((POSITIVE / 4,), {}, scipy_linalg.expm(POSITIVE / 4))],
)


def expm(input: Any, name: str | None = None) -> Tensor:
    """The matrix exponential, `(..., n, n)`."""
    return make("MatrixExponential", {"input": input}, name=name)
