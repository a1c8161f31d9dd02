"""Which arrays a program may change in place: a loop that writes to an array copies it once.

An array's memory may also be that of others: most rules that rearrange elements return views.
`Memory` groups the slots of a template that may share memory. An equation that changes a part of an
array, such as `dynamic_update_slice`, writes to the array if no other member of its group is used
later. Arguments belong to the caller, except what loops carry: they own it, from a copy before the
first iteration on, if each iteration returns memory that nothing else has.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from typing import Any

from estimatorkit.runtime.interpreter.aliases import ELEMENTWISE, UPDATES, WRITABLE, Groups, shared


class Memory:
    """The slots that may share memory, and when they are used.

    Args:
        placed: the equations of a template, in order.
        results: the slots of its outputs.
        foreign: the slots of constants.
        arguments: the number of arguments, which have the first slots.
    """

    def __init__(
        self,
        placed: Sequence[Any],
        results: Sequence[int],
        foreign: Collection[int],
        arguments: int,
    ) -> None:
        self._placed = placed
        self._results = results
        self._foreign = set(foreign)
        self._arguments = arguments
        self._sets = Groups()
        self._born: dict[int, int] = {}
        self._last = dict.fromkeys(results, len(placed))
        for at, each in reversed(list(enumerate(placed))):
            for slot in each.takes:
                self._last.setdefault(slot, at)
        for at, each in enumerate(placed):
            self._born.update(dict.fromkeys(each.results, at))
            for part in shared(each.source):
                made = [each.results[at] for at in part.results]
                self._sets.join([*(each.takes[at] for at in part.operands), *made])
                if part.foreign:
                    self._foreign.update(made)
        self._groups: dict[int, list[int]] = {}
        for slot in {*self._born, *self._last, *range(arguments)}:
            self._groups.setdefault(self._root(slot), []).append(slot)

    def updates(self, owned: Collection[int]) -> list[int]:
        """The equations that may write to their first operand.

        Args:
            owned: the arguments that belong to the program.
        """
        given = self._given(owned)
        return [
            at
            for at, each in enumerate(self._placed)
            if each.source.primitive.name in UPDATES and self._may_write(at, each, 0, given)
        ]

    def overwritten(self) -> list[tuple[int, Sequence[int]]]:
        """The elementwise equations that may write their result to an operand, and which ones."""
        given = self._given(())
        fresh = {
            slot
            for each in self._placed
            if each.source.primitive.name in WRITABLE
            for slot in each.results
        }
        found: list[tuple[int, Sequence[int]]] = []
        for at, each in enumerate(self._placed):
            if each.source.primitive.name in ELEMENTWISE:
                operands = [
                    number
                    for number, slot in enumerate(each.takes)
                    if slot in fresh and self._may_write(at, each, number, given)
                ]
                if operands:
                    found.append((at, operands))
        return found

    def _given(self, owned: Collection[int]) -> set[int]:
        return {*range(self._arguments)}.difference(owned) | self._foreign

    def _may_write(self, at: int, each: Any, number: int, given: Set[int]) -> bool:
        """Whether nothing else needs the memory of an operand."""
        slot = each.takes[number]
        group = self._groups[self._root(slot)]
        if each.takes.count(slot) > 1 or not given.isdisjoint(group) or self._last[slot] > at:
            return False
        return all(
            self._last.get(other, -1) < at
            for other in group
            if other != slot and self._born.get(other, -1) < at
        )

    def own(self, carried: Sequence[int]) -> list[int]:
        """Of the arguments that a loop carries, those that it owns: their memory is written to, in
        this iteration or a later one.

        Args:
            carried: their numbers; the outputs of these numbers, counted from the first of them,
                are the next iteration's.
        """
        following = self._results[: len(carried)]
        owned = set(carried)
        while True:
            given = self._given(owned)
            kept = {
                argument
                for argument, slot in zip(carried, following, strict=True)
                if argument in owned and self._is_alone(slot, following, given)
            }
            if kept == owned:
                break
            owned = kept
        written: set[int] = set()
        found = {self._root(self._placed[at].takes[0]) for at in self.updates(owned)}
        while not found <= written:
            written |= found
            found = {
                self._root(slot)
                for argument, slot in zip(carried, following, strict=True)
                if argument in owned and self._root(argument) in written
            }
        return [each for each in carried if each in owned and self._root(each) in written]

    def _is_alone(self, slot: int, following: Sequence[int], given: Set[int]) -> bool:
        group = self._groups[self._root(slot)]
        return given.isdisjoint(group) and sum(each in group for each in following) == 1

    def _root(self, slot: int) -> int:
        root: int = self._sets.root(slot)
        return root


__all__ = ["Memory"]
