"""Rewriting of the jaxpr of a segment before XLA compiles it, so that it takes less time.

XLA's time is in proportion to the equations. `optimized` makes

- loops of repetitions (`rolling`): a step that Python has unrolled is compiled once. A neural
  Turing machine of 14 steps is 10,700 equations and took 30 s;
- a transposition where the pieces of an array are joined again, as by a program that splits a
  sequence into its steps for a recurrent network: two kernels instead of one for each piece.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, Literal

from estimatorkit.runtime.xla.rolling import (
    Carried,
    Equation,
    Invariant,
    Own,
    Place,
    Repetition,
    Stacked,
    Variable,
    find_repetitions,
)

MOST_STACKED = 1 << 17
"""Bytes of an argument that are copied to be the inputs of a loop: the inputs of steps may be, but
not the weights of layers of one shape."""

LEAST_PIECES = 4
"""Joined pieces of an array that are worth a transposition."""

_SHAPES = frozenset({"reshape", "squeeze", "expand_dims", "broadcast_in_dim"})
"""Primitives that may change the shape alone."""

Factor: TypeAlias = Own | Carried | Stacked
"""A varying operand."""

_JOINS = frozenset({"concatenate", "stack"})


def optimized(closed: ClosedJaxpr) -> Callable[[Sequence[Any]], list[Any]]:
    """Returns a function that computes what a jaxpr does, in fewer equations."""
    return _Evaluation(closed).run


def rewritten(closed: ClosedJaxpr, arguments: Sequence[Any]) -> ClosedJaxpr:
    """The jaxpr of `optimized`; the same equations, untraced, if none are fewer.

    Args:
        closed: the jaxpr.
        arguments: its arguments, or their types.
    """
    evaluation = _Evaluation(closed)
    if evaluation.changes:
        return jax.make_jaxpr(evaluation.run)(list(arguments))
    return ClosedJaxpr(closed.jaxpr, evaluation.constants)


class _Piece(NamedTuple):
    """A part of an array.

    Attributes:
        source: the array.
        axis, start, size: the part: `size` of the dimension `axis` from `start`.
    """

    source: Any
    axis: int
    start: int
    size: int


class _Evaluation:
    """Evaluates a jaxpr with its repetitions as loops, and its joins as transpositions."""

    def __init__(self, closed: ClosedJaxpr) -> None:
        self._closed = closed
        self._equations = equations = closed.jaxpr.eqns
        self._values: dict[Variable, Any] = {}
        self._rows: dict[Variable, Any] = {}  # pieces that are used on their own
        self._users: dict[Variable, list[int]] = defaultdict(list)
        self._made: dict[Variable, tuple[Equation, int]] = {}
        for index, equation in enumerate(equations):
            for atom in equation.invars:
                if not isinstance(atom, Literal):
                    self._users[atom].append(index)
            self._made.update(
                (result, (equation, number)) for number, result in enumerate(equation.outvars)
            )
        for atom in closed.jaxpr.outvars:
            if not isinstance(atom, Literal):
                self._users[atom].append(len(equations))
        arguments = {*closed.jaxpr.invars, *closed.jaxpr.constvars}
        large = {each for each in arguments if _size(each) > MOST_STACKED}
        self._loops = find_repetitions(equations, self._users, large)
        self._terms = self._sums() if self._loops else {}

    @property
    def changes(self) -> bool:
        """Whether there are loops, or joins that may be transpositions."""
        return bool(self._loops) or any(
            equation.primitive.name in _JOINS and len(equation.invars) >= LEAST_PIECES
            for equation in self._equations
        )

    @property
    def constants(self) -> list[Any]:
        """The constants, of the types that equations were traced with."""
        jaxpr = self._closed.jaxpr
        return list(map(_of_type, jaxpr.constvars, self._closed.consts))

    def run(self, arguments: Sequence[Any]) -> list[Any]:
        """Returns the outputs."""
        jaxpr = self._closed.jaxpr
        self._values.update(zip(jaxpr.constvars, self.constants, strict=True))
        self._values.update(zip(jaxpr.invars, map(_of_type, jaxpr.invars, arguments), strict=True))
        at = 0
        for loop in self._loops:
            self._evaluate(range(at, loop.start))
            self._evaluate_loop(loop)
            at = loop.end
        self._evaluate(range(at, len(self._equations)))
        return list(map(self._read, jaxpr.outvars))

    def _evaluate(self, indices: range) -> None:
        for index in indices:
            equation = self._equations[index]
            terms = self._terms.get(index)
            if terms is not None:
                results = [reduce(lax.add, map(self._read, terms))] if terms else []
            elif equation.primitive.name in _JOINS:
                results = [self._join(equation)]
            else:
                results = bind_equation(equation, map(self._read, equation.invars))
            self._values.update(zip(equation.outvars, results, strict=False))

    def _read(self, atom: Any) -> Any:
        if isinstance(atom, Literal):
            return atom.val
        value = self._values[atom]
        if not isinstance(value, _Piece):
            return value
        if atom not in self._rows:
            self._rows[atom] = lax.index_in_dim(value.source, value.start, keepdims=False)
        return self._rows[atom]

    def _join(self, equation: Equation) -> Any:
        """A concatenation or a stack."""
        axis = equation.params.get("axis", equation.params.get("dimension"))
        pieces = self._pieces(equation.invars)
        if pieces is None:
            return bind_equation(equation, map(self._read, equation.invars))[0]
        return jax.numpy.moveaxis(pieces, 0, axis).reshape(equation.outvars[0].aval.shape)

    def _stack(self, atoms: Sequence[Any]) -> Any:
        """Variables as one array, along a new first axis."""
        pieces = self._pieces(atoms)
        return jax.numpy.stack(list(map(self._read, atoms))) if pieces is None else pieces

    def _pieces(self, atoms: Sequence[Any]) -> Any | None:
        """Variables stacked along a new first axis, if they are the pieces of one array, in order
        or in reverse order; else None."""
        if len(atoms) < LEAST_PIECES:
            return None
        found = [self._piece(atom) for atom in atoms]
        first, second = found[:2]
        if first is None or second is None or second.start == first.start:
            return None
        step = second.start - first.start
        shape = atoms[0].aval.shape
        for at, (atom, piece) in enumerate(zip(atoms, found, strict=True)):
            if piece is None or piece.source is not first.source or abs(step) != first.size:
                return None
            expected = first.axis, first.start + at * step, first.size
            if piece[1:] != expected or atom.aval.shape != shape:
                return None
        axis, size, count = first.axis, first.size, len(atoms)
        start = min(first.start, first.start + (count - 1) * step)
        part = lax.slice_in_dim(first.source, start, start + count * size, axis=axis)
        part = part.reshape(*part.shape[:axis], count, size, *part.shape[axis + 1 :])
        part = jax.numpy.moveaxis(part, axis, 0)
        if step < 0:
            part = lax.rev(part, (0,))
        return part.reshape(count, *shape)

    def _piece(self, atom: Any) -> _Piece | None:
        """The piece of an array that a variable is, maybe of another shape."""
        while not isinstance(atom, Literal):
            value = self._values.get(atom)
            if isinstance(value, _Piece):
                return value
            if atom not in self._made or any(atom in loop.defined for loop in self._loops):
                return None
            equation, number = self._made[atom]
            parameters = equation.params
            match equation.primitive.name:
                case "slice" if (axis := _cut(equation)) is not None:
                    start, limit = (
                        int(parameters[each][axis]) for each in ("start_indices", "limit_indices")
                    )
                    size = limit - start
                case "split":
                    axis, sizes = parameters["axis"], parameters["sizes"]
                    start, size = int(sum(sizes[:number])), int(sizes[number])
                case "unstack":
                    axis, start, size = parameters["axis"], number, 1
                case name if name in _SHAPES and _keeps_order(equation):
                    atom = equation.invars[0]
                    continue
                case _:
                    return None
            return _Piece(self._read(equation.invars[0]), axis, start, size)
        return None

    def _evaluate_loop(self, loop: Repetition) -> None:
        operands = [operand for each in loop.operands for operand in each]
        carried = list(dict.fromkeys(each for each in operands if isinstance(each, Carried)))
        stacked = list(dict.fromkeys(each for each in operands if isinstance(each, Stacked)))
        last = [place for place, found in loop.outside.items() if [*found] == [loop.repeats - 1]]
        listed = [place for place in loop.outside if place not in loop.sums and place not in last]
        invariants = {
            id(each.atom): self._read(each.atom) for each in operands if isinstance(each, Invariant)
        }

        def aval(place: Place) -> Any:
            return self._equations[loop.start + place.at].outvars[place.result].aval

        def strong(value: Any, place: Place) -> Any:
            return lax.convert_element_type(value, aval(place).dtype)

        def zeros(place: Place) -> Any:
            return jax.numpy.zeros(aval(place).shape, aval(place).dtype)

        fixed = self._fixed(loop, invariants)
        products = self._products(loop, fixed)
        sums = [place for place in loop.sums if place not in products]
        factors = dict.fromkeys(
            each for own in products.values() for each in own if not isinstance(each, Stacked)
        )

        def body(before: Any, inputs: Any) -> Any:
            given = dict(zip(carried, before[0], strict=True))
            rows = dict(zip(stacked, inputs[0], strict=True))
            results = dict(fixed)
            for at in range(loop.period):
                if Place(at, 0) in fixed or Place(at, 0) in products:
                    continue
                equation = self._equations[loop.start + at]
                values = []
                for operand in loop.operands[at]:
                    match operand:
                        case Invariant():
                            values.append(invariants[id(operand.atom)])
                        case Own():
                            values.append(results[operand.place])
                        case Carried():
                            values.append(given[operand][0])
                        case Stacked():
                            values.append(rows[operand])
                if at in loop.positions:
                    made = [_at_positions(equation, values, inputs[1][at])]
                else:
                    made = bind_equation(equation, values)
                for number, value in enumerate(made):
                    results[Place(at, number)] = value
            after = (
                [(*given[each][1:], strong(results[each.place], each.place)) for each in carried],
                [lax.add(old, results[each]) for each, old in zip(sums, before[1], strict=True)],
                [strong(results[each], each) for each in last],
            )
            kept = [
                results[each.place] if isinstance(each, Own) else given[each][0] for each in factors
            ]
            return after, ([strong(results[each], each) for each in listed], kept)

        start = (
            [
                tuple(strong(self._read(first), each.place) for first in each.first)
                for each in carried
            ],
            [zeros(each) for each in sums],
            [zeros(each) for each in last],
        )
        inputs = [self._stack(each.atoms) for each in stacked], loop.positions
        (_, totals, finals), (stacks, kept) = lax.scan(body, start, inputs, loop.repeats)
        rows = dict(zip((*stacked, *factors), (*inputs[0], *kept), strict=True))
        for place, own in products.items():
            equation = self._equations[loop.start + place.at]
            total = _product_of_rows(equation, *(rows[each] for each in own))
            self._values.update(dict.fromkeys(loop.outside[place].values(), total))
        for place, total in zip(sums, totals, strict=True):
            self._values.update(dict.fromkeys(loop.outside[place].values(), total))
        for place, final in zip(last, finals, strict=True):
            self._values[loop.outside[place][loop.repeats - 1]] = final
        for place, stack in zip(listed, stacks, strict=True):
            for iteration, variable in loop.outside[place].items():
                self._values[variable] = _Piece(stack, 0, iteration, 1)

    def _products(
        self, loop: Repetition, fixed: Mapping[Place, Any]
    ) -> dict[Place, tuple[Factor, Factor]]:
        """Finds matrix products that are only summed, such as gradients of weights, and their
        factors: one product of the factors of all iterations replaces one per iteration, and the
        additions. Factors larger than their product are not kept."""
        inside = {
            each.place for own in loop.operands for each in own if isinstance(each, Own | Carried)
        }
        found: dict[Place, tuple[Factor, Factor]] = {}
        for place in loop.sums - inside:
            equation = self._equations[loop.start + place.at]
            factors = tuple(
                each
                for each in loop.operands[place.at]
                if isinstance(each, Stacked | Carried)
                or (isinstance(each, Own) and each.place not in fixed)
            )
            if (
                equation.primitive.name == "dot_general"
                and equation.params["dimension_numbers"][1] == ((), ())
                and len(factors) == 2
                and sum(map(_size, equation.invars)) <= 2 * _size(equation.outvars[0])
            ):
                found[place] = factors
        return found

    def _fixed(self, loop: Repetition, invariants: Mapping[int, Any]) -> dict[Place, Any]:
        """Loop invariants, computed once before the loop: XLA hoists none that are larger than
        their operands, or behind a barrier."""
        found: dict[Place, Any] = {}
        for at, operands in enumerate(loop.operands):
            equation = self._equations[loop.start + at]
            places = [each.place for each in operands if isinstance(each, Own)]
            if (
                at not in loop.positions
                and equation.primitive.name != "broadcast_in_dim"  # fused with what uses it
                and all(isinstance(each, Own | Invariant) for each in operands)
                and found.keys() >= set(places)
                and operands
            ):
                values = [
                    found[each.place] if isinstance(each, Own) else invariants[id(each.atom)]
                    for each in operands
                    if isinstance(each, Own | Invariant)
                ]
                made = bind_equation(equation, values)
                found.update((Place(at, number), value) for number, value in enumerate(made))
        return found

    def _sums(self) -> dict[int, list[Any]]:
        """Finds sums of the results of all iterations, which the loops are to add up.

        Returns:
            The terms of each addition that is the last of a sum; none for the ones before it.
        """
        inside = np.zeros(len(self._equations) + 1, bool)
        for loop in self._loops:
            inside[loop.start : loop.end] = True
        terms: dict[Variable, list[Any]] = {}
        parts: dict[Variable, list[int]] = {}
        found: dict[int, list[Any]] = {}
        for index, equation in enumerate(self._equations):
            if equation.primitive.name not in ("add", "add_any") or inside[index]:
                continue
            (result,) = equation.outvars
            if any(atom.aval.shape != result.aval.shape for atom in equation.invars):
                continue
            own, whole = [], [index]
            for atom in equation.invars:
                of_sum = not isinstance(atom, Literal) and atom in terms
                if of_sum and len(self._users[atom]) == 1:
                    own += terms[atom]
                    whole += parts[atom]
                else:
                    own.append(atom)
            terms[result], parts[result] = own, whole
        used = {part for whole in parts.values() for part in whole[1:]}
        for whole in parts.values():
            root = whole[0]
            if root not in used:
                own = terms[self._equations[root].outvars[0]]
                if (summed := self._summed(own)) is not None:
                    found.update((part, []) for part in whole)
                    found[root] = summed
        return found

    def _summed(self, terms: list[Any]) -> list[Any] | None:
        """The terms of a sum, one for all iterations of a loop; None if there are none."""
        left = list(dict.fromkeys(atom for atom in terms if not isinstance(atom, Literal)))
        if len(left) != len(terms):
            return None
        shorter = False
        for loop in self._loops:
            groups: dict[Place, list[Variable]] = defaultdict(list)
            for atom in left:
                if atom in loop.defined:
                    groups[loop.defined[atom][1]].append(atom)
            for place, atoms in groups.items():
                if len(atoms) == loop.repeats and all(
                    sum(not loop.start <= user < loop.end for user in self._users[atom]) == 1
                    for atom in atoms
                ):
                    loop.sums.add(place)
                    left = [atom for atom in left if atom not in atoms[1:]]
                    shorter = True
        return left if shorter else None


def _of_type(variable: Variable, value: Any) -> Any:
    """A value with the variable's dtype: outside `x64`, JAX narrows NumPy's 64-bit types."""
    known = isinstance(value, (np.ndarray, np.generic))
    return np.asarray(value, variable.aval.dtype) if known else value


def _size(variable: Variable) -> int:
    size: int = variable.aval.size * variable.aval.dtype.itemsize
    return size


def _keeps_order(equation: Equation) -> bool:
    """Whether an equation that may change the shape keeps the elements, and their order."""
    if equation.primitive.name == "reshape" and equation.params["dimensions"] is not None:
        return False
    return _size(equation.invars[0]) == _size(equation.outvars[0])


def _cut(equation: Equation) -> int | None:
    """The dimension that a slice cuts; None if there is not just one."""
    starts, limits = equation.params["start_indices"], equation.params["limit_indices"]
    dims = equation.invars[0].aval.shape
    cut = [
        axis
        for axis, (start, limit, dim) in enumerate(zip(starts, limits, dims, strict=True))
        if (start, limit) != (0, dim)
    ]
    is_whole = all(step == 1 for step in equation.params["strides"] or ())
    return cut[0] if is_whole and len(cut) == 1 else None


def bind_equation(equation: Equation, operands: Any) -> list[Any]:
    """The results of an equation."""
    parameters = equation.primitive.get_bind_params(equation.params)
    with equation.ctx.manager:
        results = equation.primitive.bind(*operands, **parameters)
    return list(results) if equation.primitive.multiple_results else [results]


def _product_of_rows(equation: Equation, left: Any, right: Any) -> Any:
    """Sums an equation's matrix products over factors that are stacked along a new first axis."""
    contracted, batch = equation.params["dimension_numbers"]
    dimensions = tuple((0, *(axis + 1 for axis in axes)) for axes in contracted)
    parameters = {**equation.params, "dimension_numbers": (dimensions, batch)}
    return equation.primitive.bind(left, right, **parameters)


def _at_positions(equation: Equation, operands: list[Any], start: Any) -> Any:
    """A slice or a padding whose position is not known while compiling."""
    start = list(start)
    if equation.primitive.name == "slice":
        return lax.dynamic_slice(operands[0], start, equation.outvars[0].aval.shape)
    operand, value = operands
    return lax.dynamic_update_slice(
        lax.full(equation.outvars[0].aval.shape, value, operand.dtype), operand, start
    )
