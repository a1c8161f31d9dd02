"""A jaxpr as a program of NumPy functions.

Calls of functions are inlined; equations that nothing needs, and those of constants alone, are not
part of the program. Arrays are released after their last use.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from estimatorkit.runtime.interpreter.equations import Equation, Sizes, aval_at, equation_at
from estimatorkit.runtime.interpreter.rules import function_of, is_key, words_of
from estimatorkit.runtime.xla.faults import COMMIT, GUARD

LARGE = 1 << 14
"""Bytes: larger arrays are released after their last use, and constants are not computed ahead."""


class Step(NamedTuple):
    """An equation of a program.

    Attributes:
        function: computes it.
        takes, gives: the slots of its operands and results; `gives` is a number if it returns one
            array.
        last: the slots of large arrays that nothing uses later.
    """

    function: Callable[..., Any]
    takes: tuple[int, ...]
    gives: int | tuple[int, ...]
    last: tuple[int, ...]


class Program:
    """A jaxpr at given sizes, which is called with NumPy arrays and returns a list of them.

    Attributes:
        equations: those that run, in order.
    """

    def __init__(self, closed: ClosedJaxpr, sizes: Sizes) -> None:
        inlined = _Inlined(closed, sizes)
        self.equations = [each.equation for each in inlined.needed]
        self._slots = inlined.slots
        self._arguments = len(closed.jaxpr.invars)
        self._results = inlined.results
        self._steps = inlined.steps()

    def __call__(self, *arguments: Any) -> list[Any]:
        """Runs the program."""
        slots = self._slots.copy()
        slots[: self._arguments] = arguments
        for function, takes, gives, last in self._steps:
            results = function(*[slots[at] for at in takes])
            if type(gives) is int:
                slots[gives] = results
            else:
                for at, result in zip(gives, results, strict=True):
                    slots[at] = result
            for at in last:
                slots[at] = None
        return [slots[at] for at in self._results]


class _Placed(NamedTuple):
    equation: Equation
    takes: tuple[int, ...]
    gives: tuple[int, ...]


class _Inlined:
    """The equations of a jaxpr and of the functions that it calls, with a slot for each variable.

    Attributes:
        slots: a program's slots before a call: constants are there.
        results: the slots of the outputs.
        needed: what runs.
    """

    def __init__(self, closed: ClosedJaxpr, sizes: Sizes) -> None:
        self.slots: list[Any] = []
        self._sizes = sizes
        self._placed: list[_Placed] = []
        self._constants: set[int] = set()
        self._large: set[int] = set()
        inputs = [self._slot() for _ in closed.jaxpr.invars]
        self.results = self._inline(closed, inputs)
        self.needed = self._live()
        self._arguments = set(inputs)

    def steps(self) -> list[Step]:
        """The program's steps."""
        kept = {*self.results, *self._constants, *self._arguments}
        found = []
        for placed in reversed(self.needed):
            used = [*placed.takes, *placed.gives]
            last = [at for at in dict.fromkeys(used) if at not in kept]
            kept.update(last)
            several = placed.equation.source.primitive.multiple_results
            gives = placed.gives if several else placed.gives[0]
            large = tuple(at for at in last if at in self._large)
            found.append(Step(function_of(placed.equation), placed.takes, gives, large))
        return found[::-1]

    def _slot(self, value: Any = None) -> int:
        self.slots.append(value)
        return len(self.slots) - 1

    def _constant(self, value: Any, dtype: Any) -> int:
        at = self._slot(np.asarray(value, dtype))
        self._constants.add(at)
        return at

    def _inline(self, closed: ClosedJaxpr, inputs: Sequence[int]) -> list[int]:
        """Places the equations of a jaxpr; returns the slots of its outputs."""
        jaxpr = closed.jaxpr
        homes: dict[Any, int] = {}
        for variable, value in zip(jaxpr.constvars, closed.consts, strict=True):
            words = words_of(value)
            homes[variable] = self._constant(words, words.dtype if is_key(value) else variable.aval.dtype)
        homes.update(zip(jaxpr.invars, inputs, strict=True))

        def home(atom: Any) -> int:
            if isinstance(atom, Literal):
                return self._constant(atom.val, atom.aval.dtype)
            return homes[atom]

        for source in jaxpr.eqns:
            takes = tuple(map(home, source.invars))
            inner = called_function(source)
            if inner is not None:
                gives = self._inline(inner, takes)
            elif source.primitive.name in SAME:
                gives = list(takes)
            elif source.primitive is COMMIT:
                gives = [takes[1]]
            else:
                gives = self._place(source, takes)
            homes.update(zip(source.outvars, gives, strict=False))
        return list(map(home, jaxpr.outvars))

    def _place(self, source: Any, takes: tuple[int, ...]) -> list[int]:
        equation = equation_at(source, self._sizes)
        sizes = [
            each.size * getattr(each.dtype, "itemsize", 0) for each in equation.outputs
        ]
        if self._constants.issuperset(takes) and max(sizes, default=LARGE) < LARGE:
            if source.primitive is not GUARD and not source.effects:
                with np.errstate(all="ignore"):
                    found = function_of(equation)(*[self.slots[at] for at in takes])
                results = found if source.primitive.multiple_results else [found]
                return [self._constant(each, np.asarray(each).dtype) for each in results]
        gives = [self._slot() for _ in source.outvars]
        self._large.update(at for at, size in zip(gives, sizes, strict=True) if size >= LARGE)
        self._placed.append(_Placed(equation, takes, tuple(gives)))
        return gives

    def _live(self) -> list[_Placed]:
        """The equations that results need, and tests."""
        needed = set(self.results)
        found = []
        for placed in reversed(self._placed):
            if not needed.isdisjoint(placed.gives) or _has_effect(placed.equation.source):
                needed.update(placed.takes)
                found.append(placed)
        return found[::-1]


SAME = frozenset(
    {"stop_gradient", "optimization_barrier", "name", "copy", "copy_p", "random_wrap"}
    | {"random_unwrap", "device_put", "sharding_constraint", "pvary"}
)
"""Primitives whose results are their operands."""


def _has_effect(source: Any) -> bool:
    return source.primitive is GUARD or bool(source.effects) or contains_guard(source)


@functools.lru_cache(maxsize=None)
def _jaxpr_contains_guard(jaxpr: Any) -> bool:
    return any(each.primitive is GUARD or contains_guard(each) for each in jaxpr.eqns)


def contains_guard(source: Any) -> bool:
    """Whether a test is within the functions of an equation."""
    return any(_jaxpr_contains_guard(inner) for inner in inner_jaxprs(source))


def inner_jaxprs(source: Any) -> list[Any]:
    """The jaxprs among the parameters of an equation."""
    found = []
    for value in source.params.values():
        for each in value if isinstance(value, (tuple, list)) else (value,):
            jaxpr = getattr(each, "jaxpr", each)
            if hasattr(jaxpr, "eqns"):
                found.append(jaxpr)
    return found


_CALLS = frozenset(
    {"jit", "pjit", "closed_call", "core_call", "call", "custom_jvp_call", "custom_vjp_call"}
    | {"remat", "remat2", "checkpoint", "custom_vmap_call"}
)


def called_function(source: Any) -> ClosedJaxpr | None:
    """The function that an equation calls with its operands; None if it is none."""
    if source.primitive.name not in _CALLS:
        return None
    parameters = source.params
    (inner,) = (parameters[key] for key in ("call_jaxpr", "jaxpr", "call") if key in parameters)
    return inner if isinstance(inner, ClosedJaxpr) else ClosedJaxpr(inner, ())
