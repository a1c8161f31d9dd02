"""Repetitions in a jaxpr: what a program built many times in a Python loop.

A recurrent cell called for each step, and its gradient, trace to equations that repeat with a
period. In a repetition each operand of an equation is, from iteration to iteration, one of

- the same variable, or an equal literal (`Invariant`);
- a result of the same iteration (`Own`), or of an earlier one (`Carried`);
- another variable from outside each time (`Stacked`).
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jax.extend.core import Literal
from numpy.typing import NDArray

LEAST_SAVED = 100
"""Equations that a loop must save. Compilation takes about 3 ms for each."""

LEAST_REPEATS = 3

LONGEST_PERIOD = 4096

_DERIVATIVES = frozenset({"jvp_jaxpr_fun", "fwd_jaxpr_thunk", "bwd", "site"})
"""Parameters of equations that only differentiation uses, and the number of a test (`faults`): an
error in a loop names the operation of its first iteration."""

_POSITIONS = {
    "slice": frozenset({"start_indices", "limit_indices"}),
    "pad": frozenset({"padding_config"}),
}
"""Parameters that may differ between iterations, by primitive: which step of a sequence is read, or
gets a gradient."""

_SLOW_IN_LOOPS = ("conv_general_dilated",)
"""XLA has its fast kernels of these outside loops only, on a CPU: a residual network whose equal
blocks became a loop took 3 s a step, and takes 0.4."""

Variable = Any
Equation = Any


class Place(NamedTuple):
    """A result within an iteration: the position of its equation, and its own among the results."""

    at: int
    result: int


class Invariant(NamedTuple):
    atom: Any


class Own(NamedTuple):
    place: Place


class Carried(NamedTuple):
    """A result of an earlier iteration.

    Attributes:
        place: which.
        first: its values for the first iterations: as many as it is iterations old.
    """

    place: Place
    first: tuple[Any, ...]


class Stacked(NamedTuple):
    atoms: tuple[Any, ...]


@dataclass
class Repetition:
    """Equations that repeat, from `start` to before `end`.

    Attributes:
        start: the first equation.
        period, repeats: the equations of an iteration, and the iterations.
        defined: the iteration and the place of each variable that it defines.
        operands: how each equation of an iteration gets its operands.
        positions: by equation of an iteration, start indices that differ between iterations.
        outside: by place, the variables that are used outside, by iteration.
        sums: places of which only the sum is used outside.
    """

    start: int
    period: int
    repeats: int
    defined: dict[Variable, tuple[int, Place]]
    operands: list[list[Invariant | Own | Carried | Stacked]]
    positions: dict[int, NDArray[np.int32]]
    outside: dict[Place, dict[int, Variable]]
    sums: set[Place]

    @property
    def end(self) -> int:
        """The equation after it."""
        return self.start + self.period * self.repeats


def _start_of(equation: Equation) -> tuple[int, ...] | None:
    """The position of a slice, or of the operand in a padding; None if it has no single one."""
    if equation.primitive.name == "slice":
        strides: tuple[int, ...] = equation.params["strides"] or ()
        return None if any(each != 1 for each in strides) else equation.params["start_indices"]
    padding = equation.params["padding_config"]
    if any(low < 0 or high < 0 or between for low, high, between in padding):
        return None
    return tuple(low for low, _, _ in padding)


def find_repetitions(
    equations: Sequence[Equation], users: dict[Variable, list[int]], large: set[Variable]
) -> list[Repetition]:
    """Finds the repetitions that are worth a loop, in the order of the equations.

    Args:
        equations: the equations.
        users: the equations that use each variable.
        large: arguments that are not to be stacked.
    """
    found: list[Repetition] = []
    for start, period, repeats in _periodic(_keys(equations)):
        trimmed = ((first, last) for first in range(3) for last in range(2))
        for first, last in trimmed:
            left = repeats - first - last
            if left < LEAST_REPEATS or (left - 1) * period < LEAST_SAVED:
                continue
            loop = _matched(equations, users, large, start + first * period, period, left)
            if loop is not None:
                found.append(loop)
                break
    return sorted(found, key=lambda loop: loop.start)


def _keys(equations: Sequence[Equation]) -> NDArray[np.int64]:
    """Numbers that are equal for equations that may be iterations of one."""
    numbers: dict[Any, int] = {}
    texts: dict[int, tuple[Any, str]] = {}  # keeps the object alive, so that its id stays unique

    def text(value: Any) -> str:
        if id(value) not in texts:
            texts[id(value)] = value, str(value)
        return texts[id(value)][1]

    def key(index: int, equation: Equation) -> Any:
        name = equation.primitive.name
        left_out = _DERIVATIVES
        if name in _POSITIONS and _start_of(equation) is not None:
            left_out = _POSITIONS[name]
        parameters = [(k, text(v)) for k, v in equation.params.items() if k not in left_out]
        named = [name, *(value for _, value in parameters)]  # functions are written out in full
        if equation.effects or any(slow in each for slow in _SLOW_IN_LOOPS for each in named):
            return index
        operands = [
            (atom.aval, str(atom.val) if isinstance(atom, Literal) else None)
            for atom in equation.invars
        ]
        return name, tuple(parameters), tuple(operands)

    return np.array(
        [
            numbers.setdefault(key(index, equation), len(numbers))
            for index, equation in enumerate(equations)
        ],
        np.int64,
    )


def _periodic(keys: NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """Yields stretches of keys that repeat, each as start, period and repeats: those that save
    most first, and none that overlaps one before."""
    heap: list[tuple[int, int, int, int]] = []

    def push(start: int, end: int, period: int) -> None:
        repeats = (end - start) // period
        saved = (repeats - 1) * period
        if repeats >= LEAST_REPEATS and saved >= LEAST_SAVED:
            heapq.heappush(heap, (-saved, period, start, end))

    for period in range(2, min(len(keys) // LEAST_REPEATS, LONGEST_PERIOD) + 1):
        different = np.flatnonzero(keys[period:] != keys[:-period])
        edges = np.concatenate([[-1], different, [len(keys) - period]])
        for at in np.flatnonzero(np.diff(edges) > period):
            push(int(edges[at]) + 1, int(edges[at + 1]) + period, period)
    free = np.ones(len(keys) + 1, bool)
    while heap:
        _, period, start, end = heapq.heappop(heap)
        taken = np.flatnonzero(~free[start:end]) + start
        if len(taken):
            for low, high in zip([start - 1, *taken], [*taken, end], strict=True):
                push(int(low) + 1, int(high), period)
            continue
        repeats = (end - start) // period
        free[start : start + repeats * period] = False
        yield start, period, repeats


def _matched(
    equations: Sequence[Equation],
    users: dict[Variable, list[int]],
    large: set[Variable],
    start: int,
    period: int,
    repeats: int,
) -> Repetition | None:
    """A repetition, if its data flows like a loop's."""
    end = start + period * repeats
    defined = {
        variable: (iteration, Place(at, result))
        for iteration in range(repeats)
        for at in range(period)
        for result, variable in enumerate(equations[start + iteration * period + at].outvars)
    }
    operands: list[list[Invariant | Own | Carried | Stacked]] = []
    positions: dict[int, NDArray[np.int32]] = {}
    for at in range(period):
        same = equations[start + at : end : period]
        own = []
        for atoms in zip(*(each.invars for each in same), strict=True):
            operand = _operand(atoms, defined, large)
            if operand is None:
                return None
            own.append(operand)
        operands.append(own)
        if same[0].primitive.name in _POSITIONS:
            starts = [_start_of(each) for each in same]
            if any(each != starts[0] for each in starts):
                positions[at] = np.array(starts, np.int32)
    if not any(isinstance(operand, Carried) for own in operands for operand in own):
        return None  # independent equations, such as the updates of many variables
    outside: dict[Place, dict[int, Variable]] = defaultdict(dict)
    for variable, (iteration, place) in defined.items():
        if any(not start <= user < end for user in users.get(variable, ())):
            outside[place][iteration] = variable
    return Repetition(start, period, repeats, defined, operands, positions, outside, set())


def _operand(
    atoms: tuple[Any, ...], defined: dict[Variable, tuple[int, Place]], large: set[Variable]
) -> Invariant | Own | Carried | Stacked | None:
    """How the iterations get an operand; None if not as those of a loop do."""
    first = atoms[0]
    if isinstance(first, Literal):
        return Invariant(first)  # the keys hold its value
    sources = [defined.get(atom) for atom in atoms]
    if not any(sources):
        if all(atom is first for atom in atoms):
            return Invariant(first)
        return None if any(atom in large for atom in atoms) else Stacked(atoms)
    if sources[-1] is None:
        return None
    iteration, place = sources[-1]
    age = len(atoms) - 1 - iteration
    for at, source in enumerate(sources):
        if source != (None if at < age else (at - age, place)):
            return None
    return Carried(place, atoms[:age]) if age else Own(place)
