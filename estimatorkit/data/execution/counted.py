"""`unique` and `assert_cardinality`: transformations that depend on all preceding elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from estimatorkit.core.errors import FailedPreconditionError, OutOfRangeError
from estimatorkit.data.execution.block_iterator import BlockIterator, UnaryIterator, position
from estimatorkit.data.execution.buffers import Columns, count_rows, gather
from estimatorkit.data.execution.randomness import Seeds
from estimatorkit.data.execution.replaying import ReplayIterator
from estimatorkit.data.plan import UNKNOWN, Unary


@dataclass(frozen=True, eq=False)
class Unique(Unary):
    """Removes duplicates of earlier elements; elements are scalars."""

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        return UniqueIterator(source)


class UniqueIterator(ReplayIterator):
    """See `Unique`."""

    def _forget(self) -> None:
        self._seen: set[Any] = set()

    def _make(self, n: int) -> Columns:
        while True:
            rows = self._input.next_block(n)
            new = []
            for row, value in enumerate(np.asarray(rows[0]).tolist()):
                if value not in self._seen:
                    self._seen.add(value)
                    new.append(row)
            if new:
                return gather(rows, np.asarray(new, np.int64))


@dataclass(frozen=True, eq=False)
class AssertCardinality(Unary):
    """The elements, checked to be `expected` many; -1 for infinite."""

    expected: int

    @property
    def cardinality(self) -> int:
        return self.expected

    def _over(self, source: BlockIterator, seeds: Seeds) -> BlockIterator:
        return AssertCardinalityIterator(source, self.expected)


class AssertCardinalityIterator(UnaryIterator):
    """See `AssertCardinality`."""

    _count: int = position(0)

    def __init__(self, source: BlockIterator, expected: int) -> None:
        super().__init__(source)
        self._expected = expected

    def _produce(self, n: int) -> Columns:
        left = self._expected - self._count if self._expected >= 0 else n
        try:
            rows = self._input.next_block(min(n, max(left, 1)))
        except OutOfRangeError:
            if left:
                raise self._error(f"only {_elements(self._count)}") from None
            raise
        if not left:
            raise self._error(f"at least {_elements(self._count + 1)}")
        self._count += count_rows(rows)
        return rows

    def _error(self, found: str) -> FailedPreconditionError:
        expected = _elements(self._expected) if self._expected >= 0 else "an infinite number"
        return FailedPreconditionError.explained(
            f"Input dataset was expected to contain {expected} but contained {found}"
        )


def _elements(count: int) -> str:
    return f"{count} element" if count == 1 else f"{count} elements"
