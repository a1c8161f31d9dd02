"""Jaxprs as programs of NumPy functions.

A `Template` is a jaxpr with the functions that it calls inlined, without equations that nothing
needs, and with those of constants computed. Its `Program` for the numbers of a run has a function
for each equation; equations without sizes share theirs among programs. Small results that are the
same in all runs are computed once. Large arrays are released after their last use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from estimatorkit.runtime.interpreter.aliases import UPDATES
from estimatorkit.runtime.interpreter.broadcasting import folds_broadcasts, is_foldable
from estimatorkit.runtime.interpreter.calls import SAME, called_function
from estimatorkit.runtime.interpreter.cost import seconds_of
from estimatorkit.runtime.interpreter.equations import (
    Equation,
    Function,
    Numbers,
    equation_at,
    equation_has_sizes,
    inner_jaxprs,
)
from estimatorkit.runtime.interpreter.floats import as_xla
from estimatorkit.runtime.interpreter.ownership import Memory
from estimatorkit.runtime.interpreter.rules import function_of, words_of
from estimatorkit.runtime.xla.collected_faults import has
from estimatorkit.runtime.xla.faults import COMMIT, GUARD

SMALL = 1 << 12
"""Elements: larger arrays are released after their last use, and constants not computed ahead."""


class Step(NamedTuple):
    """An equation of a program.

    Attributes:
        function: computes it.
        operands: gets them from the slots.
        to: the slot of its result; if there are several, of a list of them, until `more`.
        more: the slots of several results, and those of arrays that nothing uses later; None if
            there are neither.
    """

    function: Function
    operands: Callable[[list[Any]], Sequence[Any]]
    to: int
    more: tuple[Sequence[int], Sequence[int]] | None


class Program:
    """A jaxpr for the numbers of a run, which is called with arrays and returns a list of them.

    Attributes:
        equations: those that run, in order.
        seconds: the estimated time of a run, without what is not known before (see `cost`).
        owned: the arguments that it may change.
    """

    def __init__(self, template: Straight, made: Sequence[_Made]) -> None:
        self.equations = [each.equation for each in made]
        self.seconds = sum(each.seconds for each in made)
        self.owned = template.owned
        self._slots = template.slots
        self._arguments = template.arguments
        self._results = template.results
        steps: tuple[list[Step], list[Step]] = [], []
        for each, placed in zip(made, template.running, strict=True):
            step = Step(each.function, each.operands, placed.to, placed.more)
            steps[placed.is_fixed].append(step)
        self._steps, fixed = steps
        if fixed:
            self._slots = template.slots.copy()
            with as_xla():
                _run(fixed, self._slots)

    def __call__(self, *arguments: Any) -> list[Any]:
        """Runs the program."""
        slots = self._slots.copy()
        slots[: self._arguments] = arguments
        _run(self._steps, slots)
        return [slots[at] for at in self._results]


def _run(steps: Sequence[Step], slots: list[Any]) -> None:
    for function, operands, to, more in steps:
        slots[to] = function(*operands(slots))
        if more is not None:
            several, last = more
            if several:
                for at, result in zip(several, slots[to], strict=True):
                    slots[at] = result
                slots[to] = None
            for at in last:
                slots[at] = None


def program_of(closed: ClosedJaxpr) -> Program:
    """The program of a jaxpr without sizes."""
    return Template(closed).program(())


class _Made(NamedTuple):
    """An equation for the numbers of a run, and what is known of it."""

    equation: Equation
    function: Function
    operands: Callable[[list[Any]], Sequence[Any]]
    seconds: float


class Placed:
    """An equation of a template.

    Attributes:
        source: as JAX traced it.
        takes: the slots of its operands.
        reads: the slots that it reads: the same, but for broadcasts that are folded into it, whose
            operands it reads (see `broadcasting`).
        results: the slots of its results.
        to, more: see `Step`.
        last: the slots of arrays that nothing uses later.
        overwrites: whether its first operand may be changed in place.
        free: the operands to which the result may be written.
        unused: see `Equation`.
        is_single: whether the results have the shapes of the source's.
        is_fixed: whether the results are small, and the same in all runs of a program.
    """

    is_single = True
    is_fixed = False

    def __init__(self, source: Any, takes: Sequence[int], gives: Sequence[int], to: int) -> None:
        self.source = source
        self.takes = self.reads = takes
        self.results = tuple(gives)
        self.several: Sequence[int] = self.results if source.primitive.multiple_results else ()
        self.to = to
        self.last: Sequence[int] = ()
        self.overwrites = False
        self.free: Sequence[int] = ()
        self.unused: tuple[int, ...] = ()
        self.has_sizes = equation_has_sizes(source)
        self._made: _Made | None = None  # what programs share

    @property
    def more(self) -> tuple[Sequence[int], Sequence[int]] | None:
        """See `Step`."""
        return (self.several, self.last) if self.several or self.last else None

    def at(self, numbers: Numbers) -> _Made:
        """The equation for the numbers of a run."""
        if self._made is not None:
            return self._made
        equation, function = self._computed(numbers)
        if self.overwrites:
            function = getattr(function, "overwriting", function)
        seconds = getattr(function, "seconds", None)
        made = _Made(
            equation,
            function,
            self._operands(equation, function),
            seconds_of(equation) if seconds is None else seconds,
        )
        if not self.has_sizes:
            self._made = made
        return made

    def _operands(self, equation: Equation, function: Function) -> Any:
        """Gets the operands, followed by the output array if the result is written in place."""
        if isinstance(function, np.ufunc) and equation.result.shape:
            for at in self.free:
                if equation.inputs[at] == equation.result:  # no memory is faster than any
                    return _getter([*self.reads, self.reads[at]])
        return _getter(self.reads)

    def _computed(self, numbers: Numbers) -> tuple[Equation, Function]:
        equation = equation_at(self.source, numbers)._replace(unused=self.unused)
        return equation, function_of(equation)


def _getter(takes: Sequence[int]) -> Callable[[list[Any]], Sequence[Any]]:
    if len(takes) > 1:
        return itemgetter(*takes)
    return itemgetter(slice(takes[0], takes[0] + 1) if takes else slice(0))


class Straight:
    """Equations in order, with a slot for each variable.

    Attributes:
        slots: a program's slots before a call: constants are there.
        constants: the slots of constants.
        arguments: the number of arguments, which have the first slots.
        results: the slots of the outputs.
        placed: the equations that are needed.
        running: those that run: all but folded broadcasts.
        owned: the arguments that they may change.
        fixed: the slots of results of fixed equations.
    """

    def __init__(self, arguments: int) -> None:
        self.slots: list[Any] = [None] * arguments
        self.constants: set[int] = set()
        self.fixed: set[int] = set()
        self.arguments = arguments
        self.results: Sequence[int] = ()
        self.placed: list[Placed] = []
        self.running: list[Placed] = []
        self.owned: Sequence[int] = ()

    def at(self, numbers: Numbers) -> Program:
        """The program for the numbers of a run."""
        return Program(self, [placed.at(numbers) for placed in self.running])

    def slot(self, value: Any = None) -> int:
        """A new slot."""
        self.slots.append(value)
        return len(self.slots) - 1

    def constant(self, value: Any) -> int:
        """The slot of an array that is the same in all runs."""
        at = self.slot(value)
        self.constants.add(at)
        return at

    def _finish(self, carried: range) -> None:
        """Called when all equations and results are known.

        Args:
            carried: see `Numbers.program`.
        """
        self._remove_unneeded()
        self._find_fixed()
        self._fold_broadcasts()
        self._find_last_uses()
        self._find_updates(carried)

    def _remove_unneeded(self) -> None:
        needed = set(self.results)
        found = []
        for placed in reversed(self.placed):
            if not needed.isdisjoint(placed.results) or has_effect(placed.source):
                unused = (at for at, slot in enumerate(placed.results) if slot not in needed)
                placed.unused = tuple(unused)
                needed.update(placed.takes)
                found.append(placed)
        self.placed = found[::-1]

    def _find_fixed(self) -> None:
        for placed in self.placed:
            placed.is_fixed = (
                placed.is_single
                and all(at in self.constants or at in self.fixed for at in placed.takes)
                and all(is_small(each.aval) for each in placed.source.outvars)
                and not has_effect(placed.source)
                and not inner_jaxprs(placed.source)  # a loop may take any number of steps
            )
            if placed.is_fixed:
                self.fixed.update(placed.results)

    def _fold_broadcasts(self) -> None:
        """Folds broadcasts into the equations that use them; those that others need still run."""
        given = {
            placed.to: placed.takes[0]
            for placed in self.placed
            if placed.is_single and not placed.is_fixed and is_foldable(placed.source)
        }
        for placed in self.placed:
            flags = [at in given for at in placed.takes]
            if placed.is_single and folds_broadcasts(placed.source, flags):
                placed.reads = [given.get(at, at) for at in placed.takes]
        read = {*self.results, *(at for placed in self.placed for at in placed.reads)}
        self.running = [each for each in self.placed if each.to not in given or each.to in read]

    def _find_last_uses(self) -> None:
        kept = {*self.results, *self.constants, *self.fixed, *range(self.arguments)}
        small = {
            at
            for placed in self.placed
            for at, variable in zip(placed.results, placed.source.outvars, strict=True)
            if placed.is_single and is_small(variable.aval)
        }
        for placed in reversed(self.running):
            used = dict.fromkeys([*placed.reads, *placed.results])
            placed.last = tuple(at for at in used if at not in kept and at not in small)
            kept.update(used)

    def _find_updates(self, carried: range) -> None:
        memory = Memory(self.placed, self.results, self.constants | self.fixed, self.arguments)
        if any(placed.source.primitive.name in UPDATES for placed in self.placed):
            self.owned = memory.own(carried)
            for at in memory.updates(self.owned):
                self.placed[at].overwrites = True
        for at, operands in memory.overwritten():
            self.placed[at].free = operands


class Template(Straight):
    """The equations of a jaxpr and of the functions that it calls.

    Attributes:
        scans: what loops over the jaxpr keep here.
    """

    def __init__(
        self, closed: ClosedJaxpr, inner: _Inner | None = None, carried: range = range(0)
    ) -> None:
        super().__init__(len(closed.jaxpr.invars))
        self.closed = closed  # keeps the keys of `inner`
        self.scans: dict[Any, Any] = {}
        self._inner: _Inner = {} if inner is None else inner
        self._none = Numbers((), self._template)
        self._known: dict[Any, list[int]] = {}  # results of equations that may occur again
        self._literals: dict[Any, int] = {}
        self.results = self._inline(closed, range(self.arguments))
        self._finish(carried)

    def program(self, values: Sequence[int]) -> Program:
        """The program for the numbers of a run.

        Args:
            values: those of the sizes' atoms.

        Raises:
            NotInterpretable: it has an equation that only XLA can run.
        """
        return self.at(Numbers(values, self._template))

    def _template(self, closed: ClosedJaxpr, carried: range) -> Template:
        key = id(closed), carried
        template = self._inner.get(key)
        if template is None:
            template = self._inner[key] = Template(closed, self._inner, carried)
        return template

    def _constant(self, value: Any, dtype: Any) -> int:
        words = words_of(value)
        return self.constant(np.asarray(words, dtype if words is value else words.dtype))

    def _literal(self, atom: Literal) -> int:
        aval: Any = atom.aval
        at = self._constant(atom.val, aval.dtype)
        value = self.slots[at]
        if value.size != 1:
            return at
        return self._literals.setdefault((value.tobytes(), value.dtype, value.shape), at)

    def _inline(self, closed: ClosedJaxpr, inputs: Sequence[int]) -> list[int]:
        """Places the equations of a jaxpr; returns the slots of its outputs."""
        jaxpr = closed.jaxpr
        homes: dict[Any, int] = {}
        for variable, value in zip(jaxpr.constvars, closed.consts, strict=True):
            homes[variable] = self._constant(value, variable.aval.dtype)
        homes.update(zip(jaxpr.invars, inputs, strict=True))

        def home(atom: Any) -> int:
            if isinstance(atom, Literal):
                return self._literal(atom)
            return homes[atom]

        for source in jaxpr.eqns:
            takes = list(map(home, source.invars))
            inner = called_function(source)
            if inner is not None:
                gives = self._inline(inner, takes)
            elif source.primitive.name in SAME:
                gives = takes
            elif source.primitive is COMMIT:
                gives = takes[1:]
            elif source.primitive is GUARD:
                gives = self._place(source, takes[:2])  # its values are for the error
            else:
                gives = self._place(source, takes)
            homes.update(zip(source.outvars, gives, strict=False))
        return list(map(home, jaxpr.outvars))

    def _place(self, source: Any, takes: list[int]) -> list[int]:
        key = _key(source, takes)
        if key is not None and key in self._known:
            return self._known[key]
        found = self._computed(source, takes)
        if found is None:
            found = [self.slot() for _ in source.outvars]
            to = self.slot() if source.primitive.multiple_results else found[0]
            self.placed.append(Placed(source, takes, found, to))
        if key is not None:
            self._known[key] = found
        return found

    def _computed(self, source: Any, takes: list[int]) -> list[int] | None:
        """The results of an equation of constants; None if it is to run each time."""
        if not takes or not self.constants.issuperset(takes):
            return None
        if has_effect(source) or equation_has_sizes(source) or inner_jaxprs(source):
            return None  # a loop may take any number of steps
        equation = equation_at(source, self._none)
        if any(aval.size > SMALL for aval in equation.outputs):
            return None
        with as_xla():
            found = function_of(equation)(*[self.slots[at] for at in takes])
        results = found if source.primitive.multiple_results else [found]
        return [self._constant(each, each.dtype) for each in results]


_Inner: TypeAlias = "dict[tuple[int, range], Template]"


def is_small(aval: Any) -> bool:
    """Whether an array is known to have at most `SMALL` elements."""
    size = 1
    for dim in getattr(aval, "shape", ()):
        if not isinstance(dim, int):
            return False
        size *= dim
    return size <= SMALL


def _key(source: Any, takes: Sequence[int]) -> Any:
    """What equations have in common that give the same; None if it is not known."""
    if inner_jaxprs(source) or has_effect(source) or equation_has_sizes(source):
        return None
    avals = ((getattr(each.aval, "dtype", None), each.aval.shape) for each in source.outvars)
    key = source.primitive, tuple(takes), tuple(source.params.items()), tuple(avals)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def has_effect(source: Any) -> bool:
    """Whether an equation is needed although nothing uses its results."""
    return source.primitive is GUARD or bool(source.effects) or _tests(source)


def _tests(source: Any) -> bool:
    return any(has(inner, GUARD) for inner in inner_jaxprs(source))
