"""Decompositions, solvers and Fourier transforms, interpreted."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.runtime.interpreter.agreement import agree
from tests.sweep import sweep

PARTS = [("float32", 6), ("float32", 1), ("float64", 1), ("complex64", 1), ("complex128", 1)]
"""Dtypes, and which cases are tested: all, or every sixth."""

DTYPES = ("float32", "float64", "complex64", "complex128")


def _matrices(dtype: str, *shape: int) -> Any:
    random = np.random.RandomState(0)
    found = random.randn(*shape)
    return (found + 1j * random.randn(*shape) if np.dtype(dtype).kind == "c" else found).astype(
        dtype
    )


def _positive(dtype: str, *shape: int) -> Any:
    x = _matrices(dtype, *shape)
    return (x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(shape[-1])).astype(dtype)


def _tolerance(dtype: str) -> float:
    return 1e-4 if dtype in ("float32", "complex64") else 1e-11


OTHERS = (
    *("transpose", "add", "div", "iota", "ge", "select_n", "broadcast_in_dim", "sort", "lt"),
    *("reduce_prod", "cumprod", "cumsum", "rem", "and", "eq", "sign", "abs", "real", "imag"),
)
"""Primitives with which JAX surrounds those tested, some of them without a rule of their own."""


def _solvers(dtype: str) -> list[Any]:
    square, several = _matrices(dtype, 4, 4), _matrices(dtype, 2, 3, 4, 4)
    columns, many = _matrices(dtype, 4, 2), _matrices(dtype, 2, 3, 4, 2)
    cases: list[Any] = []
    for number in range(32):
        left, lower, transpose, conjugate, unit = (bool(number >> bit & 1) for bit in range(5))

        def solve(a: Any, b: Any, options: Any = (left, lower, transpose, conjugate, unit)) -> Any:
            left, lower, transpose, conjugate, unit = options
            return lax.linalg.triangular_solve(
                a,
                b if left else jnp.swapaxes(b, -1, -2),
                left_side=left,
                lower=lower,
                transpose_a=transpose,
                conjugate_a=conjugate,
                unit_diagonal=unit,
            )

        cases.append((solve, (several, many) if number % 5 == 0 else (square, columns)))
    return cases


@sweep("dtype,step", PARTS, quick=1)
def test_triangular_solvers(dtype: str, step: int) -> None:
    agree(_solvers(dtype)[::step], rtol=_tolerance(dtype), compiled=OTHERS)


def test_singular_systems() -> None:
    singular = np.array([[0, 0], [1, 2]], np.float32)
    given = (singular, np.array([[1, 0], [2, -1]], np.float32))
    agree([(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True), given)])


@sweep("dtype,step", PARTS, quick=1)
def test_decompositions(dtype: str, step: int) -> None:
    positive, several = _positive(dtype, 4, 4), _positive(dtype, 2, 3, 3)
    wide, tall = _matrices(dtype, 3, 5), _matrices(dtype, 2, 5, 3)
    bad = np.stack([several[0], -several[0], np.full_like(several[0], np.nan)])
    cases: list[Any] = [(lax.linalg.cholesky, (x,)) for x in (positive, several, bad)]
    cases += [
        (lambda x: jnp.linalg.solve(x, x[..., 0]), (positive,)),
        (lambda x: jnp.linalg.solve(x, x), (several,)),
        (jnp.linalg.slogdet, (several,)),
        (jnp.linalg.inv, (positive,)),
    ]
    cases += [(lax.linalg.lu, (x,)) for x in (positive, wide, tall)]
    cases += [(lax.linalg.eigh, (x,)) for x in (positive, several, bad[1:])]
    cases += [(lambda x: lax.linalg.eigh(x, lower=False, symmetrize_input=False), (wide[:, :3],))]
    for full in (False, True):
        for x in (wide, tall):
            cases.append((lambda x, full=full: lax.linalg.qr(x, full_matrices=full), (x,)))
            cases.append((lambda x, full=full: lax.linalg.svd(x, full_matrices=full), (x,)))
    cases += [(lambda x: lax.linalg.svd(x, compute_uv=False), (x,)) for x in (tall, bad)]
    tolerance = _tolerance(dtype)
    agree(cases[::step], rtol=tolerance, atol=tolerance, compiled=OTHERS)


@pytest.mark.slow
def test_matrices_without_elements() -> None:
    none, short = np.zeros((0, 3, 3), "f"), np.zeros((2, 0, 0), "f")
    cases: list[Any] = []
    for function in (lax.linalg.cholesky, lax.linalg.lu, lax.linalg.svd, lax.linalg.eigh):
        cases += [(function, (none,)), (function, (short,))]
    cases += [(lax.linalg.qr, (none,)), (jnp.linalg.solve, (none, none))]
    agree(cases, compiled=OTHERS)


@sweep("dtype", DTYPES, quick=1)
def test_fourier_transforms(dtype: str) -> None:
    x = _matrices(dtype, 2, 6, 5)
    kinds = ("fft", "ifft", "fft2", "ifftn") if np.dtype(dtype).kind == "c" else ("rfft", "rfft2")
    functions = [getattr(jnp.fft, kind) for kind in kinds]
    if np.dtype(dtype).kind == "c":
        functions += [
            jnp.fft.irfft,
            lambda x: jnp.fft.irfft2(x, (6, 7)),
            lambda x: lax.fft(x, "IRFFT", (9,)),
        ]
    tolerance = _tolerance(dtype)
    agree([(each, (x,)) for each in functions], atol=tolerance, compiled=OTHERS)
