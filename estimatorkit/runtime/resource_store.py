"""`ResourceStore`: variables, random counters and host objects of a session between runs.

A run takes the variables that it needs (`begin`), computes without a lock, and puts back those that
it changes (`end`). Runs that need none of these overlap with it; others wait, first come, first
served. `lock` is for short exchanges of any of the state.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

_LOOK_SECS = 0.1
"""Between looks for a cancellation, of those that wait."""


def finished(value: Any) -> Any:
    """Waits for the computation of a value and returns it; raises the error if it failed.

    NumPy would abort the process when it reads an array whose computation failed.
    """
    if isinstance(value, jax.Array):
        value.block_until_ready()
    return value


class Access(NamedTuple):
    """The variables that a run needs.

    Attributes:
        kept: read; their buffers stay.
        donated: read and changed; their buffers are donated.
        changed: given a new value.
        touched: all of them.
    """

    kept: Sequence[str]
    donated: Sequence[str]
    changed: Sequence[str]
    touched: frozenset[str]

    @staticmethod
    def of(kept: Sequence[str], donated: Sequence[str], changed: Sequence[str]) -> Access:
        """An access with `touched` filled in."""
        return Access(kept, donated, changed, frozenset([*kept, *donated, *changed]))

    def conflicts(self, other: Access) -> bool:
        """Whether one changes what the other needs."""
        if self is EVERYTHING or other is EVERYTHING:
            return True
        return not (
            self.touched.isdisjoint(other.changed) and other.touched.isdisjoint(self.changed)
        )


EVERYTHING = Access((), (), (), frozenset())
"""The access of `ResourceStore.lock`."""


class _Lock:
    """A reentrant lock that waits for the runs that change variables."""

    def __init__(self, store: ResourceStore) -> None:
        self._store = store

    def __enter__(self) -> None:
        self._store.mutex.acquire()
        try:
            self._store.wait_for(EVERYTHING, lambda: None)
        except BaseException:
            self._store.mutex.release()
            raise
        self._store.depth += 1

    def __exit__(self, *_: object) -> None:
        self._store.depth -= 1
        self._store.mutex.release()


class ResourceStore:
    """The state that sessions keep between runs.

    Args:
        resources, making: those of another store, which shares them.

    Attributes:
        values: variables by name, and the counters of random operations.
        resources: host objects by name (queues, tables, ...).
        before_take: called under the mutex before a run is given the values of names, if it is set:
            it may change them.
        lock: held while values change; waits until no run changes any.
        making: held while a resource is created.
        mutex: held while the store itself changes.
        depth: how many times the thread that holds the mutex holds `lock`.
    """

    def __init__(
        self, resources: dict[Any, Any] | None = None, making: threading.RLock | None = None
    ) -> None:
        self.values: dict[str, Any] = {}
        self.resources: dict[Any, Any] = {} if resources is None else resources
        self.before_take: Callable[[dict[str, Any], Sequence[str]], None] | None = None
        self.making = making or threading.RLock()
        self.mutex = threading.RLock()
        self.lock = _Lock(self)
        self.depth = 0
        self._settled = threading.Condition(self.mutex)
        self._changing: set[str] = set()
        self._waiting: dict[int, Access] = {}  # in order of arrival
        self._tickets = itertools.count()
        self._being_read: dict[int, int] = {}
        self._in_numpy: set[str] = set()

    def wait_for(self, access: Access, check: Callable[[], None]) -> None:
        """Waits until no run changes what an access needs, and no earlier access conflicts.

        Args:
            access: what is needed.
            check: a cancellation check.

        The caller holds the mutex, which is released meanwhile.
        """
        if self.depth or not (self._changing or self._waiting):
            return
        ticket = next(self._tickets)
        self._waiting[ticket] = access
        try:
            while not self._may_start(ticket, access):
                self._settled.wait(_LOOK_SECS)
                check()
        finally:
            del self._waiting[ticket]
            self._settled.notify_all()

    def _may_start(self, ticket: int, access: Access) -> bool:
        needed = self._changing if access is EVERYTHING else access.touched
        if not self._changing.isdisjoint(needed):
            return False
        earlier = itertools.takewhile(lambda each: each != ticket, self._waiting)
        return not any(access.conflicts(self._waiting[each]) for each in earlier)

    def begin(
        self,
        access: Access,
        take: Callable[[Sequence[str]], list[Any]],
        check: Callable[[], None],
        in_numpy: bool = False,
    ) -> tuple[list[Any], list[Any]]:
        """Takes variables for a run, which must call `end` when it has computed.

        Args:
            access: the variables.
            take: returns the values of names; called under the mutex.
            check: a cancellation check, called while this waits.
            in_numpy: whether the run takes NumPy arrays as they are. For others, variables that
                NumPy has computed go to the device, once.

        Returns:
            The values to keep and those to donate.
        """
        if not access.touched:
            return [], []
        with self.mutex:
            self.wait_for(access, check)
            if self._in_numpy and not in_numpy:
                self._to_device(access.touched)
            kept = take(access.kept)
            donated = self._to_donate(take(access.donated))
            self._changing.update(access.changed)
            if kept:
                self._add_readers(kept)
        return kept, donated

    def end(
        self,
        access: Access,
        kept: Sequence[Any],
        changed: Sequence[Any] | None,
        in_numpy: bool = False,
    ) -> None:
        """Ends a run.

        Args:
            access: as for `begin`.
            kept: the values that `begin` returned.
            changed: the new values of the changed variables; None if there are none, and None for a
                variable that keeps its value.
            in_numpy: whether the new values are NumPy arrays.
        """
        if not access.touched:
            return
        with self.mutex:
            if in_numpy:
                self._in_numpy.update(access.changed)
            if changed is not None:
                for name, value in zip(access.changed, changed, strict=True):
                    if value is not None:
                        self.values[name] = value
            self._changing.difference_update(access.changed)
            self._forget_readers(kept)
            if self._waiting:
                self._settled.notify_all()

    def clear(self) -> None:
        """Discards everything, and closes resources that can be closed."""
        with self.lock:
            self.values.clear()
            self.before_take = None
        for resource in list(self.resources.values()):
            close = getattr(resource, "close", None)
            if close is not None:
                close()
        self.resources.clear()

    def read(
        self,
        names: Sequence[str],
        take: Callable[[Sequence[str]], Sequence[Any]],
        check: Callable[[], None],
    ) -> list[Any]:
        """A snapshot of variables as NumPy arrays, which later runs do not modify.

        The values are taken together, so that they are consistent, and copied without a lock.

        Args:
            names: of the variables.
            take: returns their values; called under the mutex.
            check: a cancellation check, called while this waits.
        """
        with self.mutex:
            self.wait_for(Access.of(names, (), ()), check)
            values = take(names)
            self._add_readers(values)
        try:
            return [
                np.array(value) if isinstance(value, np.ndarray) else np.asarray(finished(value))
                for value in values
            ]
        finally:
            with self.mutex:
                self._forget_readers(values)

    def _to_device(self, names: Collection[str]) -> None:
        for name in self._in_numpy.intersection(names):
            value = self.values.get(name)
            if isinstance(value, np.ndarray):
                self.values[name] = jax.device_put(value, may_alias=False)  # runs donate it
        self._in_numpy.difference_update(names)

    def _add_readers(self, values: Sequence[Any]) -> None:
        readers = self._being_read
        for each in map(id, values):  # Counter's own arithmetic takes 5 us
            readers[each] = readers.get(each, 0) + 1

    def _forget_readers(self, values: Sequence[Any]) -> None:
        readers = self._being_read
        for each in map(id, values):
            if readers[each] > 1:
                readers[each] -= 1
            else:
                del readers[each]

    def _to_donate(self, values: list[Any]) -> list[Any]:
        """Values of variables to donate to a run: copies of those being read."""
        if not self._being_read:
            return values
        return [value.copy() if id(value) in self._being_read else value for value in values]
