"""Every op gives equal results however its inputs are given, in every accepted dtype.

Inputs are fed, constants (which NumPy folds), fed constants, variables, captured by functions,
elements and blocks of datasets, on a server, exported, and read from a `GraphDef`. The values are
those of the rows' cases, cast to other dtypes, with NaN and infinities, at the limits of integers,
with 4,096 elements of 16 bits, and without elements. What is fed is the reference, which is
compared with NumPy in every dtype. Many operations share a graph and a run, since compiling is
what takes the time.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from estimatorkit.core.dtypes import as_dtype
from tests.ops.test_ops import as_array
from tests.ops.trials import Trial, of_cases, of_every_dtype
from tests.ops.ways import WAYS, Values, attempt
from tests.sweep import sweep

# A size that has to be positive; what an export refuses.
NOT_BUILT = {
    ("fed constants", "CombinedNonMaxSuppression"),
    ("export", "DecodeProtoV2"),
}

# Rows whose constants and fed values differ, and why.
OTHERWISE = {
    **dict.fromkeys(
        ("Convolution", "ConvolutionBackpropFilter", "ConvolutionBackpropInput"),
        "XLA's interpreter of constants leaves out products with padding",
    ),
    **dict.fromkeys(("Cumprod", "Prod", "PSNR", "RecurrentLoop"), "rounding that adds up"),
    "Mean": "integers are added in floats where XLA computes",
    "RankedListSums": "sums in float32",
}

# Rows whose values and those of NumPy differ, and why.
OTHER_IN_NUMPY = {
    "ConfusionCounts": "sums with NaN, in another order",
    **dict.fromkeys(
        ("LogMatrixDeterminant", "MatrixTriangularSolve"), "LAPACK spreads NaN in its own way"
    ),
    "Pow": "NumPy has no negative powers of integers",
}

PARTS = 8


# -- the comparison


def difference(expected: Values, found: Values) -> str:
    """What differs between the values of a trial; '' if nothing does."""
    if isinstance(expected, Exception) or isinstance(found, Exception):
        same = type(expected) is type(found)
        return "" if same else f"{_first_line(expected)} / {_first_line(found)}"
    for one, two in zip(map(as_array, expected), map(as_array, found), strict=True):
        if (one.dtype, one.shape) != (two.dtype, two.shape):
            return f"{one.dtype} {one.shape} / {two.dtype} {two.shape}"
        if not _alike(one, two):
            return f"{one!r:.200} / {two!r:.200}"
    return ""


def _first_line(values: Values) -> str:
    return f"{type(values).__name__} {values!s:.200}".splitlines()[0]


# One rounding of 16 bits and a few of 32 and 64.
_TOLERANCES = {"bfloat16": 1e-2, "float16": 2e-3, "float32": 3e-6, "complex64": 3e-6}


def _alike(one: NDArray[Any], two: NDArray[Any]) -> bool:
    dtype = as_dtype(one.dtype)
    if not dtype.is_differentiable:
        return np.array_equal(one, two)
    tolerance = _TOLERANCES.get(dtype.name, 1e-12)
    wide = np.complex128 if dtype.is_complex else np.float64
    one, two = one.astype(wide), two.astype(wide)
    largest = np.abs(one[np.isfinite(one)]).max(initial=0.0)
    return np.allclose(two, one, rtol=tolerance, atol=tolerance * min(largest, 1.0), equal_nan=True)


def _compare(way: str, trials: Sequence[Trial], reference: Sequence[Values]) -> None:
    values = attempt(way, trials)
    found = {
        str(trial): different
        for trial, expected, value in zip(trials, reference, values, strict=True)
        if (different := difference(expected, value))
    }
    assert not found


def has_numpy(trial: Trial) -> bool:
    row = trial.example.row
    return (
        row.numpy_kernel is not None
        and not row.placement.context
        and row.type not in OTHER_IN_NUMPY
    )


def numpy_difference(trial: Trial, found: list[Any]) -> str:
    """What differs between the fed values and those of NumPy in wider precision."""
    kernel = trial.example.row.numpy_kernel
    assert kernel is not None
    attrs = {key: each for key, each in trial.example.case.attrs.items() if key[0] != "_"}
    with np.errstate(all="ignore"):
        given = kernel(*map(_widened, trial.arrays), **attrs)
        outputs = given if isinstance(given, (tuple, list)) else (given,)
        expected = [
            np.asarray(one).astype(np.asarray(two).dtype)
            for one, two in zip(outputs, found, strict=True)
        ]
    return difference(expected, found)


def _widened(array: NDArray[Any]) -> NDArray[Any]:
    dtype = as_dtype(array.dtype)
    if dtype.is_differentiable:
        return array.astype(np.complex128 if dtype.is_complex else np.float64)
    return array


@functools.cache
def _cases(quarter: int, part: int) -> tuple[list[Trial], list[Values]]:
    trials = [each for each in of_cases() if each.hash % (4 * PARTS) == 4 * part + quarter]
    return trials, attempt("fed", trials)


@sweep("part", range(PARTS), quick=1)
@pytest.mark.parametrize("way", [way for way in WAYS if way != "fed"])
def test_every_way_of_giving_inputs(way: str, part: int) -> None:
    """Each case in three of the ways, or four."""
    trials, reference = _cases(list(WAYS).index(way) % 4, part)
    other = {row for excepted, row in NOT_BUILT if excepted == way} | OTHERWISE.keys()
    kept = [at for at, each in enumerate(trials) if each.example.row.type not in other]
    _compare(way, [trials[at] for at in kept], [reference[at] for at in kept])


@pytest.mark.slow
@sweep("part", range(2), quick=1)
def test_every_dtype(part: int) -> None:
    """One in eighty: constants are what is fed, and that is what NumPy computes."""
    chosen = of_every_dtype(part, 20 * PARTS)
    trials = [each for each in chosen if each.example.row.type not in OTHERWISE]
    reference = attempt("fed", trials)
    _compare("constants", trials, reference)
    found = {
        str(trial): different
        for trial, values in zip(trials, reference, strict=True)
        if has_numpy(trial) and not isinstance(values, Exception)
        if (different := numpy_difference(trial, values))
    }
    assert not found
