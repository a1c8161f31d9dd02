"""Jaxprs with sizes (`core.sizes`) for given numbers: as if they had been traced for these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var

from estimatorkit.core.sizes import Size, size_primitive


def at_sizes(closed: ClosedJaxpr, values: Sequence[int]) -> ClosedJaxpr:
    """A jaxpr without sizes.

    Args:
        closed: the jaxpr, in whose shapes and parameters sizes may occur.
        values: the values of the sizes' atoms (`Sizes.values`).
    """
    found: ClosedJaxpr = _Numbers(values).of(closed)
    return found


class _Numbers:
    """Replaces sizes by numbers; what is shared stays shared."""

    def __init__(self, values: Sequence[int]) -> None:
        self._values = values
        self._jaxprs: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        """A parameter without sizes; the same object if there are none."""
        if isinstance(value, Size):
            return value.at(self._values)
        if isinstance(value, (Jaxpr, ClosedJaxpr)):
            if id(value) not in self._jaxprs:
                make = self._closed if isinstance(value, ClosedJaxpr) else self._jaxpr
                self._jaxprs[id(value)] = make(value)
            return self._jaxprs[id(value)]
        if isinstance(value, (tuple, list)):
            parts = [self.of(each) for each in value]
            if all(new is old for new, old in zip(parts, value, strict=True)):
                return value
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        return value

    def _closed(self, closed: Any) -> Any:
        jaxpr = self.of(closed.jaxpr)
        return closed if jaxpr is closed.jaxpr else ClosedJaxpr(jaxpr, closed.consts)

    def _aval(self, aval: Any) -> Any:
        shape = getattr(aval, "shape", ())
        new = self.of(shape)
        return aval if new is shape else aval.update(shape=new)

    def _jaxpr(self, jaxpr: Any) -> Any:
        atoms: dict[Any, Any] = {}
        changed = False

        def atom(old: Any) -> Any:
            return old if isinstance(old, Literal) else atoms.get(old, old)

        def bound(old: Any) -> Any:
            nonlocal changed
            aval = self._aval(old.aval)
            if aval is old.aval:
                return old
            changed = True
            atoms[old] = Var(aval) if type(old) is Var else type(old)(aval)
            return atoms[old]

        constvars, invars = (list(map(bound, each)) for each in (jaxpr.constvars, jaxpr.invars))
        equations = []
        for equation in jaxpr.eqns:
            if equation.primitive is size_primitive():
                (result,) = equation.outvars
                number = np.asarray(self.of(equation.params["size"]), result.aval.dtype)
                atoms[result] = _literal(number, result.aval)
                changed = True
                continue
            parameters = {key: self.of(each) for key, each in equation.params.items()}
            same = all(parameters[key] is each for key, each in equation.params.items())
            operands = list(map(atom, equation.invars))
            results = list(map(bound, equation.outvars))
            if (
                same
                and all(map(_is, operands, equation.invars))
                and all(map(_is, results, equation.outvars))
            ):
                equations.append(equation)
                continue
            changed = True
            equations.append(equation.replace(invars=operands, outvars=results, params=parameters))
        if not changed:
            return jaxpr
        return jaxpr.replace(
            constvars=constvars,
            invars=invars,
            outvars=list(map(atom, jaxpr.outvars)),
            eqns=equations,
        )


_literal: Any = Literal


def _is(one: Any, other: Any) -> bool:
    return one is other
