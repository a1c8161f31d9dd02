"""What rules see of a jaxpr's equation: its parameters, and the shapes and dtypes of its operands.

A jaxpr may have been traced for many sizes (`core.sizes`): an equation is that for the numbers of a
run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, jaxprs_in_params

from estimatorkit.core.sizes import Size

if TYPE_CHECKING:
    from estimatorkit.runtime.interpreter.program import Program, Template

Function: TypeAlias = Callable[..., Any]
"""What a rule returns: a function of NumPy arrays that returns one, or a list if the primitive has
multiple results."""


class NotInterpretable(Exception):
    """An equation that only XLA can run."""


class Numbers:
    """The numbers of sizes in a run.

    Args:
        values: those of the sizes' atoms (`core.sizes.Sizes.values`).
        template: makes the template of a jaxpr among an equation's parameters (see `program`).
    """

    def __init__(
        self, values: Sequence[int], template: Callable[[ClosedJaxpr, range], Template]
    ) -> None:
        self._values = values
        self.template = template

    def within(self, value: Any) -> Any:
        """A parameter or a shape with numbers in place of sizes."""
        if isinstance(value, Size):
            return value.at(self._values)
        if isinstance(value, tuple):
            for each in value:
                if type(each) is not int:
                    break
            else:
                return value  # as most are
            found = [self.within(each) for each in value]
            if all(new is old for new, old in zip(found, value, strict=True)):
                return value
            return type(value)(*found) if hasattr(value, "_fields") else tuple(found)
        return value

    def program(self, closed: ClosedJaxpr, carried: range = range(0)) -> Program:
        """The program of a jaxpr among the parameters of an equation.

        Args:
            closed: the jaxpr.
            carried: the arguments that a loop carries: its first outputs are those of the next
                iteration. The program may own some of them (`Program.owned`).
        """
        return self.template(closed, carried).at(self)


def has_sizes(value: Any) -> bool:
    """Whether a parameter or a shape contains sizes, also within its jaxprs."""
    if isinstance(value, (tuple, list)):
        for each in value:  # noqa: SIM110 - a generator takes three times as long
            if type(each) is not int and has_sizes(each):
                return True
        return False
    if isinstance(value, (Jaxpr, ClosedJaxpr)):
        jaxpr = getattr(value, "jaxpr", value)
        return any(map(equation_has_sizes, jaxpr.eqns)) or any(
            has_sizes(each.aval.shape) for each in jaxpr.invars if hasattr(each.aval, "shape")
        )
    return isinstance(value, Size)


def equation_has_sizes(source: Any) -> bool:
    """Whether an equation depends on symbolic sizes."""
    for each in (*source.invars, *source.outvars):
        if has_sizes(getattr(each.aval, "shape", ())):
            return True
    return any(map(has_sizes, source.params.values()))


class Aval(NamedTuple):
    """The shape and the dtype of an array."""

    shape: tuple[int, ...]
    dtype: Any

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


class Equation(NamedTuple):
    """An equation for the numbers of a run.

    Attributes:
        name: the name of the primitive.
        params: its parameters.
        inputs, outputs: shapes and dtypes.
        numbers: those of sizes, for the jaxprs among the parameters.
        source: the equation as JAX traced it.
        unused: the results that nothing needs.
    """

    name: str
    params: Mapping[str, Any]
    inputs: Sequence[Aval]
    outputs: Sequence[Aval]
    numbers: Numbers
    source: Any
    unused: tuple[int, ...] = ()

    @property
    def result(self) -> Aval:
        """The only output."""
        (only,) = self.outputs
        return only


def equation_at(source: Any, numbers: Numbers) -> Equation:
    """An equation of a jaxpr for the numbers of a run."""
    return Equation(
        source.primitive.name,
        {key: numbers.within(value) for key, value in source.params.items()},
        [aval_at(each.aval, numbers) for each in source.invars],
        [aval_at(each.aval, numbers) for each in source.outvars],
        numbers,
        source,
    )


def aval_at(aval: Any, numbers: Numbers) -> Aval:
    """A shape and a dtype for the numbers of a run; of random keys, those of their words."""
    shape, dtype = getattr(aval, "shape", ()), getattr(aval, "dtype", None)
    if isinstance(dtype, np.dtype):
        return Aval(numbers.within(shape), dtype)
    if dtype is not None and jax.numpy.issubdtype(dtype, jax.dtypes.prng_key):
        return Aval((*numbers.within(shape), *dtype._impl.key_shape), np.dtype(np.uint32))
    return Aval(numbers.within(shape), dtype)


def inner_jaxprs(source: Any) -> list[Any]:
    """The jaxprs among the parameters of an equation."""
    return list(jaxprs_in_params(source.params))
