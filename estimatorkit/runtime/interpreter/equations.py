"""What rules see of a jaxpr's equation: its parameters, and the shapes and dtypes of its operands.

A jaxpr that was traced with symbolic dimensions stands for all sizes; `Sizes` gives one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr

Function: TypeAlias = Callable[..., Any]
"""What a rule returns: a function of NumPy arrays that returns one, or a list if the primitive has
multiple results."""


class NotInterpretable(Exception):
    """An equation that only XLA can run."""


class Sizes:
    """The sizes of symbolic dimensions, by name; expressions of them are evaluated once."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.by_name = dict(sizes)
        self._known: dict[Any, int] = {}

    def of(self, dim: Any) -> int:
        """The size of a dimension: itself, unless it is symbolic."""
        if isinstance(dim, int):
            return dim
        size = self._known.get(dim)
        if size is None:
            size = int(dim._evaluate(self.by_name))
            self._known[dim] = size
        return size

    def within(self, value: Any) -> Any:
        """A parameter with sizes in place of symbolic dimensions."""
        if type(value) in _PLAIN or value is None:
            return value
        if isinstance(value, tuple):
            found = [self.within(each) for each in value]
            if all(new is old for new, old in zip(found, value, strict=True)):
                return value
            return type(value)(*found) if hasattr(value, "_fields") else tuple(found)
        return self.of(value) if jax.export.is_symbolic_dim(value) else value


_PLAIN = frozenset({int, bool, float, str, np.dtype, ClosedJaxpr, Jaxpr})


class Aval(NamedTuple):
    """The shape and the dtype of an array."""

    shape: tuple[int, ...]
    dtype: Any

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))


class Equation(NamedTuple):
    """An equation at given sizes.

    Attributes:
        name: the name of the primitive.
        params: its parameters.
        inputs, outputs: shapes and dtypes.
        sizes: those of symbolic dimensions, for the jaxprs among the parameters.
        source: the equation as JAX traced it.
    """

    name: str
    params: Mapping[str, Any]
    inputs: Sequence[Aval]
    outputs: Sequence[Aval]
    sizes: Sizes
    source: Any

    @property
    def result(self) -> Aval:
        """The only output."""
        (only,) = self.outputs
        return only


def equation_at(source: Any, sizes: Sizes) -> Equation:
    """An equation of a jaxpr, at given sizes."""
    return Equation(
        source.primitive.name,
        {key: sizes.within(value) for key, value in source.params.items()},
        [aval_at(each.aval, sizes) for each in source.invars],
        [aval_at(each.aval, sizes) for each in source.outvars],
        sizes,
        source,
    )


def aval_at(aval: Any, sizes: Sizes) -> Aval:
    """A shape and a dtype at given sizes; of random keys, those of their words."""
    shape, dtype = getattr(aval, "shape", ()), getattr(aval, "dtype", None)
    if dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
        return Aval((*sizes.within(shape), *dtype._impl.key_shape), np.dtype(np.uint32))
    return Aval(sizes.within(shape), dtype)


def inner_jaxprs(source: Any) -> list[Any]:
    """The jaxprs among the parameters of an equation."""
    found = []
    for value in source.params.values():
        for each in value if isinstance(value, (tuple, list)) else (value,):
            jaxpr = getattr(each, "jaxpr", each)
            if hasattr(jaxpr, "eqns"):
                found.append(jaxpr)
    return found
