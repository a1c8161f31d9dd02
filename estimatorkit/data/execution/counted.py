"""`unique` and `assert_cardinality`: transformations that depend on all preceding elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from estimatorkit.data.execution.block_iterator import BlockIterator
from estimatorkit.data.execution.buffers import Columns, gather
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
