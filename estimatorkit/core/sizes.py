"""Sizes: dimensions that stand for any number, decided by that of an example.

JAX traces a function for all sizes of a dimension if the dimension is an object with
`dimension_as_value`. A `Size` is a polynomial of symbols and of quotients; it also knows its number
in the run it was traced for. A comparison is answered for that number, and the answer is kept
(`Sizes.guards`): the trace is valid for all numbers with the same answers. So a kernel may branch
on a size, and one that needs a number (`int(size)`) gets it, and the trace is for this number.

JAX's own symbolic dimensions, with which exports are traced, have no numbers: they refuse
what they cannot decide, but for `==`, which they deny.
"""

from __future__ import annotations

import dis
import math
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from estimatorkit.core.polynomials import Terms, added, divided, evaluated, multiplied, negative

LEAST = 2
"""The least number a symbol stands for: arrays with 1 row broadcast, and those with none are
special to many kernels."""


_refusing: ContextVar[bool] = ContextVar("refusing", default=False)
_shown: ContextVar[Sequence[int] | None] = ContextVar("shown", default=None)


@contextmanager
def refusing() -> Iterator[None]:
    """A context manager in which no size becomes a number: what is computed is to hold for all."""
    token = _refusing.set(True)
    try:
        yield
    finally:
        _refusing.reset(token)


@contextmanager
def shown(values: Sequence[int]) -> Iterator[None]:
    """A context manager in which sizes are written as numbers, given the values of the atoms."""
    token = _shown.set(values)
    try:
        yield
    finally:
        _shown.reset(token)


class _Atom(NamedTuple):
    """What polynomials consist of.

    Attributes:
        kind: 'symbol', or '//' and '%' of two polynomials.
        operands: the polynomials.
        least: the least value that is known.
    """

    kind: str
    operands: tuple[Terms, ...]
    least: int | None


