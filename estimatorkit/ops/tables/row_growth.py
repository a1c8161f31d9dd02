"""`RowGrowth`: variables whose first dimension grows while a session runs.

A dynamic embedding table numbers its ids on the host, ahead of the steps that use the rows. It asks
for rows here, and a run gets them when it takes the variables (`ProcessState.take`). The variables
of a table are its weights and their slots, whose names are `<variable scope>/<weights>/<slot>`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray


class RowValues(NamedTuple):
    """The distribution of new rows of a table's weights.

    Attributes:
        kind: 'constant', 'uniform', 'normal' or 'truncated_normal'.
        first, second: the constant; the bounds; the mean and standard deviation.
        seed: makes the values reproducible.
    """

    kind: str
    first: float
    second: float
    seed: int

    def draw(self, start: int, count: int, row: tuple[int, ...]) -> NDArray[np.float32]:
        """Values of `count` rows of shape `row`; `start` tells one draw from another."""
        shape = (count, *row)
        random = np.random.default_rng([self.seed, start])
        if self.kind == "constant":
            return np.full(shape, self.first, np.float32)
        if self.kind == "uniform":
            return random.uniform(self.first, self.second, shape).astype(np.float32)
        drawn = random.standard_normal(shape, np.float32)
        if self.kind == "truncated_normal":
            while (outside := np.abs(drawn) > 2).any():
                drawn[outside] = random.standard_normal(np.count_nonzero(outside), np.float32)
        return drawn * np.float32(self.second) + np.float32(self.first)


class TableRows:
    """The rows that one table requests.

    The last row of its variables is never used: a new row of a slot is a copy of it, and thus has
    the slot's initial value.

    Args:
        weights: the name of the variable of rows.
        values: the distribution of new rows of the weights.
        count: the number of rows that the weights have.

    Attributes:
        used: the number of rows that have had an id.
    """

    def __init__(self, weights: str, values: RowValues, count: int) -> None:
        self.used = 0
        self._weights = weights
        self._values = values
        self._counts = [count]
        self._resets: list[NDArray[np.int64]] = []
        self._done: dict[str, int] = {}  # how often each variable has been reset

    @property
    def count(self) -> int:
        """The number of rows requested."""
        return self._counts[-1]

    def grow(self) -> None:
        """Requests four times as many rows, or twice as many from a million on."""
        count = self.count
        while count <= self.used or count == self.count:
            count *= 4 if count < 1 << 20 else 2
        self._counts.append(count)

    def reset(self, rows: NDArray[np.int64]) -> None:
        """Requests initial values in some rows."""
        self._resets.append(rows)

    def has(self, name: str) -> bool:
        """Whether a value of a session may be one of the table's variables."""
        return f"/{self._weights}/" in f"/{name}/"

    def fit(self, name: str, value: Any) -> Any:
        """A variable's value with the requested rows; unchanged if it is not the table's."""
        have = np.shape(value)[0] if np.ndim(value) else 0
        if have not in self._counts:
            return value
        if self.count > have:
            fresh = self._fresh(name, have, self.count - have, value)
            value = jnp.concatenate([jnp.asarray(value), fresh])
        if pending := self._resets[self._done.get(name, 0) :]:
            rows = np.concatenate(pending)
            fresh = self._fresh(name, self.count + len(self._resets), len(rows), value)
            value = jnp.asarray(value).at[rows].set(fresh)
        self._done[name] = len(self._resets)
        return value

    def _fresh(self, name: str, start: int, count: int, value: Any) -> Any:
        if name == self._weights:
            return self._values.draw(start, count, value.shape[1:])
        return jnp.broadcast_to(jnp.asarray(value)[-1:], (count, *value.shape[1:]))


class RowGrowth:
    """The requests of all dynamic tables of a session."""

    def __init__(self) -> None:
        self._tables: dict[str, TableRows] = {}
        self._owners: dict[str, TableRows | None] = {}

    @staticmethod
    def of(state: Any) -> RowGrowth:
        """Those of a session's state, which applies them before a run takes values."""
        growth: RowGrowth = state.resource("row growth", RowGrowth)
        state.held.before_take = growth.apply
        return growth

    def request(self, weights: str, rows: TableRows) -> None:
        """Sets a table's request, by the name of its weights; the request may grow later."""
        self._tables[weights] = rows
        self._owners.clear()

    def grow(self) -> None:
        """Grows the tables that are full; the caller holds the mutex.

        As new shapes are a compilation, those that are half full grow with them.
        """
        for each in self._tables.values():
            if 2 * each.used >= each.count:
                each.grow()

    def apply(self, values: dict[str, Any], names: Sequence[str]) -> None:
        """Gives variables the rows that their tables ask for; the caller holds the mutex."""
        for name in names:
            if name not in self._owners:
                having = (each for each in self._tables.values() if each.has(name))
                self._owners[name] = next(having, None)
            owner = self._owners[name]
            if owner is not None and name in values:
                values[name] = owner.fit(name, values[name])
