"""Comparisons of the interpreter's results with XLA's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import ml_dtypes
import numpy as np

from estimatorkit.core.x64 import x64
from estimatorkit.runtime.interpreter import rules
from estimatorkit.runtime.interpreter.calls import SAME, called_function
from estimatorkit.runtime.interpreter.equations import inner_jaxprs
from estimatorkit.runtime.interpreter.table import program_of

TOLERANCE = {
    np.dtype(ml_dtypes.bfloat16): 1e-2,
    np.dtype(np.float16): 2e-3,
    np.dtype(np.float32): 2e-6,
    np.dtype(np.float64): 1e-13,
    np.dtype(np.complex64): 4e-6,
    np.dtype(np.complex128): 2e-13,
}
"""Relative errors allowed by default, of elements."""


def agree(
    cases: Iterable[tuple[Callable[..., Any], Sequence[Any]]],
    *,
    exact: bool = False,
    rtol: float | None = None,
    atol: float | None = None,
    compiled: Iterable[str] = (),
) -> None:
    """Asserts that interpreted functions return what compiled ones do.

    XLA compiles all cases at once. Shapes and dtypes must be equal, and so must integers, NaNs,
    infinities and the signs of zeros.

    Args:
        cases: functions of JAX with their arguments.
        exact: whether finite floats must be equal too.
        rtol: the relative error allowed; by default that of `TOLERANCE`.
        atol: the absolute error allowed, which also frees the signs of zeros; by default 0.
        compiled: primitives that may run without a rule; others may not.
    """
    cases = [(function, tuple(given)) for function, given in cases]
    with x64():
        wanted = jax.jit(lambda every: [f(*a) for (f, _), a in zip(cases, every, strict=True)])(
            [given for _, given in cases]
        )
        wanted = jax.tree.map(_plain, wanted)
        for (function, given), want in zip(cases, wanted, strict=True):
            closed = jax.make_jaxpr(function)(*given)
            without = {each for each in _names(closed.jaxpr) if not rules.has_rule(each)}
            name = f"{getattr(function, '__name__', function)}: {closed}\n{given}"
            assert without <= set(compiled), f"without rules: {without}\n{name}"
            with np.errstate(all="ignore"):
                program = program_of(closed)
                program(*map(_plain, jax.tree.leaves(given)))
                found = program(*map(_plain, jax.tree.leaves(given)))  # constants are as before
            leaves = jax.tree.leaves(want)
            assert len(found) == len(leaves)
            for got, expected in zip(found, leaves, strict=True):
                _equal(got, expected, exact=exact, rtol=rtol, atol=atol, name=name)


def _plain(array: Any) -> Any:
    """An array of NumPy; of random keys, their words."""
    dtype = getattr(array, "dtype", None)
    if dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    return np.asarray(array)


def _names(jaxpr: Any) -> set[str]:
    """The primitives of a jaxpr that NumPy or XLA computes, at any depth."""
    names = set()
    for equation in jaxpr.eqns:
        if called_function(equation) is None and equation.primitive.name not in SAME:
            names.add(equation.primitive.name)
            if not rules.has_rule(equation.primitive.name):
                continue
        names.update(*map(_names, inner_jaxprs(equation)))
    return names


def _equal(
    found: Any, wanted: Any, *, exact: bool, rtol: float | None, atol: float | None, name: str
) -> None:
    assert found.dtype == wanted.dtype, f"{found.dtype}, not {wanted.dtype}: {name}"
    assert found.shape == wanted.shape, f"{found.shape}, not {wanted.shape}: {name}"
    relative = TOLERANCE.get(wanted.dtype)
    if relative is None:
        np.testing.assert_array_equal(found, wanted, err_msg=name)
        return
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    found, wanted = np.asarray(found, wide), np.asarray(wanted, wide)
    limits = {"rtol": 0.0 if exact else rtol or relative, "atol": atol or 0.0}
    np.testing.assert_allclose(found, wanted, err_msg=name, **limits)
    if wide is np.float64 and atol is None:
        zeros = (wanted == 0) & (found == 0)
        assert (np.signbit(found) == np.signbit(wanted))[zeros].all(), f"signs of zeros: {name}"


__all__ = ["TOLERANCE", "agree"]