class Sizes:
    """The sizes of one trace."""

    def __init__(self) -> None:
        self._atoms: list[_Atom] = []
        self._numbers: list[int] = []
        self._places: dict[tuple[str, tuple[Terms, ...]], int] = {}
        self.guards: dict[tuple[Terms, str], bool] = {}
        """The answers to questions about polynomials: is it '== 0', or '>= 0'?"""

    def symbol(self, number: int) -> Size:
        """A new symbol whose value in the traced run is `number`."""
        return Size(self, (((self._add(_Atom("symbol", (), LEAST), number),), 1),))

    def _add(self, atom: _Atom, number: int) -> int:
        self._atoms.append(atom)
        self._numbers.append(number)
        return len(self._atoms) - 1

    def values(self, numbers: Sequence[int]) -> list[int] | None:
        """The values of all atoms if the symbols are these; None if one has none."""
        found: list[int] = []
        rest = iter(numbers)
        for kind, operands, _ in self._atoms:
            if kind == "symbol":
                found.append(next(rest))
                continue
            a, b = (evaluated(each, found) for each in operands)
            if not b:
                return None
            found.append(a // b if kind == "//" else a % b)
        return found

    def holds(self, values: Sequence[int]) -> bool:
        """Whether all answers are the same for these values of the atoms."""
        for (terms, question), answer in self.guards.items():
            value = evaluated(terms, values)
            if (value == 0 if question == "==" else value >= 0) is not answer:
                return False
        return True

    def number(self, terms: Terms) -> int:
        """A polynomial's value in the run that is traced."""
        return evaluated(terms, self._numbers)

    def text(self, terms: Terms) -> str:
        """A polynomial as text: `2*a*b + 1`."""
        products = []
        for atoms, factor in reversed(terms):
            names = list(map(self._name, atoms))
            products.append("*".join(names if factor == 1 and names else [str(factor), *names]))
        return " + ".join(products)

    def _name(self, place: int) -> str:
        kind, operands, _ = self._atoms[place]
        if kind == "symbol":
            return f"d{place}"
        return f"(({self.text(operands[0])}) {kind} ({self.text(operands[1])}))"

    def _quotient(self, kind: str, a: Terms, b: Terms) -> Any:
        """`a // b` or `a % b`, as an atom."""
        key = kind, (a, b)
        if key not in self._places:
            x, y = self.number(a), self.number(b)
            positive = (self._least(b) or 0) > 0
            if kind == "//":
                positive = positive and (least := self._least(a)) is not None and least >= 0
            atom = _Atom(kind, (a, b), 0 if positive else None)
            self._places[key] = self._add(atom, x // y if kind == "//" else x % y)
        return _size(self, (((self._places[key],), 1),))

    def _least(self, terms: Terms) -> int | None:
        """A lower bound; None if there is none."""
        total = 0
        for atoms, factor in terms:
            if not atoms:
                total += factor
                continue
            least = [self._atoms[each].least for each in atoms]
            if factor < 0 or None in least:
                return None
            total += factor * math.prod(each for each in least if each is not None)
        return total

    def answer(self, terms: Terms, question: str) -> bool:
        """Whether a polynomial is 0 ('=='), or at least 0 ('>=')."""
        opposite = tuple((atoms, -factor) for atoms, factor in terms)
        least, most = self._least(terms), self._least(opposite)
        if question == ">=":
            if least is not None and least >= 0:
                return True
            if most is not None and most > 0:
                return False
        else:
            if (least is not None and least > 0) or (most is not None and most > 0):
                return False
            if terms[-1][1] < 0:
                terms = opposite
        value = self.number(terms)
        found = value == 0 if question == "==" else value >= 0
        return self.guards.setdefault((terms, question), found)


def _size(sizes: Sizes, terms: Terms) -> Any:
    """A polynomial; an int if it is constant."""
    if not terms:
        return 0
    return terms[0][1] if len(terms) == 1 and not terms[0][0] else Size(sizes, terms)


class Size:
    """A dimension of an array that is traced for many sizes (see the module)."""

    __slots__ = ("_sizes", "_terms")

    def __init__(self, sizes: Sizes, terms: Terms) -> None:
        self._sizes = sizes
        self._terms = terms

    def at(self, values: Sequence[int]) -> int:
        """Its number, given the values of the atoms (`Sizes.values`)."""
        return evaluated(self._terms, values)

    def _terms_of(self, other: Any) -> Terms | None:
        """An operand as a polynomial; None if it is neither an integer nor of this trace."""
        if isinstance(other, Size):
            return other._terms if other._sizes is self._sizes else None
        number = _integer(other)
        if number is None:
            return None
        return (((), number),) if number else ()

    # -- arithmetic

    def _combined(
        self, other: Any, combine: Callable[[Terms, Terms], Terms], plain: Callable[..., Any]
    ) -> Any:
        if isinstance(other, (float, np.floating)):
            return plain(self.dimension_as_value(), other)
        terms = self._terms_of(other)
        if terms is None:
            return NotImplemented
        return _size(self._sizes, combine(self._terms, terms))

    def __add__(self, other: Any) -> Any:
        return self._combined(other, added, operator.add)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._combined(other, lambda a, b: added(a, b, -1), operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return self._combined(other, lambda a, b: added(b, a, -1), lambda a, b: b - a)

    def __mul__(self, other: Any) -> Any:
        return self._combined(other, multiplied, operator.mul)

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return 0 - self

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __pow__(self, power: Any) -> Any:
        exponent = _integer(power)
        if exponent is None or exponent < 0:
            return self.dimension_as_value() ** power
        return math.prod([self] * exponent)

    def __divmod__(self, other: Any) -> Any:
        terms = self._terms_of(other)
        return NotImplemented if terms is None else self._split(self._terms, terms)

    def __rdivmod__(self, other: Any) -> Any:
        terms = self._terms_of(other)
        return NotImplemented if terms is None else self._split(terms, self._terms)

    def _split(self, a: Terms, b: Terms) -> tuple[Any, Any]:
        sizes = self._sizes
        y = _size(sizes, b)
        if y == 0:
            raise ZeroDivisionError("division by a size of 0")
        whole, rest = divided(a, b)
        quotient, x = _size(sizes, whole), _size(sizes, rest)
        if isinstance(x, int) and isinstance(y, int):
            return quotient + x // y, x % y
        if not rest:
            return quotient, 0
        if isinstance(y, int):  # what remains has a smaller quotient
            return quotient + sizes._quotient("//", rest, b), sizes._quotient("%", rest, b)
        return sizes._quotient("//", a, b), sizes._quotient("%", a, b)

    def __floordiv__(self, other: Any) -> Any:
        found = self.__divmod__(other)
        return found if found is NotImplemented else found[0]

    def __rfloordiv__(self, other: Any) -> Any:
        found = self.__rdivmod__(other)
        return found if found is NotImplemented else found[0]

    def __mod__(self, other: Any) -> Any:
        found = self.__divmod__(other)
        return found if found is NotImplemented else found[1]

    def __rmod__(self, other: Any) -> Any:
        found = self.__rdivmod__(other)
        return found if found is NotImplemented else found[1]

    def __truediv__(self, other: Any) -> Any:
        return self.__jax_array__() / (_as_array(other))

    def __rtruediv__(self, other: Any) -> Any:
        return _as_array(other) / self.__jax_array__()

    def max(self, other: Any) -> Any:
        """The greater of two sizes."""
        return self if self >= other else other

    def min(self, other: Any) -> Any:
        """The lesser of two sizes."""
        return other if self >= other else self

    rmax, rmin = max, min

    # -- questions

    def _ask(self, terms: Terms, question: str) -> bool:
        if not terms or (len(terms) == 1 and not terms[0][0]):
            value = terms[0][1] if terms else 0
            return value == 0 if question == "==" else value >= 0
        return self._sizes.answer(terms, question)

    def _compare(self, other: Any, question: Callable[[Terms], bool], plain: Any) -> Any:
        if isinstance(other, float):
            return plain(int(self), other)
        terms = self._terms_of(other)
        return NotImplemented if terms is None else question(added(self._terms, terms, -1))

    def __eq__(self, other: Any) -> Any:
        if _is_of_keys(sys._getframe(1)):
            same = isinstance(other, Size) and other._sizes is self._sizes
            return same and other._terms == self._terms
        return self._compare(other, lambda a: self._ask(a, "=="), operator.eq)

    def __ne__(self, other: Any) -> Any:
        return self._compare(other, lambda a: not self._ask(a, "=="), operator.ne)

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, lambda a: self._ask(a, ">="), operator.ge)

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, lambda a: not self._ask(a, ">="), operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._compare(other, lambda a: self._ask(negative(a), ">="), operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, lambda a: not self._ask(negative(a), ">="), operator.gt)

    def __hash__(self) -> int:
        return hash((id(self._sizes), self._terms))

    def __bool__(self) -> bool:
        return not self._ask(self._terms, "==")

    def __index__(self) -> int:
        frame = sys._getframe(1)
        if frame.f_code.co_name in _PROBES and _is_of_jax(frame):
            raise TypeError("a size is no constant")
        return int(self)

    def __int__(self) -> int:
        if _refusing.get():
            raise TypeError("a size is not one number")
        number = self._sizes.number(self._terms)
        self._ask(added(self._terms, (((), -number),)), "==")  # from now on
        return number

    def __float__(self) -> float:
        return float(int(self))

    # -- JAX

    def dimension_as_value(self) -> Any:
        """The size as a traced scalar."""
        return size_primitive().bind(size=self)

    def __jax_array__(self) -> Any:
        return self.dimension_as_value()

    def __repr__(self) -> str:
        values = _shown.get()
        return self._sizes.text(self._terms) if values is None else str(self.at(values))


def _is_of_keys(frame: FrameType) -> bool:
    """Whether `==` is a lookup in one of JAX's caches, which must not record a guard: keys are
    compared if 7 bits of their hashes agree, so that guards would depend on earlier traces.

    Args:
        frame: that which compares: caches are called in C++, from JAX's modules.
    """
    code = frame.f_code
    if code.co_name == "__eq__":
        return True
    if not _is_of_jax(frame):
        return False
    return _instructions(code)[frame.f_lasti] not in _COMPARISONS


def _is_of_jax(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith("jax.")


_PROBES = frozenset(
    {"is_constant_dim", "_canonicalize_dimension", "convert_to_index", "to_dynamic_slice"}
)
"""JAX's functions that call `__index__` to find out whether a dimension is a number."""

_COMPARISONS = frozenset(dis.opmap[name] for name in ("COMPARE_OP", "CONTAINS_OP"))


@cache
def _instructions(code: CodeType) -> bytes:
    return code.co_code


def _integer(value: Any) -> int | None:
    """The number of an integer of Python or NumPy; None of anything else."""
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iu":
        return int(value)
    return None


def _as_array(value: Any) -> Any:
    return value.__jax_array__() if isinstance(value, Size) else value


@cache
def size_primitive() -> Any:
    """The primitive `size`, without operands: a traced scalar whose parameter is a `Size`."""
    import jax
    from jax.extend.core import Primitive

    primitive: Any = Primitive("size")

    def result(**_: Any) -> Any:
        dtype = np.int64 if jax.config.jax_enable_x64 else np.int32  # type: ignore[attr-defined]
        return jax.core.ShapedArray((), np.dtype(dtype), weak_type=True)

    primitive.def_abstract_eval(result)
    return primitive


# -- values of which some elements are sizes


def is_symbolic(value: Any) -> bool:
    """Whether a known value contains sizes, of this module or JAX's: an array of objects."""
    return isinstance(value, np.ndarray) and value.dtype == object and any(map(is_size, value.flat))


def traced_size(dim: Any) -> Any:
    """A dimension as an operand of JAX's functions: a traced scalar of a size, else the number."""
    return dim.dimension_as_value() if is_size(dim) else dim


def is_comparable(*dims: Any) -> bool:
    """Whether these dimensions can be compared: all but JAX's symbols, of which it is not known."""
    return all(isinstance(dim, (int, Size)) for dim in dims)


def decides(value: Any) -> bool:
    """Whether the sizes in a known value answer all questions (see the module)."""
    return is_comparable(*value.flat)


def is_size(value: Any) -> bool:
    """Whether a dimension is a size, of this module or JAX's."""
    return getattr(value, "dimension_as_value", None) is not None


def as_known(value: Any, dtype: Any) -> Any:
    """Numbers and sizes as an array: of `dtype` if there are no sizes, else of objects."""
    array = np.asarray(value, object)
    return array if is_symbolic(array) else array.astype(dtype)


def as_traced(value: Any, dtype: Any) -> Any:
    """A value with sizes as JAX's array, whose numbers are known at run time."""
    import jax.numpy as jnp

    numbers = [jnp.asarray(traced_size(each)) for each in value.flat]
    return jnp.stack([each.astype(dtype) for each in numbers]).reshape(value.shape)


def dims_of(value: Any) -> tuple[Any, ...]:
    """The dimensions in an array of integers, which may be sizes."""
    return tuple(np.atleast_1d(value).tolist())
