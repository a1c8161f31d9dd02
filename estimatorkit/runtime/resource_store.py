"""`ResourceStore`: variables, random counters and host objects of a session between runs."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(eq=False)
class ResourceStore:
    """The state that sessions keep between runs.

    Attributes:
        values: variables by name, and the counters of random operations.
        resources: host objects by name (queues, tables, ...).
        lock: held while values change.
        making: held while a resource is created.
    """

    values: dict[str, Any] = field(default_factory=dict)
    resources: dict[Any, Any] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    making: threading.RLock = field(default_factory=threading.RLock)
    _being_read: Counter[int] = field(default_factory=Counter)

    def clear(self) -> None:
        """Discards everything, and closes resources that can be closed."""
        with self.lock:
            self.values.clear()
        for resource in list(self.resources.values()):
            close = getattr(resource, "close", None)
            if close is not None:
                close()
        self.resources.clear()

    def read(self, take: Callable[[], Sequence[Any]]) -> list[Any]:
        """A snapshot of variables as NumPy arrays, which later runs do not modify.

        The lock is held while the values are taken, so that they are consistent, but not while they
        are computed and copied.

        Args:
            take: returns the values; called under the lock.
        """
        with self.lock:
            values = take()
            self._being_read.update(map(id, values))
        try:
            return [
                np.array(value) if isinstance(value, np.ndarray) else np.asarray(value)
                for value in values
            ]
        finally:
            with self.lock:
                self._being_read.subtract(map(id, values))
                self._being_read = +self._being_read

    def to_donate(self, values: Sequence[Any]) -> list[Any]:
        """Values of variables to donate to a run: copies of those being read.

        The caller holds the lock.
        """
        if not self._being_read:
            return list(values)
        return [value.copy() if id(value) in self._being_read else value for value in values]
