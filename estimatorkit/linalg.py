"""`tf.linalg`: matrices."""

from __future__ import annotations

from typing import Any

from estimatorkit.lazy import attach, names

_OPS = "estimatorkit.core.ops"

_PLACES = {
    **names(
        f"{_OPS}.matrices",
        "adjoint",
        "cholesky",
        "cholesky_solve",
        "cross",
        "einsum",
        "expm",
        "eye",
        "logdet",
        "norm",
        "qr",
        "slogdet",
        "svd",
        "tensordot",
        "trace",
        band_part="matrix_band_part",
        det="matrix_determinant",
        diag="matrix_diag",
        diag_part="matrix_diag_part",
        eigh="self_adjoint_eig",
        eigvalsh="self_adjoint_eigvals",
        inv="matrix_inverse",
        lstsq="matrix_solve_ls",
        set_diag="matrix_set_diag",
        solve="matrix_solve",
        transpose="matrix_transpose",
        triangular_solve="matrix_triangular_solve",
        tensor_diag="diag",
        tensor_diag_part="diag_part",
    ),
    **names(
        f"{_OPS}.linalg",
        "matmul",
    ),
    **names(
        f"{_OPS}.nn",
        "l2_normalize",
    ),
    **names("estimatorkit.train.clip", "global_norm"),
}

_lazy_getattr, __dir__, __all__ = attach(__name__, _PLACES)


def __getattr__(name: str) -> Any:
    """Imports the public name `name`."""
    return _lazy_getattr(name)
