"""`Tracker`: finds sublayers among a layer's attributes, lists and dicts."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from estimatorkit.core.variables import Variable


class Tracker:
    """Finds the layers and variables among an object's attributes, in creation order."""

    _untracked: frozenset[str] = frozenset(
        {
            "_calls",
            "_calls_of_inputs",
            "_before_build",
            "_made_updates",
            "_made_losses",
            "_regularized",
            "_weights",
        }
    )

    def _parts(self) -> list[Any]:
        """The sublayers, without duplicates."""
        found = (each for each in self._leaves() if isinstance(each, Tracker) and each is not self)
        return list({id(each): each for each in found}.values())

    def _attribute_variables(self) -> list[Variable]:
        """The variables that are attributes, without duplicates."""
        found = (each for each in self._leaves() if isinstance(each, Variable))
        return list({id(each): each for each in found}.values())

    def _leaves(self) -> Iterator[Any]:
        for name, value in list(vars(self).items()):
            kind: Any = type(value)
            if _may_hold(kind) and name not in self._untracked:
                yield from _leaves_of(value)

    def submodules_and_self(self) -> list[Any]:
        """This object and all nested submodules, without duplicates."""
        found: dict[int, Any] = {}
        waiting: list[Any] = [self]
        while waiting:
            each = waiting.pop(0)
            if id(each) not in found:
                found[id(each)] = each
                waiting += each._parts()
        return list(found.values())

    @property
    def submodules(self) -> tuple[Any, ...]:
        """All nested submodules."""
        return tuple(self.submodules_and_self()[1:])


@functools.lru_cache(maxsize=1024)
def _may_hold(kind: type) -> bool:
    """Whether an attribute of this type may be, or contain, a layer or variable."""
    return issubclass(kind, (Tracker, Variable, list, tuple, Mapping))


def _leaves_of(value: Any) -> Iterator[Any]:
    if isinstance(value, (Tracker, Variable)):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _leaves_of(each)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _leaves_of(each)


__all__ = ["Tracker"]
