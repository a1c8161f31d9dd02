"""Compares the interpreter with XLA: many functions in one executable, which takes long to make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import jax
import ml_dtypes
import numpy as np

from estimatorkit.core.x64 import x64
from estimatorkit.runtime.interpreter.floats import as_xla
from estimatorkit.runtime.interpreter.table import program_of

FLOATS = ("float16", "bfloat16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
COMPLEX = ("complex64", "complex128")
WIDE = ("float32", "float64")

_ROUNDING = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6, "float64": 1e-12}

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.0, 7.25, -100.0, 100.0)
"""Floats with which elementwise functions may do something of their own."""

INFINITE = (np.inf, -np.inf, np.nan)


def values(dtype: Any, *, finite: bool = False, count: int = 6) -> np.ndarray:
    """Values of a dtype: special ones, and some of a random generator."""
    dtype, generator = np.dtype(dtype), np.random.default_rng(0)
    if dtype == np.bool_:
        return np.array([True, False, False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        known = [0, 1, 2, 3, 7, 100, info.max, info.max - 1, info.min, info.min + 1]
        known += [-1, -2, -7] if dtype.kind == "i" else []
        drawn = generator.integers(info.min, info.max, count, dtype, endpoint=True)
        return np.concatenate([np.array(known, dtype), drawn])
    reals = np.array([*SPECIAL, *([] if finite else INFINITE), *generator.normal(size=count)])
    if dtype.kind == "c":
        reals = np.array([0.5, -0.5, 1.5, -1.25, 3.0, *generator.normal(size=count)])
        return (reals[:, None] + 1j * reals[None, :]).ravel().astype(dtype)
    return reals.astype(dtype)


def pairs(dtype: Any, *, finite: bool = False, count: int = 6) -> list[np.ndarray]:
    """Every two of `values`."""
    found = values(dtype, finite=finite, count=count)
    return [np.repeat(found, len(found)), np.tile(found, len(found))]


def normal(dtype: Any, shape: Sequence[int], seed: int = 0) -> np.ndarray:
    """Random numbers of a dtype, small integers for one."""
    drawn = np.random.default_rng(seed).normal(size=tuple(shape)) * 3
    if np.dtype(dtype).kind == "u":
        drawn = np.abs(drawn)
    return drawn.astype(dtype)


@contextmanager
def no_executable() -> Any:
    """A context manager in which no rule may leave its work to XLA."""

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("a rule uses XLA")

    with mock.patch.object(jax, "jit", refused):
        yield


def check(
    functions: Sequence[Callable[..., Any]],
    *arguments: Any,
    tolerance: float = 1.0,
    absolute: float = 0.0,
    xla: bool = False,
) -> None:
    """Checks that the interpreter computes what XLA does.

    Args:
        functions: each is called with the arguments.
        arguments: NumPy arrays.
        tolerance: a factor of the relative error that is allowed, which depends on the dtype.
        absolute: the absolute error that is allowed, too.
        xla: whether rules may use XLA.
    """
    with x64():
        made = jax.make_jaxpr(lambda *given: [f(*given) for f in functions])(*arguments)
        wanted = jax.jit(lambda *given: [jax.tree.leaves(f(*given)) for f in functions])(*arguments)
        names = [at for at, leaves in enumerate(wanted) for _ in leaves]
        with as_xla():
            if xla:
                got = program_of(made)(*arguments)
            else:
                with no_executable():
                    got = program_of(made)(*arguments)
    wrong = []
    for at, want, value in zip(names, jax.tree.leaves(wanted), got, strict=True):
        try:
            same(value, np.asarray(want), f"function {at}", tolerance, absolute)
        except AssertionError as error:
            wrong.append(str(error))
    assert not wrong, "\n".join(wrong)


def same(got: Any, want: np.ndarray, name: str, tolerance: float, absolute: float = 0.0) -> None:
    """Checks that an array has the shape, the dtype and the values of another, up to rounding."""
    assert got.shape == want.shape, (name, got.shape, want.shape)
    assert got.dtype == want.dtype, (name, got.dtype, want.dtype)
    if want.dtype.kind == "c":
        # parts cancel: the error of one is relative to the absolute value
        scale = np.abs(want) * tolerance * _ROUNDING[want.real.dtype.name]
        scale = np.nan_to_num(np.asarray(scale, np.float64), posinf=0.0) + absolute
        for part in ("real", "imag"):
            same(getattr(got, part), getattr(want, part), f"{name}: {part}", tolerance, scale)
        return
    if want.dtype.name not in _ROUNDING:
        np.testing.assert_array_equal(got, want, name)
        return
    relative = tolerance * _ROUNDING[want.dtype.name]
    tiny = float(ml_dtypes.finfo(want.dtype).tiny)  # XLA has no subnormal numbers
    have, wanted = np.asarray(got, np.float64), np.asarray(want, np.float64)
    with np.errstate(all="ignore"):
        close = np.abs(have - wanted) <= relative * np.abs(wanted) + absolute + 2 * tiny
    exact = (have == wanted) & (np.signbit(have) == np.signbit(wanted))
    zero = (have == 0) & (wanted == 0) & (np.ravel(absolute)[0] == 0)
    right = exact | (np.isnan(have) & np.isnan(wanted)) | (close & np.isfinite(wanted) & ~zero)
    if not right.all():
        wrong = np.flatnonzero(~right.ravel())[:10]
        detail = [(int(at), have.ravel()[at], wanted.ravel()[at]) for at in wrong]
        raise AssertionError(f"{name}: (position, got, XLA's) {detail}")
