"""Rules of special functions: those of SciPy, which is imported when one is needed.

Where SciPy and XLA disagree, outside the domain of a function, XLA computes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from estimatorkit.runtime.interpreter.equations import Equation, Function
from estimatorkit.runtime.interpreter.rules import arithmetic, compiled


def _of_scipy(primitive: str, name: str) -> None:
    """Registers a function of SciPy."""

    @arithmetic(primitive)
    def made(equation: Equation) -> Function:
        import scipy.special

        function: Function = getattr(scipy.special, name)
        return function


for _primitive, _name in {
    "bessel_i0e": "i0e",
    "erf": "erf",
    "erfc": "erfc",
}.items():
    _of_scipy(_primitive, _name)


@arithmetic("bessel_i1e", "erf_inv")
def _odd(equation: Equation) -> Function:
    from scipy.special import erfinv, i1e

    function = erfinv if equation.name == "erf_inv" else i1e
    return lambda x: np.copysign(function(x), x)  # SciPy's may lose the sign of a zero


@arithmetic("lgamma")
def _lgamma(equation: Equation) -> Function:
    from scipy.special import gammaln

    return lambda x: np.where(np.isinf(x), np.abs(x), gammaln(x))


@arithmetic("digamma")
def _digamma(equation: Equation) -> Function:
    from scipy.special import psi

    nan = equation.result.dtype.type(np.nan)
    return lambda x: np.where(x == 0, nan, psi(x))


def _within(primitive: str, name: str, domain: Callable[..., Any]) -> None:
    """Registers a function of SciPy for operands of a domain; elsewhere XLA computes."""

    @arithmetic(primitive)
    def made(equation: Equation) -> Function:
        import scipy.special

        function = getattr(scipy.special, name)
        of_xla = functools.cache(lambda: compiled(equation))

        def run(*operands: Any) -> Any:
            if np.all(domain(*operands)):
                return function(*operands)
            return of_xla()(*operands)

        return run


def _positive(x: Any) -> Any:
    return (x > 0) & np.isfinite(x)


_within("igamma", "gammainc", lambda a, x: _positive(a) & (x >= 0))
_within("igammac", "gammaincc", lambda a, x: _positive(a) & (x >= 0))
_within("zeta", "zeta", lambda x, q: (x > 1) & np.isfinite(x) & _positive(q))
_within(
    "regularized_incomplete_beta",
    "betainc",
    lambda a, b, x: _positive(a) & _positive(b) & (x >= 0) & (x <= 1),
)


@arithmetic("polygamma")
def _polygamma(equation: Equation) -> Function:
    of_xla = functools.cache(lambda: compiled(equation))

    def run(order: Any, x: Any) -> Any:
        from scipy.special import gammaln, zeta

        if np.all((order >= 1) & np.isfinite(order) & _positive(x)):
            # (-1) ** (n + 1) * n! * zeta(n + 1, x)
            sign = np.where(np.fmod(order, 2) == 1, 1, -1).astype(x.dtype)
            return sign * np.exp(gammaln(order + 1)) * zeta(order + 1, x)
        return of_xla()(order, x)

    return run
