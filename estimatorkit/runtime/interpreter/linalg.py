"""Rules of decompositions, solvers and Fourier transforms.

LAPACK's routines are those that XLA calls on CPUs, so that also signs and orders are the same. What
is not here (`eig`, `schur`, QR with pivots, ...) XLA runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.lax import FftType

from estimatorkit.runtime.interpreter.equations import Equation, Function
from estimatorkit.runtime.interpreter.rules import compiled, rule


def _unless_failed(
    function: Callable[[Any], Sequence[Any]], equation: Equation
) -> Callable[[Any], list[Any]]:
    """A function of NumPy's that gives NaN for matrices where it fails, instead of raising."""
    outputs = equation.outputs

    def run(x: Any) -> list[Any]:
        try:
            return [
                np.asarray(each).astype(aval.dtype, copy=False)
                for each, aval in zip(function(x), outputs, strict=True)
            ]
        except np.linalg.LinAlgError:
            return separately(x)

    def separately(x: Any) -> list[Any]:
        results = [np.full(aval.shape, np.nan, aval.dtype) for aval in outputs]
        for at in np.ndindex(x.shape[:-2]):
            try:
                found = function(x[at])
            except np.linalg.LinAlgError:
                continue
            for result, each in zip(results, found, strict=True):
                result[at] = each
        return results

    return run


@rule("cholesky")
def _cholesky(equation: Equation) -> Function:
    run = _unless_failed(lambda x: [np.linalg.cholesky(x)], equation)
    return lambda x: run(x)[0]


@rule("eigh")
def _eigh(equation: Equation) -> Function:
    parameters = equation.params
    if parameters.get("subset_by_index") not in (None, (0, equation.inputs[0].shape[-1])):
        return compiled(equation)
    triangle: Any = "L" if parameters["lower"] else "U"

    def found(x: Any) -> list[Any]:
        values, vectors = np.linalg.eigh(x, triangle)
        return [vectors, values]

    return _unless_failed(found, equation)


@rule("svd")
def _svd(equation: Equation) -> Function:
    parameters, shape = equation.params, equation.inputs[0].shape
    if parameters.get("subset_by_index") not in (None, (0, min(shape[-2:]))):
        return compiled(equation)
    if 0 in shape:
        return compiled(equation)
    full = parameters["full_matrices"]
    if not parameters["compute_uv"]:
        return _unless_failed(lambda x: [np.linalg.svd(x, compute_uv=False)], equation)

    def found(x: Any) -> list[Any]:
        left, values, right = np.linalg.svd(x, full)
        return [values, left, right]

    return _unless_failed(found, equation)


@rule("qr")
def _qr(equation: Equation) -> Function:
    parameters = equation.params
    if parameters.get("pivoting") or equation.inputs[0].size == 0:
        return compiled(equation)
    mode: Any = "complete" if parameters["full_matrices"] else "reduced"
    return lambda x: list(np.linalg.qr(x, mode))


@rule("lu")
def _lu(equation: Equation) -> Function:
    (given,) = equation.inputs
    lead = given.shape[:-2]
    outputs = equation.outputs
    if given.size == 0:
        return compiled(equation)

    def run(x: Any) -> list[Any]:
        from scipy.linalg import get_lapack_funcs

        getrf: Any = get_lapack_funcs("getrf", dtype=given.dtype)
        results = [np.empty(aval.shape, aval.dtype) for aval in outputs]
        for at in np.ndindex(lead):
            factors, pivots, _ = getrf(x[at])
            results[0][at], results[1][at] = factors, pivots
        results[2] = _permutation(results[1], given.shape[-2])
        return results

    return run


def _permutation(pivots: Any, rows: int) -> Any:
    """What row exchanges do to the numbers of rows."""
    lead, count = pivots.shape[:-1], math.prod(pivots.shape[:-1])
    flat = pivots.reshape(count, -1)
    order = np.tile(np.arange(rows, dtype=np.int32), (count, 1))
    every = np.arange(count)
    for at in range(flat.shape[1]):
        other = flat[:, at]
        held = order[:, at].copy()
        order[:, at] = order[every, other]
        order[every, other] = held
    return order.reshape(*lead, rows)


@rule("lu_pivots_to_permutation")
def _lu_pivots_to_permutation(equation: Equation) -> Function:
    rows = equation.params["permutation_size"]
    return lambda pivots: _permutation(pivots, rows)


@rule("triangular_solve")
def _triangular_solve(equation: Equation) -> Function:
    parameters = equation.params
    shape, dtype = equation.result
    if math.prod(shape) == 0:
        return lambda *_: np.empty(shape, dtype)
    left, lower = parameters["left_side"], parameters["lower"]
    transpose, conjugate = parameters["transpose_a"], parameters["conjugate_a"]
    unit = parameters["unit_diagonal"]
    options = {
        "side": 0 if left else 1,
        "lower": int(lower),
        "trans_a": (2 if conjugate else 1) if transpose else 0,
        "diag": int(unit),
    }
    conjugated = conjugate and not transpose

    def run(a: Any, b: Any) -> Any:
        from scipy.linalg import get_blas_funcs

        trsm: Any = get_blas_funcs("trsm", dtype=dtype)
        solved = np.empty(shape, dtype)
        for at in np.ndindex(shape[:-2]):
            matrix = np.conj(a[at]) if conjugated else a[at]
            solved[at] = trsm(1, matrix, b[at], **options)
        return solved

    return run


@rule("custom_linear_solve")
def _custom_linear_solve(equation: Equation) -> Function:
    counts, jaxprs = equation.params["const_lengths"], equation.params["jaxprs"]
    start = counts.matvec + counts.vecmat
    end = start + counts.solve
    rest = end + counts.transpose_solve
    solve = equation.numbers.program(jaxprs.solve)
    return lambda *operands: solve(*operands[start:end], *operands[rest:])


@rule("fft")
def _fft(equation: Equation) -> Function:
    kind, lengths = equation.params["fft_type"], equation.params["fft_lengths"]
    shape, dtype = equation.result
    if math.prod(shape) == 0 or not lengths:
        return compiled(equation)
    axes = tuple(range(-len(lengths), 0))
    names = {
        FftType.FFT: "fftn",
        FftType.IFFT: "ifftn",
        FftType.RFFT: "rfftn",
        FftType.IRFFT: "irfftn",
    }
    name = names[kind]

    def run(x: Any) -> Any:
        import scipy.fft

        return getattr(scipy.fft, name)(x, lengths, axes).astype(dtype, copy=False)

    return run


__all__: list[str] = []
