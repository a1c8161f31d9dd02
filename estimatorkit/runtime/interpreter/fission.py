"""Loops in parts: what does not depend on the iteration before is computed for all iterations.

A NumPy call for each of 16 rows takes 16 times as long as one for all of them. Of a `scan`'s body,
`before` has the equations of what the iterations get: of constants once, of columns along their
first axis. `within` is what remains of the body. `after` has those whose results no iteration
needs: of the columns that `within` returns. Sums that iterations add to are added up in the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

import numpy as np

from estimatorkit.runtime.interpreter.batching import Batched, batches
from estimatorkit.runtime.interpreter.equations import Equation, Function, aval_at
from estimatorkit.runtime.interpreter.program import (
    Placed,
    Program,
    Straight,
    Template,
    has_effect,
    is_small,
)
from estimatorkit.runtime.interpreter.rules import NARROW, is_key
from estimatorkit.runtime.xla.collected_faults import scan_counts

_MEMORY = 1 << 25
"""Bytes that columns may take that the body as it is does not make."""


_Split: TypeAlias = tuple[Placed, Sequence[bool] | None]
"""An equation of a body, and, if it is to be computed for all iterations, which operands have their
axis."""


class _Part(Straight):
    """Equations of a body.

    Args:
        arguments, results: the body's slots of its arguments and results.
        placed: the equations.
        body: the body.
        length: the iterations.
        carried: see `Numbers.program`.
    """

    def __init__(
        self,
        arguments: Sequence[int],
        placed: Sequence[_Split],
        results: Sequence[int],
        body: Straight,
        length: Any,
        carried: range = range(0),
    ) -> None:
        super().__init__(len(arguments))
        homes = {slot: at for at, slot in enumerate(arguments)}

        def home(slot: int) -> int:
            if slot not in homes:
                homes[slot] = self.constant(body.slots[slot])
            return homes[slot]

        for each, flags in placed:
            takes = list(map(home, each.takes))
            gives = [self.slot() for _ in each.results]
            to = self.slot() if each.source.primitive.multiple_results else gives[0]
            homes.update(zip(each.results, gives, strict=True))
            self.placed.append(
                Placed(each.source, takes, gives, to)
                if flags is None
                else Batched(each, flags, length, takes, gives, to)
            )
        self.results = list(map(home, results))
        self._finish(carried)


class Fission:
    """The parts of a loop's body.

    Args:
        body: the body; its arguments are constants, carried values and columns.
        constants, carried: the numbers of these arguments.
        length: the iterations.
        unused: the results of the loop that nothing needs.
    """

    def __init__(
        self,
        body: Template,
        constants: int,
        carried: int,
        length: Any,
        unused: Collection[int] = (),
    ) -> None:
        self._body = body
        self._start = constants
        self._carried = range(constants, constants + carried)
        self._following = body.results[:carried]
        self._outputs = body.results[carried:]
        pairs = list(zip(self._carried, self._following, strict=True))
        self._fixed = {*range(constants), *body.constants, *(a for a, b in pairs if a == b)}
        self._columns = set(range(self._carried.stop, body.arguments))
        self._avals = dict(enumerate(each.aval for each in body.closed.jaxpr.invars))
        for placed in body.placed:
            avals = (each.aval for each in placed.source.outvars)
            self._avals.update(zip(placed.results, avals, strict=True))
        self._used = self._find_used(unused)
        before = self._hoist()
        moved = {slot for placed, _ in before for slot in placed.results}
        rest = [each for each in self._needed() if moved.isdisjoint(each.results)]
        self._sums = self._find_sums(rest)
        added = {self._next(at) for at in self._sums}
        rest = [each for each in rest if added.isdisjoint(each.results)]
        results = self._body.results
        live = {self._carried[at] for at in self._used if at < carried}
        self._looped = [a for a, b in pairs if a != b and a in live and a not in self._sums]
        self._wanted = {results[at] for at in self._used if at >= carried}
        self._wanted |= set(self._sums.values())
        within, after = self._delay(rest)
        self.is_useful = bool(before or after or self._sums)
        if self.is_useful:
            self._make(before, within, after, length)

    def _find_used(self, unused: Collection[int]) -> set[int]:
        """The results that are needed, also by later iterations."""
        body = self._body
        self._used = {at for at in range(len(body.results)) if at not in unused}
        while True:
            taken = {slot for placed in self._needed() for slot in placed.takes}
            taken |= {body.results[at] for at in self._used}
            found = {at for at, slot in enumerate(self._carried) if slot in taken}
            if found <= self._used:
                return self._used
            self._used |= found

    def _needed(self) -> list[Placed]:
        """The equations on which the results depend that are used."""
        needed = {self._body.results[at] for at in self._used}
        found = []
        for placed in reversed(self._body.placed):
            if not needed.isdisjoint(placed.results) or has_effect(placed.source):
                needed.update(placed.takes)
                found.append(placed)
        return found[::-1]

    def _next(self, argument: int) -> int:
        """The slot of the value that a carried argument has in the next iteration."""
        return self._following[argument - self._start]

    def _hoist(self) -> list[_Split]:
        """The equations that need nothing carried; their results become fixed or columns."""
        found: list[_Split] = []
        for placed in self._needed():
            if has_effect(placed.source):
                continue
            flags = [slot not in self._fixed for slot in placed.takes]
            if not any(flags):
                found.append((placed, None))
                self._fixed.update(placed.results)
            elif self._is_outer(placed.takes) and batches(placed.source, flags):
                found.append((placed, flags))
                self._columns.update(placed.results)
        return found

    def _is_outer(self, slots: Sequence[int]) -> bool:
        """Whether values are known before the loop."""
        return all(slot in self._fixed or slot in self._columns for slot in slots)

    def _find_sums(self, rest: Sequence[Placed]) -> dict[int, int]:
        """Arguments to which each iteration only adds, and the slots of what it adds."""
        uses = Counter(slot for placed in rest for slot in placed.takes)
        uses.update(self._body.results)
        made = {slot: placed for placed in rest for slot in placed.results}
        found = {}
        for at in self._carried:
            if at - self._start not in self._used:
                continue
            total = self._next(at)
            placed = made.get(total)
            if placed is None or placed.source.primitive.name not in ("add", "add_any"):
                continue
            if (uses[at], uses[total], placed.takes.count(at)) != (1, 1, 1):
                continue
            (term,) = (slot for slot in placed.takes if slot != at)
            whole = self._avals[at]
            if term in self._fixed or is_key(whole) or whole.dtype in NARROW:
                continue
            aval = self._avals[term]
            if is_small(aval) and is_small(whole) and aval.shape == whole.shape:
                found[at] = term
        return found

    def _delay(self, rest: Sequence[Placed]) -> tuple[list[_Split], list[_Split]]:
        """Divides equations into those of the loop and those after it."""
        outer = self._fixed | self._columns
        kept = set(map(self._next, self._looped))
        wanted = dict.fromkeys(slot for slot in self._wanted if slot not in outer)
        within: list[_Split] = []
        after: list[_Split] = []
        for placed in reversed(rest):
            flags = [slot not in self._fixed for slot in placed.takes]
            new = {slot for slot in placed.takes if slot not in outer and slot not in wanted}
            old = [slot for slot in placed.results if slot in wanted]
            if (
                kept.isdisjoint(placed.results)
                and len(new) <= len(old)  # each is written once an iteration
                and not has_effect(placed.source)
                and any(flags)
                and batches(placed.source, flags)
            ):
                after.append((placed, flags))
                for slot in old:
                    del wanted[slot]
                wanted.update(dict.fromkeys(new))
            else:
                within.append((placed, None))
                kept.update(placed.takes)
        self._stacked = list(wanted)
        return within[::-1], after[::-1]

    def _make(
        self,
        before: Sequence[_Split],
        within: Sequence[_Split],
        after: Sequence[_Split],
        length: Any,
    ) -> None:
        body = self._body
        operands = range(body.arguments)
        following = list(map(self._next, self._looped))
        used = dict.fromkeys([*_taken(within), *following, *self._stacked])
        needed = {*used, *self._wanted, *_taken(after)}
        made = [slot for placed, _ in before for slot in placed.results]
        hoisted = [slot for slot in made if slot in needed]
        self._before = _Part(operands, before, hoisted, body, length)
        pool = {slot: at for at, slot in enumerate([*operands, *hoisted])}
        shared = [slot for slot in used if slot in self._fixed and slot in pool]
        columns = [slot for slot in used if slot in self._columns]
        self._shared = [pool[slot] for slot in shared]
        self._rows = [pool[slot] for slot in columns]
        carried = range(len(shared), len(shared) + len(self._looped))
        self._within = _Part(
            [*shared, *self._looped, *columns],
            within,
            [*following, *self._stacked],
            body,
            length,
            carried,
        )
        late = [slot for placed, _ in after for slot in placed.results if slot in self._wanted]
        own = [slot for slot in dict.fromkeys(_taken(after)) if slot in pool]
        own = [slot for slot in own if slot not in self._stacked]
        self._own = [pool[slot] for slot in own]
        self._after = _Part([*own, *self._stacked], after, late, body, length)
        self._ready = len(operands) + len(hoisted)
        outer = self._fixed | self._columns
        self._copied = [at for at, slot in enumerate(following) if slot in outer]
        fixed = [slot for slot in self._wanted if slot in body.constants]
        ends = [*self._stacked, *late, *fixed]
        pool.update((slot, self._ready + at) for at, slot in enumerate(ends))
        self._constants = [body.slots[slot] for slot in fixed]
        count = len(self._carried)
        self._places = [
            (pool[slot] if at in self._used else None, slot in self._fixed)
            for at, slot in enumerate(self._outputs, count)
        ]
        self._terms = {at: pool[slot] for at, slot in self._sums.items()}

    def at(self, equation: Equation) -> Function | None:
        """The loop for the numbers of a run; None if it had better not be split.

        Args:
            equation: that of the loop, whose results are the values carried, and columns.
        """
        length: int = equation.params["length"]
        if not self.is_useful or length < 2:
            return None
        numbers = equation.numbers
        parts = (self._before, self._within, self._after)
        before, within, after = (each.at(numbers) for each in parts)
        if sum(map(_new_bytes, (*before.equations, *after.equations))) > _MEMORY:
            return None
        turns = self._turns(within, length, equation)

        def run(*operands: Any) -> list[Any]:
            pool = [*operands, *before(*operands)]
            values, stacks = turns(pool)
            pool += stacks
            pool += after(*[pool[at] for at in self._own], *stacks)
            pool += self._constants
            return [*self._finals(operands, values, pool), *self._outcome(pool, length)]

        run.seconds = before.seconds + length * within.seconds + after.seconds  # type: ignore[attr-defined]
        return run

    def _turns(
        self, within: Program, length: int, equation: Equation
    ) -> Callable[[Sequence[Any]], tuple[list[Any], list[Any]]]:
        """The loop: gets what is known before it; returns the last values, and the columns."""
        reverse, count = equation.params["reverse"], len(self._looped)
        order = range(length - 1, -1, -1) if reverse else range(length)
        avals = [aval_at(self._avals[slot], equation.numbers) for slot in self._stacked]
        makes = [((length, *aval.shape), aval.dtype) for aval in avals]
        owned = [at - len(self._shared) for at in within.owned]
        shared_at, columns_at = self._shared, self._rows
        none = [()] * length

        def run(pool: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            shared = [pool[at] for at in shared_at]
            values = [pool[at] for at in self._looped]
            for at in owned:
                values[at] = np.array(values[at], order="C")
            stacks = [np.empty(shape, dtype) for shape, dtype in makes]
            columns = [pool[at][::-1] if reverse else pool[at] for at in columns_at]
            rows = zip(*columns, strict=True) if columns else none
            for at, row in zip(order, rows, strict=True):
                results = within(*shared, *values, *row)
                values = results[:count]
                for stack, value in zip(stacks, results[count:], strict=True):
                    stack[at] = value
            return values, stacks

        return run

    def _finals(self, operands: Sequence[Any], values: list[Any], pool: Sequence[Any]) -> list[Any]:
        """The values after the loop; None of those that are not needed."""
        found = [operands[at] if self._next(at) == at else None for at in self._carried]
        for at in self._copied:
            values[at] = np.array(values[at])
        for at, value in zip(self._looped, values, strict=True):
            found[at - self._start] = value
        for at, term in self._terms.items():
            found[at - self._start] = operands[at] + np.add.reduce(pool[term], 0)
        return found

    def _outcome(self, pool: Sequence[Any], length: int) -> list[Any]:
        """The columns that the loop returns, each with memory of its own: the last values may be
        views of those made before it."""
        seen = set(map(id, pool[: self._ready]))
        found: list[Any] = []
        for at, is_fixed in self._places:
            column = None
            if at is not None:
                column = pool[at]
                if is_fixed:
                    column = np.repeat(np.asarray(column)[None], length, 0)
                elif id(column) in seen or not column.flags.owndata:
                    column = column.copy()
                seen.add(id(column))
            found.append(column)
        return found


def _taken(split: Sequence[_Split]) -> list[int]:
    return [slot for placed, _ in split for slot in placed.takes]


_VIEWS = frozenset(
    {"broadcast_in_dim", "expand_dims", "reshape", "rev", "slice", "split", "squeeze", "transpose"}
)


def _new_bytes(equation: Equation) -> int:
    if equation.name in _VIEWS:
        return 0
    return sum(aval.size * aval.dtype.itemsize for aval in equation.outputs)


def fission_of(equation: Equation) -> Fission:
    """The parts of the body of a `scan`."""
    source = equation.source
    constants, carried = scan_counts(source.params)
    template = equation.numbers.template(
        source.params["jaxpr"], range(constants, constants + carried)
    )
    key = id(source), equation.unused
    if key not in template.scans:
        template.scans[key] = Fission(
            template, constants, carried, source.params["length"], equation.unused
        )
    found: Fission = template.scans[key]
    return found


__all__ = ["Fission", "fission_of"]
